// out[i] = op(i), an operation on the points a[i], or a[i] and b[i]. One thread an element.

@compute @workgroup_size(THREADS)
fn point_map(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
             @builtin(local_invocation_index) thread: u32) {
    let i = (group.x + group.y * groups.x) * THREADS + thread;
    if (i < params.len) {
        out_store(i, op(i));
    }
}
