// counts[c * columns + (f << bits) + d] = how often digit f is d among the keys of chunk c.
// The digits of a key are the `fields` groups of `bits` bits of (key >> shift) & mask; columns = fields << bits.
// Grid: one block of 256 threads for each chunk of keys and each window of WINDOW columns, the windows of a chunk side
// by side, so that all but the first read it from cache. Shared memory: the window's counters.

extern "C" __global__ void __launch_bounds__(THREADS)
histogram(const Params params, BUFFERS(uint32_t, uint32_t)) {
    wait_for_previous();
    extern __shared__ uint32_t counters[];
    uint32_t chunk = blockIdx.x / params.windows, window = blockIdx.x % params.windows * WINDOW;
    uint32_t columns = params.fields << params.bits, width = min(columns - window, WINDOW);
    for (uint32_t i = threadIdx.x; i < width; i += THREADS) counters[i] = 0;
    __syncthreads();
    uint32_t first = chunk * params.chunk, end = min(first + params.chunk, params.len);
#pragma unroll 8
    for (uint32_t i = first + threadIdx.x; i < end; i += THREADS) {
        uint32_t key = keys[i] >> params.shift & params.mask;
        for (uint32_t f = 0; f < params.fields; f++) {
            uint32_t column = (f << params.bits) + (key >> f * params.bits & ((1u << params.bits) - 1)) - window;
            if (column < width) atomicAdd(&counters[column], 1);
        }
    }
    __syncthreads();
    uint32_t* row = counts + (size_t)chunk * columns + window;
    for (uint32_t i = threadIdx.x; i < width; i += THREADS) row[i] = counters[i];
}
