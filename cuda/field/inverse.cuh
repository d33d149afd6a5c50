// Inverses in a prime field, after field/words.cuh and these constants:
//   F_INVERSION_EXPONENT  { p - 2 }, for up to two limbs
//   F_SQUARE              { R^2 mod p }, for more

#if F_LIMBS <= 2

// 1/a, and 0 of 0: a^(p - 2), left to right.
__device__ inline F f_inverse(const F& a) {
    constexpr uint32_t exponent[F_LIMBS] = F_INVERSION_EXPONENT;
    F r = f_one();
    for (int i = 32 * F_LIMBS - 1; i >= 0; i--) {
        r = f_mul(r, r);
        if (exponent[i / 32] >> (i % 32) & 1) r = f_mul(r, a);
    }
    return r;
}

#else

// Numbers of either sign below 2^(32 F_LIMBS + 1) are kept in chunks of 30 bits, least significant first, of which the last
// has the sign. So products of 31 bits and their sums fit 64 bits.
#define F_CHUNK 30
#define F_CHUNKS ((32 * F_LIMBS + 1 + F_CHUNK) / F_CHUNK)
#define F_CHUNK_MASK ((1 << F_CHUNK) - 1)

// Chunk i of the number with these limbs.
__device__ __forceinline__ constexpr int32_t f_chunk(const uint32_t* a, int i) {
    int limb = F_CHUNK * i / 32, shift = F_CHUNK * i % 32;
    uint32_t low = limb < F_LIMBS ? a[limb] : 0, high = limb + 1 < F_LIMBS ? a[limb + 1] : 0;
    return (int32_t)(((uint64_t)high << 32 | low) >> shift) & F_CHUNK_MASK;
}

__device__ __forceinline__ int32_t f_modulus_chunk(int i) {
    constexpr uint32_t modulus[F_LIMBS] = F_MODULUS;
    return f_chunk(modulus, i);
}

