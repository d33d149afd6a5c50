#if F_GOLDILOCKS

// Goldilocks, p = 2^64 - 2^32 + 1: a multiple of p is found by additions, and adding p to what is modulo 2^64 is
// subtracting 2^32 - 1, the word of a borrow.

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

#endif // F_GOLDILOCKS
