// All rounds that are left, each as sumcheck_round does it, and then what sumcheck_finish does: for pairs so few that one block
// takes less time for them than a launch takes.
//
// Comes after sumcheck_chunk.cuh, sumcheck_values.cuh and:
//   HIGH   1 if variables are bound from the highest, where folded tables stay in place
//
// Grid: one block. Shared memory: one element a thread, and that of `draw`.

// The parameters of the next round. Those of the last one have none.
__device__ __forceinline__ void next_round(Params& params) {
    uint32_t at = params.partials_at;
    params.partials_at = params.previous_at;
    params.previous_at = at;
    params.previous_chunks = 1;
    params.previous_at_one = params.at_one;
    params.ones >>= 1;
    params.at_one = params.ones & 1;
    params.parity ^= 1;
    params.weights_at += 2;
    params.message_at += DEGREE;
    if (params.log_chunk == 0) return;
    params.pairs /= 2;
    params.log_chunk--;
#if WEIGHTED
    uint32_t left = params.log_chunk, bound = params.variables - left, start = 2u << params.eq_low;
#if HIGH
    uint32_t low = left < params.eq_low ? left : params.eq_low;
#else
    uint32_t low = bound < params.eq_low ? params.eq_low - bound : 0;
#endif
    params.low_at = 1u << low;
    params.low_bits = low;
    params.high_at = start + (1u << (left - low));
    params.both = left > low;
#endif
}

extern "C" __global__ void __launch_bounds__(THREADS)
sumcheck_tail(const Params params, SOURCES const F* inputs, F* partials, uint32_t* state) {
    extern __shared__ __align__(16) unsigned char shared[];
    F* tile = reinterpret_cast<F*>(shared);
    Params now = params;
#pragma unroll 1
    for (uint32_t left = params.rounds;; left--) {
        F challenge = draw(now, inputs, partials, state, tile);
        if (left == 0) {
            table_values(now, ARGUMENTS WEIGHTS partials, challenge);
            return;
        }
        chunk_sums(now, ARGUMENTS WEIGHTS inputs, partials, tile, challenge, 0);
#if !HIGH
        // Neighbours are folded to where others are still read, so that they come back afterwards.
        for (uint32_t i = threadIdx.x; i < TABLES * 2 * now.pairs; i += THREADS) {
            uint32_t table = i / (2 * now.pairs), x = i % (2 * now.pairs);
            tables[table * now.source_stride + x] = folded[table * now.target_stride + x];
        }
        __syncthreads();
#endif
        next_round(now);
    }
}
