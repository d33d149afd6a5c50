// The states s = combine(a[i], s) over the elements in order, from a carried state on: before each element or after it.
// combine(near, far, log) joins the results of two segments, the second (earlier in the order) 2^log elements away.
// carries[tile] has the state before a tile, carries[tiles] gets the last.
// A workgroup of 2^LOG_THREADS threads for each tile; thread t owns a run of 2^LOG_RUN neighbouring elements.

fn place(position: u32) -> u32 {
    return select(position, params.len - 1u - position, params.reversed != 0u);
}

@compute @workgroup_size(THREADS)
fn prefix(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
          @builtin(local_invocation_index) thread: u32) {
    let index = group.x + group.y * groups.x;
    if (index >= params.tiles) {
        return;
    }
    let first = (index * THREADS + thread) << LOG_RUN;
    var count = 0u;
    if (first < params.len) {
        count = min(params.len - first, 1u << LOG_RUN);
    }

    var total = identity();
    for (var r = 0u; r < count; r++) {
        total = combine(a_load(place(first + r)), total, 0u);
    }
    var carry = identity();
    if (params.carried != 0u) {
        carry = carries_load(select(index, params.tiles - 1u - index, params.reversed != 0u));
    }
    if (thread == 0u) {
        total = combine(total, carry, LOG_RUN);
    }
    for (var log = 0u; log < LOG_THREADS; log++) {
        tile_store(thread, total);
        workgroupBarrier();
        let distance = 1u << log;
        if (thread >= distance) {
            total = combine(total, tile_load(thread - distance), LOG_RUN + log);
        }
        workgroupBarrier();
    }
    tile_store(thread, total);
    workgroupBarrier();

    var state = carry;
    if (thread > 0u) {
        state = tile_load(thread - 1u);
    }
    for (var r = 0u; r < count; r++) {
        let i = place(first + r);
        let before = state;
        state = combine(a_load(i), state, 0u);
        if (params.exclusive != 0u) {
            out_store(i, before);
        } else {
            out_store(i, state);
        }
    }
    if (count > 0u && first + count == params.len) {
        carries_store(params.tiles, state);
    }
}
