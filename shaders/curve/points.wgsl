// Points of a short Weierstrass curve over F. The CUDA twin says which forms points have, and why the formulas hold for
// all of them. Comes after the arithmetic of F, C_A_ZERO, C_B_ZERO and c_a().

struct Affine { x: F, y: F }

fn c_square(a: F) -> F {
    return f_mul(a, a);
}

fn c_double(a: F) -> F {
    return f_add(a, a);
}

fn c_negate(a: F) -> F {
    return f_sub(f_zero(), a);
}

// 3 x^2 + a w^2: the slope of the tangent, but for its denominator.
fn c_tangent(x: F, w: F) -> F {
    let xx = c_square(x);
    var m = f_add(c_double(xx), xx);
    if (!C_A_ZERO) {
        m = f_add(m, f_mul(c_a(), c_square(w)));
    }
    return m;
}

fn affine_infinity() -> Affine {
    if (C_B_ZERO) {
        return Affine(f_zero(), f_one());
    }
    return Affine(f_zero(), f_zero());
}

fn affine_is_infinity(p: Affine) -> bool {
    var y = p.y;
    if (C_B_ZERO) {
        y = f_sub(y, f_one());
    }
    return f_is_zero(p.x) && f_is_zero(y);
}

fn affine_negate(p: Affine) -> Affine {
    if (affine_is_infinity(p)) {
        return p;
    }
    return Affine(p.x, c_negate(p.y));
}
