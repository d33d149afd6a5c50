// out[i] = z[0] times the sum of inverses[r] matrix[columns r + c] over the rows r = s, s + stripes, ... below `rows`, less the sum
// of these elements, where c is i mod columns and s is i / columns. One thread a sum.

@compute @workgroup_size(THREADS)
fn fri_evaluate(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
                @builtin(local_invocation_index) thread: u32) {
    let i = (group.x + group.y * groups.x) * THREADS + thread;
    if (i < params.len) {
        var row = i / params.columns;
        var at = i;
        var plain = matrix_load(at);
        var sum = f_by(inverses_load(row), plain);
        for (row += params.stripes; row < params.rows; row += params.stripes) {
            at += params.len;
            let value = matrix_load(at);
            plain = point_add(plain, value);
            sum = f_add(sum, f_by(inverses_load(row), value));
        }
        out_store(i, f_sub(f_mul(z_load(0u), sum), f_lift(plain)));
    }
}
