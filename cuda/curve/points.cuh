// Points of a short Weierstrass curve y^2 = x^3 + a x + b over F, whose arithmetic comes before.
//
// Comes after the constants of the curve:
//   C_A       { limbs of a }
//   C_A_ZERO  1 if a = 0
//   C_B_ZERO  1 if b = 0
//
//   Affine    (x, y). The point at infinity is (0, 0), or (0, 1) where (0, 0) is on the curve, which is where b = 0
//   Xyzz      (x, y, zz, zzz) for (x / zz, y / zzz), with zz^3 = zzz^2. At infinity zz = 0
//   Jacobian  (x, y, z) for (x / z^2, y / z^3). At infinity z = 0
//
// Every function takes and gives all points of the curve. Opposite points and doubled points of order 2 need no case of
// their own: the formulas end at zz = 0. Equal points do, and share all but the first steps of the addition: in
// X3 = R^2 - PPP - 2 Q, Y3 = R (Q - X3) - S PPP and so on, the formulas of addition and of doubling differ in what P and
// R are, and in that doubling does not subtract PPP. So the rare case costs the common one two comparisons.
// Formulas: "madd-2008-s", "add-2008-s", "dbl-2008-s-1" of the Explicit-Formulas Database, and their like.

struct Affine {
    F x, y;
};

struct Xyzz {
    F x, y, zz, zzz;
};

struct Jacobian {
    F x, y, z;
};

// A point of a buffer. By the compiler's choice it would be loaded limb by limb, which took 1.08 times the time of affine
// additions on an H200.
template <typename Point>
__device__ __forceinline__ Point c_load(const Point* p) {
    Point r;
#pragma unroll
    for (int i = 0; i < (int)(sizeof(Point) / F_ALIGN); i++) {
        reinterpret_cast<FWord*>(&r)[i] = reinterpret_cast<const FWord*>(p)[i];
    }
    return r;
}

__device__ __forceinline__ F c_double(const F& a) {
    return f_add(a, a);
}

__device__ __forceinline__ F c_negate(const F& a) {
    return f_sub(f_zero(), a);
}

__device__ __forceinline__ F c_a() {
    constexpr uint32_t limbs[sizeof(F) / 4] = C_A;
    F a;
#pragma unroll
    for (int i = 0; i < (int)sizeof(F) / 4; i++) reinterpret_cast<uint32_t*>(&a)[i] = limbs[i];
    return a;
}

// 3 x^2 + a w^2: the slope of the tangent, but for its denominator.
__device__ __forceinline__ F c_tangent(const F& x, const F& w) {
    F xx = f_square(x), m = f_add(c_double(xx), xx);
    return C_A_ZERO ? m : f_add(m, f_mul(c_a(), f_square(w)));
}

__device__ __forceinline__ Affine affine_infinity() {
    return {f_zero(), C_B_ZERO ? f_one() : f_zero()};
}

__device__ __forceinline__ bool affine_is_infinity(const Affine& p) {
    return f_is_zero(p.x) && f_is_zero(C_B_ZERO ? f_sub(p.y, f_one()) : p.y);
}

__device__ __forceinline__ Affine affine_negate(const Affine& p) {
    return affine_is_infinity(p) ? p : Affine{p.x, c_negate(p.y)};
}

// The denominator of the slope through two points, or 1 if their sum needs none.
__device__ __forceinline__ F affine_denominator(const Affine& p, const Affine& q) {
    if (affine_is_infinity(p) || affine_is_infinity(q)) return f_one();
    F d = f_sub(q.x, p.x);
    if (f_is_zero(d)) d = f_add(q.y, p.y);
    return f_is_zero(d) ? f_one() : d;
}

// p + q, given the inverse of their denominator.
__device__ __forceinline__ Affine affine_add(const Affine& p, const Affine& q, const F& inverse) {
    if (affine_is_infinity(p)) return q;
    if (affine_is_infinity(q)) return p;
    F slope = f_sub(q.y, p.y);
    if (f_is_zero(f_sub(q.x, p.x))) {
        if (f_is_zero(f_add(q.y, p.y))) return affine_infinity();
        slope = c_tangent(p.x, f_one());
    }
    slope = f_mul(slope, inverse);
    F x = f_sub(f_sub(f_square(slope), p.x), q.x);
    return {x, f_sub(f_mul(slope, f_sub(p.x, x)), p.y)};
}

__device__ __forceinline__ Xyzz xyzz_infinity() {
    return {f_zero(), f_zero(), f_zero(), f_zero()};
}

__device__ __forceinline__ Xyzz xyzz_of_affine(const Affine& p) {
    if (affine_is_infinity(p)) return xyzz_infinity();
    return {p.x, p.y, f_one(), f_one()};
}

__device__ __forceinline__ Xyzz xyzz_of_jacobian(const Jacobian& p) {
    F zz = f_square(p.z);
    return {p.x, p.y, zz, f_mul(zz, p.z)};
}

__device__ __forceinline__ Xyzz xyzz_negate(const Xyzz& p) {
    return {p.x, c_negate(p.y), p.zz, p.zzz};
}

// What additions and doublings end with. x, y, zz and zzz are those of one point, brought to both points' denominators.
__device__ __forceinline__ Xyzz xyzz_finish(const F& x, const F& y, const F& zz, const F& zzz, const F& p, const F& r,
                                            bool doubling) {
    F pp = f_square(p), ppp = f_mul(p, pp), q = f_mul(x, pp);
    F x3 = f_sub(f_square(r), c_double(q));
    if (!doubling) x3 = f_sub(x3, ppp);
    F y3 = f_sub(f_mul(r, f_sub(q, x3)), f_mul(y, ppp));
    return {x3, y3, f_mul(zz, pp), f_mul(zzz, ppp)};
}

