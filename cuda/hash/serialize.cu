// The elements of a matrix as parts of longer rows: out[pitch row + place + column] = x[columns row + column], out of Montgomery's
// form if CANONICAL is 1.
// Grid: one thread an element. No shared memory.

extern "C" __global__ void __launch_bounds__(THREADS) serialize(const Params params, BUFFERS(F, F)) {
    wait_for_previous();
    size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= params.len) return;
    uint32_t row = (uint32_t)i / params.columns, column = (uint32_t)i % params.columns;
    F value = f_load(x + i);
#if CANONICAL
    F one = f_zero();
    one.l[0] = 1;
    value = f_mul(value, one);
#endif
    out[(size_t)row * params.pitch + params.place + column] = value;
}
