// GHASH of segments of blocks: warp g gives the sum of X_i H^(n-1-i) over the n blocks of segment g, which the host joins.
//
// Elements are polynomials over GF(2) modulo x^128 + x^7 + x^2 + x + 1; in memory bit 7 of byte 0 is the coefficient of
// x^0. `powers` has of each key H^(2^k) at entry k, and H^k at entry FIRST_POWER + k for k < 32, with bits in order:
// coefficient i is bit i % 32 of word i / 32.
//
// Without a length of segments, segment g is message g. Else the data is cut into segments of `segment` blocks, of which the
// last may be shorter.
//
// A warp takes 32 blocks at a time by Horner's rule; those missing in the last row come first, as zeros. Multiplication by
// a power of H is linear over GF(2): where tensor cores multiply bits (compute capability 8.x and 9.x), a row of 16 sums,
// each with the two blocks that belong to it, is multiplied by the 256 by 128 bits of the matrices of H^32 and H^2, and
// the parity of each count is a bit of the next sums. A quad of lanes has blocks 4q to 4q + 3: sum q is that of blocks
// 4q and 4q + 2, and sum 8 + q that of 4q + 1 and 4q + 3.
// Elsewhere each lane has a sum of its own, and products are made of integer multiplications of bits four apart (as in
// BearSSL), by Karatsuba 9 of 32 bits, 16 multiplications each; so are those that put the sums of a warp together.
// No lookup depends on data or key.

static_assert(WARP == 32, "a warp takes 32 blocks at a time");

#define FIRST_POWER 48u
#define WARPS (THREADS / 32u)

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

__device__ __forceinline__ uint32_t reflect(uint32_t x) { return __brev(swap_bytes(x)); }
__device__ __forceinline__ uint32_t reflect_back(uint32_t x) { return swap_bytes(__brev(x)); }

__device__ __forceinline__ Element element(const uint4& x) { return Element{{x.x, x.y, x.z, x.w}}; }

__device__ __forceinline__ void add(Element& a, const Element& b) {
#pragma unroll
    for (uint32_t w = 0; w < 4; w++) a.w[w] ^= b.w[w];
}

// The sum of all lanes' elements.
__device__ __forceinline__ Element sum_of_warp(Element x) {
#pragma unroll
    for (uint32_t distance = 16; distance > 0; distance /= 2) {
#pragma unroll
        for (uint32_t w = 0; w < 4; w++) x.w[w] ^= warp_shuffle_xor(x.w[w], distance);
    }
    return x;
}

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800 && __CUDA_ARCH__ < 1000

// The matrices of H^32 and H^2 as the instruction takes them: word 32 t + lane of a matrix is what a lane has of columns
// 8 t to 8 t + 7. Column 8 t + n is bit 2 t + n % 2 of word n / 2, so that all bits that a lane counts are of one word.
// Rows of 33 words spread what is written over the banks.
#define TILES 16u
#define MATRIX_WORDS (2u * TILES * 33u)

// Bit i of lane j becomes bit j of lane i.
__device__ __forceinline__ uint32_t transpose(uint32_t x) {
    const uint32_t masks[5] = {0x0000ffffu, 0x00ff00ffu, 0x0f0f0f0fu, 0x33333333u, 0x55555555u};
#pragma unroll
    for (uint32_t k = 0; k < 5; k++) {
        uint32_t distance = 16u >> k, other = warp_shuffle_xor(x, distance);
        x = threadIdx.x & distance ? (other >> distance & masks[k]) | (x & ~masks[k])
                                   : (x & masks[k]) | (other << distance & ~masks[k]);
    }
    return x;
}

// Writes part `part` of 8 of the matrices: four for the words of each factor.
__device__ __forceinline__ void write_matrix(uint32_t* matrix, const uint4* powers, uint32_t part) {
    uint32_t lane = threadIdx.x % 32u, half = part / 4u, word = part % 4u;
    // Bit i of a word in memory is coefficient i ^ 7 of it.
    uint4 product = xts_tweak(powers[half == 0 ? 5 : 1], 32u * word + (lane ^ 7u));
    const uint32_t rows[4] = {reflect(product.x), reflect(product.y), reflect(product.z), reflect(product.w)};
#pragma unroll
    for (uint32_t w = 0; w < 4; w++) {
        matrix[(half * TILES + lane / 2u) * 33u + 4u * (2u * w + lane % 2u) + word] = transpose(rows[w]);
    }
}

