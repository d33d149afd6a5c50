// out[row] = the sum of coefficient * x[column] over the entries of the row, for a matrix of short rows.
// A line has the place of a row in out and the number of its first entry; its entries end where the next line's begin.
// An entry has a column and a code: CODE_ONE and CODE_MINUS_ONE are coefficients; with CODE_SUM an element of sums takes
// the place of one of x; codes from CODE_FIRST on are coefficients in a table. One thread a line.

fn term(entry: vec2<u32>) -> F {
    if (entry.y == CODE_SUM) {
        return sums_load(entry.x);
    }
    let element = x_load(entry.x);
    if (entry.y < CODE_FIRST) {
        return element;
    }
    return f_mul(element, coefficients_load(entry.y - CODE_FIRST));
}

@compute @workgroup_size(THREADS)
fn sparse_product(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
                  @builtin(local_invocation_index) thread: u32) {
    let i = (group.x + group.y * groups.x) * THREADS + thread;
    if (i >= params.rows) {
        return;
    }
    let line = lines_get(i);
    let end = lines_get(i + 1u).y;
    var sum = f_zero();
    for (var j = line.y; j < end; j++) {
        let entry = entries_get(j);
        let next = term(entry);
        if (entry.y == CODE_MINUS_ONE) {
            sum = f_sub(sum, next);
        } else {
            sum = f_add(sum, next);
        }
    }
    out_store(line.x, sum);
}
