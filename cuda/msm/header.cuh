// Sums of points for multi-scalar multiplication, after curve/points.cuh and
//   X_CALLS  1 if products are called and not inlined, which takes the compiler a tenth of the time
// Where four times the modulus fits the limbs,
// coordinates are kept in [0, 2p), which spares the last subtraction of products, and msm_reduce brings them to [0, p).

#if X_CALLS
#define X_INLINE __noinline__
#else
#define X_INLINE __forceinline__
#endif

#if F_LAZY && F_TOP < 0x40000000u

__device__ X_INLINE F x_mul(F a, F b) { return f_mul_lazy(a, b); }
__device__ X_INLINE F x_square(F a) { return f_square_lazy(a); }
__device__ __forceinline__ F x_add(const F& a, const F& b) { return f_add_lazy(a, b); }
__device__ __forceinline__ F x_sub(const F& a, const F& b) { return f_sub_lazy(a, b); }
__device__ __forceinline__ F x_reduce(const F& a) { return f_reduce(a); }

#if F_MUL_ADD

// (a b + c d) / R in [0, 2p) for values up to 2p: the rows of both, with one reduction.
__device__ X_INLINE F x_mul_add(F a, F b, F c, F d) { return f_mul_add_lazy(a, b, c, d); }

// a b - c d.
__device__ __forceinline__ F x_mul_sub(const F& a, const F& b, const F& c, const F& d) {
    return x_mul_add(a, b, x_sub(f_zero(), c), d);
}

#else

__device__ __forceinline__ F x_mul_sub(const F& a, const F& b, const F& c, const F& d) {
    return x_sub(x_mul(a, b), x_mul(c, d));
}

#endif

// Whether a is 0 or p. Nearly always, the lowest limb tells.
__device__ __forceinline__ bool x_is_zero(const F& a) {
    if (a.l[0] != 0 && a.l[0] != f_modulus(0)) return false;
    return f_is_zero(f_reduce(a));
}

#elif F_PAIR

__device__ X_INLINE F x_mul(F a, F b) { return f_mul_lazy(a, b); }
__device__ X_INLINE F x_square(F a) { return f_square_lazy(a); }
__device__ __forceinline__ F x_add(const F& a, const F& b) { return f_add_lazy(a, b); }
__device__ __forceinline__ F x_sub(const F& a, const F& b) { return f_sub_lazy(a, b); }
__device__ __forceinline__ F x_reduce(const F& a) { return f_reduce(a); }
__device__ __forceinline__ F x_mul_sub(const F& a, const F& b, const F& c, const F& d) {
    return x_sub(x_mul(a, b), x_mul(c, d));
}

// Whether both coefficients are 0 or p. Nearly always, the lowest limb of one tells.
__device__ __forceinline__ bool x_is_zero(const F& a) {
    if (a.c[0].l[0] != 0 && a.c[0].l[0] != b_modulus(0)) return false;
    return f_is_zero(f_reduce(a));
}

#else

__device__ X_INLINE F x_mul(F a, F b) { return f_mul(a, b); }
__device__ X_INLINE F x_square(F a) { return f_square(a); }
__device__ __forceinline__ F x_add(const F& a, const F& b) { return f_add(a, b); }
__device__ __forceinline__ F x_sub(const F& a, const F& b) { return f_sub(a, b); }
__device__ __forceinline__ F x_reduce(const F& a) { return a; }
__device__ __forceinline__ F x_mul_sub(const F& a, const F& b, const F& c, const F& d) {
    return x_sub(x_mul(a, b), x_mul(c, d));
}
__device__ __forceinline__ bool x_is_zero(const F& a) { return f_is_zero(a); }

#endif

// 3 x^2 + a w^2.
__device__ __forceinline__ F x_tangent(const F& x, const F& w) {
    F xx = x_square(x), m = x_add(x_add(xx, xx), xx);
    return C_A_ZERO ? m : x_add(m, x_mul(c_a(), x_square(w)));
}

// As xyzz_finish.
__device__ __forceinline__ Xyzz x_finish(const F& x, const F& y, const F& zz, const F& zzz, const F& p, const F& r,
                                         bool doubling) {
    Xyzz sum;
    F pp = x_square(p);
    sum.zz = x_mul(zz, pp);
    F ppp = x_mul(p, pp), q = x_mul(x, pp);
    sum.zzz = x_mul(zzz, ppp);
    F x3 = x_sub(x_square(r), x_add(q, q));
    sum.x = doubling ? x3 : x_sub(x3, ppp);
    sum.y = x_mul_sub(r, x_sub(q, sum.x), y, ppp);
    return sum;
}

// a + b.
__device__ __forceinline__ Xyzz x_add_affine(const Xyzz& a, const Affine& b) {
    if (affine_is_infinity(b)) return a;
    if (x_is_zero(a.zz)) return {b.x, b.y, f_one(), f_one()};
    F p = x_sub(x_mul(b.x, a.zz), a.x), r = x_sub(x_mul(b.y, a.zzz), a.y);
    bool doubling = x_is_zero(p) && x_is_zero(r);
    if (doubling) {
        p = x_add(a.y, a.y);
        r = x_tangent(a.x, a.zz);
    }
    return x_finish(a.x, a.y, a.zz, a.zzz, p, r, doubling);
}

// a + b.
__device__ __forceinline__ Xyzz x_add_xyzz(const Xyzz& a, const Xyzz& b) {
    if (x_is_zero(b.zz)) return a;
    if (x_is_zero(a.zz)) return b;
    Xyzz t = {x_mul(a.x, b.zz), x_mul(a.y, b.zzz), x_mul(a.zz, b.zz), x_mul(a.zzz, b.zzz)};
    F p = x_sub(x_mul(b.x, a.zz), t.x), r = x_sub(x_mul(b.y, a.zzz), t.y);
    bool doubling = x_is_zero(p) && x_is_zero(r);
    if (doubling) {
        p = x_add(a.y, a.y);
        r = x_tangent(a.x, a.zz);
        t = a;
    }
    return x_finish(t.x, t.y, t.zz, t.zzz, p, r, doubling);
}

// A point to memory, reduced.
__device__ __forceinline__ void x_store(Xyzz* out, const Xyzz& a) {
    Xyzz reduced = {x_reduce(a.x), x_reduce(a.y), x_reduce(a.zz), x_reduce(a.zzz)};
#pragma unroll
    for (int i = 0; i < (int)(sizeof(Xyzz) / F_ALIGN); i++) {
        reinterpret_cast<FWord*>(out)[i] = reinterpret_cast<const FWord*>(&reduced)[i];
    }
}
