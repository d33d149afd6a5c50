// out[i] = 2^times a[i]. One thread a point.

@compute @workgroup_size(THREADS)
fn msm_double(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
              @builtin(local_invocation_index) thread: u32) {
    let i = (group.x + group.y * groups.x) * THREADS + thread;
    if (i >= params.len) {
        return;
    }
    var point = xyzz_of_affine(a_load(i));
    for (var k = 0u; k < params.times; k++) {
        point = xyzz_double(point);
    }
    out_store(i, point);
}
