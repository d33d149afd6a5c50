// out[i] = a[indices[i]] for i < count, and 0 where the index is not below len. One thread an element.

@compute @workgroup_size(THREADS)
fn gather(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
          @builtin(local_invocation_index) thread: u32) {
    let i = (group.x + group.y * groups.x) * THREADS + thread;
    if (i >= params.count) {
        return;
    }
    let index = indices_get(i);
    if (index < params.len) {
        out_store(i, a_load(index));
    } else {
        out_store(i, f_zero());
    }
}
