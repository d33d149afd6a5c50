// Values in [0, 2p), for passes that reduce at their end only, and squares.
//
// That products of such values are below 2p where 4p fits the limbs: Walter, "Montgomery exponentiation needs no final
// subtractions", Electronics Letters 35 (1999).

#if F_LAZY

__device__ __forceinline__ uint32_t f_twice_modulus(int i) {
    return f_modulus(i) << 1 | (i > 0 ? f_modulus(i - 1) >> 31 : 0);
}

// a + b mod 2p for a, b in [0, 2p), of which the sum may carry out of the limbs.
__device__ __forceinline__ F f_add_lazy(const F& a, const F& b) {
    F s, d;
    s.l[0] = add_cc(a.l[0], b.l[0]);
#pragma unroll
    for (int i = 1; i < F_LIMBS; i++) s.l[i] = addc_cc(a.l[i], b.l[i]);
    uint32_t carry = addc(0, 0);
    d.l[0] = sub_cc(s.l[0], f_twice_modulus(0));
#pragma unroll
    for (int i = 1; i < F_LIMBS; i++) d.l[i] = subc_cc(s.l[i], f_twice_modulus(i));
    bool negative = (int32_t)subc(carry, 0) < 0;
#pragma unroll
    for (int i = 0; i < F_LIMBS; i++) d.l[i] = negative ? s.l[i] : d.l[i];
    return d;
}

// a - b mod 2p for a, b in [0, 2p).
__device__ __forceinline__ F f_sub_lazy(const F& a, const F& b) {
    F r;
    r.l[0] = sub_cc(a.l[0], b.l[0]);
#pragma unroll
    for (int i = 1; i < F_LIMBS; i++) r.l[i] = subc_cc(a.l[i], b.l[i]);
    uint32_t negative = subc(0, 0);
    r.l[0] = add_cc(r.l[0], negative & f_twice_modulus(0));
#pragma unroll
    for (int i = 1; i < F_LIMBS - 1; i++) r.l[i] = addc_cc(r.l[i], negative & f_twice_modulus(i));
    r.l[F_LIMBS - 1] = addc(r.l[F_LIMBS - 1], negative & f_twice_modulus(F_LIMBS - 1));
    return r;
}

// acc[0 .. 2 pairs) += (a[0], a[2], ...) * b for `pairs` products, and the carry to the word behind.
// With `half`, the low word of one more product, whose high word and carry are dropped.
__device__ __forceinline__ void f_mad_chain(uint32_t* acc, const uint32_t* a, uint32_t b, int pairs, bool half,
                                            bool carry) {
#pragma unroll
    for (int j = 0; j < F_LIMBS; j++) {
        if (j < pairs) {
            acc[2 * j] = j == 0 ? mad_lo_cc(a[0], b, acc[0]) : madc_lo_cc(a[2 * j], b, acc[2 * j]);
            acc[2 * j + 1] = madc_hi_cc(a[2 * j], b, acc[2 * j + 1]);
        }
    }
    if (half) acc[2 * pairs] = pairs == 0 ? a[0] * b + acc[0] : madc_lo(a[2 * pairs], b, acc[2 * pairs]);
    if (carry) acc[2 * pairs] = addc(acc[2 * pairs], 0);
}

// T / R in [0, 2p) for T = t[0 .. 2 F_LIMBS) below p R: the rows of a product without its products.
__device__ __forceinline__ F f_redc_lazy(const uint32_t* t) {
    uint32_t p[F_LIMBS + 1], even[F_LIMBS], odd[F_LIMBS] = {};
#pragma unroll
    for (int i = 0; i < F_LIMBS; i++) p[i] = f_modulus(i), even[i] = t[i];
    p[F_LIMBS] = 0;
#pragma unroll
    for (int i = 0; i < F_LIMBS; i++) {
        uint32_t* first = i % 2 ? odd : even;
        uint32_t* second = i % 2 ? even : odd;
        // As in f_mul_row; the carry goes on into the second.
        if (i > 0) first[0] = add_cc(first[0], second[1]);
        f_mad_modulus(first, second, p, i > 0 ? 2 : 0);
    }
    F r;
    r.l[0] = add_cc(even[0], odd[1]);
#pragma unroll
    for (int i = 1; i < F_LIMBS; i++) r.l[i] = addc_cc(even[i], i + 1 < F_LIMBS ? odd[i + 1] : 0);
    r.l[0] = add_cc(r.l[0], t[F_LIMBS]);
#pragma unroll
    for (int i = 1; i < F_LIMBS; i++) r.l[i] = addc_cc(r.l[i], t[F_LIMBS + i]);
    return r;
}

// a^2 / R in [0, 2p) for a in [0, p). Products of different limbs are computed once and doubled.
__device__ __forceinline__ F f_square_lazy(const F& a) {
    // odd[i] stands in column i + 1.
    uint32_t even[2 * F_LIMBS + 2] = {}, odd[2 * F_LIMBS + 2] = {}, t[2 * F_LIMBS];
#pragma unroll
    for (int i = 0; i < F_LIMBS - 1; i++) {
        f_mad_chain(odd + 2 * i, a.l + i + 1, a.l[i], (F_LIMBS - i) / 2, false, true);
        f_mad_chain(even + 2 * i + 2, a.l + i + 2, a.l[i], (F_LIMBS - 1 - i) / 2, false, true);
    }
    t[0] = 0;
    t[1] = odd[0];
    t[2] = add_cc(even[2], odd[1]);
#pragma unroll
    for (int i = 3; i < 2 * F_LIMBS; i++) t[i] = addc_cc(even[i], odd[i - 1]);
#pragma unroll
    for (int i = 2 * F_LIMBS - 1; i > 0; i--) t[i] = __funnelshift_l(t[i - 1], t[i], 1);
#pragma unroll
    for (int i = 0; i < F_LIMBS; i++) {
        t[2 * i] = i == 0 ? mad_lo_cc(a.l[0], a.l[0], 0) : madc_lo_cc(a.l[i], a.l[i], t[2 * i]);
        t[2 * i + 1] = madc_hi_cc(a.l[i], a.l[i], t[2 * i + 1]);
    }
    return f_redc_lazy(t);
}

__device__ __forceinline__ F f_square(const F& a) {
    return f_reduce(f_square_lazy(a));
}

#endif // F_LAZY
