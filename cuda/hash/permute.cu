// Permutes each of `len` states of WIDTH elements.
// Grid: one thread a state, which it keeps in registers. No shared memory.

extern "C" __global__ void __launch_bounds__(BOUNDS) permute(const Params params, BUFFERS(F, F)) {
    wait_for_previous();
    size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= params.len) return;
    F s[WIDTH];
    load_elements(s, states + i * WIDTH, WIDTH);
    permute_state(s, constants, params.half, params.partial);
    store_elements(states + i * WIDTH, s, WIDTH);
}