__device__ __forceinline__ Xyzz xyzz_double(const Xyzz& p) {
    return xyzz_finish(p.x, p.y, p.zz, p.zzz, c_double(p.y), c_tangent(p.x, p.zz), true);
}

__device__ __forceinline__ Xyzz xyzz_add_affine(const Xyzz& a, const Affine& b) {
    if (affine_is_infinity(b)) return a;
    if (f_is_zero(a.zz)) return {b.x, b.y, f_one(), f_one()};
    F p = f_sub(f_mul(b.x, a.zz), a.x), r = f_sub(f_mul(b.y, a.zzz), a.y);
    bool doubling = f_is_zero(p) && f_is_zero(r);
    if (doubling) {
        p = c_double(a.y);
        r = c_tangent(a.x, a.zz);
    }
    return xyzz_finish(a.x, a.y, a.zz, a.zzz, p, r, doubling);
}

__device__ __forceinline__ Xyzz xyzz_add(const Xyzz& a, const Xyzz& b) {
    if (f_is_zero(b.zz)) return a;
    if (f_is_zero(a.zz)) return b;
    Xyzz t = {f_mul(a.x, b.zz), f_mul(a.y, b.zzz), f_mul(a.zz, b.zz), f_mul(a.zzz, b.zzz)};
    F p = f_sub(f_mul(b.x, a.zz), t.x), r = f_sub(f_mul(b.y, a.zzz), t.y);
    bool doubling = f_is_zero(p) && f_is_zero(r);
    if (doubling) {
        p = c_double(a.y);
        r = c_tangent(a.x, a.zz);
        t = a;
    }
    return xyzz_finish(t.x, t.y, t.zz, t.zzz, p, r, doubling);
}

// zzz, or 1 at infinity.
__device__ __forceinline__ F xyzz_denominator(const Xyzz& p) {
    return f_is_zero(p.zz) ? f_one() : p.zzz;
}

// The affine form, given the inverse of the denominator.
__device__ __forceinline__ Affine xyzz_normalise(const Xyzz& p, const F& inverse) {
    if (f_is_zero(p.zz)) return affine_infinity();
    return {f_mul(p.x, f_square(f_mul(p.zz, inverse))), f_mul(p.y, inverse)};
}

__device__ __forceinline__ Jacobian jacobian_infinity() {
    return {f_one(), f_one(), f_zero()};
}

__device__ __forceinline__ Jacobian jacobian_of_affine(const Affine& p) {
    if (affine_is_infinity(p)) return jacobian_infinity();
    return {p.x, p.y, f_one()};
}

// With z = zz, since zz^3 = zzz^2.
__device__ __forceinline__ Jacobian jacobian_of_xyzz(const Xyzz& p) {
    return {f_mul(p.x, p.zz), f_mul(p.y, p.zzz), p.zz};
}

__device__ __forceinline__ Jacobian jacobian_negate(const Jacobian& p) {
    return {p.x, c_negate(p.y), p.z};
}

// As xyzz_finish.
__device__ __forceinline__ Jacobian jacobian_finish(const F& x, const F& y, const F& z, const F& p, const F& r,
                                                    bool doubling) {
    F pp = f_square(p), ppp = f_mul(p, pp), q = f_mul(x, pp);
    F x3 = f_sub(f_square(r), c_double(q));
    if (!doubling) x3 = f_sub(x3, ppp);
    return {x3, f_sub(f_mul(r, f_sub(q, x3)), f_mul(y, ppp)), f_mul(z, p)};
}

__device__ __forceinline__ Jacobian jacobian_double(const Jacobian& p) {
    F w = C_A_ZERO ? f_zero() : f_square(p.z);
    return jacobian_finish(p.x, p.y, p.z, c_double(p.y), c_tangent(p.x, w), true);
}

__device__ __forceinline__ Jacobian jacobian_add_affine(const Jacobian& a, const Affine& b) {
    if (affine_is_infinity(b)) return a;
    if (f_is_zero(a.z)) return {b.x, b.y, f_one()};
    F zz = f_square(a.z);
    F p = f_sub(f_mul(b.x, zz), a.x), r = f_sub(f_mul(b.y, f_mul(zz, a.z)), a.y);
    bool doubling = f_is_zero(p) && f_is_zero(r);
    if (doubling) {
        p = c_double(a.y);
        r = c_tangent(a.x, zz);
    }
    return jacobian_finish(a.x, a.y, a.z, p, r, doubling);
}

__device__ __forceinline__ Jacobian jacobian_add(const Jacobian& a, const Jacobian& b) {
    if (f_is_zero(b.z)) return a;
    if (f_is_zero(a.z)) return b;
    F aa = f_square(a.z), bb = f_square(b.z);
    Jacobian t = {f_mul(a.x, bb), f_mul(a.y, f_mul(bb, b.z)), f_mul(a.z, b.z)};
    F p = f_sub(f_mul(b.x, aa), t.x), r = f_sub(f_mul(b.y, f_mul(aa, a.z)), t.y);
    bool doubling = f_is_zero(p) && f_is_zero(r);
    if (doubling) {
        p = c_double(a.y);
        r = c_tangent(a.x, aa);
        t = a;
    }
    return jacobian_finish(t.x, t.y, t.z, p, r, doubling);
}

// z, or 1 at infinity.
__device__ __forceinline__ F jacobian_denominator(const Jacobian& p) {
    return f_is_zero(p.z) ? f_one() : p.z;
}

// The affine form, given the inverse of the denominator.
__device__ __forceinline__ Affine jacobian_normalise(const Jacobian& p, const F& inverse) {
    if (f_is_zero(p.z)) return affine_infinity();
    F square = f_square(inverse);
    return {f_mul(p.x, square), f_mul(p.y, f_mul(square, inverse))};
}
