// Products with constants whose quotient by p was computed beforehand. Shoup's method: Harvey, "Faster arithmetic for
// number-theoretic transforms", Journal of Symbolic Computation 60 (2014), section 2.

// The constant w of which t is the Montgomery form, and floor(2^(32 F_LIMBS) w / p): since 2^(32 F_LIMBS) w - t is a multiple of p,
// that is -t / p mod 2^(32 F_LIMBS), whose limbs are those by which Montgomery's reduction of t to w multiplies p.
__device__ __forceinline__ void f_shoup_constant(const F& t, F* w, F* quotient) {
    F rest = t, q = {};
    for (int i = 0; i < F_LIMBS; i++) {
        uint32_t m = rest.l[0] * f_n0;
        uint64_t sum = (uint64_t)m * f_modulus(0) + rest.l[0];
#pragma unroll
        for (int j = 1; j < F_LIMBS; j++) {
            sum = (uint64_t)m * f_modulus(j) + rest.l[j] + (sum >> 32);
            rest.l[j - 1] = (uint32_t)sum;
        }
        rest.l[F_LIMBS - 1] = (uint32_t)(sum >> 32);
        // The first one moves to the end, and at last to its place.
#pragma unroll
        for (int j = 1; j < F_LIMBS; j++) q.l[j - 1] = q.l[j];
        q.l[F_LIMBS - 1] = m;
    }
    *w = rest;
    *quotient = q;
}

#if F_LIMBS == 1 && !F_FULL

// a * w mod p for any a, with w in [0, p) and quotient = floor(2^32 w / p) known.
__device__ __forceinline__ F f_mul_shoup(const F& a, const F& w, const F& quotient) {
    uint32_t q = (uint32_t)((uint64_t)a.l[0] * quotient.l[0] >> 32);
    // Below (1 + a / 2^32) p.
    uint32_t r = a.l[0] * w.l[0] - q * f_modulus(0);
    return {{min(r, r - f_modulus(0))}};
}

#endif // F_LIMBS == 1 && !F_FULL

#if F_LAZY

// even + 2^32 odd += a * b mod 2^(32 F_LIMBS).
__device__ __forceinline__ void f_mad_low(uint32_t* even, uint32_t* odd, const uint32_t* a, uint32_t b, int row) {
    // a[i] b stands in column row + i.
    int first = row % 2;
    f_mad_chain(even + row + first, a + first, b, (F_LIMBS - row - first) / 2, false, false);
    f_mad_chain(odd + row - first, a + 1 - first, b, (F_LIMBS - row - 1 + first) / 2, true, false);
}

// a * w mod p in [0, 2p) for a in [0, 2p), with w in [0, p) and quotient = floor(2^(32 F_LIMBS) w / p) known.
//
// With B = 2^(32 F_LIMBS) and q = floor(a quotient / B), a w - q p is below (1 + a / B) p (Shoup). Products of limbs
// below column F_LIMBS - 2 are left out of q, which makes it one less only where the fraction that q cuts off is below
// F_LIMBS / 2^32: then a w - q p is below (1 + a / B + F_LIMBS / 2^32) p, still under 2p as F_LAZY requires.
// a w - q p = a w + q (B - p) mod B takes low halves of products only; rows of B - p that are zero are skipped.
__device__ __forceinline__ F f_mul_shoup(const F& a, const F& w, const F& quotient) {
    constexpr int cut = F_LIMBS - 2;
    uint32_t even[F_LIMBS + 4] = {}, odd[F_LIMBS + 4] = {};
#pragma unroll
    for (int j = 0; j < F_LIMBS; j++) {
        // a[i] quotient[j] stands in column i + j - cut; its first i here, and the first of each parity of columns.
        int from = j < cut ? cut - j : 0, column = from + j - cut, parity = column % 2;
        f_mad_chain(even + column + parity, a.l + from + parity, quotient.l[j], (F_LIMBS - from - parity + 1) / 2,
                    false, true);
        f_mad_chain(odd + column - parity, a.l + from + 1 - parity, quotient.l[j], (F_LIMBS - from + parity) / 2,
                    false, true);
    }
    // Columns cut + 2 and up are the quotient.
    F q;
    add_cc(even[1], odd[0]);
    q.l[0] = addc_cc(even[2], odd[1]);
#pragma unroll
    for (int i = 1; i < F_LIMBS; i++) q.l[i] = addc_cc(even[i + 2], odd[i + 1]);

    uint32_t low_even[F_LIMBS + 2] = {}, low_odd[F_LIMBS + 2] = {};
#pragma unroll
    for (int j = 0; j < F_LIMBS; j++) f_mad_low(low_even, low_odd, a.l, w.l[j], j);
#pragma unroll
    for (int j = 0; j < F_LIMBS; j++) {
        constexpr uint32_t complement[F_LIMBS] = F_COMPLEMENT;
        if (complement[j] != 0) f_mad_low(low_even, low_odd, q.l, complement[j], j);
    }
    F r;
    r.l[0] = low_even[0];
    r.l[1] = add_cc(low_even[1], low_odd[0]);
#pragma unroll
    for (int i = 2; i < F_LIMBS; i++) r.l[i] = addc_cc(low_even[i], low_odd[i - 1]);
    return r;
}

#endif // F_LAZY
