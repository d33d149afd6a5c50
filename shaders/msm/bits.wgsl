// Sums of runs by the bits of their places: see the CUDA twin. One workgroup a run.

@compute @workgroup_size(THREADS)
fn msm_bits(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
            @builtin(local_invocation_index) thread: u32) {
    let run = group.x + group.y * groups.x;
    let row = run / params.width;
    let log = params.log;
    let runs = row < params.rows;
    let weighted = row < params.weighted;
    let start = run << log;
    for (var level = 0u; level < log; level++) {
        let higher = log - 1u - level;
        let kind = thread >> higher;
        if (runs && kind <= select(0u, level, weighted)) {
            let at = start + (((thread & ((1u << higher) - 1u)) << (level + 1u)) | ((1u << kind) >> 1u));
            let other = at + (1u << level);
            var a: Xyzz;
            var b: Xyzz;
            if (level == 0u || (level == 1u && kind == 1u)) {
                a = input_load(at);
                b = input_load(other);
            } else {
                a = scratch_load(at);
                b = scratch_load(other);
            }
            scratch_store(at, xyzz_add(a, b));
        }
        storageBarrier();
    }
    let kinds = select(log, 1u, params.weigh == 1u);
    if (runs && thread <= select(0u, kinds, weighted)) {
        let out_row = select(params.weighted * kinds + row, params.weighted * thread + row, weighted);
        let place = out_row * params.width + run % params.width;
        if (params.weigh == 1u && thread == 1u) {
            // By the highest bit first. A run of one element has none.
            var sum = xyzz_infinity();
            for (var bit = log; bit > 0u; bit--) {
                sum = xyzz_double(sum);
                let at = start + (1u << (bit - 1u));
                if (log == 1u) {
                    sum = input_load(at);
                } else {
                    sum = xyzz_add(sum, scratch_load(at));
                }
            }
            out_store(place, sum);
            return;
        }
        let at = start + ((1u << thread) >> 1u);
        if (log == 0u || (log == 1u && thread == 1u)) {
            out_store(place, input_load(at));
        } else {
            out_store(place, scratch_load(at));
        }
    }
}
