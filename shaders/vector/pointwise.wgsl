// out[i] = op(a[i], b[i]). One thread an element.

@compute @workgroup_size(THREADS)
fn pointwise(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
             @builtin(local_invocation_index) thread: u32) {
    let i = (group.x + group.y * groups.x) * THREADS + thread;
    if (i < params.len) {
        out_store(i, op(a_load(i), b_load(i)));
    }
}
