// out[r] = the sum of weights[k] times constraint number k at a row, plus what was there if `add` is 1, and divided by the
// polynomial that vanishes on the rows (inputs[3] is its inverse) if `last` is 1. Instructions, slots and inputs are those of
// cuda/fri/constraints.cu. One thread a row.

const WEIGH = 4u;

fn reversed(x: u32) -> u32 {
    return reverseBits(x) >> 1u >> (31u - params.log_rows);
}

// An operand of thread number `thread` of a workgroup, which is number i of all, for the row at `place` and the one at `next`.
fn fetch(operand: u32, thread: u32, i: u32, place: u32, next: u32) -> Point {
    let index = operand & 0x1fffffffu;
    switch operand >> 29u {
        case 0u: {
            if (index < SLOTS) {
                return slots[index * THREADS + thread];
            }
            return spilled_load((index - SLOTS) * params.len + i);
        }
        case 1u: { return matrix_load(place * params.row_pitch + index * params.column_pitch); }
        case 2u: { return matrix_load(next * params.row_pitch + index * params.column_pitch); }
        case 3u: { return inputs_load(index); }
        default: {
            let value = selectors_load(index * params.selector_pitch + place);
            return point_mul(value, inputs_load(select(1u, 2u, index == 2u)));
        }
    }
}

@compute @workgroup_size(THREADS)
fn fri_constraints(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
                   @builtin(local_invocation_index) thread: u32) {
    let i = (group.x + group.y * groups.x) * THREADS + thread;
    if (i < params.len) {
        let place = params.first + i;
        let row = reversed(place);
        let next = reversed((row + 1u) & ((1u << params.log_rows) - 1u));
        var sum = f_zero();
        if (params.add != 0u) {
            sum = out_load(row);
        }
        for (var step = 0u; step < params.instructions; step++) {
            let instruction = code_get(step);
            var operands: array<Point, 2>;
            for (var j = 0u; j < 2u; j++) {
                operands[j] = fetch(select(instruction.z, instruction.w, j == 1u), thread, i, place, next);
            }
            var result: Point;
            switch instruction.x & 3u {
                case 2u: { result = point_mul(operands[0], operands[1]); }
                case 1u: { result = point_sub(operands[0], operands[1]); }
                default: { result = point_add(operands[0], operands[1]); }
            }
            if ((instruction.x & WEIGH) != 0u) {
                sum = f_add(sum, f_by(weights_load(instruction.y), result));
            } else if (instruction.y < SLOTS) {
                slots[instruction.y * THREADS + thread] = result;
            } else {
                spilled_store((instruction.y - SLOTS) * params.len + i, result);
            }
        }
        if (params.last != 0u) {
            sum = f_by(sum, inputs_load(3u));
        }
        out_store(row, sum);
    }
}
