// Prime field arithmetic in Montgomery form, R = 2^(32 F_LIMBS).
//
// Comes after the constants of the field, rendered from the modulus p:
//   F_LIMBS       32-bit limbs of an element, little endian
//   F_FULL        1 if 2p does not fit the limbs, so that sums carry out of them
//   F_MODULUS     { p }
//   F_TOP         highest limb of p
//   F_COMPLEMENT  { 2^(32 F_LIMBS) - p }
//   F_ONE         { R mod p }
//   F_SHIFT       { 2^32 R mod p }
//   F_N0          -1/p mod 2^32
// Every function takes and gives values in [0, p).
//
// On a GPU, multiplication accumulates in two arrays, one for the even columns of 32 bits and one for the odd, so that
// the two halves of each 32x32 product land in neighbouring words and a row of products is one carry chain of
// mad.lo/mad.hi pairs, each pair one IMAD.WIDE. After a row, one limb is reduced and the two arrays change roles.
// Elsewhere, and where sums carry out of the limbs, the same functions have portable bodies. A host that runs these
// sources may define CARRY_MODEL as 1 and bring a model of the instructions with carries.

#if F_LIMBS % 4 == 0
#define F_ALIGN 16
typedef uint4 FWord;
#elif F_LIMBS % 2 == 0
#define F_ALIGN 8
typedef uint2 FWord;
#else
#define F_ALIGN 4
typedef uint32_t FWord;
#endif

// Words of FWord in an element.
#define F_WORDS (F_LIMBS * 4 / F_ALIGN)

#if defined(__CUDA_ARCH__) || CARRY_MODEL
#define F_CARRIES 1
#else
#define F_CARRIES 0
#endif

#if F_CARRIES && !F_FULL
#define F_PTX 1
#else
#define F_PTX 0
#endif

// Values in [0, 2p) can be computed with: the limbs are an even number, at least 4, and 2p leaves room above.
#if F_PTX && F_LIMBS % 2 == 0 && F_LIMBS >= 4 && F_TOP < 0x7ffffff0u
#define F_LAZY 1
#else
#define F_LAZY 0
#endif

struct __align__(F_ALIGN) F {
    uint32_t l[F_LIMBS];
};

// -1/p mod 2^32 in constant memory: as an immediate 0xffffffff it makes the assembler negate operands, which breaks
// the pairs (53 against 60 G multiplications/s on an H200 for a modulus with this value).
__constant__ uint32_t f_n0 = F_N0;

__device__ __forceinline__ uint32_t f_modulus(int i) {
    constexpr uint32_t modulus[F_LIMBS] = F_MODULUS;
    return modulus[i];
}

__device__ __forceinline__ F f_zero() {
    return F{};
}

__device__ __forceinline__ F f_one() {
    return F{F_ONE};
}

// An element of a table: by the compiler's choice it would be loaded word by word where it is used, which took 1.10 times
// the time of a pass of transforms on an H200.
__device__ __forceinline__ F f_load(const F* a) {
    F r;
#pragma unroll
    for (int i = 0; i < F_WORDS; i++) reinterpret_cast<FWord*>(&r)[i] = reinterpret_cast<const FWord*>(a)[i];
    return r;
}

__device__ __forceinline__ bool f_is_zero(const F& a) {
    uint32_t any = 0;
#pragma unroll
    for (int i = 0; i < F_LIMBS; i++) any |= a.l[i];
    return any == 0;
}

#if F_CARRIES && !CARRY_MODEL

__device__ __forceinline__ uint32_t add_cc(uint32_t a, uint32_t b) {
    uint32_t r;
    asm volatile("add.cc.u32 %0, %1, %2;" : "=r"(r) : "r"(a), "r"(b));
    return r;
}

__device__ __forceinline__ uint32_t addc_cc(uint32_t a, uint32_t b) {
    uint32_t r;
    asm volatile("addc.cc.u32 %0, %1, %2;" : "=r"(r) : "r"(a), "r"(b));
    return r;
}

