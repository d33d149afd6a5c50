// The challenge of the last round, and the value of each table at it, behind the messages.
// Grid: one block. Shared memory: that of `draw`.

extern "C" __global__ void __launch_bounds__(THREADS)
sumcheck_finish(const Params params, BUFFERS(SOURCE_TYPES F, F, uint32_t)) {
    wait_for_previous();
    extern __shared__ __align__(16) unsigned char shared[];
    F* tile = reinterpret_cast<F*>(shared);
    previous_values(params, partials, tile, drawing(tile).values);
    F challenge = draw(params, 0, inputs, partials, state, tile);
    table_values(params, ARGUMENTS WEIGHTS 0, partials, challenge);
}
