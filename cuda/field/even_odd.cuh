// Prime field arithmetic by instructions with carries. Sums and products of two limbs or more are rendered from the modulus:
// source/chains.rs of the crate for fields.

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

__device__ __forceinline__ F f_mul(const F& a, const F& b) {
    return f_reduce(f_mul_lazy(a, b));
}

#endif // F_LIMBS == 1

#endif // F_PTX
