// Points of a domain in bit-reversed order.
//
// Comes after the arithmetic of the field F, and
//   Point        the prime field below, whose elements have point_mul(x, y), point_load(x), and point_zero()
//   f_by(x, y)   an element of F times a point
//   f_lift(x)    a point as an element of F
// `points` is an array of powers of 1/2 (HALVES of them), then of t(j) for j < 2^low_bits, then of t(j 2^low_bits). For each
// bit b of j, t(j) has a root of unity of order 2^(b + 2) as a factor, or its inverse.

#define HALVES 8

// t(j)
__device__ __forceinline__ Point point_at(const Point* points, uint32_t j, uint32_t low_bits) {
    uint32_t low = 1u << low_bits;
    Point high = point_load(points + (HALVES + low) + (j >> low_bits));
    return point_mul(point_load(points + HALVES + (j & (low - 1))), high);
}
