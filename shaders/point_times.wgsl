// out[i] = k[i] a[i], by binary digits from the highest down. One thread an element. Doubling is left to the addition,
// which does it where both points are equal: so there is one addition in the code.

struct Params {
    len: u32,
}

@compute @workgroup_size(THREADS)
fn point_times(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
               @builtin(local_invocation_index) thread: u32) {
    let i = (group.x + group.y * groups.x) * THREADS + thread;
    if (i >= params.len) {
        return;
    }
    let point = xyzz_of_affine(a_load(i));
    let scalar = k_get(i);
    var sum = xyzz_infinity();
    for (var step = 64u; step > 0u; step--) {
        // Even steps double; odd ones add the point where the digit is 1.
        let doubling = step % 2u == 0u;
        if (doubling || ((scalar >> ((step - 1u) / 2u)) & 1u) == 1u) {
            var other = point;
            if (doubling) {
                other = sum;
            }
            sum = xyzz_add(sum, other);
        }
    }
    out_store(i, sum);
}
