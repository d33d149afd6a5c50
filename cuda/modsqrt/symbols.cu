// Jacobi symbols by divsteps (Bernstein and Yang; for the symbol Hamburg): batches of DIVSTEPS on the lowest words of f and g, and the
// matrix that they make applied to all limbs. The batches from number `first` to `end` of `batches` are of one launch.
// Grid: one thread an element. No shared memory.
//
// `state` has STATE words of an element at a distance of `len`: the limbs of f and a word of its sign, those of g, delta, and
// whether the symbol is the opposite one. `constants` has `stride` words for each modulus, which begins at word HEAD. What is
// done does not depend on the values.
//
// Sources: Bernstein and Yang, "Fast constant-time gcd computation and modular inversion", TCHES 2019/3; Hamburg,
// "Computing the Jacobi symbol using Bernstein-Yang", Cryptology ePrint Archive 2021/1271.

// What the signs of a batch do to the symbol, which is of |f|: -1 for each time that f > 0 > g change places, so that f becomes negative.
// While f is 1 and g nearly 0, `turns` are the changes of the sign of f, which is `negative` then. No step takes a pair
// past another one, since the matrices have positive determinants: so the changes for (f, g) are as many, or if they
// cannot be by the last sign, one fewer for a pair on the left of (1, 0) and one more for one on its right.
__device__ __forceinline__ uint32_t symbol_turns(uint32_t turns, uint32_t negative, uint32_t f_sign, uint32_t g_sign,
                                                 uint32_t last_sign) {
    uint32_t others = ((last_sign ^ f_sign) & 1) ^ negative;
    turns += others * (f_sign == g_sign ? 0xffffffffu : 1u);
    return (turns + (~f_sign & 1)) >> 1;
}

extern "C" __global__ void __launch_bounds__(THREADS)
mod_symbols(const Params params, BUFFERS(uint32_t, uint32_t, uint32_t, uint32_t, uint32_t)) {
    wait_for_previous();
    size_t element = (size_t)blockIdx.x * THREADS + threadIdx.x, len = params.len;
    if (element >= len) return;
    uint32_t* f = state + element;
    uint32_t* g = f + (LIMBS + 1) * len;
    uint32_t* rest = g + (LIMBS + 1) * len;
    int32_t delta = 1;
    uint32_t flips = 0;
    if (params.first == 0) {
        uint32_t which = params.indexed ? indices[element] : 0, borrow = 0;
        bool known = which < params.moduli;
        const uint32_t* modulus = constants + (known ? which : 0) * (size_t)params.stride + HEAD;
        for (uint32_t j = 0; j < LIMBS; j++) {
            uint32_t limb = values[element * LIMBS + j], part = limb - modulus[j];
            borrow = (part > limb) | (part < borrow);
        }
        bool valid = known && borrow;
        for (uint32_t j = 0; j < LIMBS; j++) {
            f[j * len] = modulus[j];
            g[j * len] = valid ? values[element * LIMBS + j] : 0;
        }
        f[LIMBS * len] = 0;
        g[LIMBS * len] = 0;
        symbols[element] = !known ? NO_PRIME : !borrow ? TOO_LARGE : ROOT;
    } else {
        delta = (int32_t)rest[0];
        flips = rest[len];
    }

#pragma unroll 1
    for (uint32_t batch = params.first; batch < params.end; batch++) {
        // (u f + v g) / 2^DIVSTEPS and (q f + r g) / 2^DIVSTEPS are the next f and g. `turns` counts how often the sign of f would
        // change if f were 1 and g nearly 0.
        uint32_t low = f[0], other = g[0], u = 1, v = 0, q = 0, r = 1, turns = 0, negative = 0;
#pragma unroll 6
        for (int i = 0; i < DIVSTEPS; i++) {
            uint32_t odd = 0u - (other & 1), swap = odd & (0u - (uint32_t)(delta > 0));
            // (g | f) (f | g) = -1 if both are 3 modulo 4; and g comes in place of f as f comes, negated, in place of g.
            flips ^= swap & (other >> 1) & ~(low >> 1);
            uint32_t x = (low ^ other) & swap, y = (u ^ q) & swap, z = (v ^ r) & swap;
            low ^= x;
            other ^= x;
            u ^= y;
            q ^= y;
            v ^= z;
            r ^= z;
            other = (other ^ swap) - swap;
            q = (q ^ swap) - swap;
            r = (r ^ swap) - swap;
            delta = (int32_t)(((uint32_t)delta ^ swap) - swap) + 2;
            uint32_t sign = (u != 0 ? u : v) >> 31;
            turns += sign ^ negative;
            negative = sign;
            other += low & odd;
            q += u & odd;
            r += v & odd;
            // (2 | f) = -1 if f is 3 or 5 modulo 8.
            flips ^= (low >> 1) ^ (low >> 2);
            other >>= 1;
            u <<= 1;
            v <<= 1;
        }
        uint32_t f_sign = f[LIMBS * len], g_sign = g[LIMBS * len], f_last = 0, g_last = 0;
        int64_t f_sum = 0, g_sum = 0;
#pragma unroll 4
        for (uint32_t j = 0; j < LIMBS; j++) {
            uint32_t x = f[j * len], y = g[j * len];
            f_sum += (int64_t)(int32_t)u * x + (int64_t)(int32_t)v * y;
            g_sum += (int64_t)(int32_t)q * x + (int64_t)(int32_t)r * y;
            if (j > 0) {
                f[(j - 1) * len] = f_last >> DIVSTEPS | (uint32_t)f_sum << (32 - DIVSTEPS);
                g[(j - 1) * len] = g_last >> DIVSTEPS | (uint32_t)g_sum << (32 - DIVSTEPS);
            }
            f_last = (uint32_t)f_sum;
            g_last = (uint32_t)g_sum;
            f_sum >>= 32;
            g_sum >>= 32;
        }
        // The words of the signs are 0 or -1.
        f_sum -= (int64_t)((int32_t)u & (int32_t)f_sign) + ((int32_t)v & (int32_t)g_sign);
        g_sum -= (int64_t)((int32_t)q & (int32_t)f_sign) + ((int32_t)r & (int32_t)g_sign);
        f[(LIMBS - 1) * len] = f_last >> DIVSTEPS | (uint32_t)f_sum << (32 - DIVSTEPS);
        g[(LIMBS - 1) * len] = g_last >> DIVSTEPS | (uint32_t)g_sum << (32 - DIVSTEPS);
        f[LIMBS * len] = (uint32_t)(f_sum >> 63);
        g[LIMBS * len] = (uint32_t)(g_sum >> 63);
        flips ^= symbol_turns(turns, negative, f_sign, g_sign, (uint32_t)(f_sum >> 63));
    }

    if (params.end < params.batches) {
        rest[0] = (uint32_t)delta;
        rest[len] = flips;
        return;
    }
    // g is 0 and f the greatest common divisor, or its opposite.
    uint32_t sign = f[LIMBS * len], differs = f[0] ^ (sign | 1);
    for (uint32_t j = 1; j < LIMBS; j++) differs |= f[j * len] ^ sign;
    uint32_t symbol = differs ? 0 : flips & 1 ? 0xffffffffu : 1;
    if (symbols[element] == ROOT) symbols[element] = symbol;
}
