// Butterflies of elements below 2.2 p, in a column that has them q rows apart: in parts of 29 bits, whose sums have no carries.
// `source::wgsl_lazy` says why nothing grows too long.
//
// Source of the butterflies: Gentleman and Sande, "Fast Fourier transforms: for fun and profit", AFIPS Conference
// Proceedings 29 (1966).

// Below p.
fn whole(x: F) -> F {
    return f_reduce(f_reduce(x, 0u), 0u);
}

// x times root i. Behind the roots in three forms, and n^-1 in as many, they are factors of parts.
fn times(x: FParts, i: u32) -> FParts {
    let factors = 3u * ((1u << params.log_roots) + 1u);
    return f_parts_mul(x, f_parts(roots_load(factors + params.roots + i)));
}

// An element before it is reduced.
alias Sum = FParts;

fn sum_reduced(x: Sum) -> F {
    return f_joined(f_parts_reduce(x));
}

// x times a factor between passes, which is one of parts as roots are: below 2 p, as the pass behind takes it.
fn sum_product(x: Sum, factor: F) -> F {
    return f_joined(f_parts_mul(x, f_parts(factor)));
}

fn product(x: F, factor: F) -> F {
    return sum_product(f_parts(x), factor);
}

// One level; root `root` is one if `trivial`.
fn two(e0: F, e1: F, root: u32, trivial: bool) -> Two {
    let a = f_parts(e0);
    let b = f_parts(e1);
    let s = sum_reduced(f_parts_add(a, b));
    let d = f_parts_sub(a, b);
    if (trivial) {
        return Two(s, sum_reduced(d));
    }
    return Two(s, f_joined(times(d, root)));
}

// Sums, then differences times their roots: the second pair's is `quarter` further than `root`, which is one if `trivial`.
fn level(e: Four, root: u32, quarter: u32, trivial: bool) -> FourSums {
    let e0 = f_parts(e.e0);
    let e1 = f_parts(e.e1);
    let e2 = f_parts(e.e2);
    let e3 = f_parts(e.e3);
    var u = f_parts_sub(e0, e2);
    if (!trivial) {
        u = times(u, root);
    }
    let v = times(f_parts_sub(e1, e3), root + quarter);
    return FourSums(f_parts_add(e0, e2), f_parts_add(e1, e3), u, v);
}

// One level, or both if `second` says so.
fn four(e: Four, root: u32, quarter: u32, second: bool) -> Four {
    let x = level(e, root, quarter, false);
    if (!second) {
        return Four(sum_reduced(x.e0), sum_reduced(x.e1), f_joined(x.e2), f_joined(x.e3));
    }
    let y0 = sum_reduced(f_parts_add(x.e0, x.e1));
    let y1 = times(f_parts_sub_sums(x.e0, x.e1), 2u * root);
    // Two products are short enough.
    let y2 = f_parts_carried(f_parts_add(x.e2, x.e3));
    let y3 = times(f_parts_sub(x.e2, x.e3), 2u * root);
    return Four(y0, f_joined(y1), f_joined(y2), f_joined(y3));
}

// Both levels of the last step, whose second one has no roots.
fn last_four(e: Four, quarter: u32) -> FourSums {
    let x = level(e, 0u, quarter, true);
    let y1 = f_parts_sub_sums(x.e0, x.e1);
    return FourSums(f_parts_add(x.e0, x.e1), y1, f_parts_add(x.e2, x.e3), f_parts_sub(x.e2, x.e3));
}
