// 1 / x for the x of each thread of a workgroup, none of which is zero, with one inversion for THREADS / ROOTS of them: see the
// CUDA twin. All threads must call it. The tile has 2 THREADS elements.
fn group_inverse(x: F, thread: u32) -> F {
    tile_store(THREADS + thread, x);
    workgroupBarrier();
    for (var width = THREADS / 2u; width >= ROOTS; width /= 2u) {
        let node = width + thread;
        if (thread < width) {
            tile_store(node, f_mul(tile_load(2u * node), tile_load(2u * node + 1u)));
        }
        workgroupBarrier();
    }
    if (thread < ROOTS) {
        tile_store(ROOTS + thread, f_inverse(tile_load(ROOTS + thread)));
    }
    workgroupBarrier();
    for (var width = ROOTS; width < THREADS; width *= 2u) {
        let node = width + thread;
        if (thread < width) {
            let inverse = tile_load(node);
            let left = tile_load(2u * node);
            tile_store(2u * node, f_mul(inverse, tile_load(2u * node + 1u)));
            tile_store(2u * node + 1u, f_mul(inverse, left));
        }
        workgroupBarrier();
    }
    return tile_load(THREADS + thread);
}
