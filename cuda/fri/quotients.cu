// out[i] = (scalars[0] - scalars[1] combined[i]) inverses[i], plus what was there if `add` is 1.
// Grid: one thread an element. No shared memory.

extern "C" __global__ void __launch_bounds__(THREADS) fri_quotients(const Params params, BUFFERS(F, F, F, F)) {
    wait_for_previous();
    uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= params.len) return;
    F rest = f_sub(f_load(scalars), f_mul(f_load(scalars + 1), f_load(combined + i)));
    F r = f_mul(rest, f_load(inverses + i));
    out[i] = params.add ? f_add(f_load(out + i), r) : r;
}
