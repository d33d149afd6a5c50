// out[i] = a[i] b[i] for first <= i < end, with the factors and the product in PLACE while they are worked on: see the
// CUDA twin. One thread a product; with SERIAL one thread for all. ROUND products a round.

@compute @workgroup_size(THREADS)
fn products(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
            @builtin(local_invocation_index) thread: u32) {
    let start = params.first + ((group.x + group.y * groups.x) * THREADS + thread) * ROUND;
    var end = select(start, start + 1u, start < params.end);
    if (SERIAL) {
        end = params.end;
    }
    let at = thread * 2u * ROUND;
    for (var i = start; i < end; i += ROUND) {
        let count = min(end - i, ROUND);
        if (PLACE == PLACE_SHARED) {
            for (var k = 0u; k < count; k++) {
                tile_store(at + 2u * k, a_load(i + k));
                tile_store(at + 2u * k + 1u, b_load(i + k));
            }
        }
        var x: array<F, ROUND>;
        var y: array<F, ROUND>;
        if (PLACE == PLACE_PRIVATE || PLACE == PLACE_KEPT) {
            for (var k = 0u; k < count; k++) {
                x[k] = a_load(i + k);
                y[k] = b_load(i + k);
            }
        }
        for (var k = 0u; k < count; k++) {
            if (PLACE == PLACE_GLOBAL) {
                x[0] = a_load(i + k);
                y[0] = b_load(i + k);
            }
            if (PLACE == PLACE_SHARED) {
                x[0] = tile_load(at + 2u * k);
                y[0] = tile_load(at + 2u * k + 1u);
            }
            let j = select(0u, k, PLACE == PLACE_PRIVATE || PLACE == PLACE_KEPT);
            let product = f_mul(x[j], y[j]);
            if (PLACE == PLACE_SHARED) {
                tile_store(at + 2u * k, product);
            } else if (PLACE != PLACE_KEPT || f_is_zero(product)) {
                out_store(i + k, product);
            }
        }
        if (PLACE == PLACE_SHARED) {
            for (var k = 0u; k < count; k++) {
                out_store(i + k, tile_load(at + 2u * k));
            }
        }
    }
}
