// out[x] = eq[2^low + low bits of x] * eq[high_at + the other bits of x]. One thread an element.

struct Params {
    len: u32,
    low: u32,
    high_at: u32,
}

@compute @workgroup_size(THREADS)
fn sumcheck_outer(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
                  @builtin(local_invocation_index) thread: u32) {
    let x = (group.x + group.y * groups.x) * THREADS + thread;
    let size = 1u << params.low;
    if (x < params.len) {
        out_store(x, f_mul(eq_load(size + (x & (size - 1u))), eq_load(params.high_at + (x >> params.low))));
    }
}
