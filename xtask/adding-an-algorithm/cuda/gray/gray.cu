// out[i] = a[i] ^ (a[i] >> 1): the Gray code of each integer.
// Grid: one thread an integer. No shared memory.

extern "C" __global__ void gray(const Params params, BUFFERS(uint32_t, uint32_t)) {
    wait_for_previous();
    size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < params.len) out[i] = a[i] ^ (a[i] >> 1);
}
