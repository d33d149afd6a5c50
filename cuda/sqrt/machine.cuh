// A machine that computes on one element of a field in the steps of a program, which all threads take.
//
// Comes after the arithmetic of a prime field F, and what is rendered from the program:
//   STEPS                     steps, of two words each: operation | kind of operand << 4 | times << 8, then an index
//   SLOTS, DIGITS             elements and digits that it keeps
//   DIGIT_BITS, DIGIT_PAD     bits of a digit; bits of the lowest that are always zero
//   TABLE                     the constant at which rows of 2^DIGIT_BITS powers begin
//   HASH(low, high)           the place of an element's logarithm, by its lowest and highest limb
// The accumulator stays in registers, slots and digits in local memory, which is indexed by what the steps say.
//
// What the operations are is told in `program.rs` of the crate for roots.

// The element that a step computes with: a slot or (1) a constant, moved on by (2) the flag or (4) the counter; or (8) of the
// table that which a digit says.
__device__ __forceinline__ F m_operand(const F* constants, const F* slots, const uint32_t* digits, uint32_t kind,
                                       uint32_t index, uint32_t flag, uint32_t counter) {
    if (kind & 8) return f_load(constants + TABLE + ((index & 0xffff) << DIGIT_BITS) + digits[index >> 16]);
    uint32_t at = index + (kind & 2 ? flag : 0) + (kind & 4 ? counter : 0);
    return kind & 1 ? f_load(constants + at) : slots[at];
}

// Runs the program on what is in slots, and gives its verdict. `want` is the parity of the root that is chosen.
__device__ __forceinline__ uint32_t m_run(const uint32_t* program, const F* constants, const uint32_t* hashed, F* slots,
                                          uint32_t want) {
    uint32_t digits[DIGITS] = {};
    uint32_t flag = 0, counter = 0, verdict = 1;
    bool decided = false;
    F r = f_zero();
#pragma unroll 1
    for (uint32_t at = 0; at < STEPS; at++) {
        uint32_t step = program[2 * at], index = program[2 * at + 1], code = step & 15, times = step >> 8;
        if (code <= 1) {
#pragma unroll 1
            for (uint32_t i = 0; i < times; i++) r = f_square(r);
            if (code == 0) continue;
        }
        if (code == 3) {
            slots[index] = r;
        } else if (code < 8) {
            F x = m_operand(constants, slots, digits, step >> 4 & 15, index, flag, counter);
            if (code == 1) {
                r = f_mul(r, x);
            } else if (code == 2) {
                r = x;
            } else if (code == 4) {
                r = f_add(r, x);
            } else {
                F difference = f_sub(r, x);
                uint32_t equal = f_is_zero(difference);
                if (code == 5) r = difference;
                if (code == 6) flag = equal;
                if (code == 7) verdict &= equal;
            }
        } else if (code == 8) {
            uint32_t place = HASH(r.l[0], r.l[F_LIMBS - 1]);
            digits[index] = hashed[place / 4] >> (8 * (place % 4)) & 255;
        } else if (code == 9) {
            flag = digits[0] >> DIGIT_PAD & 1;
            digits[0] ^= flag << DIGIT_PAD;
#pragma unroll 1
            for (uint32_t i = 0; i < DIGITS; i++) {
                uint32_t above = i + 1 < DIGITS ? digits[i + 1] & 1 : 0;
                digits[i] = digits[i] >> 1 | above << (DIGIT_BITS - 1);
            }
        } else if (code == 10) {
            if (!decided) {
                flag = (r.l[0] & 1) ^ want;
                decided = !f_is_zero(r);
            }
        } else if (code == 11) {
            if (flag) r = f_sub(f_zero(), r);
        } else if (code == 12) {
            verdict = f_is_zero(r) ? 0 : f_is_zero(f_sub(r, f_one())) ? 1 : 0xffffffffu;
        } else if (code == 13) {
            if (flag == times) at = index - 1;
        } else if (code == 14) {
            counter++;
            flag = counter < index;
        } else {
            want = flag;
            decided = false;
        }
    }
    return verdict;
}
