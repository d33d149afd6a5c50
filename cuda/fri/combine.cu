// out[i] = the sum of weights[c] matrix[pitch i + c] over c < columns, plus what was there if `add` is 1.
// Grid: one thread a row. Weights are the same for all threads of a block. No shared memory.

extern "C" __global__ void __launch_bounds__(THREADS) fri_combine(const Params params, BUFFERS(F, Point, F)) {
    wait_for_previous();
    uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= params.len) return;
    const Point* row = matrix + (size_t)i * params.pitch;
    F sum = params.add ? f_load(out + i) : f_zero();
#pragma unroll 4
    for (uint32_t c = 0; c < params.columns; c++) sum = f_add(sum, f_by(f_load(weights + c), point_load(row + c)));
    out[i] = sum;
}
