// edges[j] = 1 if keys[2 j] and keys[2 j + 1] are different buckets, else 0. Grid: one thread a pair of keys.

extern "C" __global__ void __launch_bounds__(256) msm_edges(const Params params, BUFFERS(uint32_t, uint32_t)) {
    wait_for_previous();
    size_t j = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (j >= (params.len + 1) / 2) return;
    edges[j] = 2 * j + 1 < params.len && keys[2 * j] != keys[2 * j + 1] && keys[2 * j + 1] < params.sentinel;
}
