// Weighted sums of runs of buckets: see the CUDA twin. One thread a run.

@compute @workgroup_size(THREADS)
fn msm_running(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
               @builtin(local_invocation_index) local: u32) {
    let thread = (group.x + group.y * groups.x) * THREADS + local;
    let width = 1u << (params.row_log - params.log);
    if (thread >= params.rows * width) {
        return;
    }
    var sum = xyzz_infinity();
    var weighted_sum = xyzz_infinity();
    // Even steps add x_t to the sum of those from t on, odd ones that to the weighted sum, sum of t x_t.
    for (var at = 2u << params.log; at > 1u; at--) {
        let adds = at % 2u == 0u;
        var a = weighted_sum;
        var b = sum;
        if (adds) {
            a = sum;
            b = input_load((thread << params.log) + (at / 2u - 1u));
        }
        a = xyzz_add(a, b);
        if (adds) {
            sum = a;
        } else {
            weighted_sum = a;
        }
    }
    // `before` sums: even steps double, odd ones add where the number has the bit. Then these to the weighted sum, that to itself if
    // buckets are odd, and the sum.
    let before = (thread % width) << params.log;
    var shift = xyzz_infinity();
    for (var at = 2u * params.row_log; at > 0u; at--) {
        let doubles = at % 2u == 0u;
        if (doubles || ((before >> (at / 2u)) & 1u) == 1u) {
            var b = sum;
            if (doubles) {
                b = shift;
            }
            shift = xyzz_add(shift, b);
        }
    }
    for (var step = 0u; step < 3u; step++) {
        var b = shift;
        if (step == 1u) {
            b = weighted_sum;
        }
        if (step == 2u) {
            b = sum;
        }
        if (step != 1u || params.odd == 1u) {
            weighted_sum = xyzz_add(weighted_sum, b);
        }
    }
    out_store(thread, weighted_sum);
}
