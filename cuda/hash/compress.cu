// out[stride i] = the digest of the digests 2i and 2i + 1 of `pairs`.
// Grid: one thread a pair, with the state in registers. No shared memory.

extern "C" __global__ void __launch_bounds__(BOUNDS) compress(const Params params, BUFFERS(F, F, F)) {
    wait_for_previous();
    size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= params.len) return;
    F s[WIDTH];
    load_elements(s, pairs + i * 2 * DIGEST, 2 * DIGEST);
#pragma unroll
    for (int k = 2 * DIGEST; k < WIDTH; k++) s[k] = f_zero();
    permute_state(s, constants, params.half, params.partial);
    store_elements(out + i * params.stride * DIGEST, s, DIGEST);
}
