// The challenge of the last round, and the value of each table at it, behind the messages. One workgroup.

@compute @workgroup_size(THREADS)
fn sumcheck_finish(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
    if (group.x + group.y > 0u) {
        return;
    }
    now = params;
    previous_values(thread);
    table_values(thread, 0u, draw(thread, 0u, true));
}
