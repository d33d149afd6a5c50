// Prime field arithmetic for any compiler and modulus, by words of 64 bits.
//
// Products are Montgomery's (field/words.cuh has the source), row by row, each followed by the reduction of one limb:
// "coarsely integrated operand scanning" of Koc, Acar and Kaliski, "Analyzing and comparing Montgomery multiplication
// algorithms", IEEE Micro 16 (1996).

#if !F_PTX && !F_GOLDILOCKS

// carry 2^(32 F_LIMBS) + a, less p if that is not negative.
__device__ __forceinline__ F f_reduce(const F& a, uint32_t carry) {
    F d;
    uint64_t t = 0;
#pragma unroll
    for (int i = 0; i < F_LIMBS; i++) {
        t = (uint64_t)a.l[i] - f_modulus(i) - (uint32_t)(t >> 63);
        d.l[i] = (uint32_t)t;
    }
    bool negative = (uint32_t)(t >> 63) > carry;
#pragma unroll
    for (int i = 0; i < F_LIMBS; i++) d.l[i] = negative ? a.l[i] : d.l[i];
    return d;
}

__device__ __forceinline__ F f_add(const F& a, const F& b) {
    F r;
    uint64_t t = 0;
#pragma unroll
    for (int i = 0; i < F_LIMBS; i++) {
        t = (uint64_t)a.l[i] + b.l[i] + (t >> 32);
        r.l[i] = (uint32_t)t;
    }
    return f_reduce(r, (uint32_t)(t >> 32));
}

__device__ __forceinline__ F f_sub(const F& a, const F& b) {
    F r;
    uint64_t t = 0;
#pragma unroll
    for (int i = 0; i < F_LIMBS; i++) {
        t = (uint64_t)a.l[i] - b.l[i] - (uint32_t)(t >> 63);
        r.l[i] = (uint32_t)t;
    }
    uint32_t mask = 0 - (uint32_t)(t >> 63);
    t = 0;
#pragma unroll
    for (int i = 0; i < F_LIMBS; i++) {
        t = (uint64_t)r.l[i] + (f_modulus(i) & mask) + (t >> 32);
        r.l[i] = (uint32_t)t;
    }
    return r;
}

__device__ __forceinline__ F f_mul(const F& a, const F& b) {
    F r{};
    uint32_t top = 0;
#pragma unroll
    for (int i = 0; i < F_LIMBS; i++) {
        uint64_t t = 0;
#pragma unroll
        for (int j = 0; j < F_LIMBS; j++) {
            t = (uint64_t)a.l[j] * b.l[i] + r.l[j] + (t >> 32);
            r.l[j] = (uint32_t)t;
        }
        uint64_t high = (t >> 32) + top;
        uint32_t m = r.l[0] * f_n0;
        t = (uint64_t)m * f_modulus(0) + r.l[0];
#pragma unroll
        for (int j = 1; j < F_LIMBS; j++) {
            t = (uint64_t)m * f_modulus(j) + r.l[j] + (t >> 32);
            r.l[j - 1] = (uint32_t)t;
        }
        high += t >> 32;
        r.l[F_LIMBS - 1] = (uint32_t)high;
        top = (uint32_t)(high >> 32);
    }
    return f_reduce(r, top);
}

#endif // !F_PTX && !F_GOLDILOCKS

#if !F_LAZY
__device__ __forceinline__ F f_square(const F& a) {
    return f_mul(a, a);
}
#endif
