// The challenge of a round from the sums of the round before, by every block for itself: adds up their partial sums, makes the
// round's message of them, and hashes it as the transcript does. Each step is a chain that all threads wait for, so that what
// can be done side by side is: a thread makes one product of a message or one piece of a challenge.
//
// Comes after sumcheck/header.cuh and:
//   DEGREE            coefficients of a message
//   PREVIOUS_POINTS   points at which the round before was evaluated
//   PREVIOUS_FIRST    1 if 0, or 1 instead, is one of them
//   P, p_zero, …      the prime field below F, or F itself
//   PRIME_LIMBS, PRIME_BITS, PRIME_DEGREE   its limbs and bits, and the degree of F over it
//   WIDE              2^((PRIME_BITS - 1) j) for each piece of PRIME_BITS - 1 bits of 512, times R^2

// Words of a message, whole blocks of 16.
#define WORDS ((2 + DEGREE * F_LIMBS + 15) / 16 * 16)
#define WIDE_PIECES ((512 + PRIME_BITS - 2) / (PRIME_BITS - 1))
// Threads that share a coefficient of a challenge.
#define LANES (WIDE_PIECES < 4 ? WIDE_PIECES : 4)
// The coefficients of a message, and the same as integers; threads that share one.
#define ROWS (2 * DEGREE)
#define PARTS (DEGREE + 1 < THREADS / ROWS ? DEGREE + 1 : THREADS / ROWS)

// What drawing needs of shared memory, behind the tile.
struct Drawing {
    F* values;       // the sum that the round before had to have, and its values at 0 or 1, at 2, … and at infinity
    F* message;
    uint32_t* words; // of the message
    uint32_t* pieces;
};

__device__ __forceinline__ Drawing drawing(F* tile) {
    F *values = tile + THREADS, *message = values + DEGREE + 1;
    uint32_t* words = reinterpret_cast<uint32_t*>(message + DEGREE);
    return {values, message, words, words + WORDS};
}

__device__ __forceinline__ void blake3_mix(uint32_t& a, uint32_t& b, uint32_t& c, uint32_t& d, uint32_t x, uint32_t y) {
    a += b + x;
    d = __funnelshift_r(d ^ a, d ^ a, 16);
    c += d;
    b = __funnelshift_r(b ^ c, b ^ c, 12);
    a += b + y;
    d = __funnelshift_r(d ^ a, d ^ a, 8);
    c += d;
    b = __funnelshift_r(b ^ c, b ^ c, 7);
}

// The compression function of BLAKE3 with its whole output. A block goes through it once or a few times, and fetching the text of
// seven rounds one behind the other takes longer than moving the words of the message for each.
__device__ __forceinline__ void blake3_compress(const uint32_t* cv, const uint32_t* block, uint32_t counter, uint32_t bytes,
                                                uint32_t flags, uint32_t* out) {
    constexpr int order[16] = {2, 6, 3, 10, 7, 0, 4, 13, 1, 11, 12, 5, 9, 14, 15, 8};
    uint32_t m[16], v[16];
#pragma unroll
    for (int i = 0; i < 16; i++) m[i] = block[i];
#pragma unroll
    for (int i = 0; i < 8; i++) v[i] = cv[i];
    v[8] = 0x6a09e667u;
    v[9] = 0xbb67ae85u;
    v[10] = 0x3c6ef372u;
    v[11] = 0xa54ff53au;
    v[12] = counter;
    v[13] = 0;
    v[14] = bytes;
    v[15] = flags;
#pragma unroll 1
    for (int round = 0; round < 7; round++) {
        blake3_mix(v[0], v[4], v[8], v[12], m[0], m[1]);
        blake3_mix(v[1], v[5], v[9], v[13], m[2], m[3]);
        blake3_mix(v[2], v[6], v[10], v[14], m[4], m[5]);
        blake3_mix(v[3], v[7], v[11], v[15], m[6], m[7]);
        blake3_mix(v[0], v[5], v[10], v[15], m[8], m[9]);
        blake3_mix(v[1], v[6], v[11], v[12], m[10], m[11]);
        blake3_mix(v[2], v[7], v[8], v[13], m[12], m[13]);
        blake3_mix(v[3], v[4], v[9], v[14], m[14], m[15]);
        uint32_t permuted[16];
#pragma unroll
        for (int i = 0; i < 16; i++) permuted[i] = m[order[i]];
#pragma unroll
        for (int i = 0; i < 16; i++) m[i] = permuted[i];
    }
#pragma unroll
    for (int i = 0; i < 8; i++) {
        out[i] = v[i] ^ v[i + 8];
        out[i + 8] = v[i + 8] ^ cv[i];
    }
}

