// out[i] = a[reverse(i)] for i < 2^log_len, where reverse turns the bits of an index around.
// Grid: one thread an element. No shared memory. With ASSIGN, `a` is also the output: the thread of the lower index of
// each pair exchanges both.

#ifdef ASSIGN
extern "C" __global__ void bit_reverse(const Params params, BUFFERS(F)) {
#else
extern "C" __global__ void bit_reverse(const Params params, BUFFERS(F, F)) {
#endif
    wait_for_previous();
    size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >> params.log_len != 0) return;
    size_t r = __brev((uint32_t)i) >> 1 >> (31 - params.log_len);
#ifdef ASSIGN
    if (i < r) {
        F x = a[i];
        a[i] = a[r];
        a[r] = x;
    }
#else
    out[i] = a[r];
#endif
}
