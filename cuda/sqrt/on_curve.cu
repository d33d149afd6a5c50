// Whether points in affine form are points of the curve: status[i] = 0 if points[i] is one or the point at infinity, 2 if a
// coordinate is not below p, 3 if they do not satisfy the equation. What is no point becomes the point at infinity.
// Grid: one thread a point. No shared memory.

// Adding zero reduces what is not below p.
__device__ __forceinline__ bool is_canonical(const F& a) {
    return f_is_zero(f_sub(a, f_add(a, f_zero())));
}

extern "C" __global__ void __launch_bounds__(128)
sqrt_on_curve(const Params params, BUFFERS(F, Affine, uint32_t)) {
    wait_for_previous();
    size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= params.len) return;
    Affine p = c_load(points + i);
    uint32_t wrong = 0;
    if (!is_canonical(p.x) || !is_canonical(p.y)) {
        wrong = 2;
    } else if (!affine_is_infinity(p)) {
        F value = f_add(f_square(p.x), f_load(coefficients));
        value = f_add(f_mul(value, p.x), f_load(coefficients + 1));
        if (!f_is_zero(f_sub(f_square(p.y), value))) wrong = 3;
    }
    status[i] = wrong;
    if (wrong) points[i] = affine_infinity();
}