__device__ __forceinline__ uint32_t addc(uint32_t a, uint32_t b) {
    uint32_t r;
    asm volatile("addc.u32 %0, %1, %2;" : "=r"(r) : "r"(a), "r"(b));
    return r;
}

__device__ __forceinline__ uint32_t sub_cc(uint32_t a, uint32_t b) {
    uint32_t r;
    asm volatile("sub.cc.u32 %0, %1, %2;" : "=r"(r) : "r"(a), "r"(b));
    return r;
}

__device__ __forceinline__ uint32_t subc_cc(uint32_t a, uint32_t b) {
    uint32_t r;
    asm volatile("subc.cc.u32 %0, %1, %2;" : "=r"(r) : "r"(a), "r"(b));
    return r;
}

__device__ __forceinline__ uint32_t subc(uint32_t a, uint32_t b) {
    uint32_t r;
    asm volatile("subc.u32 %0, %1, %2;" : "=r"(r) : "r"(a), "r"(b));
    return r;
}

__device__ __forceinline__ uint32_t mad_lo_cc(uint32_t a, uint32_t b, uint32_t c) {
    uint32_t r;
    asm volatile("mad.lo.cc.u32 %0, %1, %2, %3;" : "=r"(r) : "r"(a), "r"(b), "r"(c));
    return r;
}

__device__ __forceinline__ uint32_t madc_lo_cc(uint32_t a, uint32_t b, uint32_t c) {
    uint32_t r;
    asm volatile("madc.lo.cc.u32 %0, %1, %2, %3;" : "=r"(r) : "r"(a), "r"(b), "r"(c));
    return r;
}

__device__ __forceinline__ uint32_t madc_lo(uint32_t a, uint32_t b, uint32_t c) {
    uint32_t r;
    asm volatile("madc.lo.u32 %0, %1, %2, %3;" : "=r"(r) : "r"(a), "r"(b), "r"(c));
    return r;
}

__device__ __forceinline__ uint32_t madc_hi_cc(uint32_t a, uint32_t b, uint32_t c) {
    uint32_t r;
    asm volatile("madc.hi.cc.u32 %0, %1, %2, %3;" : "=r"(r) : "r"(a), "r"(b), "r"(c));
    return r;
}

__device__ __forceinline__ uint32_t madc_hi(uint32_t a, uint32_t b, uint32_t c) {
    uint32_t r;
    asm volatile("madc.hi.u32 %0, %1, %2, %3;" : "=r"(r) : "r"(a), "r"(b), "r"(c));
    return r;
}

// (top, high, low) += a * b. Of one piece, so that other products do not come between the two halves, which would break
// the pair.
__device__ __forceinline__ void mad_wide(uint32_t& low, uint32_t& high, uint32_t& top, uint32_t a, uint32_t b) {
    asm volatile("mad.lo.cc.u32 %0, %3, %4, %0; madc.hi.cc.u32 %1, %3, %4, %1; addc.u32 %2, %2, 0;"
                 : "+r"(low), "+r"(high), "+r"(top)
                 : "r"(a), "r"(b));
}

#endif // F_CARRIES && !CARRY_MODEL

#if F_PTX

#if F_LIMBS == 1

// a - p if that is not negative, else a; a < 2p < 2^32: what wraps around is larger.
__device__ __forceinline__ F f_reduce(const F& a) {
    uint32_t less = a.l[0] - f_modulus(0);
    return F{{less < a.l[0] ? less : a.l[0]}};
}

__device__ __forceinline__ F f_add(const F& a, const F& b) {
    return f_reduce(F{{a.l[0] + b.l[0]}});
}

__device__ __forceinline__ F f_sub(const F& a, const F& b) {
    uint32_t difference = a.l[0] - b.l[0], more = difference + f_modulus(0);
    return F{{more < difference ? more : difference}};
}

__device__ __forceinline__ F f_mul(const F& a, const F& b) {
    uint64_t t = (uint64_t)a.l[0] * b.l[0];
    uint32_t m = (uint32_t)t * f_n0;
    return f_reduce(F{{(uint32_t)((t + (uint64_t)m * f_modulus(0)) >> 32)}});
}

#else

