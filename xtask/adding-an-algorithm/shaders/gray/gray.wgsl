// out[i] = a[i] ^ (a[i] >> 1): the Gray code of each integer. One thread an integer.

@compute @workgroup_size(THREADS)
fn gray(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) thread: u32) {
    let i = (group.x + group.y * groups.x) * THREADS + thread;
    if (i < params.len) {
        let v = a_get(i);
        out_set(i, v ^ (v >> 1u));
    }
}
