// CUDA C++'s built-ins for a compiler of the host, as far as the kernels use them. Comes before a kernel's text, in which
// `extern __shared__` has become `extern EMULATOR_DYNAMIC`.

#define __global__
#define __device__ static
#define __constant__ static
#define __forceinline__ inline
#define __noinline__ __attribute__((noinline))
#define __launch_bounds__(...)
#define __align__(bytes) __attribute__((aligned(bytes)))
// One instance for all blocks, which run one after another.
#define __shared__ static __attribute__((section("emulator_shared")))
#define EMULATOR_DYNAMIC

// Launches run one after another.
static inline void wait_for_previous() {}

struct __align__(8) uint2 {
    uint32_t x, y;
};

struct __align__(16) uint4 {
    uint32_t x, y, z, w;
};

static inline uint2 make_uint2(uint32_t x, uint32_t y) { return {x, y}; }
static inline uint4 make_uint4(uint32_t x, uint32_t y, uint32_t z, uint32_t w) { return {x, y, z, w}; }

struct EmulatedIndex {
    uint32_t x;
};
#define threadIdx (EmulatedIndex{emulator_thread()})
#define blockIdx (EmulatedIndex{emulator_block()})
#define blockDim (EmulatedIndex{emulator_threads()})
#define gridDim (EmulatedIndex{emulator_blocks()})

template <class A, class B> static inline auto min(A a, B b) -> decltype(a + b) { return a < b ? a : b; }
template <class A, class B> static inline auto max(A a, B b) -> decltype(a + b) { return a > b ? a : b; }

static inline uint32_t __byte_perm(uint32_t a, uint32_t b, uint32_t selector) {
    uint64_t bytes = (uint64_t)b << 32 | a;
    uint32_t r = 0;
    for (uint32_t i = 0; i < 4; i++) {
        uint32_t choice = selector >> 4 * i & 0xf, byte = bytes >> 8 * (choice & 7) & 0xff;
        if (choice & 8) byte = byte & 0x80 ? 0xff : 0;
        r |= byte << 8 * i;
    }
    return r;
}

static inline uint32_t __funnelshift_l(uint32_t low, uint32_t high, uint32_t shift) {
    return ((uint64_t)high << 32 | low) << (shift & 31) >> 32;
}

static inline uint32_t __funnelshift_r(uint32_t low, uint32_t high, uint32_t shift) {
    return ((uint64_t)high << 32 | low) >> (shift & 31);
}

static inline uint32_t __brev(uint32_t x) {
    x = (x >> 1 & 0x55555555u) | (x & 0x55555555u) << 1;
    x = (x >> 2 & 0x33333333u) | (x & 0x33333333u) << 2;
    x = (x >> 4 & 0x0f0f0f0fu) | (x & 0x0f0f0f0fu) << 4;
    return __builtin_bswap32(x);
}

static inline int __popc(uint32_t x) { return __builtin_popcount(x); }
static inline int __ffs(uint32_t x) { return __builtin_ffs((int)x); }
static inline int __clz(int x) { return x == 0 ? 32 : __builtin_clz((unsigned)x); }
static inline uint32_t __umulhi(uint32_t a, uint32_t b) { return (uint64_t)a * b >> 32; }

static inline void __syncthreads() { emulator_syncthreads(); }

static inline void __syncwarp(uint32_t mask = 0xffffffffu) {
    if (mask != 0xffffffffu) emulator_fail("synchronises a part of a warp");
    emulator_syncwarp();
}

static inline uint32_t __shfl_sync(uint32_t mask, uint32_t value, int lane) {
    return emulator_exchange(mask, value)[lane & 31];
}

static inline uint32_t __shfl_up_sync(uint32_t mask, uint32_t value, uint32_t distance) {
    uint32_t lane = emulator_thread() % 32;
    return emulator_exchange(mask, value)[lane >= distance ? lane - distance : lane];
}

static inline uint32_t __shfl_down_sync(uint32_t mask, uint32_t value, uint32_t distance) {
    uint32_t lane = emulator_thread() % 32;
    return emulator_exchange(mask, value)[lane + distance < 32 ? lane + distance : lane];
}

static inline uint32_t __shfl_xor_sync(uint32_t mask, uint32_t value, int lanes) {
    return emulator_exchange(mask, value)[(emulator_thread() ^ lanes) & 31];
}

static inline uint32_t __ballot_sync(uint32_t mask, bool predicate) {
    const uint32_t* votes = emulator_exchange(mask, predicate);
    uint32_t r = 0;
    for (uint32_t lane = 0; lane < 32; lane++) r |= votes[lane] << lane;
    return r;
}

static inline uint32_t atomicAdd(uint32_t* place, uint32_t value) {
    return emulator_atomic_add(place, value);
}

static inline uint32_t atomicMax(uint32_t* place, uint32_t value) {
    return emulator_atomic_max(place, value);
}

#if CARRY_MODEL

// PTX's add and multiply-add with the carry flag, which is a register that nothing else uses.
register uint32_t emulator_carry asm(CARRY_REGISTER);

static inline uint32_t emulator_sum(uint64_t t) {
    emulator_carry = t >> 32;
    return t;
}

static inline uint32_t emulator_difference(uint64_t t) {
    emulator_carry = t >> 63;
    return t;
}

static inline uint32_t add_cc(uint32_t a, uint32_t b) { return emulator_sum((uint64_t)a + b); }
static inline uint32_t addc_cc(uint32_t a, uint32_t b) { return emulator_sum((uint64_t)a + b + emulator_carry); }
static inline uint32_t addc(uint32_t a, uint32_t b) { return a + b + emulator_carry; }
static inline uint32_t sub_cc(uint32_t a, uint32_t b) { return emulator_difference((uint64_t)a - b); }
static inline uint32_t subc_cc(uint32_t a, uint32_t b) { return emulator_difference((uint64_t)a - b - emulator_carry); }
static inline uint32_t subc(uint32_t a, uint32_t b) { return a - b - emulator_carry; }
static inline uint32_t mad_lo_cc(uint32_t a, uint32_t b, uint32_t c) { return add_cc(a * b, c); }
static inline uint32_t madc_lo_cc(uint32_t a, uint32_t b, uint32_t c) { return addc_cc(a * b, c); }
static inline uint32_t madc_lo(uint32_t a, uint32_t b, uint32_t c) { return addc(a * b, c); }
static inline uint32_t madc_hi_cc(uint32_t a, uint32_t b, uint32_t c) { return addc_cc(__umulhi(a, b), c); }
static inline uint32_t madc_hi(uint32_t a, uint32_t b, uint32_t c) { return addc(__umulhi(a, b), c); }

static inline void mad_wide(uint32_t& low, uint32_t& high, uint32_t& top, uint32_t a, uint32_t b) {
    low = mad_lo_cc(a, b, low);
    high = madc_hi_cc(a, b, high);
    top = addc(top, 0);
}

#endif
