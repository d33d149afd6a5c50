// Points (x, y, zz, zzz), after `curve/points.wgsl`.

struct Xyzz { x: F, y: F, zz: F, zzz: F }

fn xyzz_infinity() -> Xyzz {
    return Xyzz(f_zero(), f_zero(), f_zero(), f_zero());
}

fn xyzz_of_affine(p: Affine) -> Xyzz {
    if (affine_is_infinity(p)) {
        return xyzz_infinity();
    }
    return Xyzz(p.x, p.y, f_one(), f_one());
}

fn xyzz_negate(p: Xyzz) -> Xyzz {
    return Xyzz(p.x, c_negate(p.y), p.zz, p.zzz);
}

// What additions and doublings end with. `t` is one point, brought to both points' denominators.
fn xyzz_finish(t: Xyzz, p: F, r: F, doubling: bool) -> Xyzz {
    let pp = c_square(p);
    let ppp = f_mul(p, pp);
    let q = f_mul(t.x, pp);
    var x = f_sub(c_square(r), c_double(q));
    if (!doubling) {
        x = f_sub(x, ppp);
    }
    let y = f_sub(f_mul(r, f_sub(q, x)), f_mul(t.y, ppp));
    return Xyzz(x, y, f_mul(t.zz, pp), f_mul(t.zzz, ppp));
}

fn xyzz_double(p: Xyzz) -> Xyzz {
    return xyzz_finish(p, c_double(p.y), c_tangent(p.x, p.zz), true);
}

fn xyzz_add_affine(a: Xyzz, b: Affine) -> Xyzz {
    if (affine_is_infinity(b)) {
        return a;
    }
    if (f_is_zero(a.zz)) {
        return Xyzz(b.x, b.y, f_one(), f_one());
    }
    var p = f_sub(f_mul(b.x, a.zz), a.x);
    var r = f_sub(f_mul(b.y, a.zzz), a.y);
    let doubling = f_is_zero(p) && f_is_zero(r);
    if (doubling) {
        p = c_double(a.y);
        r = c_tangent(a.x, a.zz);
    }
    return xyzz_finish(a, p, r, doubling);
}

fn xyzz_add(a: Xyzz, b: Xyzz) -> Xyzz {
    if (f_is_zero(b.zz)) {
        return a;
    }
    if (f_is_zero(a.zz)) {
        return b;
    }
    var t = Xyzz(f_mul(a.x, b.zz), f_mul(a.y, b.zzz), f_mul(a.zz, b.zz), f_mul(a.zzz, b.zzz));
    var p = f_sub(f_mul(b.x, a.zz), t.x);
    var r = f_sub(f_mul(b.y, a.zzz), t.y);
    let doubling = f_is_zero(p) && f_is_zero(r);
    if (doubling) {
        p = c_double(a.y);
        r = c_tangent(a.x, a.zz);
        t = a;
    }
    return xyzz_finish(t, p, r, doubling);
}

// zzz, or 1 at infinity.
fn xyzz_denominator(p: Xyzz) -> F {
    if (f_is_zero(p.zz)) {
        return f_one();
    }
    return p.zzz;
}

// The affine form, given the inverse of the denominator.
fn xyzz_normalise(p: Xyzz, inverse: F) -> Affine {
    if (f_is_zero(p.zz)) {
        return affine_infinity();
    }
    return Affine(f_mul(p.x, c_square(f_mul(p.zz, inverse))), f_mul(p.y, inverse));
}
