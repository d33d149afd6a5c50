// x[i] = x[i]^(LENGTH + 1), by LENGTH multiplications that each wait for the one before. One thread an element.
// Bound by arithmetic alone: it tells the rate of multiplications that a device can reach.

struct Params {
    len: u32,
}

@compute @workgroup_size(THREADS)
fn mul_chain(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
             @builtin(local_invocation_index) thread: u32) {
    let i = (group.x + group.y * groups.x) * THREADS + thread;
    if (i >= params.len) {
        return;
    }
    let factor = x_load(i);
    var product = factor;
    for (var j = 0u; j < LENGTH; j++) {
        product = f_mul(product, factor);
    }
    x_store(i, product);
}
