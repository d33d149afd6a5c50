// out[i] = k base[i], for a scalar k, by its binary digits from number `high` - 1 down to `low`: from base[i] on, which has the highest
// one, if `first`, else from what out[i] has of the digits above. Grid: one thread a point. No shared memory.

extern "C" __global__ void __launch_bounds__(128)
sqrt_multiple(const Params params, BUFFERS(uint32_t, Jacobian, Jacobian)) {
    wait_for_previous();
    size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= params.len) return;
    Jacobian point = c_load(base + i), sum = params.first ? point : c_load(out + i);
#pragma unroll 1
    for (uint32_t bit = params.high; bit-- > params.low;) {
        sum = jacobian_double(sum);
        if (scalar[bit / 32] >> (bit % 32) & 1) sum = jacobian_add(sum, point);
    }
    out[i] = sum;
}
