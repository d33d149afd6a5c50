// GHASH of segments of blocks: workgroup g gives the sum of X_i H^(n-1-i) over the n blocks of its segment.
//
// Elements are polynomials over GF(2) modulo x^128 + x^7 + x^2 + x + 1; in memory bit 7 of byte 0 is the coefficient of
// x^0. `powers` has H^(2^k) at entry k, with bits in order: coefficient i is bit i % 32 of word i / 32.
//
// With messages: segment g is message g. Without: the data is cut into segments of `segment` blocks from its end, so
// that only the first may be shorter; the same kernel over the results, with H^segment for H, sums them up.
// Thread t takes blocks t, t + 256, … by Horner's rule with H^256, then a tree with H, H^2, H^4, … adds the threads.
// No lookup depends on data: products are made of integer multiplications of bits four apart (as in BearSSL), by
// Karatsuba 9 of 32 bits, 16 multiplications each. Shared memory: one element a thread.

struct Params {
    uint32_t messages; // how many, or 0
    uint32_t word[2];
    uint32_t blocks;
    uint32_t tail;     // bytes in the last block
    uint32_t segment;  // a multiple of THREADS
    uint32_t power;    // entry of H
};

#define LOG_THREADS 8u

struct Element {
    uint32_t w[4];
};

typedef unsigned long long u64;

__device__ __forceinline__ u64 multiply(uint32_t a, uint32_t b) {
    u64 product = 0;
#pragma unroll
    for (uint32_t i = 0; i < 4; i++) {
        u64 sum = 0;
#pragma unroll
        for (uint32_t j = 0; j < 4; j++) {
            sum ^= (u64)(a & 0x11111111u << j) * (b & 0x11111111u << (i + 4 - j) % 4);
        }
        product |= sum & 0x1111111111111111ull << i;
    }
    return product;
}

// (low, high) of a 64-bit by 64-bit product.
__device__ __forceinline__ void multiply_64(const uint32_t* a, const uint32_t* b, u64& low, u64& high) {
    u64 l = multiply(a[0], b[0]), h = multiply(a[1], b[1]), m = multiply(a[0] ^ a[1], b[0] ^ b[1]) ^ l ^ h;
    low = l ^ m << 32;
    high = h ^ m >> 32;
}

__device__ __forceinline__ Element multiply(const Element& a, const Element& b) {
    u64 l0, l1, h0, h1, m0, m1;
    multiply_64(a.w, b.w, l0, l1);
    multiply_64(a.w + 2, b.w + 2, h0, h1);
    uint32_t as[2] = {a.w[0] ^ a.w[2], a.w[1] ^ a.w[3]}, bs[2] = {b.w[0] ^ b.w[2], b.w[1] ^ b.w[3]};
    multiply_64(as, bs, m0, m1);
    m0 ^= l0 ^ h0, m1 ^= l1 ^ h1;
    l1 ^= m0, h0 ^= m1;
    // x^128 = x^7 + x^2 + x + 1.
    u64 over = h1 >> 63 ^ h1 >> 62 ^ h1 >> 57;
    l0 ^= h0 ^ h0 << 1 ^ h0 << 2 ^ h0 << 7;
    l1 ^= h1 ^ (h1 << 1 | h0 >> 63) ^ (h1 << 2 | h0 >> 62) ^ (h1 << 7 | h0 >> 57);
    l0 ^= over ^ over << 1 ^ over << 2 ^ over << 7;
    Element r;
    r.w[0] = (uint32_t)l0, r.w[1] = (uint32_t)(l0 >> 32), r.w[2] = (uint32_t)l1, r.w[3] = (uint32_t)(l1 >> 32);
    return r;
}

__device__ __forceinline__ uint32_t turn(uint32_t x) { return __brev(swap_bytes(x)); }
__device__ __forceinline__ uint32_t turn_back(uint32_t x) { return swap_bytes(__brev(x)); }

extern "C" __global__ void __launch_bounds__(THREADS)
ghash(const Params params, const uint4* data, const uint4* messages, const uint4* powers, uint4* out) {
    Element* sums = reinterpret_cast<Element*>(shared);
    size_t word = wide_word(params.word);
    uint32_t blocks = params.blocks, tail = params.tail, power = params.power;
    // The segment's first block, counted from the front of a whole number of segments; `lead` of them are missing.
    size_t first = (size_t)blockIdx.x * params.segment, lead = (size_t)gridDim.x * params.segment - blocks;
    size_t end = first + params.segment;
    if (params.messages > 0) {
        uint4 head = messages[(size_t)blockIdx.x * MESSAGE_WORDS], more = messages[(size_t)blockIdx.x * MESSAGE_WORDS + 1];
        word = (size_t)more.z << 32 | head.y, blocks = head.z, tail = more.x, power = more.y;
        first = 0, end = ((size_t)blocks + THREADS - 1) / THREADS * THREADS, lead = end - blocks;
    }
    if (lead > first) first += (lead - first) / THREADS * THREADS;

    uint4 p = powers[power + LOG_THREADS];
    Element step = {{p.x, p.y, p.z, p.w}}, sum = {{0, 0, 0, 0}};
#pragma unroll 1
    for (size_t i = first + threadIdx.x; i < end; i += THREADS) {
        uint4 x = make_uint4(0, 0, 0, 0);
        if (i >= lead) {
            x = data[word + (i - lead)];
            if (i - lead + 1 == blocks) x = select_bytes(make_uint4(0, 0, 0, 0), x, 0, tail);
        }
        sum = multiply(sum, step);
        sum.w[0] ^= turn(x.x), sum.w[1] ^= turn(x.y), sum.w[2] ^= turn(x.z), sum.w[3] ^= turn(x.w);
    }
    sums[threadIdx.x] = sum;
    __syncthreads();

#pragma unroll 1
    for (uint32_t k = 0; k < LOG_THREADS; k++) {
        bool active = threadIdx.x < THREADS >> (k + 1);
        if (active) {
            p = powers[power + k];
            Element weight = {{p.x, p.y, p.z, p.w}};
            sum = multiply(sums[2 * threadIdx.x], weight);
#pragma unroll
            for (uint32_t w = 0; w < 4; w++) sum.w[w] ^= sums[2 * threadIdx.x + 1].w[w];
        }
        __syncthreads();
        if (active) sums[threadIdx.x] = sum;
        __syncthreads();
    }
    if (threadIdx.x == 0) {
        out[blockIdx.x] = make_uint4(turn_back(sum.w[0]), turn_back(sum.w[1]), turn_back(sum.w[2]), turn_back(sum.w[3]));
    }
}
