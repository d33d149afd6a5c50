// sums[c] = the sum of column c of a matrix of `rows` rows of `columns`, modulo 2^32.
// Grid: one thread a column. No shared memory.

extern "C" __global__ void column_sums(const Params params, BUFFERS(uint32_t, uint32_t)) {
    wait_for_previous();
    uint32_t column = blockIdx.x * blockDim.x + threadIdx.x, sum = 0;
    if (column >= params.columns) return;
#pragma unroll 8
    for (uint32_t row = 0; row < params.rows; row++) sum += matrix[(size_t)row * params.columns + column];
    sums[column] = sum;
}
