// Poseidon2, a permutation of WIDTH elements in registers.
//
// Comes after the arithmetic of the field, and
//   WIDTH, ALPHA   elements of a state, a multiple of 4; the exponent of the S-box: 3, 5 or 7
//   RATE, DIGEST   elements that a sponge overwrites at a time; elements of a digest
//   SMALL_START    whether the diagonal of the partial rounds starts with -2, 1 and 2
//   HALVINGS       for each element of the diagonal: k for 2^-k, -k for -2^-k, and 0 for any other, which is multiplied by
// The constants are an array of elements: those of the full rounds at the start, of those at the end, the diagonal of the
// partial rounds, each WIDTH elements a round, and one for each partial round.
//
// Fields below 2^31 cost 3 multiplications of words for each product. Within an S-box products are signed, between -p and
// p, which Montgomery's reduction keeps without corrections (Seiler, "Faster AVX2 optimized NTT multiplication for Ring-LWE
// lattice cryptography", Cryptology ePrint Archive 2018/039). In partial rounds the sum of the state is added to each
// product before it is reduced. With SMALL_START three products are additions, and with HALVINGS others are shifts.
//
// On an H100, products of whole and of high words keep the unit of multiplications busy for 4 clocks a warp, low ones for 2,
// and additions, minima and shifts the other unit for 2. Where both are busy, registers are read too slowly: a permutation took
// as long with an eighth of the multiplications less, as long as sums were forced to the other unit. The compiler divides sums of
// two terms between both units.
//
// Source: Grassi, Khovratovich and Schofnegger, "Poseidon2: a faster version of the Poseidon hash function", AFRICACRYPT
// 2023; the 4 x 4 matrix is Plonky3's.

// Up to 64 registers a thread, or 72: with fewer, neighbouring products wait for each other. Others take what they need.
#if F_LIMBS == 1 && WIDTH <= 16
#define BOUNDS THREADS, 1024 / THREADS
#elif F_LIMBS == 1 && WIDTH <= 24
#define BOUNDS THREADS, 896 / THREADS
#else
#define BOUNDS THREADS
#endif

#if F_LIMBS == 1 && !F_FULL

__device__ __forceinline__ F add(const F& a, const F& b) {
    uint32_t sum = a.l[0] + b.l[0], less = sum - f_modulus(0);
    return F{{less < sum ? less : sum}};
}

__device__ __forceinline__ F sub(const F& a, const F& b) {
    uint32_t difference = a.l[0] - b.l[0], more = difference + f_modulus(0);
    return F{{more < difference ? more : difference}};
}

// a b, and its high word, signed. From the expressions, the compiler makes unsigned products and corrections: 8 instructions.
__device__ __forceinline__ int64_t signed_wide(int32_t a, int32_t b) {
#ifdef __CUDA_ARCH__
    int64_t t;
    asm("mul.wide.s32 %0, %1, %2;" : "=l"(t) : "r"(a), "r"(b));
    return t;
#else
    return (int64_t)a * b;
#endif
}

__device__ __forceinline__ int32_t signed_high(int32_t a, int32_t b) {
#ifdef __CUDA_ARCH__
    int32_t high;
    asm("mul.hi.s32 %0, %1, %2;" : "=r"(high) : "r"(a), "r"(b));
    return high;
#else
    return (int32_t)((int64_t)a * b >> 32);
#endif
}

// a b / 2^32 mod p in (-p, p), for |a b| < 2^31 p: the low words of a b and of the multiple of p are the same.
__device__ __forceinline__ int32_t signed_product(int32_t a, int32_t b) {
    int64_t t = signed_wide(a, b);
    int32_t m = (int32_t)((uint32_t)t * (0u - F_N0));
    return (int32_t)((uint32_t)(t >> 32) - (uint32_t)signed_high(m, (int32_t)f_modulus(0)));
}

// (x + c)^ALPHA
__device__ __forceinline__ F power(const F& x, const F& c) {
    int32_t y = (int32_t)(x.l[0] + c.l[0] - f_modulus(0)), y2 = signed_product(y, y), r;
    if (ALPHA == 3) {
        r = signed_product(y2, y);
    } else if (ALPHA == 5) {
        r = signed_product(signed_product(y2, y2), y);
    } else {
        r = signed_product(signed_product(y2, y2), signed_product(y2, y));
    }
    uint32_t u = (uint32_t)r, more = u + f_modulus(0);
    return F{{more < u ? more : u}};
}

