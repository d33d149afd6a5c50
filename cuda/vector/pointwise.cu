// out[i] = OP(a[i], b[i]).
// Grid: one thread an element. Registers: a few elements. No shared memory.
// With ASSIGN, `a` is also the output.

#ifdef ASSIGN
extern "C" __global__ void pointwise(const Params params, BUFFERS(F, F)) {
    F* out = a;
#else
extern "C" __global__ void pointwise(const Params params, BUFFERS(F, F, F)) {
#endif
    wait_for_previous();
    size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < params.len) out[i] = OP(a[i], b[i]);
}
