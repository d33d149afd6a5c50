// out[i] = d a[i], with d the `digits` binary digits of k[i] from number `first` on; plus 2^digits out[i] where `carried` says
// that it has the multiples by the digits above. By digits from the highest down. One thread an element. Doubling is left to
// the addition, which does it where both points are equal: so there is one addition in the code.

@compute @workgroup_size(THREADS)
fn point_multiply(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
               @builtin(local_invocation_index) thread: u32) {
    let i = (group.x + group.y * groups.x) * THREADS + thread;
    if (i >= params.len) {
        return;
    }
    let point = xyzz_of_affine(a_load(i));
    let scalar = k_get(i) >> params.first;
    var sum = xyzz_infinity();
    if (params.carried != 0u) {
        sum = out_load(i);
    }
    for (var step = 2u * params.digits; step > 0u; step--) {
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
