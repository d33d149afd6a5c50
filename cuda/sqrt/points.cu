// Points of a curve from their compressed encodings: out[i] = (x, y) in affine form, with the point at infinity for what is no
// point, and status[i] says what is wrong: 0 nothing, 1 the flags, 2 a coordinate that is not below p, 3 no y for this x.
// The program makes y of x, both with COEFFICIENTS elements of the prime field F, of which x is given as integers.
// Grid: one thread a point. No shared memory. Local memory: the slots of the program.
//
// Comes after the machine and what is rendered from the encoding:
//   BYTES                 of an encoding
//   BIG_ENDIAN            1 if the highest byte of a coefficient comes first
//   FLAGS_AT, FLAGS       the byte with flags, and the bits of it that are no part of a coefficient
//   REQUIRED, INFINITE, LARGER  the flag that is always set, or 0; those of the point at infinity and of the larger y
//   STARTS, COUNTS        { where each coefficient of x starts }, { how many bytes it has }
//   INFINITY_Y            1 if the point at infinity is (0, 1), 0 if it is (0, 0)

__device__ __forceinline__ uint32_t e_byte(const uint8_t* point, uint32_t at) {
    return at == FLAGS_AT ? point[at] & ~FLAGS : point[at];
}

// A coefficient. False if it is not below p.
__device__ __forceinline__ bool e_load(const uint8_t* point, uint32_t start, uint32_t count, F& x) {
    uint32_t last = start + count - 1, above = 0, borrow = 0;
#pragma unroll 1
    for (uint32_t i = 4 * F_LIMBS; i < count; i++) above |= e_byte(point, BIG_ENDIAN ? last - i : start + i);
#pragma unroll
    for (uint32_t i = 0; i < F_LIMBS; i++) {
        uint32_t limb = 0;
#pragma unroll
        for (uint32_t j = 0; j < 4; j++) {
            uint32_t at = 4 * i + j;
            if (at < count) limb |= e_byte(point, BIG_ENDIAN ? last - at : start + at) << (8 * j);
        }
        x.l[i] = limb;
        borrow = (uint32_t)(((uint64_t)limb - f_modulus(i) - borrow) >> 63);
    }
    return borrow == 1 && above == 0;
}

extern "C" __global__ void __launch_bounds__(128)
sqrt_points(const Params params, BUFFERS(uint32_t, F, uint32_t, uint8_t, F, uint32_t)) {
    wait_for_previous();
    size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= params.len) return;
    constexpr uint32_t starts[COEFFICIENTS] = STARTS, counts[COEFFICIENTS] = COUNTS;
    const uint8_t* point = bytes + i * BYTES;
    F slots[SLOTS];
    bool canonical = true, zero = true;
#pragma unroll
    for (int k = 0; k < COEFFICIENTS; k++) {
        F x;
        canonical = e_load(point, starts[k], counts[k], x) && canonical;
        zero = zero && canonical && f_is_zero(x);
        slots[k] = x;
    }
    uint32_t flags = point[FLAGS_AT], wrong = 0;
    bool infinite = flags & INFINITE, larger = flags & LARGER;
    if ((flags & REQUIRED) != REQUIRED || (infinite && (larger || !zero))) {
        wrong = 1;
    } else if (!canonical) {
        wrong = 2;
    } else if (!infinite) {
        wrong = m_run(program, constants, hashed, slots, larger) ? 0 : 3;
    }
#pragma unroll
    for (int k = 0; k < 2 * COEFFICIENTS; k++) {
        F none = INFINITY_Y && k == COEFFICIENTS ? f_one() : f_zero();
        out[i * 2 * COEFFICIENTS + k] = wrong || infinite ? none : slots[k];
    }
    status[i] = wrong;
}
