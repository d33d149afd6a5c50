// Multiples by one scalar: the CUDA twin says how. One thread a point.

@compute @workgroup_size(THREADS)
fn sqrt_multiple(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
                 @builtin(local_invocation_index) thread: u32) {
    let i = (group.x + group.y * groups.x) * THREADS + thread;
    if (i >= params.len) {
        return;
    }
    let point = base_load(i);
    var sum = point;
    if (params.first == 0u) {
        sum = out_load(i);
    }
    for (var bit = params.high; bit > params.low; bit--) {
        sum = jacobian_double(sum);
        if (((scalar_get((bit - 1u) / 32u) >> ((bit - 1u) % 32u)) & 1u) == 1u) {
            sum = jacobian_add(sum, point);
        }
    }
    out_store(i, sum);
}
