// out[i] and verdicts[i] = a root of a[i], by 32 threads: the CUDA twin says how. They need not be a subgroup: values go from
// one to the others through workgroup memory, whose tile has two places for each 32.

const WARPS = THREADS / 32u;

var<workgroup> found_one: array<u32, 2u * WARPS>;

// The value that lane `owner` has, through one of both places: where all threads call it in turn, places must change.
fn lane_value(x: F, thread: u32, owner: u32, turn: u32) -> F {
    let place = (turn % 2u) * WARPS + thread / 32u;
    if (thread % 32u == owner) {
        tile_store(place, x);
    }
    workgroupBarrier();
    return tile_load(place);
}

@compute @workgroup_size(THREADS)
fn sqrt_warp(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
             @builtin(local_invocation_index) thread: u32) {
    let lane = thread % 32u;
    let i = (group.x + group.y * groups.x) * WARPS + thread / 32u;
    // Threads behind the last element do with it what is thrown away: all come to the barriers.
    let element = a_load(min(i, params.len - 1u));
    var power = f_one();
    if (lane == 0u) {
        power = element;
    }
    for (var k = 0u; k < EXPONENT_BITS; k++) {
        let product = f_mul(power, lane_value(power, thread, 0u, k));
        if (lane == 0u || ((program_get(2u * STEPS + k / 32u) >> (k % 32u)) & 1u) == 1u) {
            power = product;
        }
    }
    power = lane_value(power, thread, 1u, EXPONENT_BITS);
    let root = f_mul(element, power);
    power = f_mul(root, power);
    var columns: array<F, COLUMNS_EACH>;
    for (var e = 0u; e < COLUMNS_EACH; e++) {
        var column = power;
        for (var k = 2u; k <= lane + 32u * e && k < COLUMNS; k++) {
            column = f_mul(column, column);
        }
        columns[e] = column;
    }
    if (lane == 0u) {
        columns[0] = root;
    }
    for (var digit = 1u; digit < COLUMNS; digit++) {
        let column = COLUMNS - digit;
        let place = (digit % 2u) * WARPS + thread / 32u;
        if (lane == column % 32u) {
            found_one[place] = u32(f_is_zero(f_sub(columns[column / 32u], f_one())));
        }
        workgroupBarrier();
        if (found_one[place] == 0u) {
            for (var e = 0u; 32u * e < column; e++) {
                columns[e] = f_mul(columns[e], constants_load(INVERSES + digit - 1u + lane + 32u * e));
            }
        }
    }
    slots[1] = lane_value(columns[0], thread, 0u, EXPONENT_BITS + 1u);
    slots[0] = element;
    let verdict = m_run(params.want);
    if (lane > 0u || i >= params.len) {
        return;
    }
    if (verdict != 0u) {
        out_store(i, slots[0]);
    } else {
        out_store(i, f_zero());
    }
    verdicts_set(i, verdict);
}
