// Rows of a product and its reduction, and what threads that share an element tell each other.
//
// As in field/even_odd.cuh, a thread accumulates in two arrays, one for the even columns of 32 bits and one for the odd,
// so that a row of products is one carry chain. After a row, its limbs move down by one: the lowest one is the next
// thread's highest one, where it meets what that thread's row carried out. So carries wait in one word a thread and go
// on to the neighbour at the end only. The moduli have any top bit: the sum may have one bit more than the limbs.
//
// Sources: Montgomery, "Modular multiplication without trial division", Mathematics of Computation 44 (1985); for the
// reduction of one limb after each row, "coarsely integrated operand scanning", Koc, Acar and Kaliski, "Analyzing and
// comparing Montgomery multiplication algorithms", IEEE Micro 16 (1996).

// The group's first thread.
__device__ __forceinline__ uint32_t m_first() {
    return warp_lane() / LANES * LANES;
}

// The word of one thread of the group.
__device__ __forceinline__ uint32_t m_of(uint32_t word, uint32_t lane) {
    return LANES == 1 ? word : warp_shuffle(word, m_first() + lane);
}

// The word of the thread above, 0 for the last of a group.
__device__ __forceinline__ uint32_t m_above(uint32_t word, uint32_t lane) {
    if (LANES == 1) return 0;
    uint32_t above = warp_shuffle_down(word, 1);
    return lane + 1 < LANES ? above : 0;
}

// The word of the thread below, 0 for the first of a group.
__device__ __forceinline__ uint32_t m_below(uint32_t word, uint32_t lane) {
    if (LANES == 1) return 0;
    uint32_t below = warp_shuffle_up(word, 1);
    return lane > 0 ? below : 0;
}

// The bits that any thread of the group has set.
__device__ __forceinline__ uint32_t m_any(uint32_t word) {
#pragma unroll
    for (uint32_t distance = 1; distance < LANES; distance *= 2) word |= warp_shuffle_xor(word, distance);
    return word;
}

#if F_CARRIES

// r = r + word, and the carry.
__device__ __forceinline__ uint32_t m_carry(uint32_t* r, uint32_t word) {
    r[0] = add_cc(r[0], word);
#pragma unroll
    for (int i = 1; i < M_LIMBS; i++) r[i] = addc_cc(r[i], 0);
    return addc(0, 0);
}

// r = a - b, and the borrow.
__device__ __forceinline__ uint32_t m_subtract(uint32_t* r, const uint32_t* a, const uint32_t* b) {
    r[0] = sub_cc(a[0], b[0]);
#pragma unroll
    for (int i = 1; i < M_LIMBS; i++) r[i] = subc_cc(a[i], b[i]);
    return subc(0, 0) & 1;
}

// r = r - word, and the borrow.
__device__ __forceinline__ uint32_t m_borrow(uint32_t* r, uint32_t word) {
    r[0] = sub_cc(r[0], word);
#pragma unroll
    for (int i = 1; i < M_LIMBS; i++) r[i] = subc_cc(r[i], 0);
    return subc(0, 0) & 1;
}

// even + 2^32 odd += a x. `odd` comes in as the even accumulator of the row before, so it is first shifted down by two
// words; `incoming` and `top` are what comes above it, and `top` becomes the carry.
__device__ __forceinline__ void m_products(uint32_t* even, uint32_t* odd, const uint32_t* a, uint32_t x,
                                           uint32_t incoming, uint32_t& top) {
    even[0] = add_cc(even[0], odd[1]);
#pragma unroll
    for (int j = 0; j < M_LIMBS - 2; j += 2) {
        odd[j] = madc_lo_cc(a[j + 1], x, odd[j + 2]);
        odd[j + 1] = madc_hi_cc(a[j + 1], x, odd[j + 3]);
    }
    odd[M_LIMBS - 2] = madc_lo_cc(a[M_LIMBS - 1], x, incoming);
    odd[M_LIMBS - 1] = madc_hi_cc(a[M_LIMBS - 1], x, top);
    top = addc(0, 0);
    even[0] = mad_lo_cc(a[0], x, even[0]);
    even[1] = madc_hi_cc(a[0], x, even[1]);
#pragma unroll
    for (int j = 2; j < M_LIMBS; j += 2) {
        even[j] = madc_lo_cc(a[j], x, even[j]);
        even[j + 1] = madc_hi_cc(a[j], x, even[j + 1]);
    }
    odd[M_LIMBS - 1] = addc_cc(odd[M_LIMBS - 1], 0);
    top = addc(top, 0);
}

