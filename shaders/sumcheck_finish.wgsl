// The challenge of the last round, and the value of each table at it, behind the messages. One workgroup; thread t owns the
// tables t, t + THREADS, …

@compute @workgroup_size(THREADS)
fn sumcheck_finish(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
    if (group.x + group.y > 0u) {
        return;
    }
    let challenge = draw(thread, true);
    for (var table = thread; table < COLUMNS; table += THREADS) {
        let a = end_of(table, 0u);
        let b = end_of(table, 1u);
        partials_store(params.message_at + DEGREE + table, f_add(a, f_mul(f_sub(b, a), challenge)));
    }
}
