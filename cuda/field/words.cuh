// Prime field arithmetic in Montgomery form, R = 2^(32 F_LIMBS).
//
// Comes after the constants of the field, rendered from the modulus p:
//   F_LIMBS       32-bit limbs of an element, little endian
//   F_FULL        1 if 2p does not fit the limbs, so that sums carry out of them
//   F_ROOM        1 if values in [0, 2p) can be computed with
//   F_MODULUS     { p }
//   F_TOP         highest limb of p
//   F_COMPLEMENT  { 2^(32 F_LIMBS) - p }
//   F_ONE         { R mod p }
//   F_SHIFT       { 2^32 R mod p }
//   F_N0          -1/p mod 2^32
// Every function takes and gives values in [0, p).
//
// What follows this file, in this order, each under the condition that it needs:
//   field/carries.cuh     the instructions with carries
//   source/chains.rs      of the crate for fields, F_PTX and more than one limb: sums and products by them, rendered from the
//                         modulus; F_LAZY: the same on values in [0, 2p), squares, products with constants whose quotient by p
//                         was computed beforehand, and sums of products
//   field/even_odd.cuh    F_PTX: the same of one limb, and products
//   field/lazy.cuh        F_LAZY: squares
//   field/shoup.cuh       constants with their quotient by p; one limb: products with such
//   field/sums.cuh        F_LAZY: sums of products that are reduced once
//   field/goldilocks.cuh  F_GOLDILOCKS: p = 2^64 - 2^32 + 1
//   field/portable.cuh    elsewhere, and where sums carry out of the limbs: the same functions without carries
// A host that runs these sources may define CARRY_MODEL as 1 and bring a model of the instructions with carries.
//
// Source of the representation: Montgomery, "Modular multiplication without trial division", Mathematics of Computation
// 44 (1985).

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

#if F_PTX && F_ROOM
#define F_LAZY 1
#else
#define F_LAZY 0
#endif

#if F_CARRIES && !F_PTX && F_LIMBS == 2 && F_TOP == 0xffffffffu && F_N0 == 0xffffffffu
#define F_GOLDILOCKS 1
#else
#define F_GOLDILOCKS 0
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
