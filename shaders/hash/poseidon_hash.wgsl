// out[i] = element 0 of the permuted state of 0 and the WIDTH - 1 elements x[(WIDTH - 1) i], ... One thread a state.

@compute @workgroup_size(THREADS)
fn poseidon_hash(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
                 @builtin(local_invocation_index) thread: u32) {
    let i = (group.x + group.y * groups.x) * THREADS + thread;
    if (i < params.len) {
        out_store(i, permute_state(x_load_row(i * (WIDTH - 1u))).s0);
    }
}
