// Affine additions, which share their inversions.

// The denominator of the slope through two points, or 1 if their sum needs none.
fn affine_denominator(p: Affine, q: Affine) -> F {
    if (affine_is_infinity(p) || affine_is_infinity(q)) {
        return f_one();
    }
    var d = f_sub(q.x, p.x);
    if (f_is_zero(d)) {
        d = f_add(q.y, p.y);
    }
    if (f_is_zero(d)) {
        d = f_one();
    }
    return d;
}

// p + q, given the inverse of their denominator.
fn affine_add(p: Affine, q: Affine, inverse: F) -> Affine {
    if (affine_is_infinity(p)) {
        return q;
    }
    if (affine_is_infinity(q)) {
        return p;
    }
    var slope = f_sub(q.y, p.y);
    if (f_is_zero(f_sub(q.x, p.x))) {
        if (f_is_zero(f_add(q.y, p.y))) {
            return affine_infinity();
        }
        slope = c_tangent(p.x, f_one());
    }
    slope = f_mul(slope, inverse);
    let x = f_sub(f_sub(c_square(slope), p.x), q.x);
    return Affine(x, f_sub(f_mul(slope, f_sub(p.x, x)), p.y));
}
