// out[i] = a[i]^exponent, left to right over the exponent's bits. One thread an element.

@compute @workgroup_size(THREADS)
fn exponentiate(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
                @builtin(local_invocation_index) thread: u32) {
    let i = (group.x + group.y * groups.x) * THREADS + thread;
    if (i >= params.len) {
        return;
    }
    let x = a_load(i);
    var r = f_one();
    for (var bit = params.bits; bit > 0u; bit--) {
        r = f_mul(r, r);
        if (((exponent_get((bit - 1u) / 32u) >> ((bit - 1u) % 32u)) & 1u) == 1u) {
            r = f_mul(r, x);
        }
    }
    out_store(i, r);
}