// even + 2^32 odd += p m.
__device__ __forceinline__ void m_multiples(uint32_t* even, uint32_t* odd, const uint32_t* p, uint32_t m, uint32_t& top) {
    odd[0] = mad_lo_cc(p[1], m, odd[0]);
    odd[1] = madc_hi_cc(p[1], m, odd[1]);
#pragma unroll
    for (int j = 2; j < M_LIMBS; j += 2) {
        odd[j] = madc_lo_cc(p[j + 1], m, odd[j]);
        odd[j + 1] = madc_hi_cc(p[j + 1], m, odd[j + 1]);
    }
    top = addc(top, 0);
    even[0] = mad_lo_cc(p[0], m, even[0]);
    even[1] = madc_hi_cc(p[0], m, even[1]);
#pragma unroll
    for (int j = 2; j < M_LIMBS; j += 2) {
        even[j] = madc_lo_cc(p[j], m, even[j]);
        even[j + 1] = madc_hi_cc(p[j], m, even[j + 1]);
    }
    odd[M_LIMBS - 1] = addc_cc(odd[M_LIMBS - 1], 0);
    top = addc(top, 0);
}

// r = even + odd / 2^32, with `incoming` above odd, and the carry.
__device__ __forceinline__ uint32_t m_sum(uint32_t* r, const uint32_t* even, const uint32_t* odd, uint32_t incoming) {
    r[0] = add_cc(even[0], odd[1]);
#pragma unroll
    for (int i = 1; i < M_LIMBS - 1; i++) r[i] = addc_cc(even[i], odd[i + 1]);
    r[M_LIMBS - 1] = addc_cc(even[M_LIMBS - 1], incoming);
    return addc(0, 0);
}

#else // The same for any compiler, by words of 64 bits.

__device__ __forceinline__ uint32_t m_carry(uint32_t* r, uint32_t word) {
    for (int i = 0; i < M_LIMBS; i++) {
        uint64_t t = (uint64_t)r[i] + word;
        r[i] = (uint32_t)t;
        word = (uint32_t)(t >> 32);
    }
    return word;
}

__device__ __forceinline__ uint32_t m_subtract(uint32_t* r, const uint32_t* a, const uint32_t* b) {
    uint64_t t = 0;
    for (int i = 0; i < M_LIMBS; i++) {
        t = (uint64_t)a[i] - b[i] - (t >> 63);
        r[i] = (uint32_t)t;
    }
    return (uint32_t)(t >> 63);
}

__device__ __forceinline__ uint32_t m_borrow(uint32_t* r, uint32_t word) {
    for (int i = 0; i < M_LIMBS; i++) {
        uint64_t t = (uint64_t)r[i] - word;
        r[i] = (uint32_t)t;
        word = (uint32_t)(t >> 63);
    }
    return word;
}

// acc += (a[0], a[2], ...) x + carry, and the carry.
__device__ __forceinline__ void m_add_products(uint32_t* acc, const uint32_t* a, uint32_t x, uint32_t& carry) {
    for (int j = 0; j < M_LIMBS; j += 2) {
        uint64_t t = (uint64_t)a[j] * x + acc[j] + carry;
        acc[j] = (uint32_t)t;
        t = (t >> 32) + acc[j + 1];
        acc[j + 1] = (uint32_t)t;
        carry = (uint32_t)(t >> 32);
    }
}

