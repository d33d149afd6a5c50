// The Frobenius endomorphism: the CUDA twin says how. One thread a point.

fn conjugate(x: F) -> F {
    return F(x.c0, b_sub(b_zero(), x.c1));
}

@compute @workgroup_size(THREADS)
fn sqrt_frobenius(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
                  @builtin(local_invocation_index) thread: u32) {
    let i = (group.x + group.y * groups.x) * THREADS + thread;
    if (i >= params.len) {
        return;
    }
    let point = a_load(i);
    let x = f_mul(conjugate(point.x), ends_load(0u));
    let y = f_mul(conjugate(point.y), ends_load(1u));
    out_store(i, Jacobian(x, y, conjugate(point.z)));
}