// a - p if that is not negative, else a; a < 2p.
__device__ __forceinline__ F f_reduce(const F& a) {
    F d;
    d.l[0] = sub_cc(a.l[0], f_modulus(0));
#pragma unroll
    for (int i = 1; i < F_LIMBS; i++) d.l[i] = subc_cc(a.l[i], f_modulus(i));
    uint32_t negative = subc(0, 0);
#pragma unroll
    for (int i = 0; i < F_LIMBS; i++) d.l[i] = negative ? a.l[i] : d.l[i];
    return d;
}

__device__ __forceinline__ F f_add(const F& a, const F& b) {
    F r;
    r.l[0] = add_cc(a.l[0], b.l[0]);
#pragma unroll
    for (int i = 1; i < F_LIMBS - 1; i++) r.l[i] = addc_cc(a.l[i], b.l[i]);
    r.l[F_LIMBS - 1] = addc(a.l[F_LIMBS - 1], b.l[F_LIMBS - 1]);
    return f_reduce(r);
}

__device__ __forceinline__ F f_sub(const F& a, const F& b) {
    F r;
    r.l[0] = sub_cc(a.l[0], b.l[0]);
#pragma unroll
    for (int i = 1; i < F_LIMBS; i++) r.l[i] = subc_cc(a.l[i], b.l[i]);
    uint32_t negative = subc(0, 0);
    r.l[0] = add_cc(r.l[0], negative & f_modulus(0));
#pragma unroll
    for (int i = 1; i < F_LIMBS - 1; i++) r.l[i] = addc_cc(r.l[i], negative & f_modulus(i));
    r.l[F_LIMBS - 1] = addc(r.l[F_LIMBS - 1], negative & f_modulus(F_LIMBS - 1));
    return r;
}

// Limbs of an accumulator: an even number.
#define F_ROW (F_LIMBS + F_LIMBS % 2)

// acc += (a[0], a[2], ...) * b, leaving the carry out of the last word in the carry flag.
__device__ __forceinline__ void f_mad_row(uint32_t* acc, const uint32_t* a, uint32_t b) {
    acc[0] = mad_lo_cc(a[0], b, acc[0]);
    acc[1] = madc_hi_cc(a[0], b, acc[1]);
#pragma unroll
    for (int j = 2; j < F_ROW; j += 2) {
        acc[j] = madc_lo_cc(a[j], b, acc[j]);
        acc[j + 1] = madc_hi_cc(a[j], b, acc[j + 1]);
    }
}

// even += (p[0], p[2], ...) * m for m = -t / p mod 2^32, t = even[0], whose sum is left as it is. Where p[0] = 1, that
// product only carries, unless t = 0.
__device__ __forceinline__ void f_mad_modulus_even(uint32_t* even, const uint32_t* p, uint32_t t, uint32_t m) {
    if (f_modulus(0) != 1) {
        f_mad_row(even, p, m);
        return;
    }
    add_cc(t, 0xffffffffu);
    even[1] = addc_cc(even[1], 0);
#pragma unroll
    for (int j = 2; j < F_ROW; j += 2) {
        even[j] = madc_lo_cc(p[j], m, even[j]);
        even[j + 1] = madc_hi_cc(p[j], m, even[j + 1]);
    }
}

// odd = odd shifted down by `shift` words, + (p[1], p[3], ...) * m, + with a shift the carry. Where p[0] = 1 and
// p[1] = 2^32 - 1, p[1] m = 2^32 m - m has the words t and ~t, unless t = 0.
__device__ __forceinline__ void f_mad_modulus_odd(uint32_t* odd, const uint32_t* p, uint32_t t, uint32_t m, int shift) {
    bool known = f_modulus(0) == 1 && f_modulus(F_LIMBS > 1) == 0xffffffffu;
#pragma unroll
    for (int j = 0; j < F_ROW; j += 2) {
        uint32_t low = j + shift < F_ROW ? odd[j + shift] : 0, high = j + shift < F_ROW ? odd[j + 1 + shift] : 0;
        if (j == 0 && known) {
            odd[0] = shift ? addc_cc(low, t) : add_cc(low, t);
            odd[1] = addc_cc(high, t == 0 ? 0 : ~t);
        } else {
            odd[j] = j == 0 && shift == 0 ? mad_lo_cc(p[j + 1], m, low) : madc_lo_cc(p[j + 1], m, low);
            odd[j + 1] = madc_hi_cc(p[j + 1], m, high);
        }
    }
}

