// Butterflies of elements below p, in a column that has them q rows apart.

fn whole(x: F) -> F {
    return x;
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

// One level, or both if `second` says so. The second pair's root is `quarter` further than `root`.
fn four(e: Four, root: u32, quarter: u32, trivial: bool, second: bool) -> Four {
    let s = f_add(e.e0, e.e2);
    let t = f_add(e.e1, e.e3);
    let u = times(f_sub(e.e0, e.e2), root, trivial);
    let v = times(f_sub(e.e1, e.e3), root + quarter, false);
    if (!second) {
        return Four(s, t, u, v);
    }
    let y1 = times(f_sub(s, t), 2u * root, trivial);
    let y3 = times(f_sub(u, v), 2u * root, trivial);
    return Four(f_add(s, t), y1, f_add(u, v), y3);
}

alias Sum = F;

fn sum_reduced(x: Sum) -> F {
    return x;
}

fn sum_product(x: Sum, factor: F) -> F {
    return f_mul(x, factor);
}

// Both levels of the last step.
fn last_four(e: Four, quarter: u32) -> FourSums {
    let s = f_add(e.e0, e.e2);
    let t = f_add(e.e1, e.e3);
    let u = f_sub(e.e0, e.e2);
    let v = times(f_sub(e.e1, e.e3), quarter, false);
    return FourSums(f_add(s, t), f_sub(s, t), f_add(u, v), f_sub(u, v));
}
