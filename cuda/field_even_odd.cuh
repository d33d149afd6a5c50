// Prime field arithmetic by instructions with carries.
//
// Multiplication accumulates in two arrays, one for the even columns of 32 bits and one for the odd, so that the two
// halves of each 32x32 product land in neighbouring words and a row of products is one carry chain of mad.lo/mad.hi
// pairs, each pair one IMAD.WIDE. After a row, one limb is reduced and the two arrays change roles. The reduction is
// interleaved by rows: "coarsely integrated operand scanning" of Koc, Acar and Kaliski, "Analyzing and comparing
// Montgomery multiplication algorithms", IEEE Micro 16 (1996).

#if F_PTX

#if F_LIMBS == 1

// a - p if that is not negative, else a; a < 2p < 2^32: what wraps around is larger.
__device__ __forceinline__ F f_reduce(const F& a) {
    uint32_t less = a.l[0] - f_modulus(0);
    return F{{less < a.l[0] ? less : a.l[0]}};
}

__device__ __forceinline__ F f_add(const F& a, const F& b) {
    return f_reduce(F{{a.l[0] + b.l[0]}});
}

__device__ __forceinline__ F f_sub(const F& a, const F& b) {
    uint32_t difference = a.l[0] - b.l[0], more = difference + f_modulus(0);
    return F{{more < difference ? more : difference}};
}

__device__ __forceinline__ F f_mul(const F& a, const F& b) {
    uint64_t t = (uint64_t)a.l[0] * b.l[0];
    uint32_t m = (uint32_t)t * f_n0;
    return f_reduce(F{{(uint32_t)((t + (uint64_t)m * f_modulus(0)) >> 32)}});
}

#else

// a - p if that is not negative, else a; a < 2p.
__device__ __forceinline__ F f_reduce(const F& a) {
    F d;
    d.l[0] = sub_cc(a.l[0], f_modulus(0));
#pragma unroll
    for (int i = 1; i < F_LIMBS; i++) d.l[i] = subc_cc(a.l[i], f_modulus(i));
    uint32_t negative = subc(0, 0);
#pragma unroll
    for (int i = 0; i < F_LIMBS; i++) d.l[i] = negative ? a.l[i] : d.l[i];
    return d;
}

__device__ __forceinline__ F f_add(const F& a, const F& b) {
    F r;
    r.l[0] = add_cc(a.l[0], b.l[0]);
#pragma unroll
    for (int i = 1; i < F_LIMBS - 1; i++) r.l[i] = addc_cc(a.l[i], b.l[i]);
    r.l[F_LIMBS - 1] = addc(a.l[F_LIMBS - 1], b.l[F_LIMBS - 1]);
    return f_reduce(r);
}

__device__ __forceinline__ F f_sub(const F& a, const F& b) {
    F r;
    r.l[0] = sub_cc(a.l[0], b.l[0]);
#pragma unroll
    for (int i = 1; i < F_LIMBS; i++) r.l[i] = subc_cc(a.l[i], b.l[i]);
    uint32_t negative = subc(0, 0);
    r.l[0] = add_cc(r.l[0], negative & f_modulus(0));
#pragma unroll
    for (int i = 1; i < F_LIMBS - 1; i++) r.l[i] = addc_cc(r.l[i], negative & f_modulus(i));
    r.l[F_LIMBS - 1] = addc(r.l[F_LIMBS - 1], negative & f_modulus(F_LIMBS - 1));
    return r;
}

// Limbs of an accumulator: an even number.
#define F_ROW (F_LIMBS + F_LIMBS % 2)

// acc += (a[0], a[2], ...) * b, leaving the carry out of the last word in the carry flag.
__device__ __forceinline__ void f_mad_row(uint32_t* acc, const uint32_t* a, uint32_t b) {
    acc[0] = mad_lo_cc(a[0], b, acc[0]);
    acc[1] = madc_hi_cc(a[0], b, acc[1]);
#pragma unroll
    for (int j = 2; j < F_ROW; j += 2) {
        acc[j] = madc_lo_cc(a[j], b, acc[j]);
        acc[j + 1] = madc_hi_cc(a[j], b, acc[j + 1]);
    }
}

// even += (p[0], p[2], ...) * m for m = -t / p mod 2^32, t = even[0], whose sum is left as it is. Where p[0] = 1, that
// product only carries, unless t = 0.
__device__ __forceinline__ void f_mad_modulus_even(uint32_t* even, const uint32_t* p, uint32_t t, uint32_t m) {
    if (f_modulus(0) != 1) {
        f_mad_row(even, p, m);
        return;
    }
    add_cc(t, 0xffffffffu);
    even[1] = addc_cc(even[1], 0);
#pragma unroll
    for (int j = 2; j < F_ROW; j += 2) {
        even[j] = madc_lo_cc(p[j], m, even[j]);
        even[j + 1] = madc_hi_cc(p[j], m, even[j + 1]);
    }
}

