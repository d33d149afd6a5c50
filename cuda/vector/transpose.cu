// out[c * rows + r] = a[r * columns + c].
// Grid: a block for each tile of SIDE x SIDE elements, tiles in row order; it reads rows and writes columns, through
// shared memory with one element of padding a row, so that a column's elements lie in different banks.

extern "C" __global__ void __launch_bounds__(THREADS)
transpose_tiles(const Params params, BUFFERS(F, F)) {
    wait_for_previous();
    extern __shared__ __align__(16) unsigned char shared[];
    F* tile = reinterpret_cast<F*>(shared);
    uint32_t top = blockIdx.x / params.tiles * SIDE, left = blockIdx.x % params.tiles * SIDE;
    for (uint32_t t = threadIdx.x; t < SIDE * SIDE; t += THREADS) {
        uint32_t r = t / SIDE, c = t % SIDE;
        if (top + r < params.rows && left + c < params.columns) {
            tile[r * (SIDE + 1) + c] = a[(size_t)(top + r) * params.columns + left + c];
        }
    }
    __syncthreads();
    for (uint32_t t = threadIdx.x; t < SIDE * SIDE; t += THREADS) {
        uint32_t r = t % SIDE, c = t / SIDE;
        if (top + r < params.rows && left + c < params.columns) {
            out[(size_t)(left + c) * params.rows + top + r] = tile[r * (SIDE + 1) + c];
        }
    }
}
