// out[c * rows + r] = a[r * columns + c].
// A workgroup for each tile of SIDE x SIDE elements, through workgroup memory with one element of padding a row.

@compute @workgroup_size(THREADS)
fn transpose_tiles(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
                   @builtin(local_invocation_index) thread: u32) {
    let index = group.x + group.y * groups.x;
    if (index >= params.count) {
        return;
    }
    let top = index / params.tiles * SIDE;
    let left = index % params.tiles * SIDE;
    for (var t = thread; t < SIDE * SIDE; t += THREADS) {
        let r = t / SIDE;
        let c = t % SIDE;
        if (top + r < params.rows && left + c < params.columns) {
            tile_store(r * (SIDE + 1u) + c, a_load((top + r) * params.columns + left + c));
        }
    }
    workgroupBarrier();
    for (var t = thread; t < SIDE * SIDE; t += THREADS) {
        let r = t % SIDE;
        let c = t / SIDE;
        if (top + r < params.rows && left + c < params.columns) {
            out_store((left + c) * params.rows + top + r, tile_load(r * (SIDE + 1u) + c));
        }
    }
}
