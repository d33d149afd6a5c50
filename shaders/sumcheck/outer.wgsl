// out[x] = low_eq[low bits of x] * high_eq[the other bits of x]. One thread an element.

@compute @workgroup_size(THREADS)
fn sumcheck_outer(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
                  @builtin(local_invocation_index) thread: u32) {
    let x = (group.x + group.y * groups.x) * THREADS + thread;
    let size = 1u << params.low;
    if (x < params.len) {
        out_store(x, f_mul(low_eq_load(x & (size - 1u)), high_eq_load(x >> params.low)));
    }
}