// What `multiple` adds: 2^32 times the sum of a state, in Montgomery form.
typedef uint64_t Sum;

__device__ __forceinline__ Sum sum_of(const F& sum) {
    return (uint64_t)sum.l[0] * f_one().l[0];
}

// sum + x factor, of terms below p^2 each: the low words of the sum and of the multiple of p are the same.
__device__ __forceinline__ F multiple(const Sum& sum, const F& x, const F& factor) {
    uint64_t t = (uint64_t)x.l[0] * factor.l[0] + sum;
    uint32_t m = (uint32_t)t * (0u - F_N0);
    uint32_t r = (uint32_t)(t >> 32) - (uint32_t)((uint64_t)m * f_modulus(0) >> 32), more = r + f_modulus(0);
    return F{{more < r ? more : r}};
}

// a b + c. From the expression, the compiler makes shifts and sums of constants b.
__device__ __forceinline__ uint32_t low_product(uint32_t a, uint32_t b, uint32_t c) {
#ifdef __CUDA_ARCH__
    uint32_t r;
    asm("mad.lo.u32 %0, %1, %2, %3;" : "=r"(r) : "r"(a), "r"(b), "r"(c));
    return r;
#else
    return a * b + c;
#endif
}

// sum + x / 2^k, and sum - x / 2^-k for negative k: with p = c 2^a + 1 and k <= a, the quotient is (x + j p) / 2^k for the j < 2^k
// that makes it whole, -x mod 2^k. That is x / 2^k rounded up, plus j c 2^(a - k), and below p. x - 1, and so x + 2^k - 1, has
// the complement of j as its low bits. Half of an odd x is (x + p) / 2 for any p.
__device__ __forceinline__ F halved(const F& sum, const F& x, int k) {
    uint32_t shift = k < 0 ? -k : k, mask = (1u << shift) - 1;
    uint32_t y = shift == 1 ? x.l[0] : x.l[0] + mask, high = y >> shift, j = (shift == 1 ? y : ~y) & mask;
    uint32_t part = shift == 1 ? (f_modulus(0) + 1) / 2 : (f_modulus(0) - 1) >> shift;
    if (k > 0) {
        uint32_t r = low_product(j, part, sum.l[0] + high), less = r - f_modulus(0);
        return F{{less < r ? less : r}};
    }
    uint32_t r = low_product(j, 0u - part, sum.l[0] - high), more = r + f_modulus(0);
    return F{{more < r ? more : r}};
}

#else

__device__ __forceinline__ F add(const F& a, const F& b) {
    return f_add(a, b);
}

__device__ __forceinline__ F sub(const F& a, const F& b) {
    return f_sub(a, b);
}

__device__ __forceinline__ F power(const F& x, const F& c) {
    F y = f_add(x, c), y2 = f_mul(y, y);
    if (ALPHA == 3) return f_mul(y2, y);
    F y4 = f_mul(y2, y2);
    if (ALPHA == 5) return f_mul(y4, y);
    return f_mul(y4, f_mul(y2, y));
}

typedef F Sum;

__device__ __forceinline__ Sum sum_of(const F& sum) {
    return sum;
}

__device__ __forceinline__ F multiple(const Sum& sum, const F& x, const F& factor) {
    return f_add(sum, f_mul(x, factor));
}

// There are no halvings.
__device__ __forceinline__ F halved(const F& sum, const F&, int) {
    return sum;
}

#endif

// Word i of 16 bytes.
__device__ __forceinline__ void load_word(F* to, const F* from, uint32_t i) {
    uint4 word = reinterpret_cast<const uint4*>(from)[i];
    to[(4 * i) / F_LIMBS].l[(4 * i) % F_LIMBS] = word.x;
    to[(4 * i + 1) / F_LIMBS].l[(4 * i + 1) % F_LIMBS] = word.y;
    to[(4 * i + 2) / F_LIMBS].l[(4 * i + 2) % F_LIMBS] = word.z;
    to[(4 * i + 3) / F_LIMBS].l[(4 * i + 3) % F_LIMBS] = word.w;
}

// `count` elements from `from`, in words of 16 bytes if they are aligned so.
__device__ __forceinline__ void load_elements(F* to, const F* from, uint32_t count) {
    if (count * F_LIMBS % 4 == 0 && ((size_t)from & 15) == 0) {
#pragma unroll
        for (uint32_t i = 0; i < count * F_LIMBS / 4; i++) {
            load_word(to, from, i);
        }
    } else {
#pragma unroll
        for (uint32_t i = 0; i < count; i++) to[i] = f_load(from + i);
    }
}

