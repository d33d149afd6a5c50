// Arithmetic of an extension F of degree n over a field B: polynomials c[0] + c[1] x + … modulo x^n - (r_0 + r_1 x + …).
//
// Comes after the arithmetic of B, whose functions start with b_, and what is rendered from the extension's constants:
//   F_DEGREE          n
//   F_IMAGINARY       1 if n = 2 and x^2 = -1
//   F_LIMBS           32-bit limbs of an element
//   F_FOLD(low, y)    low[i] += r_i y for all i
//   F_FROBENIUS(a)    the coefficients of a^q, where q is the size of B
// The functions are those of field/words.cuh.
//
// Sources: for products, Karatsuba and Ofman, "Multiplication of multidigit numbers on automata", Soviet Physics
// Doklady 7 (1963), in one step for all pairs of coefficients as in Weimerskirch and Paar, "Generalizations of the
// Karatsuba algorithm for efficient implementations", Cryptology ePrint Archive 2006/224; for inverses by the norm,
// Itoh and Tsujii, "A fast algorithm for computing multiplicative inverses in GF(2^m) using normal bases", Information
// and Computation 78 (1988).
//
// F_PAIR: x^2 = -1 over a base that has products of pairs, three products of limbs and two reductions. Functions on coefficients
// in [0, 2p) have the names of those of prime fields: f_mul_lazy and so on.

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

// Where multiplication is long it is called: inlining it everywhere takes the compiler seconds.
#if F_LIMBS > 32
#define F_INLINE __noinline__
#else
#define F_INLINE __forceinline__
#endif

// Products of B. A kernel that has many products in its text defines F_CALLS as 1 before this file: then those of long elements
// are called. Inlined, they took NVRTC up to 104 s for a kernel over points of an extension.
#if F_CALLS && F_LIMBS >= 8 * F_DEGREE
__device__ __noinline__ B f_base_mul(B a, B b) {
    return b_mul(a, b);
}
#else
__device__ __forceinline__ B f_base_mul(const B& a, const B& b) {
    return b_mul(a, b);
}
#endif

struct __align__(F_ALIGN) F {
    B c[F_DEGREE];
};

__device__ __forceinline__ F f_zero() {
    F r;
#pragma unroll
    for (int i = 0; i < F_DEGREE; i++) r.c[i] = b_zero();
    return r;
}

__device__ __forceinline__ F f_one() {
    F r = f_zero();
    r.c[0] = b_one();
    return r;
}

__device__ __forceinline__ F f_load(const F* a) {
    F r;
#pragma unroll
    for (int i = 0; i < F_WORDS; i++) reinterpret_cast<FWord*>(&r)[i] = reinterpret_cast<const FWord*>(a)[i];
    return r;
}

__device__ __forceinline__ bool f_is_zero(const F& a) {
    bool zero = true;
#pragma unroll
    for (int i = 0; i < F_DEGREE; i++) zero = zero && b_is_zero(a.c[i]);
    return zero;
}

__device__ __forceinline__ F f_add(const F& a, const F& b) {
    F r;
#pragma unroll
    for (int i = 0; i < F_DEGREE; i++) r.c[i] = b_add(a.c[i], b.c[i]);
    return r;
}

__device__ __forceinline__ F f_sub(const F& a, const F& b) {
    F r;
#pragma unroll
    for (int i = 0; i < F_DEGREE; i++) r.c[i] = b_sub(a.c[i], b.c[i]);
    return r;
}

#if F_IMAGINARY && B_MUL_PAIR
#define F_PAIR 1

__device__ __forceinline__ F f_add_lazy(const F& a, const F& b) {
    return {{b_add_lazy(a.c[0], b.c[0]), b_add_lazy(a.c[1], b.c[1])}};
}

__device__ __forceinline__ F f_sub_lazy(const F& a, const F& b) {
    return {{b_sub_lazy(a.c[0], b.c[0]), b_sub_lazy(a.c[1], b.c[1])}};
}

// From [0, 2p) to [0, p).
__device__ __forceinline__ F f_reduce(const F& a) {
    return {{b_reduce(a.c[0]), b_reduce(a.c[1])}};
}

