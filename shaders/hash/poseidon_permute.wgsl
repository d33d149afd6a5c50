// Permutes each of `len` states of WIDTH elements. One thread a state.

@compute @workgroup_size(THREADS)
fn poseidon_permute(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
                    @builtin(local_invocation_index) thread: u32) {
    let i = (group.x + group.y * groups.x) * THREADS + thread;
    if (i < params.len) {
        states_store_state(i * WIDTH, permute_state(states_load_state(i * WIDTH)));
    }
}
