// out[i] = (scalars[0] - scalars[1] combined[i]) inverses[i], plus what was there if `add` is 1. One thread an element.

@compute @workgroup_size(THREADS)
fn fri_quotients(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
                 @builtin(local_invocation_index) thread: u32) {
    let i = (group.x + group.y * groups.x) * THREADS + thread;
    if (i < params.len) {
        let rest = f_sub(scalars_load(0u), f_mul(scalars_load(1u), combined_load(i)));
        var r = f_mul(rest, inverses_load(i));
        if (params.add != 0u) {
            r = f_add(out_load(i), r);
        }
        out_store(i, r);
    }
}
