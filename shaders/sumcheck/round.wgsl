// A round: the partial sums of all chunks of pairs (sumcheck/chunk.wgsl), a workgroup for each.

@compute @workgroup_size(THREADS)
fn sumcheck_round(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
                  @builtin(local_invocation_index) thread: u32) {
    let chunk = group.x + group.y * groups.x;
    if (chunk >= params.chunks) {
        return;
    }
    now = params;
    chunk_sums(thread, chunk, challenge_of(thread, chunk == 0u));
}
