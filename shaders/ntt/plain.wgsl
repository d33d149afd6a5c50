// Butterflies of elements below p, in a column that has them q rows apart.
//
// Source: Gentleman and Sande, "Fast Fourier transforms: for fun and profit", AFIPS Conference Proceedings 29 (1966).

fn whole(x: F) -> F {
    return x;
}

alias Sum = F;

fn sum_reduced(x: Sum) -> F {
    return x;
}

fn sum_product(x: Sum, factor: F) -> F {
    return f_mul(x, factor);
}

fn product(x: F, factor: F) -> F {
    return f_mul(x, factor);
}

// x times root i, which is one if `trivial`. Of the three forms of a root, Montgomery's is the first.
fn times(x: F, i: u32, trivial: bool) -> F {
    if (trivial) {
        return x;
    }
    return f_mul(x, roots_load(3u * (params.roots + i)));
}

// One level; root `root` is one if `trivial`.
fn two(e0: F, e1: F, root: u32, trivial: bool) -> Two {
    return Two(f_add(e0, e1), times(f_sub(e0, e1), root, trivial));
}

// Sums, then differences times their roots: the second pair's is `quarter` further than `root`, which is one if `trivial`.
fn level(e: Four, root: u32, quarter: u32, trivial: bool) -> FourSums {
    let u = times(f_sub(e.e0, e.e2), root, trivial);
    let v = times(f_sub(e.e1, e.e3), root + quarter, false);
    return FourSums(f_add(e.e0, e.e2), f_add(e.e1, e.e3), u, v);
}

// One level, or both if `second` says so.
fn four(e: Four, root: u32, quarter: u32, second: bool) -> Four {
    let x = level(e, root, quarter, false);
    if (!second) {
        return Four(x.e0, x.e1, x.e2, x.e3);
    }
    let y1 = times(f_sub(x.e0, x.e1), 2u * root, false);
    let y3 = times(f_sub(x.e2, x.e3), 2u * root, false);
    return Four(f_add(x.e0, x.e1), y1, f_add(x.e2, x.e3), y3);
}

// Both levels of the last step, whose second one has no roots.
fn last_four(e: Four, quarter: u32) -> FourSums {
    let x = level(e, 0u, quarter, true);
    return FourSums(f_add(x.e0, x.e1), f_sub(x.e0, x.e1), f_add(x.e2, x.e3), f_sub(x.e2, x.e3));
}
