// What the 256 threads of a workgroup compute together.

#define THREADS 256
#define WARPS (THREADS / WARP)

// The sum of `value` over the threads before this one; `total` is that over all. Modulo 2^32. All threads call it.
__device__ __forceinline__ uint32_t group_scan(uint32_t value, uint32_t& total) {
    __shared__ uint32_t sums[WARPS];
    uint32_t lane = warp_lane(), warp = threadIdx.x / WARP, sum = value;
#pragma unroll
    for (int distance = 1; distance < WARP; distance *= 2) {
        uint32_t other = warp_shuffle_up(sum, distance);
        if (lane >= distance) sum += other;
    }
    if (lane == WARP - 1) sums[warp] = sum;
    __syncthreads();
    uint32_t before = 0;
    total = 0;
#pragma unroll
    for (int w = 0; w < WARPS; w++) {
        before += w < warp ? sums[w] : 0;
        total += sums[w];
    }
    // `sums` may be written again.
    __syncthreads();
    return before + sum - value;
}