// A function that is called: a block goes through this text once or a few times, and fetching it takes longer than the calls.
__device__ __noinline__ P draw_mul(P a, P b) {
    return p_mul(a, b);
}

#if PRIME_DEGREE == 1
#define draw_f_mul draw_mul
#else
#define draw_f_mul f_mul
#endif

// What a lane has of the integer of 16 words modulo the prime: of all together, the sum is that.
__device__ __forceinline__ P wide_part(const uint32_t* words, int lane) {
    constexpr uint32_t wide[WIDE_PIECES][PRIME_LIMBS] = WIDE;
    P sum = p_zero();
#pragma unroll
    for (int start = 0; start < WIDE_PIECES; start += LANES) {
        P part = p_zero(), scale = p_zero();
#pragma unroll
        for (int piece = start; piece < start + LANES && piece < WIDE_PIECES; piece++) {
            if (piece - start != lane) continue;
#pragma unroll
            for (int i = 0; i < PRIME_LIMBS; i++) {
                int bit = (PRIME_BITS - 1) * piece + 32 * i, left = PRIME_BITS - 1 - 32 * i;
                uint32_t low = bit / 32 < 16 ? words[bit / 32] : 0, high = bit / 32 + 1 < 16 ? words[bit / 32 + 1] : 0;
                uint32_t limb = bit % 32 == 0 ? low : low >> (bit % 32) | high << (32 - bit % 32);
                part.l[i] = left >= 32 ? limb : left > 0 ? limb & ((1u << left) - 1) : 0;
                scale.l[i] = wide[piece][i];
            }
        }
        sum = p_add(sum, draw_mul(part, scale));
    }
    return sum;
}

// The values of the round before, of the partial sums that all its chunks left.
__device__ __forceinline__ void previous_values(const Params& params, const F* partials, F* tile, F* values) {
    constexpr uint32_t group = group_of(PREVIOUS_POINTS), groups = THREADS / group;
    uint32_t thread = threadIdx.x, lane = thread % group;
    if (thread < 2) values[thread] = thread == 0 ? f_load(partials + params.claim_at + params.parity) : f_zero();
#pragma unroll 1
    for (uint32_t first = 0; first < PREVIOUS_POINTS; first += groups) {
        uint32_t p = first + thread / group;
        F total = f_zero();
        if (p < PREVIOUS_POINTS) {
#pragma unroll 1
            for (uint32_t c = lane; c < params.previous_chunks; c += group) {
                total = f_add(total, f_load(partials + params.previous_at + (size_t)c * PREVIOUS_POINTS + p));
            }
        }
        total = group_sum(total, tile, group, params.previous_chunks);
        if (lane == 0 && p < PREVIOUS_POINTS) values[2 + p - PREVIOUS_FIRST] = total;
    }
}

