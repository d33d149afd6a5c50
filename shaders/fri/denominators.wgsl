// out[i] = z[0] - (point number first + i of the subgroup in bit-reversed order). One thread a point.

@compute @workgroup_size(THREADS)
fn fri_denominators(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
                    @builtin(local_invocation_index) thread: u32) {
    let i = (group.x + group.y * groups.x) * THREADS + thread;
    if (i < params.len) {
        let number = params.first + i;
        let x = f_lift(point_at(number >> 1u, params.low_bits));
        var r = f_sub(z_load(0u), x);
        if ((number & 1u) != 0u) {
            r = f_add(z_load(0u), x);
        }
        out_store(i, r);
    }
}
