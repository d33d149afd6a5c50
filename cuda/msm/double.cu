// out[i] = 2^times a[i]. Grid: one thread a point. No shared memory.

extern "C" __global__ void __launch_bounds__(THREADS) msm_double(const Params params, BUFFERS(Affine, Xyzz)) {
    wait_for_previous();
    size_t i = (size_t)blockIdx.x * THREADS + threadIdx.x;
    if (i >= params.len) return;
    Xyzz point = xyzz_of_affine(c_load(a + i));
#pragma unroll 1
    for (uint32_t k = 0; k < params.times; k++) {
        if (!x_is_zero(point.zz)) {
            point = x_finish(point.x, point.y, point.zz, point.zzz, x_add(point.y, point.y),
                             x_tangent(point.x, point.zz), true);
        }
    }
    x_store(out + i, point);
}
