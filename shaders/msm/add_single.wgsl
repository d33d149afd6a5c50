// Points of sorted pairs, added to a sum one after the other: see msm/add.cuh. Kernels have `params.ordered`.

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

fn add_point(sum: Xyzz, point: Affine, value: u32, i: u32, end: u32) -> Added {
    var signed = point;
    if (value % 2u == 1u) {
        signed = affine_negate(signed);
    }
    return Added(xyzz_add_affine(sum, signed), i + 1u);
}
