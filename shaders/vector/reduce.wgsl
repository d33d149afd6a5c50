// out[c] = the reduction of chunk c: combine(a[s], combine(a[s + 1], …)), from identity() at its end.
// combine(near, far, log) joins the results of two segments, the second 2^log elements behind the first.
// A workgroup of 2^LOG_THREADS threads for each chunk; thread t owns the chunk's elements t, t + THREADS, …

@compute @workgroup_size(THREADS)
fn reduce(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
          @builtin(local_invocation_index) thread: u32) {
    let chunk = group.x + group.y * groups.x;
    if (chunk >= params.chunks) {
        return;
    }
    let before = chunk << params.log_chunk;
    let rest = params.len - before;
    let count = min(rest, 1u << params.log_chunk);
    let start = select(before, rest - count, params.reversed != 0u);

    var acc = identity();
    if (thread < count) {
        for (var round = (count - thread + THREADS - 1u) / THREADS; round > 0u; round--) {
            acc = combine(term(start + thread + (round - 1u) * THREADS), acc, LOG_THREADS);
        }
    }
    tile_store(thread, acc);
    workgroupBarrier();
    for (var log = LOG_THREADS; log > 0u; log--) {
        let half = 1u << (log - 1u);
        if (thread < half) {
            acc = combine(acc, tile_load(thread + half), log - 1u);
            tile_store(thread, acc);
        }
        workgroupBarrier();
    }
    if (thread == 0u) {
        out_store(select(chunk, params.chunks - 1u - chunk, params.reversed != 0u), acc);
    }
}
