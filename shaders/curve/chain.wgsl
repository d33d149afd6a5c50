// out[i] = the sum of a[i], a[i + 1], …, a[i + LENGTH - 1], indices modulo the length, by mixed additions one after the
// other. One thread an element. It tells the rate of additions that a device can reach.

@compute @workgroup_size(THREADS)
fn point_chain(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
               @builtin(local_invocation_index) thread: u32) {
    let i = (group.x + group.y * groups.x) * THREADS + thread;
    if (i >= params.len) {
        return;
    }
    var sum = xyzz_infinity();
    var at = i;
    for (var j = 0u; j < LENGTH; j++) {
        sum = xyzz_add_affine(sum, a_load(at));
        at++;
        if (at == params.len) {
            at = 0u;
        }
    }
    out_store(i, sum);
}
