// Points of sorted pairs, doubled as their exponents say and added to a sum: see msm/add.cuh. Kernels have `params.table` and
// `params.tables`.

struct Added { sum: Xyzz, next: u32 }

fn value_of(i: u32) -> u32 {
    return values_get(i);
}

fn point_of(value: u32) -> Affine {
    let table = min(value >> 27u, params.tables - 1u);
    return points_load(((value >> 1u) & 0x3ffffffu) + table * params.table);
}

fn add_point(sum: Xyzz, point: Affine, value: u32, i: u32, end: u32) -> Added {
    var signed = point;
    if (value % 2u == 1u) {
        signed = affine_negate(signed);
    }
    let exponent = value >> 27u;
    if (exponent < params.tables) {
        return Added(xyzz_add_affine(sum, signed), i + 1u);
    }
    var multiple = xyzz_of_affine(signed);
    for (var e = params.tables; e <= exponent; e++) {
        multiple = xyzz_double(multiple);
    }
    return Added(xyzz_add(sum, multiple), i + 1u);
}
