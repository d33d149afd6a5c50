// The rounds of BLAKE2s and BLAKE3: 96 instructions each, 8 mixes of 12, since an addition takes three operands.

__device__ __forceinline__ void mix(uint32_t* v, int a, int b, int c, int d, uint32_t x, uint32_t y) {
    v[a] += v[b] + x;
    v[d] = rotate_right(v[d] ^ v[a], 16);
    v[c] += v[d];
    v[b] = rotate_right(v[b] ^ v[c], 12);
    v[a] += v[b] + y;
    v[d] = rotate_right(v[d] ^ v[a], 8);
    v[c] += v[d];
    v[b] = rotate_right(v[b] ^ v[c], 7);
}

// With the words of the message in this order.
#define ROUND(m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15) \
    mix(v, 0, 4, 8, 12, m[m0], m[m1]); \
    mix(v, 1, 5, 9, 13, m[m2], m[m3]); \
    mix(v, 2, 6, 10, 14, m[m4], m[m5]); \
    mix(v, 3, 7, 11, 15, m[m6], m[m7]); \
    mix(v, 0, 5, 10, 15, m[m8], m[m9]); \
    mix(v, 1, 6, 11, 12, m[m10], m[m11]); \
    mix(v, 2, 7, 8, 13, m[m12], m[m13]); \
    mix(v, 3, 4, 9, 14, m[m14], m[m15]);
