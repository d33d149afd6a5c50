// sums[t] = the sum of tile t of `input`, modulo 2^32. One workgroup a tile of TILE elements. Elements from `len` on
// count as 0.

@compute @workgroup_size(THREADS)
fn scan_sums(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
             @builtin(local_invocation_index) thread: u32) {
    let index = group.x + group.y * groups.x;
    if (index >= params.tiles) {
        return;
    }
    let first = index * TILE + thread;
    var sum = 0u;
    for (var i = 0u; i < TILE; i += THREADS) {
        if (first + i < params.len) {
            sum += input_get(first + i);
        }
    }
    let total = group_scan(thread, sum).y;
    if (thread == 0u) {
        sums_set(index, total);
    }
}
