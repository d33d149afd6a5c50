// Points (x, y, z), after `curve/points.wgsl`.

struct Jacobian { x: F, y: F, z: F }

fn jacobian_infinity() -> Jacobian {
    return Jacobian(f_one(), f_one(), f_zero());
}

fn jacobian_of_affine(p: Affine) -> Jacobian {
    if (affine_is_infinity(p)) {
        return jacobian_infinity();
    }
    return Jacobian(p.x, p.y, f_one());
}

fn jacobian_negate(p: Jacobian) -> Jacobian {
    return Jacobian(p.x, c_negate(p.y), p.z);
}

// What additions and doublings end with. `t` is one point, brought to both points' denominators.
fn jacobian_finish(t: Jacobian, p: F, r: F, doubling: bool) -> Jacobian {
    let pp = c_square(p);
    let ppp = f_mul(p, pp);
    let q = f_mul(t.x, pp);
    var x = f_sub(c_square(r), c_double(q));
    if (!doubling) {
        x = f_sub(x, ppp);
    }
    return Jacobian(x, f_sub(f_mul(r, f_sub(q, x)), f_mul(t.y, ppp)), f_mul(t.z, p));
}

fn jacobian_double(p: Jacobian) -> Jacobian {
    var w = f_zero();
    if (!C_A_ZERO) {
        w = c_square(p.z);
    }
    return jacobian_finish(p, c_double(p.y), c_tangent(p.x, w), true);
}

fn jacobian_add_affine(a: Jacobian, b: Affine) -> Jacobian {
    if (affine_is_infinity(b)) {
        return a;
    }
    if (f_is_zero(a.z)) {
        return Jacobian(b.x, b.y, f_one());
    }
    let zz = c_square(a.z);
    var p = f_sub(f_mul(b.x, zz), a.x);
    var r = f_sub(f_mul(b.y, f_mul(zz, a.z)), a.y);
    let doubling = f_is_zero(p) && f_is_zero(r);
    if (doubling) {
        p = c_double(a.y);
        r = c_tangent(a.x, zz);
    }
    return jacobian_finish(a, p, r, doubling);
}

fn jacobian_add(a: Jacobian, b: Jacobian) -> Jacobian {
    if (f_is_zero(b.z)) {
        return a;
    }
    if (f_is_zero(a.z)) {
        return b;
    }
    let aa = c_square(a.z);
    let bb = c_square(b.z);
    var t = Jacobian(f_mul(a.x, bb), f_mul(a.y, f_mul(bb, b.z)), f_mul(a.z, b.z));
    var p = f_sub(f_mul(b.x, aa), t.x);
    var r = f_sub(f_mul(b.y, f_mul(aa, a.z)), t.y);
    let doubling = f_is_zero(p) && f_is_zero(r);
    if (doubling) {
        p = c_double(a.y);
        r = c_tangent(a.x, aa);
        t = a;
    }
    return jacobian_finish(t, p, r, doubling);
}

// z, or 1 at infinity.
fn jacobian_denominator(p: Jacobian) -> F {
    if (f_is_zero(p.z)) {
        return f_one();
    }
    return p.z;
}

// The affine form, given the inverse of the denominator.
fn jacobian_normalise(p: Jacobian, inverse: F) -> Affine {
    if (f_is_zero(p.z)) {
        return affine_infinity();
    }
    let square = c_square(inverse);
    return Affine(f_mul(p.x, square), f_mul(p.y, f_mul(square, inverse)));
}
