// out[r] = the sum of weights[k] times constraint number k at a row, plus what was there if `add` is 1, and divided by the
// polynomial that vanishes on the rows (inputs[3] is its inverse) if `last` is 1. The row is number `first` + i of a matrix of
// 2^log_rows rows in bit-reversed order, in which rows and columns are row_pitch and column_pitch apart; r is the number of the
// row in natural order.
//
// The constraints are instructions: an operation (its lowest bits: 0 adds, 1 subtracts, 2 multiplies), a target and two
// operands. With WEIGH in the operation, the result is a constraint, and the target the number of its weight; else the target is
// a slot. Operands have what they are in their highest bits: a slot (0), a column in this row (1) or in the next one (2), an input
// (3), or a selector (4).
// Slots from SLOTS on are in `spilled`, `len` elements each. selectors[] are three lists of 2^log_rows elements, selector_pitch
// apart, that lack a factor: inputs[1] for the first two and inputs[2] for the last.
// Grid: one thread a row. All threads carry out the same instructions. Shared memory: SLOTS elements a thread.

#define WEIGH 4u

extern "C" __global__ void __launch_bounds__(THREADS)
fri_constraints(const Params params, BUFFERS(uint4, Point, F, Point, Point, Point, F)) {
    wait_for_previous();
    extern __shared__ __align__(16) unsigned char shared[];
    Point* slots = reinterpret_cast<Point*>(shared) + threadIdx.x;
    uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= params.len) return;
    uint32_t place = params.first + i, last_row = (1u << params.log_rows) - 1;
    uint32_t row = __brev(place) >> 1 >> (31 - params.log_rows);
    uint32_t after = __brev((row + 1) & last_row) >> 1 >> (31 - params.log_rows);
    const Point* now = matrix + (size_t)place * params.row_pitch;
    const Point* next = matrix + (size_t)after * params.row_pitch;

    auto fetch = [&](uint32_t operand) -> Point {
        uint32_t kind = operand >> 29, index = operand & 0x1fffffffu;
        if (kind == 1) return point_load(now + (size_t)index * params.column_pitch);
        if (kind == 0) {
            return index < SLOTS ? slots[index * THREADS] : point_load(spilled + (size_t)(index - SLOTS) * params.len + i);
        }
        if (kind == 2) return point_load(next + (size_t)index * params.column_pitch);
        if (kind == 3) return point_load(inputs + index);
        Point value = point_load(selectors + (size_t)index * params.selector_pitch + place);
        return point_mul(value, point_load(inputs + (index == 2 ? 2 : 1)));
    };

    F sum = params.add ? f_load(out + row) : f_zero();
    uint4 following = code[0];
    for (uint32_t step = 1; step <= params.instructions; step++) {
        uint4 instruction = following;
        // While this one is carried out.
        if (step < params.instructions) following = code[step];
        Point a = fetch(instruction.z), b = fetch(instruction.w), result;
        uint32_t operation = instruction.x & 3;
        if (operation == 2) {
            result = point_mul(a, b);
        } else if (operation == 1) {
            result = point_sub(a, b);
        } else {
            result = point_add(a, b);
        }
        if (instruction.x & WEIGH) {
            sum = f_add(sum, f_by(f_load(weights + instruction.y), result));
        } else if (instruction.y < SLOTS) {
            slots[instruction.y * THREADS] = result;
        } else {
            spilled[(size_t)(instruction.y - SLOTS) * params.len + i] = result;
        }
    }
    out[row] = params.last ? f_by(sum, point_load(inputs + 3)) : sum;
}
