// Keccak-256 and SHA3-256 (FIPS 202), which differ in the byte behind a message: the permutation Keccak-f[1600], with lanes as
// pairs of words. A round is 180 instructions: 20 for the parities of columns, 10 for rotating them, 50 to add two of them to
// each word, 48 for rotations, 50 for the rows and 2 for the constant.

struct State {
    uint32_t w[50];
};

// Of the 24 rounds.
__constant__ uint2 round_constants[24] = {
    {0x00000001u, 0x00000000u}, {0x00008082u, 0x00000000u}, {0x0000808au, 0x80000000u}, {0x80008000u, 0x80000000u},
    {0x0000808bu, 0x00000000u}, {0x80000001u, 0x00000000u}, {0x80008081u, 0x80000000u}, {0x00008009u, 0x80000000u},
    {0x0000008au, 0x00000000u}, {0x00000088u, 0x00000000u}, {0x80008009u, 0x00000000u}, {0x8000000au, 0x00000000u},
    {0x8000808bu, 0x00000000u}, {0x0000008bu, 0x80000000u}, {0x00008089u, 0x80000000u}, {0x00008003u, 0x80000000u},
    {0x00008002u, 0x80000000u}, {0x00000080u, 0x80000000u}, {0x0000800au, 0x00000000u}, {0x8000000au, 0x80000000u},
    {0x80008081u, 0x80000000u}, {0x00008080u, 0x80000000u}, {0x80000001u, 0x00000000u}, {0x80008008u, 0x80000000u},
};

// Lane `to` of b: lane `at` of s with the parities of its neighbouring columns, rotated left by n.
#define MOVE(to, at, n) \
    { \
        uint32_t l = xor3(s.w[2 * (at)], parity_low[(at + 4) % 5], turned_low[(at + 1) % 5]); \
        uint32_t h = xor3(s.w[2 * (at) + 1], parity_high[(at + 4) % 5], turned_high[(at + 1) % 5]); \
        low[to] = n % 64 < 32 ? __funnelshift_l(h, l, n % 32) : __funnelshift_l(l, h, n % 32); \
        high[to] = n % 64 < 32 ? __funnelshift_l(l, h, n % 32) : __funnelshift_l(h, l, n % 32); \
    }

__device__ __forceinline__ void keccak_round(State& s, uint2 constant) {
    uint32_t parity_low[5], parity_high[5], turned_low[5], turned_high[5], low[25], high[25];
#pragma unroll
    for (int x = 0; x < 5; x++) {
        const uint32_t* w = s.w + 2 * x;
        parity_low[x] = xor3(xor3(w[0], w[10], w[20]), w[30], w[40]);
        parity_high[x] = xor3(xor3(w[1], w[11], w[21]), w[31], w[41]);
        turned_low[x] = __funnelshift_l(parity_high[x], parity_low[x], 1);
        turned_high[x] = __funnelshift_l(parity_low[x], parity_high[x], 1);
    }
    // Lane x + 5 y goes to y + 5 (2 x + 3 y).
    MOVE(0, 0, 0) MOVE(10, 1, 1) MOVE(20, 2, 62) MOVE(5, 3, 28) MOVE(15, 4, 27)
    MOVE(16, 5, 36) MOVE(1, 6, 44) MOVE(11, 7, 6) MOVE(21, 8, 55) MOVE(6, 9, 20)
    MOVE(7, 10, 3) MOVE(17, 11, 10) MOVE(2, 12, 43) MOVE(12, 13, 25) MOVE(22, 14, 39)
    MOVE(23, 15, 41) MOVE(8, 16, 45) MOVE(18, 17, 15) MOVE(3, 18, 21) MOVE(13, 19, 8)
    MOVE(14, 20, 18) MOVE(24, 21, 2) MOVE(9, 22, 61) MOVE(19, 23, 56) MOVE(4, 24, 14)
#pragma unroll
    for (int i = 0; i < 25; i++) {
        int next = i / 5 * 5 + (i + 1) % 5, second = i / 5 * 5 + (i + 2) % 5;
        s.w[2 * i] = xor_and_not(low[i], low[next], low[second]);
        s.w[2 * i + 1] = xor_and_not(high[i], high[next], high[second]);
    }
    s.w[0] ^= constant.x;
    s.w[1] ^= constant.y;
}

__device__ __forceinline__ void start(State& s) {
#pragma unroll
    for (int i = 0; i < 50; i++) s.w[i] = 0;
}

// Whether a block is the last one, which has `rest` bytes of the message. A byte follows these.
__device__ __forceinline__ bool is_last(int32_t rest) {
    return rest < (int32_t)BLOCK;
}

__device__ __forceinline__ void absorb(State& s, const uint32_t* x, uint32_t at, int32_t rest, uint32_t bytes, uint32_t pad) {
    add_block(s.w, x, at, rest, pad);
    if (is_last(rest)) s.w[BLOCK_WORDS - 1] ^= 0x80000000u;
#pragma unroll 1
    for (uint32_t round = 0; round < 24; round++) keccak_round(s, round_constants[round]);
}

__device__ __forceinline__ void finish(uint32_t* h, const State& s) {
#pragma unroll
    for (int i = 0; i < 8; i++) h[i] = s.w[i];
}