// even + 2^32 odd += m p, with the m that makes the lowest limb zero. even[0] is left as it is: it is not needed again.
__device__ __forceinline__ void f_mad_modulus(uint32_t* even, uint32_t* odd, const uint32_t* p, int shift) {
    uint32_t t = even[0], m = t * f_n0;
    f_mad_modulus_odd(odd, p, t, m, shift);
    f_mad_modulus_even(even, p, t, m);
    odd[F_ROW - 1] = addc(odd[F_ROW - 1], 0);
}

// One row of T = even + 2^32 odd: T = (T + a * b) with its lowest limb made zero by a multiple of p. `odd` comes in as
// the even accumulator of the row before, so it is first shifted down by two words. `a` and `p` have F_ROW + 1 words.
__device__ __forceinline__ void f_mul_row(uint32_t* even, uint32_t* odd, const uint32_t* a, uint32_t b,
                                          const uint32_t* p) {
    even[0] = add_cc(even[0], odd[1]);
#pragma unroll
    for (int j = 0; j < F_ROW - 2; j += 2) {
        odd[j] = madc_lo_cc(a[j + 1], b, odd[j + 2]);
        odd[j + 1] = madc_hi_cc(a[j + 1], b, odd[j + 3]);
    }
    odd[F_ROW - 2] = madc_lo_cc(a[F_ROW - 1], b, 0);
    odd[F_ROW - 1] = madc_hi(a[F_ROW - 1], b, 0);
    f_mad_row(even, a, b);
    odd[F_ROW - 1] = addc(odd[F_ROW - 1], 0);

    f_mad_modulus(even, odd, p, 0);
}

// a * b / R in [0, 2p) for a in [0, p) and any b of F_LIMBS limbs: with both up to 2p, the accumulators could overflow.
__device__ __forceinline__ F f_mul_lazy(const F& a, const F& b) {
    uint32_t x[F_ROW + 1], p[F_ROW + 1], even[F_ROW] = {}, odd[F_ROW] = {};
#pragma unroll
    for (int i = 0; i <= F_ROW; i++) {
        x[i] = i < F_LIMBS ? a.l[i] : 0;
        p[i] = i < F_LIMBS ? f_modulus(i) : 0;
    }
#pragma unroll
    for (int i = 0; i < F_LIMBS; i += 2) {
        f_mul_row(even, odd, x, b.l[i], p);
        if (i + 1 < F_LIMBS) f_mul_row(odd, even, x, b.l[i + 1], p);
    }
    // The accumulator whose lowest word is zero now stands one column below the other.
    uint32_t* high = F_LIMBS % 2 ? odd : even;
    uint32_t* low = F_LIMBS % 2 ? even : odd;
    F r;
    r.l[0] = add_cc(high[0], low[1]);
#pragma unroll
    for (int i = 1; i < F_LIMBS; i++) r.l[i] = addc_cc(high[i], i + 1 < F_ROW ? low[i + 1] : 0);
    return r;
}

__device__ __forceinline__ F f_mul(const F& a, const F& b) {
    return f_reduce(f_mul_lazy(a, b));
}

#endif // F_LIMBS == 1

#if F_LAZY

__device__ __forceinline__ uint32_t f_twice_modulus(int i) {
    return f_modulus(i) << 1 | (i > 0 ? f_modulus(i - 1) >> 31 : 0);
}

