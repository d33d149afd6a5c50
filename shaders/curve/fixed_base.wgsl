// Multiples of one point by a table: the CUDA twin says how. One thread a multiple.

@compute @workgroup_size(THREADS)
fn point_fixed_base(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
                    @builtin(local_invocation_index) thread: u32) {
    let i = (group.x + group.y * groups.x) * THREADS + thread;
    if (i >= params.len) {
        return;
    }
    var sum = xyzz_infinity();
    if (params.carried != 0u) {
        sum = out_load(i);
    }
    for (var digit = params.first; digit < params.first + params.digits; digit++) {
        let value = (k_get(i * params.words + digit / 4u) >> (8u * (digit % 4u))) & 255u;
        if (value != 0u) {
            sum = xyzz_add_affine(sum, table_load(255u * digit + value - 1u));
        }
    }
    out_store(i, sum);
}
