// One layer of the sums of buckets: see the CUDA twin. One thread a run of elements.

@compute @workgroup_size(THREADS)
fn msm_layer(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
             @builtin(local_invocation_index) local: u32) {
    let thread = (group.x + group.y * groups.x) * THREADS + local;
    if (thread >= params.rows * params.width) {
        return;
    }
    let shift = params.weighted * params.width;
    let weighted = thread < shift;
    let half = u32(weighted);
    var sum = xyzz_infinity();
    var weighted_sum = xyzz_infinity();
    // Even steps add x_t to the sum of those from t on, odd ones that to the weighted sum.
    for (var at = 1u << (params.log + half); at > 0u; at--) {
        let t = (at - 1u) >> half;
        let adds = !weighted || at % 2u == 0u;
        if (!adds && t == 0u) {
            break;
        }
        var a = weighted_sum;
        var b = sum;
        if (adds) {
            a = sum;
            b = input_load((thread << params.log) + t);
        }
        a = xyzz_add(a, b);
        if (adds) {
            sum = a;
        } else {
            weighted_sum = a;
        }
    }
    if (weighted) {
        out_store(thread, sum);
        out_store(thread + shift, weighted_sum);
    } else {
        out_store(thread + shift, sum);
    }
}