// a + b mod 2p for a, b in [0, 2p), of which the sum may carry out of the limbs.
__device__ __forceinline__ F f_add_lazy(const F& a, const F& b) {
    F s, d;
    s.l[0] = add_cc(a.l[0], b.l[0]);
#pragma unroll
    for (int i = 1; i < F_LIMBS; i++) s.l[i] = addc_cc(a.l[i], b.l[i]);
    uint32_t carry = addc(0, 0);
    d.l[0] = sub_cc(s.l[0], f_twice_modulus(0));
#pragma unroll
    for (int i = 1; i < F_LIMBS; i++) d.l[i] = subc_cc(s.l[i], f_twice_modulus(i));
    bool negative = (int32_t)subc(carry, 0) < 0;
#pragma unroll
    for (int i = 0; i < F_LIMBS; i++) d.l[i] = negative ? s.l[i] : d.l[i];
    return d;
}

// a - b mod 2p for a, b in [0, 2p).
__device__ __forceinline__ F f_sub_lazy(const F& a, const F& b) {
    F r;
    r.l[0] = sub_cc(a.l[0], b.l[0]);
#pragma unroll
    for (int i = 1; i < F_LIMBS; i++) r.l[i] = subc_cc(a.l[i], b.l[i]);
    uint32_t negative = subc(0, 0);
    r.l[0] = add_cc(r.l[0], negative & f_twice_modulus(0));
#pragma unroll
    for (int i = 1; i < F_LIMBS - 1; i++) r.l[i] = addc_cc(r.l[i], negative & f_twice_modulus(i));
    r.l[F_LIMBS - 1] = addc(r.l[F_LIMBS - 1], negative & f_twice_modulus(F_LIMBS - 1));
    return r;
}

// acc[0 .. 2 pairs) += (a[0], a[2], ...) * b for `pairs` products, and the carry to the word behind.
// With `half`, the low word of one more product, whose high word and carry are dropped.
__device__ __forceinline__ void f_mad_chain(uint32_t* acc, const uint32_t* a, uint32_t b, int pairs, bool half,
                                            bool carry) {
#pragma unroll
    for (int j = 0; j < F_LIMBS; j++) {
        if (j < pairs) {
            acc[2 * j] = j == 0 ? mad_lo_cc(a[0], b, acc[0]) : madc_lo_cc(a[2 * j], b, acc[2 * j]);
            acc[2 * j + 1] = madc_hi_cc(a[2 * j], b, acc[2 * j + 1]);
        }
    }
    if (half) acc[2 * pairs] = pairs == 0 ? a[0] * b + acc[0] : madc_lo(a[2 * pairs], b, acc[2 * pairs]);
    if (carry) acc[2 * pairs] = addc(acc[2 * pairs], 0);
}

// T / R in [0, 2p) for T = t[0 .. 2 F_LIMBS) below p R: the rows of a product without its products.
__device__ __forceinline__ F f_redc_lazy(const uint32_t* t) {
    uint32_t p[F_LIMBS + 1], even[F_LIMBS], odd[F_LIMBS] = {};
#pragma unroll
    for (int i = 0; i < F_LIMBS; i++) p[i] = f_modulus(i), even[i] = t[i];
    p[F_LIMBS] = 0;
#pragma unroll
    for (int i = 0; i < F_LIMBS; i++) {
        uint32_t* first = i % 2 ? odd : even;
        uint32_t* second = i % 2 ? even : odd;
        // As in f_mul_row; the carry goes on into the second.
        if (i > 0) first[0] = add_cc(first[0], second[1]);
        f_mad_modulus(first, second, p, i > 0 ? 2 : 0);
    }
    F r;
    r.l[0] = add_cc(even[0], odd[1]);
#pragma unroll
    for (int i = 1; i < F_LIMBS; i++) r.l[i] = addc_cc(even[i], i + 1 < F_LIMBS ? odd[i + 1] : 0);
    r.l[0] = add_cc(r.l[0], t[F_LIMBS]);
#pragma unroll
    for (int i = 1; i < F_LIMBS; i++) r.l[i] = addc_cc(r.l[i], t[F_LIMBS + i]);
    return r;
}

