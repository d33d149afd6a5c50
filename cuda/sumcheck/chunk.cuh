// partials[partials_at + c * POINTS + p] = the sum over the pairs x of chunk c of weight(x) times what `pair` has at point p,
// which folds the tables on its way by the challenge.
//
// Comes after sumcheck/header.cuh, `pair`, and:
//   SOURCES, ARGUMENTS   what kernels have of tables and eq, as parameters, and the tables alone, as arguments
//
// By a block, for 2^log_chunk neighbouring pairs; thread t owns its pairs t, t + THREADS, … `tile` is shared memory: one element a
// thread. Registers: what `pair` needs, and the sums.

__device__ __forceinline__ void chunk_sums(const Params& params, SOURCES const F* inputs, F* partials, F* tile,
                                           const F& challenge, uint32_t chunk) {
    uint32_t thread = threadIdx.x, size = 1u << params.log_chunk;
    uint32_t first = chunk << params.log_chunk, rest = params.pairs - first, count = rest < size ? rest : size;
#if WEIGHTED
    uint32_t mask = (1u << params.low_bits) - 1;
#endif
    Sums sums;
#pragma unroll
    for (int p = 0; p < POINTS; p++) sums.at[p] = sum_zero();
#pragma unroll 1
    for (uint32_t i = thread; i < count; i += THREADS) {
        uint32_t x = first + i;
#if WEIGHTED
        F weight = f_load(eq + params.low_at + (x & mask));
        if (params.both) weight = f_mul(weight, f_load(eq + params.high_at + (x >> params.low_bits)));
#else
        F weight = f_one();
#endif
        pair(params, ARGUMENTS x, challenge, weight, inputs, sums);
    }
    // Each warp adds up what its threads have at up to 32 points, then some threads the sums of all warps at each point.
    constexpr uint32_t warps = THREADS / WARP;
#pragma unroll 1
    for (uint32_t start = 0; start < POINTS; start += 32) {
#pragma unroll 1
        for (uint32_t p = start; p < POINTS && p < start + 32; p++) {
            F total = f_zero();
#pragma unroll
            for (int q = 0; q < POINTS; q++) {
                if (p == q) total = sum_value(sums.at[q]);
            }
            total = lanes_sum(total, WARP);
            if (thread % WARP == 0) tile[(p - start) * warps + thread / WARP] = total;
        }
        __syncthreads();
        uint32_t p = start + thread / warps;
        F total = lanes_sum(p < POINTS ? tile[thread] : f_zero(), warps);
        if (thread % warps == 0 && p < POINTS) {
#if WEIGHTED
            if (!params.both) total = f_mul(total, f_load(eq + params.high_at + (first >> params.low_bits)));
#endif
            partials[params.partials_at + (size_t)chunk * POINTS + p] = total;
        }
        __syncthreads();
    }
}
