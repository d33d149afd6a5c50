// Whether points lie in the subgroup: status[i] = 4, and points[i] the point at infinity, if status[i] was 0 and k P is not what
// it is in the subgroup, for a scalar k of `bits` binary digits. That is the point at infinity, where k is the order, or with
// ENDOMORPHISM (ends[0] x, ends[1] y), of the conjugates of x and y if CONJUGATE. A launch does the digits from number `low` on
// below `high`, and leaves the multiple so far in sums[i] for the next one: the first of several has high = bits - 1, and the last
// one low = 0.
// Grid: one thread a point. No shared memory.

extern "C" __global__ void __launch_bounds__(128)
sqrt_subgroup(const Params params, BUFFERS(uint32_t, F, Affine, uint32_t, Jacobian)) {
    wait_for_previous();
    size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= params.len || status[i]) return;
    Affine p = c_load(points + i);
    if (affine_is_infinity(p)) return;
    Jacobian sum = params.high + 1 < params.bits ? c_load(sums + i) : jacobian_of_affine(p);
#pragma unroll 1
    for (uint32_t bit = params.high; bit-- > params.low;) {
        sum = jacobian_double(sum);
        if (scalar[bit / 32] >> (bit % 32) & 1) sum = jacobian_add_affine(sum, p);
    }
    if (params.low > 0) {
        sums[i] = sum;
        return;
    }
#if ENDOMORPHISM
#if CONJUGATE
    F x = f_frobenius(p.x), y = f_frobenius(p.y);
#else
    F x = p.x, y = p.y;
#endif
    F square = f_square(sum.z);
    x = f_sub(f_mul(f_mul(x, f_load(ends)), square), sum.x);
    y = f_sub(f_mul(f_mul(y, f_load(ends + 1)), f_mul(square, sum.z)), sum.y);
    bool inside = !f_is_zero(sum.z) && f_is_zero(x) && f_is_zero(y);
#else
    bool inside = f_is_zero(sum.z);
#endif
    if (!inside) {
        points[i] = affine_infinity();
        status[i] = 4;
    }
}
