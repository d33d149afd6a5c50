// out[i] = offsets[t] + the sum of the elements of `input` before i in i's tile t, modulo 2^32.
// Grid: one block of 256 threads a tile of TILE elements; a thread owns RUN neighbours. Elements of `input` from
// `input_len` on count as 0. Shared memory: the tile, with a gap after every 32 words, so that threads that read runs
// use different banks.

#define RUN (TILE / THREADS)

__device__ __forceinline__ uint32_t gap(uint32_t i) {
    return i + i / 32;
}

extern "C" __global__ void __launch_bounds__(THREADS)
scan_tiles(const Params params, BUFFERS(uint32_t, uint32_t, uint32_t)) {
    wait_for_previous();
    extern __shared__ uint32_t tile[];
    uint32_t first = blockIdx.x * TILE, total;
#pragma unroll
    for (uint32_t i = threadIdx.x; i < TILE; i += THREADS) {
        tile[gap(i)] = first + i < params.input_len ? input[first + i] : 0;
    }
    __syncthreads();
    uint32_t run[RUN], sum = 0;
#pragma unroll
    for (uint32_t i = 0; i < RUN; i++) {
        run[i] = sum;
        sum += tile[gap(threadIdx.x * RUN + i)];
    }
    uint32_t before = offsets[blockIdx.x] + group_scan(sum, total);
#pragma unroll
    for (uint32_t i = 0; i < RUN; i++) tile[gap(threadIdx.x * RUN + i)] = before + run[i];
    __syncthreads();
#pragma unroll
    for (uint32_t i = threadIdx.x; i < TILE; i += THREADS) {
        if (first + i < params.len) out[first + i] = tile[gap(i)];
    }
}
