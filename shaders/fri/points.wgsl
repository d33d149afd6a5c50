// Points of a domain in bit-reversed order. Comes after the arithmetic of the field F, points_load(i), point_mul(x, y),
// f_by(x, y) and f_lift(x). The array is that of cuda/fri/points.cuh.

const HALVES = 8u;

// t(j)
fn point_at(j: u32, low_bits: u32) -> Point {
    let low = 1u << low_bits;
    return point_mul(points_load(HALVES + (j & (low - 1u))), points_load(HALVES + low + (j >> low_bits)));
}
