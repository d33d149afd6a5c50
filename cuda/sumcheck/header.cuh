// What the kernels of a sumcheck share.
//
// Comes after the arithmetic of the field F of challenges and:
//   EXTENDED   1 if tables may have elements of the field B below
//   WEIGHTED   1 if pairs have weights
//   POINTS     points at which a round is evaluated

// An element of a table as one of F.
__device__ __forceinline__ F lift(const F& x) {
    return x;
}

#if EXTENDED
__device__ __forceinline__ F lift(const B& x) {
    F r = f_zero();
    r.c[0] = x;
    return r;
}
#endif

// A sum of terms, times their weights if there are any.
#if WEIGHTED && F_LAZY
typedef FSum Sum;

__device__ __forceinline__ Sum sum_zero() {
    return f_sum_zero();
}

__device__ __forceinline__ void sum_add(Sum& sum, const F& weight, const F& term) {
    f_mac(sum, weight, term);
}

__device__ __forceinline__ F sum_value(const Sum& sum) {
    return f_sum_reduce(sum);
}
#else
typedef F Sum;

__device__ __forceinline__ Sum sum_zero() {
    return f_zero();
}

__device__ __forceinline__ void sum_add(Sum& sum, const F& weight, const F& term) {
#if WEIGHTED
    sum = f_add(sum, f_mul(weight, term));
#else
    sum = f_add(sum, term);
#endif
}

__device__ __forceinline__ F sum_value(const Sum& sum) {
    return sum;
}
#endif

struct Sums {
    Sum at[POINTS];
};
