// Sums of products that are reduced once, at their end.
//
// Source of such lazy reduction: Aranha, Karabina, Longa, Gebotys and Lopez, "Faster explicit formulas for computing
// pairings over ordinary curves", EUROCRYPT 2011. The reduction is Montgomery's, as in field_even_odd.cuh.

#if F_LAZY

// A sum of products that is not reduced: fewer than 2^32 of them.
struct FSum {
    uint32_t l[2 * F_LIMBS + 1];
};

__device__ __forceinline__ FSum f_sum_zero() {
    return FSum{};
}

// sum += a * b.
__device__ __forceinline__ void f_mac(FSum& sum, const F& a, const F& b) {
    // odd[i] stands in column i + 1.
    uint32_t even[2 * F_LIMBS + 2] = {}, odd[2 * F_LIMBS + 2] = {};
#pragma unroll
    for (int j = 0; j < F_LIMBS; j++) {
        int parity = j % 2;
        f_mad_chain(even + j + parity, a.l + parity, b.l[j], F_LIMBS / 2, false, true);
        f_mad_chain(odd + j - parity, a.l + 1 - parity, b.l[j], F_LIMBS / 2, false, true);
    }
    sum.l[0] = add_cc(sum.l[0], even[0]);
#pragma unroll
    for (int i = 1; i < 2 * F_LIMBS; i++) sum.l[i] = addc_cc(sum.l[i], even[i]);
    sum.l[2 * F_LIMBS] = addc(sum.l[2 * F_LIMBS], 0);
    sum.l[1] = add_cc(sum.l[1], odd[0]);
#pragma unroll
    for (int i = 2; i < 2 * F_LIMBS; i++) sum.l[i] = addc_cc(sum.l[i], odd[i - 1]);
    sum.l[2 * F_LIMBS] = addc(sum.l[2 * F_LIMBS], 0);
}

// sum / R mod p. One limb is reduced first, which leaves less than p R, and is made up for at the end.
__device__ __forceinline__ F f_sum_reduce(const FSum& sum) {
    uint32_t p[F_LIMBS], t[2 * F_LIMBS + 1], m = sum.l[0] * f_n0;
#pragma unroll
    for (int i = 0; i < F_LIMBS; i++) p[i] = f_modulus(i);
#pragma unroll
    for (int i = 0; i <= 2 * F_LIMBS; i++) t[i] = sum.l[i];
#pragma unroll
    for (int parity = 0; parity < 2; parity++) {
        f_mad_chain(t + parity, p + parity, m, F_LIMBS / 2, false, false);
#pragma unroll
        for (int i = F_LIMBS + parity; i <= 2 * F_LIMBS; i++) t[i] = addc_cc(t[i], 0);
    }
    return f_mul(F{F_SHIFT}, f_redc_lazy(t + 1));
}

#endif // F_LAZY
