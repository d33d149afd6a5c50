// out[i] = base[0] * base[1]^i for i < len, with base[1 + j] = base[1]^(2^j) given for j < 32.
// One thread owns RUN neighbouring elements.

@compute @workgroup_size(THREADS)
fn powers(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
          @builtin(local_invocation_index) thread: u32) {
    let first = ((group.x + group.y * groups.x) * THREADS + thread) * RUN;
    if (first >= params.len) {
        return;
    }
    var x = base_load(0u);
    for (var j = 0u; j < 32u; j++) {
        if (((first >> j) & 1u) == 1u) {
            x = f_mul(x, base_load(1u + j));
        }
    }
    let step = base_load(1u);
    for (var i = first; i < min(first + RUN, params.len); i++) {
        out_store(i, x);
        x = f_mul(x, step);
    }
}
