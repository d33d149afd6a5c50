// SHA-256 (FIPS 180-4). A round is 14 instructions, and each of 48 rounds 10 more for the schedule of the message: 1384 with the
// 8 additions at the end of a block.

struct State {
    uint32_t h[8];
};

__constant__ uint32_t round_constants[64] = {
    0x428a2f98u, 0x71374491u, 0xb5c0fbcfu, 0xe9b5dba5u, 0x3956c25bu, 0x59f111f1u, 0x923f82a4u, 0xab1c5ed5u,
    0xd807aa98u, 0x12835b01u, 0x243185beu, 0x550c7dc3u, 0x72be5d74u, 0x80deb1feu, 0x9bdc06a7u, 0xc19bf174u,
    0xe49b69c1u, 0xefbe4786u, 0x0fc19dc6u, 0x240ca1ccu, 0x2de92c6fu, 0x4a7484aau, 0x5cb0a9dcu, 0x76f988dau,
    0x983e5152u, 0xa831c66du, 0xb00327c8u, 0xbf597fc7u, 0xc6e00bf3u, 0xd5a79147u, 0x06ca6351u, 0x14292967u,
    0x27b70a85u, 0x2e1b2138u, 0x4d2c6dfcu, 0x53380d13u, 0x650a7354u, 0x766a0abbu, 0x81c2c92eu, 0x92722c85u,
    0xa2bfe8a1u, 0xa81a664bu, 0xc24b8b70u, 0xc76c51a3u, 0xd192e819u, 0xd6990624u, 0xf40e3585u, 0x106aa070u,
    0x19a4c116u, 0x1e376c08u, 0x2748774cu, 0x34b0bcb5u, 0x391c0cb3u, 0x4ed8aa4au, 0x5b9cca4fu, 0x682e6ff3u,
    0x748f82eeu, 0x78a5636fu, 0x84c87814u, 0x8cc70208u, 0x90befffau, 0xa4506cebu, 0xbef9a3f7u, 0xc67178f2u,
};

__device__ __forceinline__ void start(State& s) {
    s = State{{IV0, IV1, IV2, IV3, IV4, IV5, IV6, IV7}};
}

// Whether a block is the last one, which has `rest` bytes of the message. A byte and the length in bits follow these.
__device__ __forceinline__ bool is_last(int32_t rest) {
    return rest <= (int32_t)BLOCK - 9;
}

__device__ __forceinline__ uint32_t swap_bytes(uint32_t x) {
    return __byte_perm(x, x, 0x0123);
}

__device__ __forceinline__ void absorb(State& s, const uint32_t* x, uint32_t at, int32_t rest, uint32_t bytes, uint32_t pad) {
    uint32_t w[16] = {0}, v[8];
    add_block(w, x, at, rest, pad);
#pragma unroll
    for (int i = 0; i < 16; i++) w[i] = swap_bytes(w[i]);
    if (is_last(rest)) w[14] = bytes >> 29, w[15] = bytes << 3;
#pragma unroll
    for (int i = 0; i < 8; i++) v[i] = s.h[i];
    // The names of the eight words move by one place a round.
#pragma unroll
    for (int t = 0; t < 64; t++) {
        if (t >= 16) {
            uint32_t a = w[(t + 1) % 16], b = w[(t + 14) % 16];
            w[t % 16] += xor3(rotate_right(a, 7), rotate_right(a, 18), a >> 3) + w[(t + 9) % 16] +
                         xor3(rotate_right(b, 17), rotate_right(b, 19), b >> 10);
        }
        uint32_t &a = v[(64 - t) % 8], &b = v[(65 - t) % 8], &c = v[(66 - t) % 8], &d = v[(67 - t) % 8];
        uint32_t &e = v[(68 - t) % 8], &f = v[(69 - t) % 8], &g = v[(70 - t) % 8], &h = v[(71 - t) % 8];
        h += xor3(rotate_right(e, 6), rotate_right(e, 11), rotate_right(e, 25)) + choose(e, f, g) + round_constants[t] + w[t % 16];
        d += h;
        h += xor3(rotate_right(a, 2), rotate_right(a, 13), rotate_right(a, 22)) + majority(a, b, c);
    }
#pragma unroll
    for (int i = 0; i < 8; i++) s.h[i] += v[i];
}

__device__ __forceinline__ void finish(uint32_t* h, const State& s) {
#pragma unroll
    for (int i = 0; i < 8; i++) h[i] = swap_bytes(s.h[i]);
}
