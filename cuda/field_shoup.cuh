// Products with constants whose quotient by p was computed beforehand. Shoup's method: Harvey, "Faster arithmetic for
// number-theoretic transforms", Journal of Symbolic Computation 60 (2014), section 2.

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