// The challenge behind the round with these values, `round` rounds behind the first that the parameters speak of, of which it
// leaves the message.
__device__ __forceinline__ F draw(const Params& params, uint32_t round, const F* inputs, F* partials, uint32_t* state, F* tile) {
    Drawing shared = drawing(tile);
    uint32_t thread = threadIdx.x, parity = (params.parity + round) & 1;
    uint32_t cv[8];
    if (thread <= PRIME_DEGREE * LANES) {
#pragma unroll
        for (int i = 0; i < 8; i++) cv[i] = state[8 * parity + i];
    }
    __syncthreads();
    if (thread < ROWS * PARTS) {
        uint32_t row = thread / PARTS, part = thread % PARTS;
        const F* line = inputs + params.lines_at + (round * ROWS + row) * 2;
        const F* others = inputs + params.matrix_at + row * (DEGREE - 1);
        F sum = f_zero();
#pragma unroll 1
        for (uint32_t k = part; k <= DEGREE; k += PARTS) {
            sum = f_add(sum, draw_f_mul(f_load(k < 2 ? line + k : others + (k - 2)), shared.values[k]));
        }
        tile[thread] = sum;
    }
    if (thread < 16) {
        if (thread < 2) shared.words[thread] = thread == 0 ? 4 * DEGREE * F_LIMBS : 0;
        if (2 + DEGREE * F_LIMBS + thread < WORDS) shared.words[2 + DEGREE * F_LIMBS + thread] = 0;
    }
    __syncthreads();
    if (thread < ROWS) {
        F sum = f_zero();
#pragma unroll 1
        for (uint32_t part = 0; part < PARTS; part++) sum = f_add(sum, tile[thread * PARTS + part]);
        if (thread < DEGREE) {
            shared.message[thread] = sum;
            if (blockIdx.x == 0) partials[params.message_at + DEGREE * round + thread] = sum;
        } else {
            const P* parts = reinterpret_cast<const P*>(&sum);
#pragma unroll
            for (int i = 0; i < F_LIMBS; i++) {
                shared.words[2 + (thread - DEGREE) * F_LIMBS + i] = parts[i / PRIME_LIMBS].l[i % PRIME_LIMBS];
            }
        }
    }
    __syncthreads();
    if (thread <= PRIME_DEGREE * LANES) {
        uint32_t counter = (thread + LANES - 1) / LANES, out[16];
        constexpr uint32_t total = 2 + DEGREE * F_LIMBS;
#pragma unroll 1
        for (uint32_t at = 0; at < total; at += 16) {
            bool first = at % 256 == 0, last = at % 256 == 240 || at + 16 >= total;
            uint32_t count = total - at < 16 ? total - at : 16, flags = 16 | (first ? 1 : 0) | (last ? 10 : 0);
            blake3_compress(cv, shared.words + at, at + 16 >= total ? counter : 0, 4 * count, flags, out);
#pragma unroll
            for (int i = 0; i < 8; i++) cv[i] = out[i];
        }
        if (thread == 0) {
            if (blockIdx.x == 0) {
#pragma unroll
                for (int i = 0; i < 8; i++) state[8 * (1 - parity) + i] = out[i];
            }
        } else {
            P part = wide_part(out, (thread - 1) % LANES);
#pragma unroll
            for (int i = 0; i < PRIME_LIMBS; i++) shared.pieces[(thread - 1) * PRIME_LIMBS + i] = part.l[i];
        }
    }
    __syncthreads();
    F challenge;
    P* parts = reinterpret_cast<P*>(&challenge);
#pragma unroll
    for (int c = 0; c < PRIME_DEGREE; c++) {
        P sum = p_zero();
#pragma unroll
        for (int lane = 0; lane < LANES; lane++) {
            P part;
#pragma unroll
            for (int i = 0; i < PRIME_LIMBS; i++) part.l[i] = shared.pieces[(c * LANES + lane) * PRIME_LIMBS + i];
            sum = p_add(sum, part);
        }
        parts[c] = sum;
    }
    return challenge;
}

// The sum that the round behind this challenge has to have, found and left by the last thread alone: others go on.
__device__ __forceinline__ void next_claim(const Params& params, uint32_t round, F* partials, F* tile, const F& challenge) {
    Drawing shared = drawing(tile);
    uint32_t parity = (params.parity + round) & 1;
    if (threadIdx.x != THREADS - 1 || blockIdx.x != 0) return;
    F value = shared.message[DEGREE - 1];
    F zero = PREVIOUS_FIRST ? shared.values[1 - (params.ones >> round & 1)] : f_zero();
#pragma unroll 1
    for (int j = DEGREE - 1; j >= 0; j--) value = f_add(draw_f_mul(value, challenge), j > 0 ? shared.message[j - 1] : zero);
    partials[params.claim_at + 1 - parity] = value;
    shared.values[0] = value;
}
