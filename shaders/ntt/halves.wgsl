// The first round of butterflies of a transform that is then two, with its factors: the twin of ntt/halves.cu, which says what they
// are. One thread a pair.
//
// Sources: Gentleman and Sande, "Fast Fourier transforms: for fun and profit", AFIPS Conference Proceedings 29 (1966); "PreNTT:
// a GPU-based acceleration method for number theoretic transforms of zk-SNARKs", sections 2 and 3.1, for a kernel of its own.

// Element `row` of a line that is loaded from a position on.
fn element(line: u32, start: u32, row: u32) -> F {
    let position = start + (row << params.stride_in);
    let x = x_load(address(line, position, params.row_in));
    if (is_set(SCALE_IN)) {
        return scaled(position, x);
    }
    return x;
}

@compute @workgroup_size(THREADS)
fn ntt_halves(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
              @builtin(local_invocation_index) thread: u32) {
    let line = params.first + (group.x + group.y * groups.x) * THREADS + thread;
    if (line >= params.lines) {
        return;
    }
    let start = place(line, false, params.stride_in, params.pitch_in);
    let target_start = place(line, false, params.stride_out, params.pitch_out);
    let e = twiddle_index(line) << params.shift;
    let a = element(line, start, 0u);
    let b = element(line, start, 1u);
    let high = params.twiddles + (1u << params.split);
    var sum = f_add(a, b);
    if (is_set(TWIDDLE_ZERO)) {
        sum = f_mul(sum, twiddles_load(high));
    }
    y_store(address(line, target_start, params.row_out), sum);
    let low = twiddles_load(params.twiddles + (e & ((1u << params.split) - 1u)));
    let factor = f_mul(low, twiddles_load(high + (e >> params.split)));
    y_store(address(line, target_start + (1u << params.stride_out), params.row_out), f_mul(f_sub(a, b), factor));
}
