// The compression of BLAKE3 (O'Connor, Aumasson, Neves and Wilcox-O'Hearn, "BLAKE3: one function, fast everywhere", 2020,
// section 2.2), for 8 words of output: 7 rounds, 672 instructions, and 8 more.

// h = the compression of h, a block of `len` bytes and a chunk's number.
__device__ __forceinline__ void compress(uint32_t* h, const uint32_t* m, uint32_t number, uint32_t len, uint32_t flags) {
    uint32_t v[16] = {h[0], h[1], h[2], h[3], h[4], h[5], h[6], h[7], IV0, IV1, IV2, IV3, number, 0, len, flags};
    ROUND(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15)
    ROUND(2, 6, 3, 10, 7, 0, 4, 13, 1, 11, 12, 5, 9, 14, 15, 8)
    ROUND(3, 4, 10, 12, 13, 2, 7, 14, 6, 5, 9, 0, 11, 15, 8, 1)
    ROUND(10, 7, 12, 9, 14, 3, 13, 15, 4, 0, 11, 2, 5, 8, 1, 6)
    ROUND(12, 13, 9, 11, 15, 10, 14, 8, 7, 2, 5, 3, 0, 1, 6, 4)
    ROUND(9, 14, 11, 5, 8, 12, 15, 1, 13, 3, 0, 10, 2, 6, 4, 7)
    ROUND(11, 15, 5, 0, 1, 9, 8, 6, 14, 10, 2, 12, 3, 4, 7, 13)
#pragma unroll
    for (int i = 0; i < 8; i++) h[i] = v[i] ^ v[i + 8];
}

__device__ __forceinline__ void start(uint32_t* h) {
    h[0] = IV0, h[1] = IV1, h[2] = IV2, h[3] = IV3, h[4] = IV4, h[5] = IV5, h[6] = IV6, h[7] = IV7;
}
