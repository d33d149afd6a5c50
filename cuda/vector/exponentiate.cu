// out[i] = a[i]^exponent, left to right over the exponent's bits.
// Grid: one thread an element. Registers: two elements. No shared memory.
// With ASSIGN, `a` is also the output.

#ifdef ASSIGN
extern "C" __global__ void exponentiate(const Params params, BUFFERS(F, uint32_t)) {
    F* out = a;
#else
extern "C" __global__ void exponentiate(const Params params, BUFFERS(F, F, uint32_t)) {
#endif
    wait_for_previous();
    size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= params.len) return;
    F x = a[i], r = f_one();
#pragma unroll 1
    for (uint32_t bit = params.bits; bit-- > 0;) {
        if (bit + 1 < params.bits) r = f_mul(r, r);
        if (exponent[bit / 32] >> (bit % 32) & 1) r = f_mul(r, x);
    }
    out[i] = r;
}
