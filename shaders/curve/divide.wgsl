// out[i] = finish(i, 1 / denominator(i)), operations on the points a[i], or a[i] and b[i]: affine points that need one
// division each, by Montgomery's trick. Thread t owns the elements t, t + threads, t + 2 threads, …; out[i].x holds the
// prefix products in between.

@compute @workgroup_size(THREADS)
fn point_divide(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
                @builtin(local_invocation_index) local: u32) {
    let thread = (group.x + group.y * groups.x) * THREADS + local;
    // The last element of this thread, counted in runs: never past `len`, so that nothing overflows.
    var runs = 0u;
    if (thread < params.threads) {
        runs = (params.len - thread + params.threads - 1u) / params.threads;
    }
    var product = f_one();
    for (var run = 0u; run < runs; run++) {
        let i = thread + run * params.threads;
        out_x_store(i, product);
        product = f_mul(product, denominator(i));
    }
    var inverse = group_inverse(product, local);
    for (var run = runs; run > 0u; run--) {
        let i = thread + (run - 1u) * params.threads;
        let own = f_mul(inverse, out_x_load(i));
        inverse = f_mul(inverse, denominator(i));
        out_store(i, finish(i, own));
    }
}
