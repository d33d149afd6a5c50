// out[i] = the sum of a[i], a[i + 1], …, a[i + LENGTH - 1], indices modulo the length, by mixed additions one after the
// other. Grid: one thread an element. No shared memory. It tells the rate of additions that a device can reach.

extern "C" __global__ void __launch_bounds__(256) point_chain(const Params params, BUFFERS(Affine, Xyzz)) {
    wait_for_previous();
    uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= params.len) return;
    Xyzz sum = xyzz_infinity();
    uint32_t at = i;
#pragma unroll 1
    for (uint32_t j = 0; j < LENGTH; j++) {
        sum = xyzz_add_affine(sum, c_load(a + at));
        at = at + 1 == params.len ? 0 : at + 1;
    }
    out[i] = sum;
}