struct Sum {
    uint32_t matrix[2][TILES];
    uint32_t row[2]; // a word of sum q and one of sum 8 + q
};

__device__ __forceinline__ void start(Sum& sum) { sum.row[0] = sum.row[1] = 0; }

__device__ __forceinline__ void load_matrix(Sum& sum, const uint32_t* matrix) {
#pragma unroll
    for (uint32_t i = 0; i < 2 * TILES; i++) sum.matrix[i / TILES][i % TILES] = matrix[i * 33u + threadIdx.x % 32u];
}

// Times H^32, plus a row.
__device__ __forceinline__ void absorb(Sum& sum, const uint4& x, const uint4&) {
    // Word i of block q of the quad to word q of block i.
    bool odd = threadIdx.x & 1u, upper = threadIdx.x & 2u;
    uint32_t a = odd ? x.x : x.y, b = odd ? x.z : x.w;
    a = warp_shuffle_xor(a, 1), b = warp_shuffle_xor(b, 1);
    uint32_t t0 = odd ? a : x.x, t1 = odd ? x.y : a, t2 = odd ? b : x.z, t3 = odd ? x.w : b;
    a = upper ? t0 : t2, b = upper ? t1 : t3;
    a = warp_shuffle_xor(a, 2), b = warp_shuffle_xor(b, 2);
    uint32_t block[4] = {upper ? a : t0, upper ? b : t1, upper ? t2 : a, upper ? t3 : b};
    uint32_t next[2] = {0, 0};
#pragma unroll
    for (uint32_t t = 0; t < TILES; t++) {
        uint32_t c[4];
        asm("mma.sync.aligned.m16n8k256.row.col.s32.b1.b1.s32.and.popc {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
            "{%10, %10, %10, %10};"
            : "=r"(c[0]), "=r"(c[1]), "=r"(c[2]), "=r"(c[3])
            : "r"(sum.row[0]), "r"(sum.row[1]), "r"(block[0]), "r"(block[1]), "r"(sum.matrix[0][t]),
              "r"(sum.matrix[1][t]), "r"(0));
        // The lowest bits of all counts, the first one's in bit 0.
        next[0] = __funnelshift_r(__funnelshift_r(next[0], c[0], 1), c[1], 1);
        next[1] = __funnelshift_r(__funnelshift_r(next[1], c[2], 1), c[3], 1);
    }
    sum.row[0] = next[0] ^ block[2], sum.row[1] = next[1] ^ block[3];
}

// Σ X_i H^(31-i) over the lanes' blocks, in all lanes.
__device__ __forceinline__ Element finish(const Sum& sum, const uint4* powers) {
    uint32_t lane = threadIdx.x % 32u, quad = lane % 8u;
    Element x;
#pragma unroll
    for (uint32_t w = 0; w < 4; w++) {
        uint32_t a = warp_shuffle(sum.row[0], 4u * quad + w);
        uint32_t b = warp_shuffle(sum.row[1], 4u * quad + w);
        x.w[w] = lane < 8 ? reflect(a) : lane < 16 ? reflect(b) : 0;
    }
    return sum_of_warp(multiply(x, element(powers[FIRST_POWER + 29u - 4u * quad - (lane < 8 ? 0u : 1u)])));
}

#else

#define MATRIX_WORDS 1u

struct Sum {
    Element own;
};

__device__ __forceinline__ void write_matrix(uint32_t*, const uint4*, uint32_t) {}
__device__ __forceinline__ void load_matrix(Sum&, const uint32_t*) {}
__device__ __forceinline__ void start(Sum& sum) { sum.own = Element{{0, 0, 0, 0}}; }

