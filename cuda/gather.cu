// out[i] = a[indices[i]] for i < count, and 0 where the index is not below len.
// Grid: one thread an element. No shared memory.

extern "C" __global__ void gather(const Params params, BUFFERS(F, uint32_t, F)) {
    wait_for_previous();
    size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= params.count) return;
    uint32_t index = indices[i];
    out[i] = index < params.len ? a[index] : f_zero();
}