__device__ __forceinline__ void m_products(uint32_t* even, uint32_t* odd, const uint32_t* a, uint32_t x,
                                           uint32_t incoming, uint32_t& top) {
    uint64_t t = (uint64_t)even[0] + odd[1];
    even[0] = (uint32_t)t;
    for (int j = 0; j < M_LIMBS - 2; j++) odd[j] = odd[j + 2];
    odd[M_LIMBS - 2] = incoming;
    odd[M_LIMBS - 1] = top;
    top = (uint32_t)(t >> 32);
    m_add_products(odd, a + 1, x, top);
    uint32_t carry = 0;
    m_add_products(even, a, x, carry);
    t = (uint64_t)odd[M_LIMBS - 1] + carry;
    odd[M_LIMBS - 1] = (uint32_t)t;
    top += (uint32_t)(t >> 32);
}

__device__ __forceinline__ void m_multiples(uint32_t* even, uint32_t* odd, const uint32_t* p, uint32_t m, uint32_t& top) {
    uint32_t carry = 0;
    m_add_products(odd, p + 1, m, carry);
    top += carry;
    carry = 0;
    m_add_products(even, p, m, carry);
    uint64_t t = (uint64_t)odd[M_LIMBS - 1] + carry;
    odd[M_LIMBS - 1] = (uint32_t)t;
    top += (uint32_t)(t >> 32);
}

__device__ __forceinline__ uint32_t m_sum(uint32_t* r, const uint32_t* even, const uint32_t* odd, uint32_t incoming) {
    uint64_t t = 0;
    for (int i = 0; i < M_LIMBS; i++) {
        t = (uint64_t)even[i] + (i + 1 < M_LIMBS ? odd[i + 1] : incoming) + (t >> 32);
        r[i] = (uint32_t)t;
    }
    return (uint32_t)(t >> 32);
}

#endif // F_CARRIES

// r = a - b over the whole group, and the borrow.
__device__ __forceinline__ uint32_t m_difference(uint32_t* r, const uint32_t* a, const uint32_t* b, uint32_t lane) {
    uint32_t borrow = m_subtract(r, a, b), out = 0;
#pragma unroll 1
    for (uint32_t step = 1; step < LANES; step++) {
        out |= borrow;
        borrow = m_borrow(r, m_below(borrow, lane));
    }
    return m_of(out | borrow, LANES - 1);
}

// a = a b / R mod p, with limb j of this thread's part of b in b[j THREADS], a and b below p.
__device__ __forceinline__ void m_multiply(uint32_t* a, const uint32_t* p, uint32_t n0, const uint32_t* b, uint32_t lane) {
    uint32_t even[M_LIMBS] = {}, odd[M_LIMBS] = {}, incoming = 0, top = 0;
    // The two arrays go on through the registers by two words in two rows, and back where the loop closes: with 32 limbs a
    // thread, moves are 35 of 184 instructions for one pair of rows, and 74 of 655 for four (sm_90).
#pragma unroll 4
    for (uint32_t i = 0; i < LIMBS; i += 2) {
        const uint32_t* own = b + i % M_LIMBS * THREADS;
        m_products(even, odd, a, m_of(own[0], i / M_LIMBS), incoming, top);
        m_multiples(even, odd, p, m_of(even[0], 0) * n0, top);
        incoming = m_above(even[0], lane);
        m_products(odd, even, a, m_of(own[THREADS], i / M_LIMBS), incoming, top);
        m_multiples(odd, even, p, m_of(odd[0], 0) * n0, top);
        incoming = m_above(odd[0], lane);
    }
    uint32_t carry = top + m_sum(a, even, odd, incoming), out = 0;
#pragma unroll 1
    for (uint32_t step = 1; step < LANES; step++) {
        out += carry;
        carry = m_carry(a, m_below(carry, lane));
    }
    out = m_of(out + carry, LANES - 1);
    // `out` is what the last thread carried in all steps: it is below 2p in the end.
    uint32_t less[M_LIMBS];
    bool keep = m_difference(less, a, p, lane) > out;
#pragma unroll
    for (int i = 0; i < M_LIMBS; i++) a[i] = keep ? a[i] : less[i];
}