// A row of constants, which lie in a buffer of their own: rows are whole words of 16 bytes.
__device__ __forceinline__ void load_row(F* to, const F* from) {
#pragma unroll
    for (uint32_t i = 0; i < WIDTH * F_LIMBS / 4; i++) {
        load_word(to, from, i);
    }
}

// `count` elements to `to`, likewise.
__device__ __forceinline__ void store_elements(F* to, const F* from, uint32_t count) {
    if (count * F_LIMBS % 4 == 0 && ((size_t)to & 15) == 0) {
#pragma unroll
        for (uint32_t i = 0; i < count * F_LIMBS / 4; i++) {
            reinterpret_cast<uint4*>(to)[i] = make_uint4(
                from[(4 * i) / F_LIMBS].l[(4 * i) % F_LIMBS], from[(4 * i + 1) / F_LIMBS].l[(4 * i + 1) % F_LIMBS],
                from[(4 * i + 2) / F_LIMBS].l[(4 * i + 2) % F_LIMBS], from[(4 * i + 3) / F_LIMBS].l[(4 * i + 3) % F_LIMBS]);
        }
    } else {
#pragma unroll
        for (uint32_t i = 0; i < count; i++) to[i] = from[i];
    }
}

// sums[k] = the sum of the elements k, k + 4, k + 8, ...
__device__ __forceinline__ void column_sums(F* sums, const F* s) {
#pragma unroll
    for (int i = 0; i < WIDTH; i++) sums[i % 4] = i < 4 ? s[i] : add(sums[i % 4], s[i]);
}

// The matrix of full rounds: circ(2 M, M, ..., M) with M = circ(2, 3, 1, 1).
__device__ __forceinline__ void mix(F* s) {
#pragma unroll
    for (int i = 0; i < WIDTH; i += 4) {
        F t01 = add(s[i], s[i + 1]), t23 = add(s[i + 2], s[i + 3]), all = add(t01, t23);
        F first = add(all, s[i + 1]), last = add(all, s[i + 3]);
        s[i + 3] = add(last, add(s[i], s[i]));
        s[i + 1] = add(first, add(s[i + 2], s[i + 2]));
        s[i] = add(first, t01);
        s[i + 2] = add(last, t23);
    }
    F sums[4];
    column_sums(sums, s);
#pragma unroll
    for (int i = 0; i < WIDTH; i++) s[i] = add(s[i], sums[i % 4]);
}

__device__ __forceinline__ void partial_rounds(F* s, const F* diagonal, uint32_t partial) {
    constexpr int halvings[WIDTH] = {HALVINGS};
    F factors[WIDTH];
    load_row(factors, diagonal);
    const F* constants = diagonal + WIDTH;
#pragma unroll 1
    for (uint32_t round = 0; round < partial; round++) {
        s[0] = power(s[0], f_load(constants + round));
        F sums[4];
        column_sums(sums, s);
        F sum = add(add(sums[0], sums[1]), add(sums[2], sums[3]));
        Sum added = sum_of(sum);
#if SMALL_START
        s[0] = sub(sub(sum, s[0]), s[0]);
        s[1] = add(sum, s[1]);
        s[2] = add(add(sum, s[2]), s[2]);
#endif
#pragma unroll
        for (int i = SMALL_START ? 3 : 0; i < WIDTH; i++) {
            s[i] = halvings[i] != 0 ? halved(sum, s[i], halvings[i]) : multiple(added, s[i], factors[i]);
        }
    }
}

// The permutation, with `half` full rounds at each end and `partial` ones between.
__device__ __forceinline__ void permute_state(F* s, const F* constants, uint32_t half, uint32_t partial) {
    mix(s);
#pragma unroll 1
    for (uint32_t end = 0; end < 2; end++) {
#pragma unroll 1
        for (uint32_t round = 0; round < half; round++) {
            F row[WIDTH];
            load_row(row, constants + (end * half + round) * WIDTH);
#pragma unroll
            for (int i = 0; i < WIDTH; i++) s[i] = power(s[i], row[i]);
            mix(s);
        }
        if (end == 0) partial_rounds(s, constants + 2 * half * WIDTH, partial);
    }
}
