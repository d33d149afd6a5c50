// BLAKE2s with digests of 32 bytes and no key (RFC 7693): 10 rounds, 960 instructions, and 16 more a block.

struct State {
    uint32_t h[8];
};

__device__ __forceinline__ void start(State& s) {
    s = State{{IV0 ^ 0x01010020u, IV1, IV2, IV3, IV4, IV5, IV6, IV7}};
}

// Whether a block is the last one, which has `rest` bytes of the message.
__device__ __forceinline__ bool is_last(int32_t rest) {
    return rest <= (int32_t)BLOCK;
}

__device__ __forceinline__ void absorb(State& s, const uint32_t* x, uint32_t at, int32_t rest, uint32_t bytes, uint32_t pad) {
    uint32_t m[16] = {0};
    add_block(m, x, at, rest, pad);
    bool last = is_last(rest);
    uint32_t v[16] = {s.h[0], s.h[1], s.h[2], s.h[3], s.h[4], s.h[5], s.h[6], s.h[7],
                      IV0, IV1, IV2, IV3, IV4 ^ (last ? bytes : bytes - (uint32_t)rest + BLOCK), IV5, last ? ~IV6 : IV6, IV7};
    ROUND(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15)
    ROUND(14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3)
    ROUND(11, 8, 12, 0, 5, 2, 15, 13, 10, 14, 3, 6, 7, 1, 9, 4)
    ROUND(7, 9, 3, 1, 13, 12, 11, 14, 2, 6, 5, 10, 4, 0, 15, 8)
    ROUND(9, 0, 5, 7, 2, 4, 10, 15, 14, 1, 11, 12, 6, 8, 3, 13)
    ROUND(2, 12, 6, 10, 0, 11, 8, 3, 4, 13, 7, 5, 15, 14, 1, 9)
    ROUND(12, 5, 1, 15, 14, 13, 4, 10, 0, 7, 6, 3, 9, 2, 8, 11)
    ROUND(13, 11, 7, 14, 12, 1, 3, 9, 5, 0, 15, 4, 8, 6, 2, 10)
    ROUND(6, 15, 14, 9, 11, 3, 0, 8, 12, 2, 13, 7, 1, 4, 10, 5)
    ROUND(10, 2, 8, 4, 7, 6, 1, 5, 15, 11, 9, 14, 3, 12, 13, 0)
#pragma unroll
    for (int i = 0; i < 8; i++) s.h[i] = xor3(s.h[i], v[i], v[i + 8]);
}

__device__ __forceinline__ void finish(uint32_t* h, const State& s) {
#pragma unroll
    for (int i = 0; i < 8; i++) h[i] = s.h[i];
}
