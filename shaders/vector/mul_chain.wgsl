// out[i] = LENGTH steps from x[i], each of which waits for the one before: as STEP says: see the
// CUDA twin. One thread an element.
// Bound by arithmetic alone: it tells the rate of multiplications that a device can reach.

@compute @workgroup_size(THREADS)
fn mul_chain(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
             @builtin(local_invocation_index) thread: u32) {
    let i = (group.x + group.y * groups.x) * THREADS + thread;
    if (i >= params.len) {
        return;
    }
    var factor = x_load(i);
    var product = factor;
    var sum = f_zero();
    if (STEP == STEP_SHOUP) {
        factor = w_load(0u);
    }
    var k = i;
    for (var j = 0u; j < LENGTH; j++) {
        if (STEP == STEP_SQUARE) {
            factor = product;
        }
        if (STEP == STEP_MAC) {
            product = x_load(k);
            k = select(k + 1u, 0u, k + 1u == params.len);
        }
        product = f_mul(product, factor);
        if (STEP == STEP_MAC) {
            sum = f_add(sum, product);
        }
    }
    if (STEP == STEP_MAC) {
        product = sum;
    }
    out_store(i, product);
}
