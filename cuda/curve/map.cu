// out[i] = OP(a[i]), or OP(a[i], b[i]) with BINARY, on points of the types A, B and OUT.
// Grid: one thread an element. No shared memory.

#ifdef BINARY
extern "C" __global__ void __launch_bounds__(256) point_map(const Params params, BUFFERS(A, B, OUT)) {
    wait_for_previous();
    size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < params.len) out[i] = OP(c_load(a + i), c_load(b + i));
}
#else
extern "C" __global__ void __launch_bounds__(256) point_map(const Params params, BUFFERS(A, OUT)) {
    wait_for_previous();
    size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < params.len) out[i] = OP(c_load(a + i));
}
#endif
