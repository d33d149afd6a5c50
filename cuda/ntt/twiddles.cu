// Factors between two passes: w^0, then w^(j k 2^shift) for k = 1, 2, … and j < 2^log_columns, all times c: the first `len` of these
// stand at out[at] and behind, with `powers` = { w^i for i < 2^split }, { c w^(i 2^split) }. Where QUOTIENTS is defined, each is an
// integer and its quotient, that is of two elements.
// Grid: one thread a factor. No shared memory.

extern "C" __global__ void ntt_twiddles(const Params params, BUFFERS(F, F)) {
    wait_for_previous();
    uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= params.len) return;
    uint32_t j = (i - 1) & ((1u << params.log_columns) - 1), k = i == 0 ? 0 : ((i - 1) >> params.log_columns) + 1;
    uint32_t e = j * k << params.shift;
    uint32_t low = e & ((1u << params.split) - 1), high = (1u << params.split) + (e >> params.split);
    F factor = f_mul(powers[low], powers[high]);
#ifdef QUOTIENTS
    f_shoup_constant(factor, out + params.at + 2 * i, out + params.at + 2 * i + 1);
#else
    out[params.at + i] = factor;
#endif
}
