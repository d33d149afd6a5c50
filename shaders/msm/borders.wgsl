// Where the elements of each bucket start and end: see the CUDA twin. One thread a key.

@compute @workgroup_size(THREADS)
fn msm_borders(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
               @builtin(local_invocation_index) thread: u32) {
    let i = (group.x + group.y * groups.x) * THREADS + thread;
    if (i >= params.len) {
        return;
    }
    let key = keys_get(i);
    if (key >= params.sentinel) {
        return;
    }
    var before = params.sentinel;
    if (i > 0u) {
        before = keys_get(i - 1u);
    }
    if (before != key) {
        firsts_set(key, i);
    }
    var next = params.sentinel;
    if (i + 1u < params.len) {
        next = keys_get(i + 1u);
    }
    if (next != key) {
        ends_set(key, i + 1u);
    }
}
