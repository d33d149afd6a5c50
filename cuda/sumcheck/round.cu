// A round: the partial sums of all chunks of pairs (sumcheck/chunk.cuh), with the tables folded by a challenge that is given, or
// with DRAWN drawn from what the round before left.
//
// Grid: a block for each chunk. Shared memory: one element a thread, and that of `draw`.

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
sumcheck_round(const Params params, BUFFERS(SOURCE_TYPES F, F STATE_TYPE)) {
    wait_for_previous();
    extern __shared__ __align__(16) unsigned char shared[];
    F* tile = reinterpret_cast<F*>(shared);
#if DRAWN
    previous_values(params, partials, tile, drawing(tile).values);
    F challenge = draw(params, 0, inputs, partials, state, tile);
    next_claim(params, 0, partials, tile, challenge);
#else
    F challenge = f_load(inputs);
#endif
    chunk_sums(params, ARGUMENTS WEIGHTS inputs, partials, tile, challenge, blockIdx.x);
}
