// counts[c * columns + (f << bits) + d] = how often digit f is d among the keys of chunk c.
// The digits of a key are the `fields` groups of `bits` bits of (key >> shift) & mask; columns = fields << bits.
// One workgroup for each chunk of keys and each window of WINDOW columns, the windows of a chunk side by side.

var<workgroup> counters: array<atomic<u32>, WINDOW>;

@compute @workgroup_size(THREADS)
fn histogram(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
             @builtin(local_invocation_index) thread: u32) {
    let index = group.x + group.y * groups.x;
    // Nothing launches without windows; so no compiler has to guard the division.
    let windows = max(params.windows, 1u);
    let chunk = index / windows;
    if (chunk >= params.chunks) {
        return;
    }
    let window = (index % windows) * WINDOW;
    let columns = params.fields << params.bits;
    let width = min(columns - window, WINDOW);
    for (var i = thread; i < width; i += THREADS) {
        atomicStore(&counters[i], 0u);
    }
    workgroupBarrier();
    let end = min((chunk + 1u) * params.chunk, params.len);
    for (var i = chunk * params.chunk + thread; i < end; i += THREADS) {
        let key = (keys_get(i) >> params.shift) & params.mask;
        for (var f = 0u; f < params.fields; f++) {
            let digit = (key >> (f * params.bits)) & ((1u << params.bits) - 1u);
            let column = (f << params.bits) + digit - window;
            if (column < width) {
                atomicAdd(&counters[column], 1u);
            }
        }
    }
    workgroupBarrier();
    for (var i = thread; i < width; i += THREADS) {
        counts_set(chunk * columns + window + i, atomicLoad(&counters[i]));
    }
}
