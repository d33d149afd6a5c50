// The challenge of a round from the sums of the round before, by every block for itself: adds up their partial sums, makes the
// round's message of them, and hashes it as the transcript does.
//
// Comes after sumcheck.cuh and:
//   DEGREE            coefficients of a message
//   PREVIOUS_POINTS   points at which the round before was evaluated
//   PREVIOUS_FIRST    1 if 0, or 1 instead, is one of them
//   P, p_zero, …      the prime field below F, or F itself
//   PRIME_LIMBS, PRIME_BITS, PRIME_DEGREE   its limbs and bits, and the degree of F over it
//   WIDE              2^((PRIME_BITS - 1) j) for each piece of PRIME_BITS - 1 bits of 512, times R^2

// Words of a message, whole blocks of 16.
#define WORDS ((2 + DEGREE * F_LIMBS + 15) / 16 * 16)
#define WIDE_PIECES ((512 + PRIME_BITS - 2) / (PRIME_BITS - 1))

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

// The compression function of BLAKE3 with its whole output.
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
        uint32_t old[16];
#pragma unroll
        for (int i = 0; i < 16; i++) old[i] = m[i];
#pragma unroll
        for (int i = 0; i < 16; i++) m[i] = old[order[i]];
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

// The integer of 16 words modulo the prime.
__device__ __forceinline__ P wide_value(const uint32_t* words) {
    constexpr uint32_t wide[WIDE_PIECES][PRIME_LIMBS] = WIDE;
    P sum = p_zero();
#pragma unroll
    for (int piece = 0; piece < WIDE_PIECES; piece++) {
        P part, scale;
#pragma unroll
        for (int i = 0; i < PRIME_LIMBS; i++) {
            int bit = (PRIME_BITS - 1) * piece + 32 * i, left = PRIME_BITS - 1 - 32 * i;
            uint32_t low = bit / 32 < 16 ? words[bit / 32] : 0, high = bit / 32 + 1 < 16 ? words[bit / 32 + 1] : 0;
            uint32_t limb = bit % 32 == 0 ? low : low >> (bit % 32) | high << (32 - bit % 32);
            part.l[i] = left >= 32 ? limb : left > 0 ? limb & ((1u << left) - 1) : 0;
            scale.l[i] = wide[piece][i];
        }
        sum = p_add(sum, draw_mul(part, scale));
    }
    return sum;
}

// The coefficients of an element as integers.
__device__ __forceinline__ void canonical(const F& x, uint32_t* words) {
    P one = {};
    one.l[0] = 1;
    const P* parts = reinterpret_cast<const P*>(&x);
#pragma unroll
    for (int part = 0; part < PRIME_DEGREE; part++) {
        P integer = draw_mul(parts[part], one);
#pragma unroll
        for (int i = 0; i < PRIME_LIMBS; i++) words[part * PRIME_LIMBS + i] = integer.l[i];
    }
}

__device__ __forceinline__ F draw(const Params& params, const F* inputs, F* partials, uint32_t* state, F* tile) {
    F* values = tile + THREADS;
    uint32_t* words = reinterpret_cast<uint32_t*>(values + DEGREE + 1);
    uint32_t* drawn = words + WORDS;
    uint32_t thread = threadIdx.x, parity = params.parity;
    if (thread < 2) values[thread] = f_zero();
#pragma unroll 1
    for (uint32_t p = 0; p < PREVIOUS_POINTS; p++) {
        F total = f_zero();
#pragma unroll 1
        for (uint32_t c = thread; c < params.previous_chunks; c += THREADS) {
            total = f_add(total, f_load(partials + params.previous_at + (size_t)c * PREVIOUS_POINTS + p));
        }
        tile[thread] = total;
        __syncthreads();
#pragma unroll 1
        for (uint32_t half = min(THREADS, params.previous_chunks) / 2; half > 0; half /= 2) {
            if (thread < half) {
                total = f_add(total, tile[thread + half]);
                tile[thread] = total;
            }
            __syncthreads();
        }
        if (thread == 0) values[PREVIOUS_FIRST && p == 0 ? params.previous_at_one : 2 + p - PREVIOUS_FIRST] = total;
    }
#if PREVIOUS_FIRST
    if (thread == 0) {
        F sum = f_load(partials + params.claim_at + parity);
        if (params.previous_at_one) {
            values[0] = sum;
        } else {
            const F* weights = inputs + params.weights_at;
            values[1] = draw_f_mul(f_sub(sum, draw_f_mul(weights[0], values[0])), weights[1]);
        }
    }
#endif
    __syncthreads();
    if (thread < DEGREE) {
        F sum = f_zero();
        const F* row = inputs + params.matrix_at + thread * (DEGREE + 1);
#pragma unroll 1
        for (uint32_t k = 0; k <= DEGREE; k++) sum = f_add(sum, draw_f_mul(f_load(row + k), values[k]));
        tile[thread] = sum;
        canonical(sum, words + 2 + thread * F_LIMBS);
        if (blockIdx.x == 0) partials[params.message_at + thread] = sum;
    }
    if (thread < 16) {
        if (thread < 2) words[thread] = thread == 0 ? 4 * DEGREE * F_LIMBS : 0;
        if (2 + DEGREE * F_LIMBS + thread < WORDS) words[2 + DEGREE * F_LIMBS + thread] = 0;
    }
    __syncthreads();
    if (thread <= PRIME_DEGREE) {
        uint32_t cv[8], out[16];
#pragma unroll
        for (int i = 0; i < 8; i++) cv[i] = state[8 * parity + i];
        constexpr uint32_t total = 2 + DEGREE * F_LIMBS;
#pragma unroll 1
        for (uint32_t at = 0; at < total; at += 16) {
            bool first = at % 256 == 0, last = at % 256 == 240 || at + 16 >= total;
            uint32_t count = total - at < 16 ? total - at : 16, flags = 16 | (first ? 1 : 0) | (last ? 10 : 0);
            blake3_compress(cv, words + at, at + 16 >= total ? thread : 0, 4 * count, flags, out);
#pragma unroll
            for (int i = 0; i < 8; i++) cv[i] = out[i];
        }
        if (thread == 0) {
            if (blockIdx.x == 0) {
#pragma unroll
                for (int i = 0; i < 8; i++) state[8 * (1 - parity) + i] = out[i];
            }
        } else {
            P value = wide_value(out);
#pragma unroll
            for (int i = 0; i < PRIME_LIMBS; i++) drawn[(thread - 1) * PRIME_LIMBS + i] = value.l[i];
        }
    }
    __syncthreads();
    F challenge;
    P* parts = reinterpret_cast<P*>(&challenge);
#pragma unroll
    for (int i = 0; i < F_LIMBS; i++) parts[i / PRIME_LIMBS].l[i % PRIME_LIMBS] = drawn[i];
    if (thread == 0 && blockIdx.x == 0) {
        F value = tile[DEGREE - 1];
#pragma unroll 1
        for (int j = DEGREE - 1; j >= 0; j--) value = f_add(draw_f_mul(value, challenge), j > 0 ? tile[j - 1] : values[0]);
        partials[params.claim_at + 1 - parity] = value;
    }
    __syncthreads();
    return challenge;
}
