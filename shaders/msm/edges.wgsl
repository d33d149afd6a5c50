// edges[j] = 1 if keys[2 j] and keys[2 j + 1] are different buckets, else 0. One thread a pair of keys.

@compute @workgroup_size(THREADS)
fn msm_edges(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
             @builtin(local_invocation_index) thread: u32) {
    let j = (group.x + group.y * groups.x) * THREADS + thread;
    if (j >= (params.len + 1u) / 2u) {
        return;
    }
    var edge = 0u;
    if (2u * j + 1u < params.len) {
        let last = keys_get(2u * j + 1u);
        edge = u32(keys_get(2u * j) != last && last < params.sentinel);
    }
    edges_set(j, edge);
}
