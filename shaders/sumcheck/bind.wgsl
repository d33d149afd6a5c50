// folded[x] = a + challenge * (b - a), where a and b are the elements x and x + len of the source, or with `neighbours` 2x and
// 2x + 1. One thread an element of the result.

@compute @workgroup_size(THREADS)
fn sumcheck_bind(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
                 @builtin(local_invocation_index) thread: u32) {
    let x = (group.x + group.y * groups.x) * THREADS + thread;
    if (x >= params.len) {
        return;
    }
    let neighbours = params.neighbours != 0u;
    let a = source_lift(select(x, 2u * x, neighbours));
    let b = source_lift(select(x + params.len, 2u * x + 1u, neighbours));
    folded_store(x, f_add(a, f_mul(f_sub(b, a), challenge_load(0u))));
}
