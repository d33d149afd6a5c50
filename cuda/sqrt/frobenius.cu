// out[i] = (ends[0] x, ends[1] y) of the conjugates of x and y of a[i]. Grid: one thread a point. No shared memory.

extern "C" __global__ void __launch_bounds__(128)
sqrt_frobenius(const Params params, BUFFERS(F, Jacobian, Jacobian)) {
    wait_for_previous();
    size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= params.len) return;
    Jacobian point = c_load(a + i);
    point.x = f_mul(f_frobenius(point.x), f_load(ends));
    point.y = f_mul(f_frobenius(point.y), f_load(ends + 1));
    point.z = f_frobenius(point.z);
    out[i] = point;
}
