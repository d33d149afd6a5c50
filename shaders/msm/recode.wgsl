// Scalars to signed digits, keys and values: see the CUDA twin. One thread a scalar.
// Comes after the arithmetic of the scalar field and these functions: `s_square()` and `s_unit()`, R^2 and 1 as limbs;
// `s_above(s)`, whether an integer is above (r - 1) / 2; `s_shift(s, bits)`, an integer shifted down.

@compute @workgroup_size(THREADS)
fn msm_recode(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
              @builtin(local_invocation_index) thread: u32) {
    let i = (group.x + group.y * groups.x) * THREADS + thread;
    if (i >= params.len) {
        return;
    }
    var s = scalars_load(i);
    // Integers to be reduced take two products, Montgomery forms the second of them.
    for (var form = params.form; form > PLAIN; form--) {
        var factor = s_unit();
        if (form == REDUCED) {
            factor = s_square();
        }
        s = f_mul(s, factor);
    }
    var negated = 0u;
    if (params.halve == 1u && s_above(s)) {
        negated = 1u;
        s = f_sub(f_zero(), s);
    }
    let buckets = 1u << (params.bits - 1u);
    let mask = 2u * buckets - 1u;
    let base = i / params.count * params.windows;
    var point = params.first + i % params.points;
    var carry = 0u;
    var place = 0u;
    for (var w = 0u; w < params.digits; w++) {
        let digit = (s.l0 & mask) + carry;
        carry = u32(digit > buckets);
        var size = select(digit, 2u * buckets - digit, carry == 1u);
        let at = w * params.len + i;
        var key = (base + place) * buckets + size - 1u;
        var table = 0u;
        if (params.doublings > 0u && size > 0u) {
            var start = 0u;
            var log = params.bits - 2u;
            while (size % 2u == 0u) {
                size /= 2u;
                table++;
                if (table == params.doublings) {
                    start += params.rows << log;
                    log = max(log, table) - table;
                    table = 0u;
                }
            }
            key = start + ((base + place) << log) + size / 2u;
        }
        keys_set(at, select(key, params.sentinel, size == 0u));
        values_set(at, 2u * (point + table * params.table) + (carry ^ negated));
        s = s_shift(s, params.bits);
        place++;
        if (place == params.windows) {
            place = 0u;
            point += params.table;
        }
    }
}