// odd = odd shifted down by `shift` words, + (p[1], p[3], ...) * m, + with a shift the carry. Where p[0] = 1 and
// p[1] = 2^32 - 1, p[1] m = 2^32 m - m has the words t and ~t, unless t = 0.
__device__ __forceinline__ void f_mad_modulus_odd(uint32_t* odd, const uint32_t* p, uint32_t t, uint32_t m, int shift) {
    bool known = f_modulus(0) == 1 && f_modulus(F_LIMBS > 1) == 0xffffffffu;
#pragma unroll
    for (int j = 0; j < F_ROW; j += 2) {
        uint32_t low = j + shift < F_ROW ? odd[j + shift] : 0, high = j + shift < F_ROW ? odd[j + 1 + shift] : 0;
        if (j == 0 && known) {
            odd[0] = shift ? addc_cc(low, t) : add_cc(low, t);
            odd[1] = addc_cc(high, t == 0 ? 0 : ~t);
        } else {
            odd[j] = j == 0 && shift == 0 ? mad_lo_cc(p[j + 1], m, low) : madc_lo_cc(p[j + 1], m, low);
            odd[j + 1] = madc_hi_cc(p[j + 1], m, high);
        }
    }
}

// even + 2^32 odd += m p, with the m that makes the lowest limb zero. even[0] is left as it is: it is not needed again.
__device__ __forceinline__ void f_mad_modulus(uint32_t* even, uint32_t* odd, const uint32_t* p, int shift) {
    uint32_t t = even[0], m = t * f_n0;
    f_mad_modulus_odd(odd, p, t, m, shift);
    f_mad_modulus_even(even, p, t, m);
    odd[F_ROW - 1] = addc(odd[F_ROW - 1], 0);
}

// One row of T = even + 2^32 odd: T = (T + a * b) with its lowest limb made zero by a multiple of p. `odd` comes in as
// the even accumulator of the row before, so it is first shifted down by two words. `a` and `p` have F_ROW + 1 words.
__device__ __forceinline__ void f_mul_row(uint32_t* even, uint32_t* odd, const uint32_t* a, uint32_t b,
                                          const uint32_t* p) {
    even[0] = add_cc(even[0], odd[1]);
#pragma unroll
    for (int j = 0; j < F_ROW - 2; j += 2) {
        odd[j] = madc_lo_cc(a[j + 1], b, odd[j + 2]);
        odd[j + 1] = madc_hi_cc(a[j + 1], b, odd[j + 3]);
    }
    odd[F_ROW - 2] = madc_lo_cc(a[F_ROW - 1], b, 0);
    odd[F_ROW - 1] = madc_hi(a[F_ROW - 1], b, 0);
    f_mad_row(even, a, b);
    odd[F_ROW - 1] = addc(odd[F_ROW - 1], 0);

    f_mad_modulus(even, odd, p, 0);
}

// a * b / R in [0, 2p) for a in [0, p) and any b of F_LIMBS limbs: with both up to 2p, the accumulators could overflow.
__device__ __forceinline__ F f_mul_lazy(const F& a, const F& b) {
    uint32_t x[F_ROW + 1], p[F_ROW + 1], even[F_ROW] = {}, odd[F_ROW] = {};
#pragma unroll
    for (int i = 0; i <= F_ROW; i++) {
        x[i] = i < F_LIMBS ? a.l[i] : 0;
        p[i] = i < F_LIMBS ? f_modulus(i) : 0;
    }
#pragma unroll
    for (int i = 0; i < F_LIMBS; i += 2) {
        f_mul_row(even, odd, x, b.l[i], p);
        if (i + 1 < F_LIMBS) f_mul_row(odd, even, x, b.l[i + 1], p);
    }
    // The accumulator whose lowest word is zero now stands one column below the other.
    uint32_t* high = F_LIMBS % 2 ? odd : even;
    uint32_t* low = F_LIMBS % 2 ? even : odd;
    F r;
    r.l[0] = add_cc(high[0], low[1]);
#pragma unroll
    for (int i = 1; i < F_LIMBS; i++) r.l[i] = addc_cc(high[i], i + 1 < F_ROW ? low[i + 1] : 0);
    return r;
}

__device__ __forceinline__ F f_mul(const F& a, const F& b) {
    return f_reduce(f_mul_lazy(a, b));
}

#endif // F_LIMBS == 1

#endif // F_PTX