// a^2 / R in [0, 2p) for a in [0, p). Products of different limbs are computed once and doubled.
__device__ __forceinline__ F f_square_lazy(const F& a) {
    // odd[i] stands in column i + 1.
    uint32_t even[2 * F_LIMBS + 2] = {}, odd[2 * F_LIMBS + 2] = {}, t[2 * F_LIMBS];
#pragma unroll
    for (int i = 0; i < F_LIMBS - 1; i++) {
        f_mad_chain(odd + 2 * i, a.l + i + 1, a.l[i], (F_LIMBS - i) / 2, false, true);
        f_mad_chain(even + 2 * i + 2, a.l + i + 2, a.l[i], (F_LIMBS - 1 - i) / 2, false, true);
    }
    t[0] = 0;
    t[1] = odd[0];
    t[2] = add_cc(even[2], odd[1]);
#pragma unroll
    for (int i = 3; i < 2 * F_LIMBS; i++) t[i] = addc_cc(even[i], odd[i - 1]);
#pragma unroll
    for (int i = 2 * F_LIMBS - 1; i > 0; i--) t[i] = __funnelshift_l(t[i - 1], t[i], 1);
#pragma unroll
    for (int i = 0; i < F_LIMBS; i++) {
        t[2 * i] = i == 0 ? mad_lo_cc(a.l[0], a.l[0], 0) : madc_lo_cc(a.l[i], a.l[i], t[2 * i]);
        t[2 * i + 1] = madc_hi_cc(a.l[i], a.l[i], t[2 * i + 1]);
    }
    return f_redc_lazy(t);
}

// even + 2^32 odd += a * b mod 2^(32 F_LIMBS).
__device__ __forceinline__ void f_mad_low(uint32_t* even, uint32_t* odd, const uint32_t* a, uint32_t b, int row) {
    // a[i] b stands in column row + i.
    int first = row % 2;
    f_mad_chain(even + row + first, a + first, b, (F_LIMBS - row - first) / 2, false, false);
    f_mad_chain(odd + row - first, a + 1 - first, b, (F_LIMBS - row - 1 + first) / 2, true, false);
}

// a * w mod p in [0, 2p) for a in [0, 2p), with w in [0, p) and quotient = floor(2^(32 F_LIMBS) w / p) known.
//
// With B = 2^(32 F_LIMBS) and q = floor(a quotient / B), a w - q p is below (1 + a / B) p (Shoup). Products of limbs
// below column F_LIMBS - 2 are left out of q, which makes it one less only where the fraction that q cuts off is below
// F_LIMBS / 2^32: then a w - q p is below (1 + a / B + F_LIMBS / 2^32) p, still under 2p as F_LAZY requires.
// a w - q p = a w + q (B - p) mod B takes low halves of products only; rows of B - p that are zero are skipped.
__device__ __forceinline__ F f_mul_known(const F& a, const F& w, const F& quotient) {
    constexpr int cut = F_LIMBS - 2;
    uint32_t even[F_LIMBS + 4] = {}, odd[F_LIMBS + 4] = {};
#pragma unroll
    for (int j = 0; j < F_LIMBS; j++) {
        // a[i] quotient[j] stands in column i + j - cut; its first i here, and the first of each parity of columns.
        int from = j < cut ? cut - j : 0, column = from + j - cut, parity = column % 2;
        f_mad_chain(even + column + parity, a.l + from + parity, quotient.l[j], (F_LIMBS - from - parity + 1) / 2,
                    false, true);
        f_mad_chain(odd + column - parity, a.l + from + 1 - parity, quotient.l[j], (F_LIMBS - from + parity) / 2,
                    false, true);
    }
    // Columns cut + 2 and up are the quotient.
    F q;
    add_cc(even[1], odd[0]);
    q.l[0] = addc_cc(even[2], odd[1]);
#pragma unroll
    for (int i = 1; i < F_LIMBS; i++) q.l[i] = addc_cc(even[i + 2], odd[i + 1]);

    uint32_t low_even[F_LIMBS + 2] = {}, low_odd[F_LIMBS + 2] = {};
#pragma unroll
    for (int j = 0; j < F_LIMBS; j++) f_mad_low(low_even, low_odd, a.l, w.l[j], j);
#pragma unroll
    for (int j = 0; j < F_LIMBS; j++) {
        constexpr uint32_t complement[F_LIMBS] = F_COMPLEMENT;
        if (complement[j] != 0) f_mad_low(low_even, low_odd, q.l, complement[j], j);
    }
    F r;
    r.l[0] = low_even[0];
    r.l[1] = add_cc(low_even[1], low_odd[0]);
#pragma unroll
    for (int i = 2; i < F_LIMBS; i++) r.l[i] = addc_cc(low_even[i], low_odd[i - 1]);
    return r;
}

