// Butterflies of elements below 2.2 p, in a column that has them q rows apart: in parts of 29 bits, whose sums have no carries.
// `source::wgsl_lazy` says why nothing grows too long.

// Below p.
fn whole(x: F) -> F {
    return f_reduce(f_reduce(x, 0u), 0u);
}

// x times root i. Behind the roots in three forms, and n^-1 in as many, they are factors of parts.
fn times(x: FParts, i: u32) -> FParts {
    let factors = 3u * ((1u << params.log_roots) + 1u);
    return f_parts_mul(x, f_parts(roots_load(factors + params.roots + i)));
}

// x times a factor between passes, below 2 p: the pass behind takes it as it is.
fn product(x: F, factor: F) -> F {
    return f_joined(f_parts_mul(f_parts(x), f_factor(factor)));
}

// What parts are in limbs when they are reduced.
fn reduced(x: FParts) -> F {
    return f_joined(f_parts_reduce(x));
}

alias Sum = FParts;

fn sum_reduced(x: Sum) -> F {
    return reduced(x);
}

// x times a factor between passes. The factor's parts are those of a number far above p, so that the product of a sum that is not
// reduced would be longer than limbs are: only elements below 2.2 p have products below 2 p.
fn sum_product(x: Sum, factor: F) -> F {
    return f_joined(f_parts_mul(f_parts_reduce(x), f_factor(factor)));
}

// Both levels of the last step.
fn last_four(e: Four, quarter: u32) -> FourSums {
    let e0 = f_parts(e.e0);
    let e1 = f_parts(e.e1);
    let e2 = f_parts(e.e2);
    let e3 = f_parts(e.e3);
    let s = f_parts_add(e0, e2);
    let t = f_parts_add(e1, e3);
    let u = f_parts_sub(e0, e2);
    let v = times(f_parts_sub(e1, e3), quarter);
    return FourSums(f_parts_add(s, t), f_parts_sub_sums(s, t), f_parts_add(u, v), f_parts_sub(u, v));
}

// One level; root `root` is one if `trivial`.
fn two(e0: F, e1: F, root: u32, trivial: bool) -> Two {
    let a = f_parts(e0);
    let b = f_parts(e1);
    let s = reduced(f_parts_add(a, b));
    let d = f_parts_sub(a, b);
    if (trivial) {
        return Two(s, reduced(d));
    }
    return Two(s, f_joined(times(d, root)));
}

// One level, or both if `second` says so. The second pair's root is `quarter` further than `root`.
fn four(e: Four, root: u32, quarter: u32, trivial: bool, second: bool) -> Four {
    let e0 = f_parts(e.e0);
    let e1 = f_parts(e.e1);
    let e2 = f_parts(e.e2);
    let e3 = f_parts(e.e3);
    let s = f_parts_add(e0, e2);
    let t = f_parts_add(e1, e3);
    var u = f_parts_sub(e0, e2);
    if (!trivial) {
        u = times(u, root);
    }
    let v = times(f_parts_sub(e1, e3), root + quarter);
    if (!second) {
        return Four(reduced(s), reduced(t), reduced(u), f_joined(v));
    }
    let y1 = f_parts_sub_sums(s, t);
    let y3 = f_parts_sub(u, v);
    if (trivial) {
        return Four(reduced(f_parts_add(s, t)), reduced(y1), reduced(f_parts_add(u, v)), reduced(y3));
    }
    // Two products are short enough.
    let y2 = f_parts_carried(f_parts_add(u, v));
    return Four(reduced(f_parts_add(s, t)), f_joined(times(y1, 2u * root)), f_joined(y2), f_joined(times(y3, 2u * root)));
}
