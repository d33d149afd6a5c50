// Sums of parts of rows: see the CUDA twin. One workgroup a sum.

@compute @workgroup_size(THREADS)
fn msm_bits(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
            @builtin(local_invocation_index) thread: u32) {
    let task = group.x + group.y * groups.x;
    let each = params.log + 1u;
    var bit = params.log;
    var row = task - params.weighted * params.log;
    if (task < params.weighted * each) {
        row = task / each;
        bit = task % each;
    }
    let whole = bit == params.log;
    let len = (1u << params.log) >> u32(!whole);
    let own = task * THREADS + thread;
    let busy = min(len, THREADS);
    let runs = task < params.sums;
    // First elements are added, then what other threads have.
    var count = 0u;
    if (runs && thread < busy) {
        count = (len - thread + THREADS - 1u) / THREADS;
    }
    var sum = xyzz_infinity();
    for (var k = 0u; k < count; k++) {
        let i = thread + k * THREADS;
        let low = i & ((1u << bit) - 1u);
        let at = select((2u * (i - low)) | (1u << bit) | low, i, whole);
        sum = xyzz_add(sum, input_load((row << params.log) + at));
    }
    if (count > 0u) {
        scratch_store(own, sum);
    }
    storageBarrier();
    for (var width = THREADS / 2u; width > 0u; width /= 2u) {
        if (runs && thread < width && thread + width < busy) {
            sum = xyzz_add(scratch_load(own), scratch_load(own + width));
            scratch_store(own, sum);
        }
        storageBarrier();
    }
    if (runs && thread == 0u) {
        out_store(task, scratch_load(own));
    }
}
