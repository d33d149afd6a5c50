// Factors between two passes: out[at + (k - 1) 2^log_columns + j] = c w^(j k 2^shift) for j < 2^log_columns and the
// first `len` of these places, with `powers` = { w^i for i < 2^split }, { c w^(i 2^split) }.
// Grid: one thread an element. No shared memory.

extern "C" __global__ void ntt_twiddles(const Params params, BUFFERS(F, F)) {
    uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= params.len) return;
    uint32_t j = i & ((1u << params.log_columns) - 1), k = (i >> params.log_columns) + 1, e = j * k << params.shift;
    uint32_t low = e & ((1u << params.split) - 1), high = (1u << params.split) + (e >> params.split);
    out[params.at + i] = f_mul(powers[low], powers[high]);
}
