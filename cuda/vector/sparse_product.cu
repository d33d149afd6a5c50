// out[row] = the sum of coefficient * x[column] over the entries of the row, for a matrix of short rows.
// A line has the place of a row in out and the number of its first entry; its entries end where the next line's begin.
// An entry has a column and a code: CODE_ONE and CODE_MINUS_ONE are coefficients; with CODE_SUM an element of sums takes
// the place of one of x; codes from CODE_FIRST on are coefficients in a table.
// Grid: one thread a line; neighbouring lines have equally many entries. No shared memory. Registers: three elements.

extern "C" __global__ void __launch_bounds__(256)
sparse_product(const Params params, BUFFERS(uint2, uint2, F, F, F, F)) {
    wait_for_previous();
    size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= params.rows) return;
    uint2 line = lines[i];
    uint32_t end = lines[i + 1].y;
    F sum = f_zero();
#pragma unroll 1
    for (uint32_t j = line.y; j < end; j++) {
        uint2 entry = entries[j];
        F term = entry.y == CODE_SUM ? f_load(sums + entry.x) : f_load(x + entry.x);
        if (entry.y >= CODE_FIRST) term = f_mul(term, coefficients[entry.y - CODE_FIRST]);
        sum = entry.y == CODE_MINUS_ONE ? f_sub(sum, term) : f_add(sum, term);
    }
    out[line.x] = sum;
}
