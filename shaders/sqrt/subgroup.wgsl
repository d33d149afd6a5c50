// Whether points lie in the subgroup: the CUDA twin says how. `conjugate(x)` is x where there is nothing to conjugate. One thread
// a point.

@compute @workgroup_size(THREADS)
fn sqrt_subgroup(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
                 @builtin(local_invocation_index) thread: u32) {
    let i = (group.x + group.y * groups.x) * THREADS + thread;
    if (i >= params.len) {
        return;
    }
    let p = points_load(i);
    if (status_get(i) != 0u || affine_is_infinity(p)) {
        return;
    }
    var sum = jacobian_of_affine(p);
    if (params.high + 1u < params.bits) {
        sum = sums_load(i);
    }
    for (var bit = params.high; bit > params.low; bit--) {
        sum = jacobian_double(sum);
        if (((scalar_get((bit - 1u) / 32u) >> ((bit - 1u) % 32u)) & 1u) == 1u) {
            sum = jacobian_add_affine(sum, p);
        }
    }
    if (params.low > 0u) {
        sums_store(i, sum);
        return;
    }
    var inside = f_is_zero(sum.z);
    if (ENDOMORPHISM) {
        let square = c_square(sum.z);
        let x = f_sub(f_mul(f_mul(conjugate(p.x), ends_load(0u)), square), sum.x);
        let y = f_sub(f_mul(f_mul(conjugate(p.y), ends_load(1u)), f_mul(square, sum.z)), sum.y);
        inside = !inside && f_is_zero(x) && f_is_zero(y);
    }
    if (!inside) {
        points_store(i, affine_infinity());
        status_set(i, 4u);
    }
}
