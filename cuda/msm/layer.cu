// One layer of the sums of buckets. `input` has rows of width * 2^log elements, of which the first `weighted` stand for the
// sum of i x_i and the others for that of x_i. Runs of 2^log elements become one:
//   out row r             the sum of each run, for all weighted rows r
//   out row weighted + r  the sum of t x_t over each run, t counted in the run, for all weighted rows r
//   out row weighted + r  the sum of each run, for the other rows r
// Then the sum of i x_i is that of row weighted + r, and 2^log times that of i y_i over row r.
// Grid: one thread a run. No shared memory.

// The weighted sum stays in memory where both sums and what is added do not fit the registers. Over 16 limbs, the compiler kept
// everything in memory then, which took three times as long.
#define IN_MEMORY (F_LIMBS > 8)

extern "C" __global__ void __launch_bounds__(THREADS)
msm_layer(const Params params, BUFFERS(Xyzz, Xyzz)) {
    wait_for_previous();
    size_t thread = (size_t)blockIdx.x * THREADS + threadIdx.x;
    if (thread >= (size_t)params.rows * params.width) return;
    bool weighted = thread < (size_t)params.weighted * params.width;
    const Xyzz* run = input + (thread << params.log);
    size_t shift = (size_t)params.weighted * params.width;
    Xyzz* place = out + thread + shift;
    Xyzz sum = xyzz_infinity(), weighted_sum = xyzz_infinity();
    if (IN_MEMORY && weighted) x_store(place, weighted_sum);
    // Even steps add x_t to the sum of those from t on, odd ones that to the weighted sum.
    uint32_t half = weighted ? 1 : 0;
#pragma unroll 1
    for (uint32_t at = 1u << (params.log + half); at > 0; at--) {
        uint32_t t = (at - 1) >> half;
        bool adds = !weighted || at % 2 == 0;
        if (!adds && t == 0) break;
#if IN_MEMORY
        Xyzz next = x_add_xyzz(sum, c_load(adds ? run + t : place));
        if (adds) {
            sum = next;
        } else {
            x_store(place, next);
        }
#else
        Xyzz a = adds ? sum : weighted_sum, b = adds ? c_load(run + t) : sum;
        a = x_add_xyzz(a, b);
        if (adds) {
            sum = a;
        } else {
            weighted_sum = a;
        }
#endif
    }
    x_store(weighted ? out + thread : place, sum);
    if (!IN_MEMORY && weighted) x_store(place, weighted_sum);
}