__device__ __forceinline__ F f_square(const F& a) {
    return f_reduce(f_square_lazy(a));
}

// A sum of products that is not reduced: fewer than 2^32 of them.
struct FSum {
    uint32_t l[2 * F_LIMBS + 1];
};

__device__ __forceinline__ FSum f_sum_zero() {
    return FSum{};
}

// sum += a * b.
__device__ __forceinline__ void f_mac(FSum& sum, const F& a, const F& b) {
    // odd[i] stands in column i + 1.
    uint32_t even[2 * F_LIMBS + 2] = {}, odd[2 * F_LIMBS + 2] = {};
#pragma unroll
    for (int j = 0; j < F_LIMBS; j++) {
        int parity = j % 2;
        f_mad_chain(even + j + parity, a.l + parity, b.l[j], F_LIMBS / 2, false, true);
        f_mad_chain(odd + j - parity, a.l + 1 - parity, b.l[j], F_LIMBS / 2, false, true);
    }
    sum.l[0] = add_cc(sum.l[0], even[0]);
#pragma unroll
    for (int i = 1; i < 2 * F_LIMBS; i++) sum.l[i] = addc_cc(sum.l[i], even[i]);
    sum.l[2 * F_LIMBS] = addc(sum.l[2 * F_LIMBS], 0);
    sum.l[1] = add_cc(sum.l[1], odd[0]);
#pragma unroll
    for (int i = 2; i < 2 * F_LIMBS; i++) sum.l[i] = addc_cc(sum.l[i], odd[i - 1]);
    sum.l[2 * F_LIMBS] = addc(sum.l[2 * F_LIMBS], 0);
}

// sum / R mod p. One limb is reduced first, which leaves less than p R, and is made up for at the end.
__device__ __forceinline__ F f_sum_reduce(const FSum& sum) {
    uint32_t p[F_LIMBS], t[2 * F_LIMBS + 1], m = sum.l[0] * f_n0;
#pragma unroll
    for (int i = 0; i < F_LIMBS; i++) p[i] = f_modulus(i);
#pragma unroll
    for (int i = 0; i <= 2 * F_LIMBS; i++) t[i] = sum.l[i];
#pragma unroll
    for (int parity = 0; parity < 2; parity++) {
        f_mad_chain(t + parity, p + parity, m, F_LIMBS / 2, false, false);
#pragma unroll
        for (int i = F_LIMBS + parity; i <= 2 * F_LIMBS; i++) t[i] = addc_cc(t[i], 0);
    }
    return f_mul(F{F_SHIFT}, f_redc_lazy(t + 1));
}

#endif // F_LAZY

#elif F_CARRIES && F_LIMBS == 2 && F_TOP == 0xffffffffu && F_N0 == 0xffffffffu // F_PTX

// Goldilocks, p = 2^64 - 2^32 + 1: a multiple of p is found by additions, and adding p to what is modulo 2^64 is
// subtracting 2^32 - 1, the word of a borrow.

// a - b, plus p if that is negative; b may be p.
__device__ __forceinline__ F f_sub(const F& a, const F& b) {
    F r;
    r.l[0] = sub_cc(a.l[0], b.l[0]);
    r.l[1] = subc_cc(a.l[1], b.l[1]);
    uint32_t borrow = subc(0, 0);
    r.l[0] = sub_cc(r.l[0], borrow);
    r.l[1] = subc(r.l[1], 0);
    return r;
}

// a - (p - b).
__device__ __forceinline__ F f_add(const F& a, const F& b) {
    F negative;
    negative.l[0] = sub_cc(f_modulus(0), b.l[0]);
    negative.l[1] = subc(f_modulus(1), b.l[1]);
    return f_sub(a, negative);
}

