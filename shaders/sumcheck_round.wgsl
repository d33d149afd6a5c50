// partials[partials_at + c * POINTS + p] = the sum over the pairs x of chunk c of what `pair` has at point p, its weight
// included, which folds the tables on its way by the challenge. A workgroup for each chunk of 2^log_chunk neighbouring pairs;
// thread t owns its pairs t, t + THREADS, …

@compute @workgroup_size(THREADS)
fn sumcheck_round(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
                  @builtin(local_invocation_index) thread: u32) {
    let chunk = group.x + group.y * groups.x;
    if (chunk >= params.chunks) {
        return;
    }
    let first = chunk << params.log_chunk;
    let count = min(params.pairs - first, 1u << params.log_chunk);
    let challenge = challenge_of(thread, chunk == 0u);
    var sums = sums_zero();
    for (var i = thread; i < count; i += THREADS) {
        sums = pair(first + i, challenge, sums);
    }
    for (var p = 0u; p < POINTS; p++) {
        var total = sum_at(sums, p);
        tile_store(thread, total);
        workgroupBarrier();
        for (var span = THREADS / 2u; span > 0u; span /= 2u) {
            if (thread < span) {
                total = f_add(total, tile_load(thread + span));
                tile_store(thread, total);
            }
            workgroupBarrier();
        }
        if (thread == 0u) {
            partials_store(params.partials_at + chunk * POINTS + p, scaled(total, first));
        }
    }
}
