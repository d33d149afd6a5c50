// out[stride i] = the digest of the i-th CHILDREN elements of `children`, digests that follow each other. One thread a digest.

@compute @workgroup_size(THREADS)
fn compress(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
            @builtin(local_invocation_index) thread: u32) {
    let i = (group.x + group.y * groups.x) * THREADS + thread;
    if (i < params.len) {
        out_store_digest(i * params.stride * DIGEST, permute_state(children_load_digests(i * CHILDREN)));
    }
}
