// Sums of runs of 2^log elements by the bits of their places. `input` has rows of width * 2^log elements, of which the first
// `weighted` stand for the sum of i x_i and the others for that of x_i. Runs become one element each:
//   out row r                         the sum of each run, for all weighted rows r
//   out row weighted * (1 + b) + r    the sum of those x_t of each run whose t, counted in the run, has bit b, for each bit b
//                                     below log and all weighted rows r
//   out row weighted * log + r        the sum of each run, for the other rows r
// With `weigh`, those by bits are added up with their weights 2^b, to one row like that of a bit:
//   out row weighted + r              the sum of t x_t of each run, for all weighted rows r
// Grid: one block a run, of at most THREADS elements, with four lanes for each addition (msm/quad.cuh). No shared memory;
// `scratch` has as many elements as `input`.
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
        uint32_t higher = log - 1 - level, count = (weighted ? level + 1 : 1) << higher;
#pragma unroll 1
        for (uint32_t first = 0; first < count; first += QUADS) {
            uint32_t i = first + threadIdx.x / 4, kind = i >> higher;
            bool adds = i < count;
            if (!warp_ballot(adds)) break;
            uint32_t at = (i & ((1u << higher) - 1)) << (level + 1) | 1u << kind >> 1;
            const Xyzz* from = level == 0 || (level == 1 && kind == 1) ? elements : own;
            F sum = q_add(adds, from + at, from + (at | 1u << level));
            if (adds) q_store(own + at, sum);
        }
        __syncthreads();
    }
    if (params.weigh && weighted && threadIdx.x < WARP) {
        // Element 2^b is what has bit b, and the sum of t x_t that of 2^b times these: neighbours first, then what they make.
#pragma unroll 1
        for (uint32_t width = 1; width < log; width *= 2) {
            uint32_t b = threadIdx.x / 4 * 2 * width, next = b + width;
            bool adds = next < log;
            F sum = adds ? q_load(own + (1u << next)) : f_zero();
#pragma unroll 1
            for (uint32_t k = 0; k < width; k++) sum = q_double(sum);
            sum = q_add(adds ? q_load(own + (1u << b)) : f_zero(), sum, q_xor(sum, 2));
            if (adds) q_store(own + (1u << b), sum);
            warp_sync();
        }
    }
    uint32_t kind = threadIdx.x / 4, kinds = params.weigh ? 1 : log;
    if (kind > (weighted ? kinds : 0)) return;
    uint32_t at = 1u << kind >> 1;
    const Xyzz* from = log == 0 || (log == 1 && kind == 1) ? elements : own;
    size_t out_row = weighted ? (size_t)params.weighted * kind + row : (size_t)params.weighted * kinds + row;
    // A run of one element has no bits.
    q_store(out + (out_row * params.width + run % params.width), log == 0 && kind == 1 ? f_zero() : q_load(from + at));
}
