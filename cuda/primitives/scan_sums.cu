// sums[t] = the sum of tile t of `input`, modulo 2^32.
// Grid: one block of 256 threads a tile of TILE elements. Elements from `len` on count as 0.

extern "C" __global__ void __launch_bounds__(THREADS)
scan_sums(const Params params, BUFFERS(uint32_t, uint32_t)) {
    wait_for_previous();
    uint32_t first = blockIdx.x * TILE + threadIdx.x, sum = 0, total;
#pragma unroll
    for (uint32_t i = 0; i < TILE; i += THREADS) sum += first + i < params.len ? input[first + i] : 0;
    group_scan(sum, total);
    if (threadIdx.x == 0) sums[blockIdx.x] = total;
}
