// out[x] = low_eq[low bits of x] * high_eq[the other bits of x].
// Grid: one thread an element.

extern "C" __global__ void sumcheck_outer(const Params params, BUFFERS(F, F, F)) {
    wait_for_previous();
    uint32_t x = blockIdx.x * blockDim.x + threadIdx.x, size = 1u << params.low;
    if (x < params.len) out[x] = f_mul(f_load(low_eq + (x & (size - 1))), f_load(high_eq + (x >> params.low)));
}
