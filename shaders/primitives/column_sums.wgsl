// sums[c] = the sum of column c of a matrix of `rows` rows of `columns`, modulo 2^32. One thread a column.

@compute @workgroup_size(THREADS)
fn column_sums(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
               @builtin(local_invocation_index) thread: u32) {
    let column = (group.x + group.y * groups.x) * THREADS + thread;
    if (column >= params.columns) {
        return;
    }
    var sum = 0u;
    for (var row = 0u; row < params.rows; row++) {
        sum += matrix_get(row * params.columns + column);
    }
    sums_set(column, sum);
}
