// out[stride i] = the digest of the i-th CHILDREN elements of `children`, digests that follow each other.
// Grid: one thread a digest, with the state in registers. No shared memory.

extern "C" __global__ void __launch_bounds__(BOUNDS) compress(const Params params, BUFFERS(F, F, F)) {
    wait_for_previous();
    size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= params.len) return;
    F s[WIDTH];
    load_elements(s, children + i * CHILDREN, CHILDREN);
#pragma unroll
    for (int k = CHILDREN; k < WIDTH; k++) s[k] = f_zero();
    permute_state(s, constants, params.half, params.partial);
    store_elements(out + i * params.stride * DIGEST, s, DIGEST);
}
