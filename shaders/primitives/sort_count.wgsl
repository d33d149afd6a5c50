// counts[d * tiles + t] = how many keys of tile t have the digit (key >> shift) & mask = d, of DIGITS. One workgroup a
// tile of TILE keys.

// Counters of each digit, so that threads rarely meet.
const COPIES = THREADS / DIGITS;

var<workgroup> counters: array<atomic<u32>, THREADS>;

@compute @workgroup_size(THREADS)
fn sort_count(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
              @builtin(local_invocation_index) thread: u32) {
    let tile = group.x + group.y * groups.x;
    if (tile >= params.tiles) {
        return;
    }
    atomicStore(&counters[thread], 0u);
    workgroupBarrier();
    let first = tile * TILE + thread;
    for (var i = 0u; i < TILE; i += THREADS) {
        if (first + i < params.len) {
            let digit = (keys_get(first + i) >> params.shift) & params.mask;
            atomicAdd(&counters[(thread % COPIES) * DIGITS + digit], 1u);
        }
    }
    workgroupBarrier();
    if (thread < DIGITS) {
        var count = 0u;
        for (var copy = 0u; copy < COPIES; copy++) {
            count += atomicLoad(&counters[copy * DIGITS + thread]);
        }
        counts_set(thread * params.tiles + tile, count);
    }
}
