// Goldilocks, p = 2^64 - 2^32 + 1: a multiple of p is found by additions, and adding p to what is modulo 2^64 is
// subtracting 2^32 - 1, the word of a borrow.
//
// Sources: Solinas, "Generalized Mersenne numbers", CORR 99-39, University of Waterloo (1999), for reduction by
// additions; Pornin, "EcGFp5: a specialized elliptic curve", Cryptology ePrint Archive 2022/274, for sums and
// Montgomery's reduction modulo this prime; Emmart and Weems, "High precision integer multiplication with a GPU using
// Strassen's algorithm with multiple FFT sizes", Parallel Processing Letters 21 (2011), for products with roots of
// unity by shifts.

#if F_GOLDILOCKS

// a - b, plus p if that is negative; b may be p.
__device__ __forceinline__ F f_sub(const F& a, const F& b) {
    F r;
    r.l[0] = sub_cc(a.l[0], b.l[0]);
    r.l[1] = subc_cc(a.l[1], b.l[1]);
    uint32_t borrow = subc(0, 0);
    r.l[0] = sub_cc(r.l[0], borrow);
    r.l[1] = subc(r.l[1], 0);
    return r;
}

// a - (p - b).
__device__ __forceinline__ F f_add(const F& a, const F& b) {
    F negative;
    negative.l[0] = sub_cc(f_modulus(0), b.l[0]);
    negative.l[1] = subc(f_modulus(1), b.l[1]);
    return f_sub(a, negative);
}

__device__ __forceinline__ F f_mul(const F& a, const F& b) {
    uint64_t bottom = (uint64_t)a.l[0] * b.l[0], top = (uint64_t)a.l[1] * b.l[1], middle = (uint64_t)a.l[0] * b.l[1];
    uint32_t odd[3] = {(uint32_t)middle, (uint32_t)(middle >> 32), 0};
    mad_wide(odd[0], odd[1], odd[2], a.l[1], b.l[0]);
    uint32_t low[2] = {(uint32_t)bottom, add_cc((uint32_t)(bottom >> 32), odd[0])};
    F high;
    high.l[0] = addc_cc((uint32_t)top, odd[1]);
    high.l[1] = addc((uint32_t)(top >> 32), odd[2]);
    // The multiple of p that agrees with the product modulo 2^64, divided by 2^64: 2^32 low + low, less what is above.
    F multiple;
    uint32_t above;
    multiple.l[1] = add_cc(low[1], low[0]);
    above = addc(multiple.l[1], 0);
    multiple.l[0] = sub_cc(low[0], above);
    multiple.l[1] = subc(multiple.l[1], 0);
    return f_sub(high, multiple);
}

// 2^64 = 2^32 - 1 and 2^96 = -1 modulo p, so that products with powers of 2, of which the order is 192, are shifts. Values that
// are multiplied so are of 96 bits in two's complement: sums of a few need no reduction.
struct FWide {
    uint32_t l[3];
};

__device__ __forceinline__ FWide f_wide(const F& a) {
    return {{a.l[0], a.l[1], 0}};
}

__device__ __forceinline__ FWide f_wide_add(const FWide& a, const FWide& b) {
    FWide r;
    r.l[0] = add_cc(a.l[0], b.l[0]);
    r.l[1] = addc_cc(a.l[1], b.l[1]);
    r.l[2] = addc(a.l[2], b.l[2]);
    return r;
}

__device__ __forceinline__ FWide f_wide_sub(const FWide& a, const FWide& b) {
    FWide r;
    r.l[0] = sub_cc(a.l[0], b.l[0]);
    r.l[1] = subc_cc(a.l[1], b.l[1]);
    r.l[2] = subc(a.l[2], b.l[2]);
    return r;
}

// a * 2^s mod p in (-2^58, 2^65), for |a| < 2^67 and s below 88 with s % 32 at most 28: elsewhere the last word of the shifted a
// would not hold it. All multiples of 12 below 96 are such.
__device__ __forceinline__ FWide f_wide_shift(const FWide& a, uint32_t s) {
    if (s == 0) return a;
    // The words of a * 2^(s % 32), of which the last is signed.
    uint32_t left = s % 32, x = a.l[0] << left;
    uint32_t y = (uint32_t)(((uint64_t)a.l[1] << 32 | a.l[0]) << left >> 32);
    uint32_t z = (uint32_t)(((uint64_t)a.l[2] << 32 | a.l[1]) << left >> 32);
    uint32_t sign = (uint32_t)((int32_t)z >> 31);
    FWide r;
    if (s < 32) {
        // x + 2^32 y + 2^64 z, where z that is negative is 2^32 less than its word, and 2^96 is -1. x ends with zeros.
        r = {{x + (z >> 31), y, 0}};
        mad_wide(r.l[0], r.l[1], r.l[2], z, f_n0);
    } else if (s < 64) {
        // 2^32 x + 2^64 y - z
        r.l[0] = sub_cc(0, z);
        r.l[1] = subc_cc(x, sign);
        r.l[2] = subc(0, sign);
        mad_wide(r.l[0], r.l[1], r.l[2], y, f_n0);
    } else {
        // 2^64 x - y - 2^32 z
        r.l[0] = sub_cc(0, y);
        r.l[1] = subc_cc(0, z);
        r.l[2] = subc(0, sign);
        mad_wide(r.l[0], r.l[1], r.l[2], x, f_n0);
    }
    return r;
}

// 2^4 p, which makes values above -2^67 positive.
__device__ __forceinline__ FWide f_wide_multiple() {
    return {{16, 0xfffffff0u, 15}};
}

// a mod p below 2^64, but maybe not below p, for a in [0, 2^70).
__device__ __forceinline__ F f_wide_word(const FWide& a) {
    FWide r = {{a.l[0], a.l[1], 0}};
    mad_wide(r.l[0], r.l[1], r.l[2], a.l[2], f_n0);
    // What is carried is above a small rest only, so that this carries no more.
    uint64_t word = ((uint64_t)r.l[1] << 32 | r.l[0]) + (uint64_t)r.l[2] * 0xffffffffu;
    return {{(uint32_t)word, (uint32_t)(word >> 32)}};
}

// a mod p below p, for any a.
__device__ __forceinline__ F f_canonical(const F& a) {
    F less = {{add_cc(a.l[0], 0xffffffffu), 0}};
    less.l[1] = addc_cc(a.l[1], 0);
    return addc(0, 0) ? less : a;
}

#endif // F_GOLDILOCKS
