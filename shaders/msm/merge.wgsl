// Joins the nodes that msm_accumulate leaves: see the CUDA twin. One workgroup for THREADS nodes.

@compute @workgroup_size(THREADS)
fn msm_merge(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
             @builtin(local_invocation_index) thread: u32) {
    let block = group.x + group.y * groups.x;
    // Nodes that lie `stride` apart.
    let count = (params.nodes + params.stride - 1u) / params.stride;
    let begin = block * THREADS;
    for (var width = 1u; width < THREADS; width *= 2u) {
        let own = begin + 2u * width * thread;
        let other = own + width;
        if (thread < THREADS / 2u / width && other < count) {
            let a = 2u * own * params.stride;
            let b = 2u * other * params.stride;
            let a_first = keys_get(a);
            let a_last = keys_get(a + 1u);
            let b_first = keys_get(b);
            let b_last = keys_get(b + 1u);
            // Slices without pairs come last.
            if (b_first != params.sentinel) {
                let a_one = a_first == a_last;
                let b_one = b_first == b_last;
                let joined = a_last == b_first;
                var sum = sums_load(b);
                if (joined) {
                    sum = xyzz_add(sums_load(a + u32(!a_one)), sum);
                } else if (!a_one) {
                    buckets_store(a_last, sums_load(a + 1u));
                }
                // `sum` is that of b's first bucket: part of a's node, or done.
                if (!b_one && !(joined && a_one)) {
                    buckets_store(b_first, sum);
                } else {
                    sums_store(a + u32(!(joined && a_one)), sum);
                }
                if (!b_one) {
                    sums_store(a + 1u, sums_load(b + 1u));
                }
                keys_set(a + 1u, b_last);
            }
        }
        storageBarrier();
    }
    if (params.last == 1u && block == 0u && thread == 0u) {
        let first = keys_get(0u);
        let last = keys_get(1u);
        if (first != params.sentinel) {
            buckets_store(first, sums_load(0u));
            if (first != last) {
                buckets_store(last, sums_load(1u));
            }
        }
    }
}
