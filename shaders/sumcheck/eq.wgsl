// Tables of eq for groups of coordinates of a point, for every number of them from none on: eq[at + 2^j + y] is that of the j
// first ones of the group that starts at coordinate `from`, or where `last` is set, of the j last ones. Group 0 has `low`
// coordinates and starts at 0, group 1 has the others. Entries of group 1 are scaled by what stands behind the point. One
// thread an entry.

@compute @workgroup_size(THREADS)
fn sumcheck_eq(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
               @builtin(local_invocation_index) thread: u32) {
    let i = (group.x + group.y * groups.x) * THREADS + thread;
    let first = 2u << params.low;
    let high = params.variables - params.low;
    if (i >= first + (2u << high)) {
        return;
    }
    let second = i >= first;
    let entry = select(i, i - first, second);
    var start = select(0u, params.low, second);
    var product = f_one();
    if (second) {
        product = point_load(params.variables);
    }
    if (entry > 1u) {
        let bits = firstLeadingBit(entry);
        if (params.last != 0u) {
            start += select(params.low, high, second) - bits;
        }
        for (var bit = 0u; bit < bits; bit++) {
            var x = point_load(start + bit);
            if (((entry >> bit) & 1u) == 0u) {
                x = f_sub(f_one(), x);
            }
            product = f_mul(product, x);
        }
    }
    eq_store(i, product);
}
