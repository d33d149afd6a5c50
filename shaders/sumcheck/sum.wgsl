// The sum of what the first `count` threads of each group have, or all if they are fewer. The others have zeros. In the
// group's first thread.
fn group_sum(own: F, thread: u32, group: u32, count: u32) -> F {
    var total = own;
    tile_store(thread, total);
    workgroupBarrier();
    // Those of several devices need be no power of two.
    var below = min(group, count) - 1u;
    below |= below >> 1u;
    below |= below >> 2u;
    below |= below >> 4u;
    below |= below >> 8u;
    for (var span = (below + 1u) / 2u; span > 0u; span /= 2u) {
        if (thread % group < span) {
            total = f_add(total, tile_load(thread + span));
            tile_store(thread, total);
        }
        workgroupBarrier();
    }
    return total;
}
