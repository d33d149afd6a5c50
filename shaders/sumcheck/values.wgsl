// The value of each table at the challenge of the last round, behind the messages. By a workgroup; thread t owns the tables t,
// t + THREADS, …
fn table_values(thread: u32, folds: u32, challenge: F) {
    for (var table = thread; table < COLUMNS; table += THREADS) {
        let a = end_of(table, folds, 0u);
        let b = end_of(table, folds, 1u);
        partials_store(now.message_at + DEGREE * (folds + 1u) + table, f_add(a, f_mul(f_sub(b, a), challenge)));
    }
}
