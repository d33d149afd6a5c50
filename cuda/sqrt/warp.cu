// out[i] and verdicts[i] = a root of a[i] that a program has checked and chosen, after Tonelli and Shanks with all powers of the
// algorithm up to date: column 0 is the candidate y, column k the power x^(2^(k - 1)), where y^2 = a x. Column k is in lane
// k mod 32. A digit of x's logarithm divides all columns at once.
//
// Comes after the machine, and what is rendered from the program beside it:
//   COLUMNS, COLUMNS_EACH     how many there are, and in one lane at most
//   EXPONENT_BITS             digits of the exponent (m - 1) / 2, which follow the steps
//   INVERSES                  the constant at which the powers g^(-2^e) begin
// Grid: one warp an element. No shared memory. Local memory: the slots of the program.

static_assert(WARP == 32, "a column is in lane k mod 32");

// The value that a lane has.
__device__ __forceinline__ F lane_value(const F& x, uint32_t lane) {
    F r;
#pragma unroll
    for (int k = 0; k < F_LIMBS; k++) r.l[k] = warp_shuffle(x.l[k], lane);
    return r;
}

extern "C" __global__ void __launch_bounds__(128)
sqrt_warp(const Params params, BUFFERS(uint32_t, F, uint32_t, F, F, uint32_t)) {
    wait_for_previous();
    uint32_t lane = warp_lane();
    size_t i = (size_t)blockIdx.x * (blockDim.x / WARP) + threadIdx.x / WARP;
    // All lanes of a warp, or none.
    if (i >= params.len) return;
    F slots[SLOTS];
    F element = f_load(a + i);
    // a^((m - 1) / 2), from the lowest digit on: lane 0 squares, and the others multiply by its squares meanwhile.
    F power = lane == 0 ? element : f_one();
#pragma unroll 1
    for (uint32_t k = 0; k < EXPONENT_BITS; k++) {
        F product = f_mul(power, lane_value(power, 0));
        if (lane == 0 || (program[2 * STEPS + k / 32] >> (k % 32) & 1)) power = product;
    }
    power = lane_value(power, 1);
    F root = f_mul(element, power);
    power = f_mul(root, power);
    F columns[COLUMNS_EACH];
#pragma unroll
    for (uint32_t e = 0; e < COLUMNS_EACH; e++) columns[e] = power;
#pragma unroll 1
    for (uint32_t k = 2; k < COLUMNS; k++) {
#pragma unroll
        for (uint32_t e = 0; e < COLUMNS_EACH; e++) {
            if (lane + WARP * e >= k) columns[e] = f_square(columns[e]);
        }
    }
    if (lane == 0) columns[0] = root;
#pragma unroll 1
    for (uint32_t digit = 1; digit < COLUMNS; digit++) {
        uint32_t column = COLUMNS - digit;
        F looked_at = columns[0];
#if COLUMNS_EACH > 1
        if (column >= WARP) looked_at = columns[1];
#endif
        uint32_t is_one = f_is_zero(f_sub(looked_at, f_one()));
        if (warp_shuffle(is_one, column % WARP)) continue;
        const F* inverses = constants + INVERSES + digit - 1 + lane;
#pragma unroll
        for (uint32_t e = 0; e < COLUMNS_EACH; e++) {
            // No later digit looks at the columns from this one on.
            if (WARP * e < column) columns[e] = f_mul(columns[e], f_load(inverses + WARP * e));
        }
    }
    slots[0] = element;
    slots[1] = lane_value(columns[0], 0);
    uint32_t verdict = m_run(program, constants, hashed, slots, params.want);
    if (lane > 0) return;
    out[i] = verdict ? slots[0] : f_zero();
    verdicts[i] = verdict;
}
