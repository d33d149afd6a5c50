// Whether points in affine form are points of the curve: the CUDA twin says how. One thread a point.

// Adding zero reduces what is not below p.
fn is_canonical(a: F) -> bool {
    return f_is_zero(f_sub(a, f_add(a, f_zero())));
}

@compute @workgroup_size(THREADS)
fn sqrt_on_curve(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
                 @builtin(local_invocation_index) thread: u32) {
    let i = (group.x + group.y * groups.x) * THREADS + thread;
    if (i >= params.len) {
        return;
    }
    let p = points_load(i);
    var wrong = 0u;
    if (!is_canonical(p.x) || !is_canonical(p.y)) {
        wrong = 2u;
    } else if (!affine_is_infinity(p)) {
        var value = f_add(c_square(p.x), coefficients_load(0u));
        value = f_add(f_mul(value, p.x), coefficients_load(1u));
        if (!f_is_zero(f_sub(c_square(p.y), value))) {
            wrong = 3u;
        }
    }
    status_set(i, wrong);
    if (wrong != 0u) {
        points_store(i, affine_infinity());
    }
}
