// owners[indices[i]] = the largest i + 1 for i < count, or what was there if that is larger. Indices that are not below len claim
// nothing.
// Grid: one thread an index. No shared memory.

extern "C" __global__ void last_writer(const Params params, BUFFERS(uint32_t, uint32_t)) {
    wait_for_previous();
    uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= params.count) return;
    uint32_t index = indices[i];
    if (index < params.len) atomicMax(&owners[index], i + 1);
}
