// Tables of eq for groups of coordinates of a point, for every number of them from none on: eq[at + 2^j + y] is that of the j
// first ones of the group that starts at coordinate `from`, or where `last` is set, of the j last ones. Group 0 has `low`
// coordinates and starts at 0, group 1 has the others. Entries of group 1 are scaled by what stands behind the point.
// Grid: one thread an entry, which has up to as many factors as its group.

extern "C" __global__ void sumcheck_eq(const Params params, BUFFERS(F, F)) {
    wait_for_previous();
    uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    uint32_t first = 2u << params.low, high = params.variables - params.low;
    if (i >= first + (2u << high)) return;
    bool second = i >= first;
    uint32_t entry = second ? i - first : i, from = second ? params.low : 0, group = second ? high : params.low;
    F product = second ? f_load(point + params.variables) : f_one();
    if (entry > 1) {
        uint32_t bits = 0;
        while (entry >> (bits + 1)) bits++;
        if (params.last) from += group - bits;
#pragma unroll 1
        for (uint32_t bit = 0; bit < bits; bit++) {
            F x = f_load(point + from + bit);
            if (!((entry >> bit) & 1)) x = f_sub(f_one(), x);
            product = f_mul(product, x);
        }
    }
    eq[i] = product;
}
