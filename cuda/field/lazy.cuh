// Squares where values in [0, 2p) are computed with.

#if F_LAZY

__device__ __forceinline__ F f_square(const F& a) {
    return f_reduce(f_square_lazy(a));
}

#endif // F_LAZY
