// Sums of points by four lanes each, after msm/header.cuh and warp/functions.cuh. Lane i has coordinate i of a point, of x, y, zz
// and zzz. A sum is then four products in sequence in place of fourteen: where few are left, a product is what a lane waits for.

// Quads of a block.
#define QUADS (THREADS / 4)

// Coordinate `i` of a point in memory.
__device__ __forceinline__ F q_load(const Xyzz* p, uint32_t i) {
    return c_load(reinterpret_cast<const F*>(p) + i);
}

// This lane's coordinate.
__device__ __forceinline__ F q_load(const Xyzz* p) {
    return q_load(p, threadIdx.x % 4);
}

// This lane's coordinate to memory, reduced.
__device__ __forceinline__ void q_store(Xyzz* p, const F& a) {
    F reduced = x_reduce(a), *out = reinterpret_cast<F*>(p) + threadIdx.x % 4;
#pragma unroll
    for (int i = 0; i < (int)(sizeof(F) / F_ALIGN); i++) {
        reinterpret_cast<FWord*>(out)[i] = reinterpret_cast<const FWord*>(&reduced)[i];
    }
}

// The value of the lane of this quad whose number differs by the bits of `mask`.
__device__ __forceinline__ F q_xor(const F& a, uint32_t mask) {
    F r;
#pragma unroll
    for (int i = 0; i < (int)sizeof(F) / 4; i++) {
        reinterpret_cast<uint32_t*>(&r)[i] = warp_shuffle_xor(reinterpret_cast<const uint32_t*>(&a)[i], mask);
    }
    return r;
}

// The value of lane `lane` of this quad.
__device__ __forceinline__ F q_of(const F& a, uint32_t lane) {
    F r;
#pragma unroll
    for (int i = 0; i < (int)sizeof(F) / 4; i++) {
        reinterpret_cast<uint32_t*>(&r)[i] =
            warp_shuffle(reinterpret_cast<const uint32_t*>(&a)[i], (warp_lane() & ~3u) | lane);
    }
    return r;
}

// Whether lane `lane` of this quad votes for it.
__device__ __forceinline__ bool q_votes(LaneMask votes, uint32_t lane) {
    return votes >> ((warp_lane() & ~3u) | lane) & 1;
}

// This lane's coordinate of a + b. All lanes of a warp call it together, with the points of their quads: their coordinates, and
// of b that of the lane two away as well. The formulas are those of x_add_xyzz.
__device__ __forceinline__ F q_add(const F& a, const F& b, const F& across) {
    uint32_t lane = threadIdx.x % 4;
    LaneMask a_zeros = warp_ballot(x_is_zero(a)), b_zeros = warp_ballot(x_is_zero(b));
    bool high = lane >= 2, a_infinite = q_votes(a_zeros, 2), b_infinite = q_votes(b_zeros, 2);
    // x zz', y zzz', x' zz, y' zzz: what both points' coordinates are over one denominator.
    F t = x_mul(a, across), u = q_xor(t, 2);
    // P, R, P, R.
    F d = x_sub(high ? t : u, high ? u : t);
    LaneMask same = warp_ballot(x_is_zero(d));
    bool doubling = q_votes(same, 0) && q_votes(same, 1) && !a_infinite && !b_infinite;
    if (warp_ballot(doubling)) {
        F x = q_of(a, 0), y = q_of(a, 1), slope = x_tangent(x, q_of(a, 2));
        if (doubling) {
            d = lane % 2 ? slope : x_add(y, y);
            t = a;
        }
    }
    // PP, RR, zz zz', zzz zzz'.
    F m = x_mul(high ? a : d, high ? b : d);
    if (doubling && high) m = a;
    F pp = q_of(m, 0), s = q_xor(t, 1);
    // PPP, Q, zz of the sum.
    F n = x_mul(lane == 0 ? d : lane == 1 ? s : m, pp), ppp = q_of(n, 0);
    F x = x_sub(m, x_add(n, n));
    if (!doubling) x = x_sub(x, ppp);
    // y PPP, R (Q - x), nothing, zzz of the sum.
    F v = x_mul(lane == 0 ? s : lane == 1 ? d : m, lane == 1 ? x_sub(n, x) : ppp);
    F w = q_xor(lane == 1 ? x : v, 1);
    F sum = lane == 0 ? w : lane == 1 ? x_sub(v, w) : lane == 2 ? n : v;
    return b_infinite ? a : a_infinite ? b : sum;
}

// The same of two points in memory, or anything unless `adds`.
__device__ __forceinline__ F q_add(bool adds, const Xyzz* pa, const Xyzz* pb) {
    uint32_t lane = threadIdx.x % 4;
    F a = f_zero(), b = f_zero(), across = f_zero();
    if (adds) {
        a = q_load(pa, lane);
        b = q_load(pb, lane);
        across = q_load(pb, lane ^ 2);
    }
    return q_add(a, b, across);
}

// This lane's coordinate of 2 a, as q_add. The formulas are those of xyzz_double, in three products in sequence where a = 0.
__device__ __forceinline__ F q_double(const F& a) {
    uint32_t lane = threadIdx.x % 4;
    F twice = x_add(a, a);
    // xx, V, zz^2.
    F m = x_square(lane == 1 ? twice : a), xx = q_of(m, 0), v = q_of(m, 1);
    F slope = x_add(x_add(xx, xx), xx);
    if (!C_A_ZERO) slope = x_add(slope, x_mul(c_a(), q_of(m, 2)));
    // S, W, zz of the double, and the slope's square.
    F n = x_mul(lane == 1 ? twice : lane == 3 ? slope : a, lane == 3 ? slope : v);
    F s = q_of(n, 0), w = q_of(n, 1), x = x_sub(q_of(n, 3), x_add(s, s));
    // slope (S - x), y W, nothing, zzz of the double.
    F last = x_mul(lane == 0 ? slope : a, lane == 0 ? x_sub(s, x) : w), first = q_xor(last, 1);
    return lane == 0 ? x : lane == 1 ? x_sub(first, last) : lane == 2 ? n : last;
}
