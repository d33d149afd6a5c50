// partials[partials_at + c * POINTS + p] = the sum over the pairs x of chunk c of what `pair` has at point p, its weight
// included, which folds the tables on its way by the challenge. By a workgroup, for 2^log_chunk neighbouring pairs; thread t owns
// its pairs t, t + THREADS, …
fn chunk_sums(thread: u32, chunk: u32, challenge: F) {
    let first = chunk << now.log_chunk;
    let count = min(now.pairs - first, 1u << now.log_chunk);
    var sums = sums_zero();
    for (var i = thread; i < count; i += THREADS) {
        sums = pair(first + i, challenge, sums);
    }
    for (var p = 0u; p < POINTS; p++) {
        let total = group_sum(sum_at(sums, p), thread, THREADS, 1u << now.log_chunk);
        if (thread == 0u) {
            partials_store(now.partials_at + chunk * POINTS + p, scaled(total, first));
        }
    }
}
