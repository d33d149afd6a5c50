// Ways of adding the points of sorted pairs to a sum, after msm/header.cuh, for kernels whose Params have `ordered`, `table` and `tables`:
//   ADD_DOUBLE   two points of a bucket are added first, then what they make
//   ADD_DOUBLED  a value is e << 27 | 2 * base + (1 if the opposite is added), and means 2^e times the base: the multiple by
//                2^min(e, tables - 1) is in the table, and is doubled as often as that falls short
// With neither, one point after the other. A value is then 2 * point + (1 if its opposite is added).
#define M_ADD 1

// 2 a.
__device__ __forceinline__ Xyzz m_double(const Xyzz& a) {
    if (x_is_zero(a.zz)) return a;
    return x_finish(a.x, a.y, a.zz, a.zzz, x_add(a.y, a.y), x_tangent(a.x, a.zz), true);
}

// a + b: 4M + 2S, since both have the denominator 1.
__device__ __forceinline__ Xyzz m_add_affines(const Affine& a, const Affine& b) {
    if (affine_is_infinity(a)) return xyzz_of_affine(b);
    if (affine_is_infinity(b)) return xyzz_of_affine(a);
    F p = x_sub(b.x, a.x), r = x_sub(b.y, a.y);
    bool doubling = x_is_zero(p) && x_is_zero(r);
    if (doubling) {
        p = x_add(a.y, a.y);
        r = x_tangent(a.x, f_one());
    }
    Xyzz sum;
    sum.zz = x_square(p);
    sum.zzz = x_mul(p, sum.zz);
    F q = x_mul(a.x, sum.zz), x = x_sub(x_square(r), x_add(q, q));
    sum.x = doubling ? x : x_sub(x, sum.zzz);
    sum.y = x_mul_sub(r, x_sub(q, sum.x), a.y, sum.zzz);
    return sum;
}

// The value of pair i.
__device__ __forceinline__ uint32_t m_value(const Params& params, const uint32_t* values, uint32_t i) {
    return params.ordered ? 2 * i : values[i];
}

// The point in memory that a value means, without its sign.
__device__ __forceinline__ Affine m_point(const Params& params, const Affine* points, uint32_t value) {
#ifdef ADD_DOUBLED
    uint32_t table = min(value >> 27, params.tables - 1);
    return c_load(points + (value >> 1 & ((1u << 26) - 1)) + (size_t)table * params.table);
#else
    return c_load(points + value / 2);
#endif
}

// Adds to `sum` the point of pair i, and with ADD_DOUBLE that of the next pair, if it lies before `end` and is of the same bucket.
// Returns the pair that follows.
__device__ __forceinline__ uint32_t m_add(const Params& params, const uint32_t* keys, const uint32_t* values,
                                          const Affine* points, Xyzz& sum, Affine point, uint32_t value, uint32_t i,
                                          uint32_t end) {
    if (value % 2) point = affine_negate(point);
#if defined(ADD_DOUBLE)
    // Lone points are added in the same way, since threads of a warp wait for each other.
    Xyzz both = xyzz_of_affine(point);
    if (i + 1 < end && keys[i + 1] == keys[i]) {
        uint32_t second = m_value(params, values, ++i);
        Affine other = m_point(params, points, second);
        both = m_add_affines(point, second % 2 ? affine_negate(other) : other);
    }
    sum = x_add_xyzz(sum, both);
#elif defined(ADD_DOUBLED)
    uint32_t exponent = value >> 27, known = params.tables - 1;
    if (exponent <= known) {
        sum = x_add_affine(sum, point);
    } else {
        Xyzz multiple = xyzz_of_affine(point);
#pragma unroll 1
        for (; exponent > known; exponent--) multiple = m_double(multiple);
        sum = x_add_xyzz(sum, multiple);
    }
#else
    sum = x_add_affine(sum, point);
#endif
    return i + 1;
}
