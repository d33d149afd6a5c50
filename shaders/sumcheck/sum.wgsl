// The sum of what the first `count` threads of each group have, a power of two, or all if they are fewer. In the group's first
// thread.
fn group_sum(own: F, thread: u32, group: u32, count: u32) -> F {
    var total = own;
    tile_store(thread, total);
    workgroupBarrier();
    for (var span = min(group, count) / 2u; span > 0u; span /= 2u) {
        if (thread % group < span) {
            total = f_add(total, tile_load(thread + span));
            tile_store(thread, total);
        }
        workgroupBarrier();
    }
    return total;
}
