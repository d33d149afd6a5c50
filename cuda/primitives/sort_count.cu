// counts[d * tiles + t] = how many keys of tile t have the digit (key >> shift) & mask = d, of DIGITS.
// Grid: one block of 256 threads a tile of TILE keys. Shared memory: counters, COPIES of each digit's so that threads
// rarely meet.

#define COPIES (THREADS / DIGITS)

extern "C" __global__ void __launch_bounds__(THREADS)
sort_count(const Params params, BUFFERS(uint32_t, uint32_t)) {
    wait_for_previous();
    extern __shared__ uint32_t counters[];
    uint32_t thread = threadIdx.x, first = blockIdx.x * TILE + thread;
    counters[thread] = 0;
    __syncthreads();
#pragma unroll
    for (uint32_t i = 0; i < TILE; i += THREADS) {
        if (first + i < params.len) {
            uint32_t digit = keys[first + i] >> params.shift & params.mask;
            atomicAdd(&counters[thread % COPIES * DIGITS + digit], 1);
        }
    }
    __syncthreads();
    if (thread < DIGITS) {
        uint32_t count = 0;
        for (uint32_t copy = 0; copy < COPIES; copy++) count += counters[copy * DIGITS + thread];
        counts[thread * params.tiles + blockIdx.x] = count;
    }
}
