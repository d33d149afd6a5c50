// owners[indices[i]] = the largest i + 1 for i < count, or what was there if that is larger. Indices that are not below len claim
// nothing. One thread an index.

@compute @workgroup_size(THREADS)
fn last_writer(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
         @builtin(local_invocation_index) thread: u32) {
    let i = (group.x + group.y * groups.x) * THREADS + thread;
    if (i >= params.count) {
        return;
    }
    let index = indices_get(i);
    if (index < params.len) {
        owners_max(index, i + 1u);
    }
}
