// out[i] = OP(a[i]). With FACTOR, there is a buffer with a factor.
// Grid: one thread an element. Registers: a few elements. No shared memory.
// With ASSIGN, `a` is also the output.

#ifdef FACTOR
#define FACTOR_BUFFER , F
#else
#define FACTOR_BUFFER
#endif

#ifdef ASSIGN
extern "C" __global__ void map(const Params params, BUFFERS(F FACTOR_BUFFER)) {
    F* out = a;
#else
extern "C" __global__ void map(const Params params, BUFFERS(F, F FACTOR_BUFFER)) {
#endif
    wait_for_previous();
    size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= params.len) return;
    F x = a[i];
    out[i] = OP(x);
}