// Times H^32, plus a row.
__device__ __forceinline__ void absorb(Sum& sum, const uint4& x, const uint4& step) {
    sum.own = multiply(sum.own, element(step));
    add(sum.own, Element{{reflect(x.x), reflect(x.y), reflect(x.z), reflect(x.w)}});
}

// Σ X_i H^(31-i) over the lanes' blocks, in all lanes.
__device__ __forceinline__ Element finish(const Sum& sum, const uint4* powers) {
    return sum_of_warp(multiply(sum.own, element(powers[FIRST_POWER + 31u - threadIdx.x % 32u])));
}

#endif

// Rows that are loaded at a time.
#define AT_ONCE 4u

// Blocks i, i + 32, … of a segment that starts with `lead` zeros and ends before `end`.
__device__ __forceinline__ void load_rows(uint4 (&x)[AT_ONCE], const uint4* words, uint32_t i, uint32_t lead, uint32_t end,
                                          uint32_t tail) {
#pragma unroll
    for (uint32_t j = 0; j < AT_ONCE; j++, i += 32u) {
        x[j] = make_uint4(0, 0, 0, 0);
        if (i >= lead && i < end) x[j] = words[i - lead];
        if (i + 1 == end && tail < 16) x[j] = select_bytes(make_uint4(0, 0, 0, 0), x[j], 0, tail);
    }
}

extern "C" __global__ void __launch_bounds__(THREADS, 2)
ghash(const Params params, BUFFERS(uint4, uint4, uint4, uint4)) {
    wait_for_previous();
    uint32_t* matrices = reinterpret_cast<uint32_t*>(shared);
    uint32_t warp = threadIdx.x / 32u, warps = gridDim.x * WARPS;
    // The first matrices are those of the first key, by all warps together; where a warp needs others it makes its own.
    uint32_t shown = params.segment > 0 ? params.power : messages[1].y;
    for (uint32_t part = warp; part < 8; part += WARPS) write_matrix(matrices, powers + shown, part);
    __syncthreads();
    Sum sum;
    load_matrix(sum, matrices);
    matrices += (1 + warp) * MATRIX_WORDS;

    // Neighbouring segments go to different workgroups, so that few are spread over the device.
    for (uint32_t segment = blockIdx.x + gridDim.x * warp; segment < params.count; segment += warps) {
        size_t word = 0;
        uint32_t blocks = params.blocks, tail = params.tail;
        const uint4* mine = powers + params.power;
        if (params.segment > 0) {
            uint32_t first = segment * params.segment;
            word += first, blocks -= first;
            if (blocks > params.segment) blocks = params.segment, tail = 16;
        } else {
            uint4 head = messages[(size_t)segment * MESSAGE_WORDS], more = messages[(size_t)segment * MESSAGE_WORDS + 1];
            word = (size_t)more.z << 32 | head.y, blocks = head.z, tail = more.x, mine = powers + more.y;
            if (more.y != shown) {
                shown = more.y;
                warp_sync();
                for (uint32_t part = 0; part < 8; part++) write_matrix(matrices, mine, part);
                warp_sync();
                load_matrix(sum, matrices);
            }
        }
        start(sum);
        uint32_t end = (blocks + 32u * AT_ONCE - 1) / (32u * AT_ONCE) * (32u * AT_ONCE), lead = end - blocks;
        uint4 step = mine[5], x[AT_ONCE];
        load_rows(x, data + word, threadIdx.x % 32u, lead, end, tail);
#pragma unroll 1
        for (uint32_t i = threadIdx.x % 32u; i < end; i += 32u * AT_ONCE) {
            uint4 next[AT_ONCE];
            load_rows(next, data + word, i + 32u * AT_ONCE, lead, end, tail);
#pragma unroll
            for (uint32_t j = 0; j < AT_ONCE; j++) absorb(sum, x[j], step);
#pragma unroll
            for (uint32_t j = 0; j < AT_ONCE; j++) x[j] = next[j];
        }
        Element total = finish(sum, mine);
        if (threadIdx.x % 32u == 0) {
            out[segment] = make_uint4(reflect_back(total.w[0]), reflect_back(total.w[1]), reflect_back(total.w[2]),
                                      reflect_back(total.w[3]));
        }
    }
}
