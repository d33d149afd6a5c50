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
