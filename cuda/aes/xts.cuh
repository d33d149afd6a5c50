// Tweaks of XTS: polynomials over GF(2) modulo x^128 + x^7 + x^2 + x + 1, bit i of byte b the coefficient of x^(8 b + i).

// Times x.
__device__ __forceinline__ uint4 xts_double(const uint4& t) {
    return make_uint4((t.x << 1) ^ ((t.w >> 31) * 0x87u), __funnelshift_l(t.x, t.y, 1), __funnelshift_l(t.y, t.z, 1),
                      __funnelshift_l(t.z, t.w, 1));
}

// Times x^i for i < 32.
__device__ __forceinline__ uint4 xts_shift(const uint4& t, uint32_t i) {
    uint32_t over = __funnelshift_l(t.w, 0, i);
    uint32_t low = over ^ over << 1 ^ over << 2 ^ over << 7, high = over >> 31 ^ over >> 30 ^ over >> 25;
    return make_uint4((t.x << i) ^ low, __funnelshift_l(t.x, t.y, i) ^ high, __funnelshift_l(t.y, t.z, i),
                      __funnelshift_l(t.z, t.w, i));
}

// Times x^32.
__device__ __forceinline__ uint4 xts_shift_word(const uint4& t) {
    uint32_t over = t.w, high = over >> 31 ^ over >> 30 ^ over >> 25;
    return make_uint4(over ^ over << 1 ^ over << 2 ^ over << 7, t.x ^ high, t.y, t.z);
}

// Times x^block. Sectors have few blocks: those of 4 KiB take 7 steps at most.
__device__ __forceinline__ uint4 xts_tweak(uint4 t, uint32_t block) {
    for (uint32_t i = 0; i < block / 32u; i++) t = xts_shift_word(t);
    return xts_shift(t, block % 32u);
}

// A little-endian number of 128 bits plus n.
__device__ __forceinline__ uint4 add_little_endian(uint4 t, uint32_t n) {
    t.x += n;
    if (t.x < n && ++t.y == 0 && ++t.z == 0) ++t.w;
    return t;
}
