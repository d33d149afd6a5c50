// out[i] = z[0] times the sum of inverses[r] matrix[columns r + c] over the rows r = s, s + stripes, ... below `rows`, less the sum
// of these elements, where c is i mod columns and s is i / columns. There are `len` = stripes * columns sums.
// Grid: one thread a sum. Neighbours read neighbours in the same row, or in the next one. No shared memory.

extern "C" __global__ void __launch_bounds__(THREADS) fri_evaluate(const Params params, BUFFERS(F, F, Point, F)) {
    wait_for_previous();
    uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= params.len) return;
    uint32_t row = i / params.columns;
    const Point* at = matrix + i;
    Point plain = point_load(at);
    F sum = f_by(f_load(inverses + row), plain);
#pragma unroll 4
    for (row += params.stripes; row < params.rows; row += params.stripes) {
        at += params.len;
        Point value = point_load(at);
        plain = point_add(plain, value);
        sum = f_add(sum, f_by(f_load(inverses + row), value));
    }
    out[i] = f_sub(f_mul(f_load(z), sum), f_lift(plain));
}
