// Powers by squaring and multiplying, of which a factor of a transform may be made.

// base^exponent, in up to 2 log2(exponent) products.
__device__ __forceinline__ F power(F base, uint32_t exponent) {
    F result = f_one();
    for (; exponent != 0; exponent >>= 1) {
        if (exponent & 1) result = f_mul(result, base);
        base = f_mul(base, base);
    }
    return result;
}