// Called as products of B are elsewhere.
#if F_CALLS && F_LIMBS >= 8 * F_DEGREE
#define F_PRODUCT __noinline__
#else
#define F_PRODUCT F_INLINE
#endif

__device__ F_PRODUCT F f_mul_lazy(F a, F b) {
    F r;
    r.c[0] = b_mul_pair_lazy(r.c[1], a.c[0], a.c[1], b.c[0], b.c[1]);
    return r;
}

// (a + b i)^2 = (a + b) (a - b) + 2 a b i.
__device__ F_PRODUCT F f_square_lazy(F a) {
    return {{b_mul_lazy(b_add_lazy(a.c[0], a.c[1]), b_sub_lazy(a.c[0], a.c[1])),
             b_mul_lazy(b_add_lazy(a.c[0], a.c[0]), a.c[1])}};
}

__device__ __forceinline__ F f_mul(const F& a, const F& b) {
    return f_reduce(f_mul_lazy(a, b));
}

__device__ __forceinline__ F f_square(const F& a) {
    return f_reduce(f_square_lazy(a));
}

#else

// The product of polynomials, then its upper coefficients folded into the lower ones from the highest on. Over bases of
// more than two limbs Karatsuba's way saves n(n-1)/2 products; over smaller ones its additions cost as much.
__device__ F_INLINE F f_mul(const F& a, const F& b) {
    B d[2 * F_DEGREE - 1];
#if F_LIMBS > 2 * F_DEGREE
    B diagonal[F_DEGREE];
#pragma unroll
    for (int i = 0; i < F_DEGREE; i++) diagonal[i] = f_base_mul(a.c[i], b.c[i]);
#pragma unroll
    for (int k = 0; k < 2 * F_DEGREE - 1; k++) {
        if (k % 2 == 0) d[k] = diagonal[k / 2];
    }
#pragma unroll
    for (int i = 0; i < F_DEGREE; i++) {
#pragma unroll
        for (int j = i + 1; j < F_DEGREE; j++) {
            B cross = f_base_mul(b_add(a.c[i], a.c[j]), b_add(b.c[i], b.c[j]));
            cross = b_sub(b_sub(cross, diagonal[i]), diagonal[j]);
            bool first = (i + j) % 2 == 1 && (i == 0 || j == F_DEGREE - 1);
            d[i + j] = first ? cross : b_add(d[i + j], cross);
        }
    }
#else
#pragma unroll
    for (int i = 0; i < F_DEGREE; i++) {
#pragma unroll
        for (int j = 0; j < F_DEGREE; j++) {
            B product = f_base_mul(a.c[i], b.c[j]);
            d[i + j] = i == 0 || j == F_DEGREE - 1 ? product : b_add(d[i + j], product);
        }
    }
#endif
#pragma unroll
    for (int k = F_DEGREE - 2; k >= 0; k--) {
        B* low = d + k;
        B high = d[k + F_DEGREE];
        F_FOLD(low, high)
    }
    F r;
#pragma unroll
    for (int i = 0; i < F_DEGREE; i++) r.c[i] = d[i];
    return r;
}

__device__ F_INLINE F f_square(const F& a) {
    return f_mul(a, a);
}

#endif // F_PAIR

// a^q: the identity on B.
__device__ __forceinline__ F f_frobenius(const F& a) {
    return F{{ F_FROBENIUS(a) }};
}

// 1/a, and 0 of 0. The product of all conjugates of a is its norm, which lies in B; all but a itself are its cofactor.
__device__ inline F f_inverse(const F& a) {
    F conjugate = f_frobenius(a), cofactor = conjugate, norm = conjugate;
#pragma unroll 1
    for (int i = 2; i <= F_DEGREE; i++) {
        cofactor = norm;
        conjugate = f_frobenius(conjugate);
        norm = f_mul(cofactor, conjugate);
    }
    B inverse = b_inverse(norm.c[0]);
    F r;
#pragma unroll
    for (int i = 0; i < F_DEGREE; i++) r.c[i] = b_mul(cofactor.c[i], inverse);
    return r;
}