__device__ __forceinline__ F f_mul(const F& a, const F& b) {
    uint64_t bottom = (uint64_t)a.l[0] * b.l[0], top = (uint64_t)a.l[1] * b.l[1], middle = (uint64_t)a.l[0] * b.l[1];
    uint32_t odd[3] = {(uint32_t)middle, (uint32_t)(middle >> 32), 0};
    mad_wide(odd[0], odd[1], odd[2], a.l[1], b.l[0]);
    uint32_t low[2] = {(uint32_t)bottom, add_cc((uint32_t)(bottom >> 32), odd[0])};
    F high;
    high.l[0] = addc_cc((uint32_t)top, odd[1]);
    high.l[1] = addc((uint32_t)(top >> 32), odd[2]);
    // The multiple of p that agrees with the product modulo 2^64, divided by 2^64: 2^32 low + low, less what is above.
    F multiple;
    uint32_t above;
    multiple.l[1] = add_cc(low[1], low[0]);
    above = addc(multiple.l[1], 0);
    multiple.l[0] = sub_cc(low[0], above);
    multiple.l[1] = subc(multiple.l[1], 0);
    return f_sub(high, multiple);
}

#else // F_PTX

// carry 2^(32 F_LIMBS) + a, less p if that is not negative.
__device__ __forceinline__ F f_reduce(const F& a, uint32_t carry) {
    F d;
    uint64_t t = 0;
#pragma unroll
    for (int i = 0; i < F_LIMBS; i++) {
        t = (uint64_t)a.l[i] - f_modulus(i) - (uint32_t)(t >> 63);
        d.l[i] = (uint32_t)t;
    }
    bool negative = (uint32_t)(t >> 63) > carry;
#pragma unroll
    for (int i = 0; i < F_LIMBS; i++) d.l[i] = negative ? a.l[i] : d.l[i];
    return d;
}

__device__ __forceinline__ F f_add(const F& a, const F& b) {
    F r;
    uint64_t t = 0;
#pragma unroll
    for (int i = 0; i < F_LIMBS; i++) {
        t = (uint64_t)a.l[i] + b.l[i] + (t >> 32);
        r.l[i] = (uint32_t)t;
    }
    return f_reduce(r, (uint32_t)(t >> 32));
}

__device__ __forceinline__ F f_sub(const F& a, const F& b) {
    F r;
    uint64_t t = 0;
#pragma unroll
    for (int i = 0; i < F_LIMBS; i++) {
        t = (uint64_t)a.l[i] - b.l[i] - (uint32_t)(t >> 63);
        r.l[i] = (uint32_t)t;
    }
    uint32_t mask = 0 - (uint32_t)(t >> 63);
    t = 0;
#pragma unroll
    for (int i = 0; i < F_LIMBS; i++) {
        t = (uint64_t)r.l[i] + (f_modulus(i) & mask) + (t >> 32);
        r.l[i] = (uint32_t)t;
    }
    return r;
}

__device__ __forceinline__ F f_mul(const F& a, const F& b) {
    F r{};
    uint32_t top = 0;
#pragma unroll
    for (int i = 0; i < F_LIMBS; i++) {
        uint64_t t = 0;
#pragma unroll
        for (int j = 0; j < F_LIMBS; j++) {
            t = (uint64_t)a.l[j] * b.l[i] + r.l[j] + (t >> 32);
            r.l[j] = (uint32_t)t;
        }
        uint64_t high = (t >> 32) + top;
        uint32_t m = r.l[0] * f_n0;
        t = (uint64_t)m * f_modulus(0) + r.l[0];
#pragma unroll
        for (int j = 1; j < F_LIMBS; j++) {
            t = (uint64_t)m * f_modulus(j) + r.l[j] + (t >> 32);
            r.l[j - 1] = (uint32_t)t;
        }
        high += t >> 32;
        r.l[F_LIMBS - 1] = (uint32_t)high;
        top = (uint32_t)(high >> 32);
    }
    return f_reduce(r, top);
}

#endif // F_PTX

#if !F_LAZY
__device__ __forceinline__ F f_square(const F& a) {
    return f_mul(a, a);
}
#endif
