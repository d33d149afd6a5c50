// out[i] = element 0 of the permuted state of 0 and the WIDTH - 1 elements x[(WIDTH - 1) i], ...
// Grid: one thread a state, which it keeps in registers. No shared memory.

extern "C" __global__ void __launch_bounds__(THREADS) poseidon_hash(const Params params, BUFFERS(F, F, F)) {
    wait_for_previous();
    size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= params.len) return;
    F s[WIDTH];
    s[0] = f_zero();
#pragma unroll
    for (int k = 1; k < WIDTH; k++) s[k] = f_load(x + i * (WIDTH - 1) + (k - 1));
    permute_state(s, constants, params.half, params.partial);
    out[i] = s[0];
}
