// Messages of bytes in words of 32 bits, for hash functions of blocks of BLOCK_WORDS words.

#define BLOCK (4u * BLOCK_WORDS)

// Bytes of the widest words that blocks consist of.
#define ALIGNED (BLOCK_WORDS % 4 == 0 ? 16u : 8u)

// a ^ b ^ c, b where a is 1 and c elsewhere, the majority, and a ^ (~b & c): one instruction each. From expressions the compiler
// shares a sum of two among several sums of three, which takes one more.
#ifdef __CUDA_ARCH__
#define LOP3(table) \
    uint32_t r; \
    asm("lop3.b32 %0, %1, %2, %3, " table ";" : "=r"(r) : "r"(a), "r"(b), "r"(c)); \
    return r
__device__ __forceinline__ uint32_t xor3(uint32_t a, uint32_t b, uint32_t c) { LOP3("0x96"); }
__device__ __forceinline__ uint32_t choose(uint32_t a, uint32_t b, uint32_t c) { LOP3("0xca"); }
__device__ __forceinline__ uint32_t majority(uint32_t a, uint32_t b, uint32_t c) { LOP3("0xe8"); }
__device__ __forceinline__ uint32_t xor_and_not(uint32_t a, uint32_t b, uint32_t c) { LOP3("0xd2"); }
#else
__device__ __forceinline__ uint32_t xor3(uint32_t a, uint32_t b, uint32_t c) { return a ^ b ^ c; }
__device__ __forceinline__ uint32_t choose(uint32_t a, uint32_t b, uint32_t c) { return (a & b) ^ (~a & c); }
__device__ __forceinline__ uint32_t majority(uint32_t a, uint32_t b, uint32_t c) { return (a & b) ^ (a & c) ^ (b & c); }
__device__ __forceinline__ uint32_t xor_and_not(uint32_t a, uint32_t b, uint32_t c) { return a ^ (~b & c); }
#endif

__device__ __forceinline__ uint32_t rotate_right(uint32_t x, uint32_t n) { return __funnelshift_r(x, x, n); }

// Fractional parts of square roots of the first primes: where SHA-256, BLAKE2s and BLAKE3 start.
#define IV0 0x6a09e667u
#define IV1 0xbb67ae85u
#define IV2 0x3c6ef372u
#define IV3 0xa54ff53au
#define IV4 0x510e527fu
#define IV5 0x9b05688cu
#define IV6 0x1f83d9abu
#define IV7 0x5be0cd19u

// m ^= the block from byte `at` of x on, as words with the lowest byte first. The message has `rest` bytes from there on, of any
// sign: behind them lies the byte `pad`, then zeros.
__device__ __forceinline__ void add_block(uint32_t* m, const uint32_t* x, uint32_t at, int32_t rest, uint32_t pad) {
    const uint32_t* words = x + at / 4;
    uint32_t within = at % 4;
    if (at % ALIGNED == 0 && (rest >= (int32_t)BLOCK || rest % (int32_t)ALIGNED == 0)) {
#pragma unroll
        for (int k = 0; k < BLOCK_WORDS; k += (int)ALIGNED / 4) {
            if (4 * k < rest) {
#if BLOCK_WORDS % 4 == 0
                uint4 word = reinterpret_cast<const uint4*>(words)[k / 4];
                m[k] ^= word.x, m[k + 1] ^= word.y, m[k + 2] ^= word.z, m[k + 3] ^= word.w;
#else
                uint2 word = reinterpret_cast<const uint2*>(words)[k / 2];
                m[k] ^= word.x, m[k + 1] ^= word.y;
#endif
            } else if (4 * k == rest) {
                m[k] ^= pad;
            }
        }
        return;
    }
    // Words that have a byte of the message, and no other. Some at a time: the compiler otherwise has registers for all of them.
    int32_t end = rest + (int32_t)within;
#pragma unroll
    for (int first = 0; first < BLOCK_WORDS; first += 8) {
        if (4 * first > rest) break;
        uint32_t low = 4 * first < rest ? words[first] : 0;
#pragma unroll
        for (int k = first; k < first + 8 && k < BLOCK_WORDS; k++) {
            uint32_t high = 4 * k + 4 < end ? words[k + 1] : 0;
            uint32_t word = __funnelshift_r(low, high, 8 * within);
            int32_t left = rest - 4 * k;
            if (left < 4) word = left <= 0 ? 0 : word & ((1u << (8 * left)) - 1);
            if (left >= 0 && left < 4) word |= pad << (8 * left);
            m[k] ^= word;
            low = high;
        }
    }
}

__device__ __forceinline__ void store_digest(uint4* place, const uint32_t* h) {
    place[0] = make_uint4(h[0], h[1], h[2], h[3]);
    place[1] = make_uint4(h[4], h[5], h[6], h[7]);
}
