// Points of sorted pairs, added to a sum two by two: see msm/add.cuh. Kernels have `params.ordered`.

struct Added { sum: Xyzz, next: u32 }

fn value_of(i: u32) -> u32 {
    if (params.ordered == 1u) {
        return 2u * i;
    }
    return values_get(i);
}

fn point_of(value: u32) -> Affine {
    return points_load(value / 2u);
}

fn signed_point(point: Affine, value: u32) -> Affine {
    if (value % 2u == 1u) {
        return affine_negate(point);
    }
    return point;
}

// a + b: 4M + 2S, since both have the denominator 1.
fn add_affines(a: Affine, b: Affine) -> Xyzz {
    if (affine_is_infinity(a)) {
        return xyzz_of_affine(b);
    }
    if (affine_is_infinity(b)) {
        return xyzz_of_affine(a);
    }
    var p = f_sub(b.x, a.x);
    var r = f_sub(b.y, a.y);
    let doubling = f_is_zero(p) && f_is_zero(r);
    if (doubling) {
        p = c_double(a.y);
        r = c_tangent(a.x, f_one());
    }
    let pp = c_square(p);
    let ppp = f_mul(p, pp);
    let q = f_mul(a.x, pp);
    var x = f_sub(c_square(r), c_double(q));
    if (!doubling) {
        x = f_sub(x, ppp);
    }
    return Xyzz(x, f_sub(f_mul(r, f_sub(q, x)), f_mul(a.y, ppp)), pp, ppp);
}

fn add_point(sum: Xyzz, point: Affine, value: u32, i: u32, end: u32) -> Added {
    var next = i + 1u;
    var pair = next < end;
    if (pair) {
        pair = keys_get(next) == keys_get(i);
    }
    var other = affine_infinity();
    if (pair) {
        let second = value_of(next);
        other = signed_point(point_of(second), second);
        next++;
    }
    return Added(xyzz_add(sum, add_affines(signed_point(point, value), other)), next);
}
