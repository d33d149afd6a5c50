// out[i] = the sum of weights[c] matrix[pitch i + c] over c < columns, plus what was there if `add` is 1. One thread a row.

@compute @workgroup_size(THREADS)
fn fri_combine(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
               @builtin(local_invocation_index) thread: u32) {
    let i = (group.x + group.y * groups.x) * THREADS + thread;
    if (i < params.len) {
        var sum = f_zero();
        if (params.add != 0u) {
            sum = out_load(i);
        }
        let row = i * params.pitch;
        for (var c = 0u; c < params.columns; c++) {
            sum = f_add(sum, f_by(weights_load(c), matrix_load(row + c)));
        }
        out_store(i, sum);
    }
}
