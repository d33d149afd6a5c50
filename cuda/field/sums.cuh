// Sums of products that are reduced once, at their end.

#if F_LAZY

__device__ __forceinline__ FSum f_sum_zero() {
    return FSum{};
}

// sum / R mod p.
__device__ __forceinline__ F f_sum_reduce(const FSum& sum) {
    return f_mul(F{F_SHIFT}, f_sum_redc(sum));
}

#endif // F_LAZY
