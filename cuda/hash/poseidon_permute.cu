// Permutes each of `len` states of WIDTH elements.
// Grid: one thread a state, which it keeps in registers. No shared memory.

extern "C" __global__ void __launch_bounds__(THREADS) poseidon_permute(const Params params, BUFFERS(F, F)) {
    wait_for_previous();
    size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= params.len) return;
    F s[WIDTH];
#pragma unroll
    for (int k = 0; k < WIDTH; k++) s[k] = f_load(states + i * WIDTH + k);
    permute_state(s, constants, params.half, params.partial);
#pragma unroll
    for (int k = 0; k < WIDTH; k++) states[i * WIDTH + k] = s[k];
}
