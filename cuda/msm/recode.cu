// Scalars to signed digits of `bits` bits, from the lowest on, each a point to be added to a bucket. Scalar i has the
// digits d_w with s = sum of d_w 2^(bits w) and |d_w| <= 2^(bits - 1). For digit w of scalar i, at w * len + i:
//   keys    the bucket: ((i / count) * windows + w mod windows) * 2^(bits - 1) + |d_w| - 1, or `sentinel` for d_w = 0
//   values  2 * point + (1 if its opposite is added), point = (w / windows) * table + first + i mod `points`
// With `doublings`, |d_w| is (2 m + 1) 2^e instead, e = q * doublings + k: the point is then that of table k, and the bucket
// number m of class q, which has rows of 2^(bits - 2 - q * doublings) buckets, or of 1, behind all rows of class q - 1.
// Grid: one thread a scalar. No shared memory.
//
// Comes after the arithmetic of the scalar field and these constants:
//   S_HALF  { (r - 1) / 2 }, r the modulus

extern "C" __global__ void __launch_bounds__(256)
msm_recode(const Params params, BUFFERS(F, uint32_t, uint32_t)) {
    wait_for_previous();
    constexpr uint32_t half[F_LIMBS] = S_HALF;
    uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= params.len) return;
    F s = f_load(scalars + i);
    if (params.form != PLAIN) {
        if (params.form == REDUCED) s = f_mul(F{F_SQUARE}, s);
        F unit = {};
        unit.l[0] = 1;
        s = f_mul(s, unit);
    }
    bool above = false;
#pragma unroll
    for (int k = 0; k < F_LIMBS; k++) above = s.l[k] > half[k] || (s.l[k] == half[k] && above);
    uint32_t negated = params.halve && above;
    if (negated) s = f_sub(f_zero(), s);

    uint32_t buckets = 1u << (params.bits - 1), mask = 2 * buckets - 1, carry = 0, set = 0;
    uint32_t base = i / params.count * params.windows, point = params.first + i % params.points;
    for (uint32_t w = 0; w < params.digits; w++) {
        uint32_t digit = (s.l[0] & mask) + carry;
        carry = digit > buckets;
        uint32_t size = carry ? 2 * buckets - digit : digit;
        size_t at = (size_t)w * params.len + i;
        uint32_t key = (base + set) * buckets + size - 1, table = 0;
        if (params.doublings > 0 && size > 0) {
            uint32_t start = 0, log = params.bits - 2;
            for (; size % 2 == 0; size /= 2) {
                if (++table == params.doublings) {
                    start += params.rows << log;
                    log = max(log, table) - table;
                    table = 0;
                }
            }
            key = start + ((base + set) << log) + size / 2;
        }
        keys[at] = size == 0 ? params.sentinel : key;
        values[at] = 2 * (point + table * params.table) + (carry ^ negated);
#pragma unroll
        for (int k = 0; k < F_LIMBS; k++) s.l[k] = __funnelshift_r(s.l[k], k + 1 < F_LIMBS ? s.l[k + 1] : 0, params.bits);
        if (++set == params.windows) {
            set = 0;
            point += params.table;
        }
    }
}
