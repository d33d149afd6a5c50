// out[i] = offsets[t] + the sum of the elements of `input` before i in i's tile t, modulo 2^32. One workgroup a tile of
// TILE elements, of which a thread owns RUN neighbours. Elements of `input` from `input_len` on count as 0.

const RUN = TILE / THREADS;

// The tile, with a gap after every 32 words, so that threads that read runs use different banks.
var<workgroup> tile: array<u32, TILE + TILE / 32u>;

fn gap(i: u32) -> u32 {
    return i + i / 32u;
}

@compute @workgroup_size(THREADS)
fn scan_tiles(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
              @builtin(local_invocation_index) thread: u32) {
    let index = group.x + group.y * groups.x;
    if (index >= (params.len + TILE - 1u) / TILE) {
        return;
    }
    let first = index * TILE;
    for (var i = thread; i < TILE; i += THREADS) {
        var value = 0u;
        if (first + i < params.input_len) {
            value = input_get(first + i);
        }
        tile[gap(i)] = value;
    }
    workgroupBarrier();
    var sum = 0u;
    for (var i = 0u; i < RUN; i++) {
        sum += tile[gap(thread * RUN + i)];
    }
    var before = offsets_get(index) + group_scan(thread, sum).x;
    for (var i = 0u; i < RUN; i++) {
        let at = gap(thread * RUN + i);
        let value = tile[at];
        tile[at] = before;
        before += value;
    }
    workgroupBarrier();
    for (var i = thread; i < TILE; i += THREADS) {
        if (first + i < params.len) {
            out_set(first + i, tile[gap(i)]);
        }
    }
}
