// Factors between two passes: the twin of ntt/twiddles.cu, which says what they are. One thread a factor.

@compute @workgroup_size(THREADS)
fn ntt_twiddles(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
                @builtin(local_invocation_index) thread: u32) {
    let i = (group.x + group.y * groups.x) * THREADS + thread;
    if (i >= params.len) {
        return;
    }
    let j = (i - 1u) & ((1u << params.log_columns) - 1u);
    let k = select(((i - 1u) >> params.log_columns) + 1u, 0u, i == 0u);
    let e = (j * k) << params.shift;
    let low = powers_load(e & ((1u << params.split) - 1u));
    let high = powers_load((1u << params.split) + (e >> params.split));
    out_store(params.at + i, f_mul(low, high));
}
