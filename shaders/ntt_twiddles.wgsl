// Factors between two passes: out[at + (k - 1) 2^log_columns + j] = c w^(j k 2^shift) for j < 2^log_columns and the
// first `len` of these places, with `powers` = { w^i for i < 2^split }, { c w^(i 2^split) }. One thread an element.

@compute @workgroup_size(THREADS)
fn ntt_twiddles(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
                @builtin(local_invocation_index) thread: u32) {
    let i = (group.x + group.y * groups.x) * THREADS + thread;
    if (i >= params.len) {
        return;
    }
    let j = i & ((1u << params.log_columns) - 1u);
    let e = (j * ((i >> params.log_columns) + 1u)) << params.shift;
    let low = powers_load(e & ((1u << params.split) - 1u));
    let high = powers_load((1u << params.split) + (e >> params.split));
    out_store(params.at + i, f_mul(low, high));
}
