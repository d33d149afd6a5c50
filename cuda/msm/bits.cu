// Sums of runs of 2^log elements by the bits of their places. `input` has rows of width * 2^log elements, of which the first
// `weighted` stand for the sum of i x_i and the others for that of x_i. Runs become one element each:
//   out row r                         the sum of each run, for all weighted rows r
//   out row weighted * (1 + b) + r    the sum of those x_t of each run whose t, counted in the run, has bit b, for each bit b
//                                     below log and all weighted rows r
//   out row weighted * log + r        the sum of each run, for the other rows r
// Grid: one block a run, of at most 2 THREADS elements. No shared memory; `scratch` has as many elements as `input`.
//
// Level m adds element i | 2^m of a run to element i, for those i below bit m that have one bit at most: those without one
// are sums of what all lower bits are, and those with bit b sums of what has bit b. What no level has written is the input.

extern "C" __global__ void __launch_bounds__(THREADS)
msm_bits(const Params params, BUFFERS(Xyzz, Xyzz, Xyzz)) {
    wait_for_previous();
    uint32_t run = blockIdx.x, row = run / params.width, log = params.log;
    bool weighted = row < params.weighted;
    const Xyzz* elements = input + ((size_t)run << log);
    Xyzz* own = scratch + ((size_t)run << log);
#pragma unroll 1
    for (uint32_t level = 0; level < log; level++) {
        uint32_t higher = log - 1 - level, kind = threadIdx.x >> higher;
        if (kind <= (weighted ? level : 0)) {
            uint32_t at = (threadIdx.x & ((1u << higher) - 1)) << (level + 1) | 1u << kind >> 1;
            const Xyzz* from = level == 0 || (level == 1 && kind == 1) ? elements : own;
            x_store(own + at, x_add_xyzz(c_load(from + at), c_load(from + (at | 1u << level))));
        }
        __syncthreads();
    }
    if (threadIdx.x > (weighted ? log : 0)) return;
    uint32_t kind = threadIdx.x, at = 1u << kind >> 1;
    const Xyzz* from = log == 0 || (log == 1 && kind == 1) ? elements : own;
    size_t out_row = weighted ? (size_t)params.weighted * kind + row : (size_t)params.weighted * log + row;
    x_store(out + (out_row * params.width + run % params.width), c_load(from + at));
}
