// out[i] = 1 / a[i], and 0 where a[i] is 0 (Montgomery's trick).
// Thread t owns the elements t, t + threads, t + 2 threads, …; `out` holds the prefix products in between.

@compute @workgroup_size(THREADS)
fn batch_inverse(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
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
        out_store(i, product);
        product = f_mul(product, nonzero(a_load(i)));
    }
    var inverse = group_inverse(product, local);
    for (var run = runs; run > 0u; run--) {
        let i = thread + (run - 1u) * params.threads;
        let x = a_load(i);
        if (f_is_zero(x)) {
            out_store(i, f_zero());
        } else {
            out_store(i, f_mul(inverse, out_load(i)));
            inverse = f_mul(inverse, x);
        }
    }
}

fn nonzero(x: F) -> F {
    if (f_is_zero(x)) {
        return f_one();
    }
    return x;
}