// 1/a, and 0 of 0: the greatest common divisor of p and a by division steps (Bernstein and Yang, "Fast constant-time gcd
// computation and modular inversion", TCHES 2019/3, with delta starting at 1/2), until nothing is left of a.
//
// F_CHUNK steps at a time only look at the lowest chunks of f and g, and give a matrix (u, v; q, r) / 2^F_CHUNK to apply
// to (f, g), which starts as (p, a), and modulo p to (d, e), which starts as (0, R^2): d a = f R^2 and e a = g R^2 hold
// throughout. In the end f = 1 or -1, or p for a = 0, whose d is 0. A step is
//   delta > 0 and g odd:  delta, f, g = 1 - delta, g, (g - f) / 2
//   otherwise:            delta, f, g = 1 + delta, f, (g + (g mod 2) f) / 2
// As d and e lie in (-2p, p), and in (-p, p) after p is added to negative ones, u d + v e lies in (-2^F_CHUNK p, 2^F_CHUNK p),
// and less the multiple of p below 2^F_CHUNK p that makes it divisible, it lies in (-2p, p) again once divided.
__device__ inline F f_inverse(const F& a) {
    constexpr uint32_t square[F_LIMBS] = F_SQUARE;
    constexpr uint32_t modulus_inverse = 0u - F_N0;
    constexpr int top = F_CHUNKS - 1;
    int32_t f[F_CHUNKS], g[F_CHUNKS], d[F_CHUNKS], e[F_CHUNKS];
#pragma unroll
    for (int i = 0; i < F_CHUNKS; i++) {
        f[i] = f_modulus_chunk(i);
        g[i] = f_chunk(a.l, i);
        d[i] = 0;
        e[i] = f_chunk(square, i);
    }
    // -(delta + 1/2).
    int32_t zeta = -1;
#pragma unroll 1
    for (;;) {
        int32_t any = 0;
#pragma unroll
        for (int i = 0; i < F_CHUNKS; i++) any |= g[i];
        if (any == 0) break;

        uint32_t u = 1, v = 0, q = 0, r = 1, x = (uint32_t)f[0], y = (uint32_t)g[0];
#pragma unroll 5
        for (int i = 0; i < F_CHUNK; i++) {
            // `times` is what of f is added to g.
            uint32_t odd = y & 1, swap = zeta < 0 ? odd : 0, times = odd - 2 * swap;
            y += x * times;
            q += u * times;
            r += v * times;
            x += y * swap;
            u = 2 * (u + q * swap);
            v = 2 * (v + r * swap);
            y >>= 1;
            zeta = (zeta ^ -(int32_t)swap) - 1;
        }

        // What p is added to d and e, and then subtracted for their division, comes in times u to r.
        uint32_t d_sign = (uint32_t)(d[top] >> 31), e_sign = (uint32_t)(e[top] >> 31);
        uint32_t d_times = (u & d_sign) + (v & e_sign), e_times = (q & d_sign) + (r & e_sign);
        d_times -= ((u * d[0] + v * e[0]) * modulus_inverse + d_times) & F_CHUNK_MASK;
        e_times -= ((q * d[0] + r * e[0]) * modulus_inverse + e_times) & F_CHUNK_MASK;
        int64_t wide_u = (int32_t)u, wide_v = (int32_t)v, wide_q = (int32_t)q, wide_r = (int32_t)r;
        int64_t d_wide = (int32_t)d_times, e_wide = (int32_t)e_times, f_sum = 0, g_sum = 0, d_sum = 0, e_sum = 0;
#pragma unroll
        for (int i = 0; i < F_CHUNKS; i++) {
            f_sum = (f_sum >> F_CHUNK) + wide_u * f[i] + wide_v * g[i];
            g_sum = (g_sum >> F_CHUNK) + wide_q * f[i] + wide_r * g[i];
            d_sum = (d_sum >> F_CHUNK) + wide_u * d[i] + wide_v * e[i] + d_wide * f_modulus_chunk(i);
            e_sum = (e_sum >> F_CHUNK) + wide_q * d[i] + wide_r * e[i] + e_wide * f_modulus_chunk(i);
            if (i > 0) {
                f[i - 1] = (int32_t)f_sum & F_CHUNK_MASK;
                g[i - 1] = (int32_t)g_sum & F_CHUNK_MASK;
                d[i - 1] = (int32_t)d_sum & F_CHUNK_MASK;
                e[i - 1] = (int32_t)e_sum & F_CHUNK_MASK;
            }
        }
        f[top] = (int32_t)(f_sum >> F_CHUNK);
        g[top] = (int32_t)(g_sum >> F_CHUNK);
        d[top] = (int32_t)(d_sum >> F_CHUNK);
        e[top] = (int32_t)(e_sum >> F_CHUNK);
    }

    // d from (-2p, p) to (-p, p), times f, then to [0, p).
    int32_t flip = f[top] >> 31;
#pragma unroll 1
    for (int pass = 0; pass < 2; pass++) {
        int32_t negative = d[top] >> 31, carry = 0;
#pragma unroll
        for (int i = 0; i < F_CHUNKS; i++) {
            int32_t sum = ((d[i] + (f_modulus_chunk(i) & negative)) ^ flip) - flip + carry;
            d[i] = i < top ? sum & F_CHUNK_MASK : sum;
            carry = sum >> F_CHUNK;
        }
        flip = 0;
    }
    F out;
#pragma unroll
    for (int i = 0; i < F_LIMBS; i++) {
        int chunk = 32 * i / F_CHUNK, shift = 32 * i % F_CHUNK;
        uint32_t high = chunk < top ? (uint32_t)d[chunk + 1] : 0;
        out.l[i] = (uint32_t)d[chunk] >> shift | high << (F_CHUNK - shift);
    }
    return out;
}

#endif // F_LIMBS <= 2
