// Sums of runs of 2^log buckets with their weights, by running sums: what msm_layer is compared with. `input` has rows of
// 2^row_log buckets. Bucket i of a row weighs i + 1, or 2 i + 1 where buckets are `odd`; out[t] is the weighted sum of run t.
// Grid: one thread a run. It adds its buckets from the last on to a sum, and that sum each time to another; then the sum of all as
// often as buckets lie before the run in its row, by doubling and adding. No shared memory.

extern "C" __global__ void __launch_bounds__(THREADS)
msm_running(const Params params, BUFFERS(Xyzz, Xyzz)) {
    wait_for_previous();
    size_t thread = (size_t)blockIdx.x * THREADS + threadIdx.x;
    uint32_t width = 1u << (params.row_log - params.log);
    if (thread >= (size_t)params.rows * width) return;
    const Xyzz* run = input + (thread << params.log);
    Xyzz sum = xyzz_infinity(), weighted_sum = xyzz_infinity();
    // Even steps add x_t to the sum of those from t on, odd ones that to the weighted sum, sum of t x_t.
#pragma unroll 1
    for (uint32_t at = 2u << params.log; at > 1; at--) {
        bool adds = at % 2 == 0;
        Xyzz a = adds ? sum : weighted_sum, b = adds ? c_load(run + (at / 2 - 1)) : sum;
        a = x_add_xyzz(a, b);
        if (adds) {
            sum = a;
        } else {
            weighted_sum = a;
        }
    }
    // `before` sums: even steps double, odd ones add where the number has the bit.
    uint32_t before = (uint32_t)(thread % width) << params.log;
    Xyzz shift = xyzz_infinity();
#pragma unroll 1
    for (uint32_t at = 2 * params.row_log; at > 0; at--) {
        bool doubles = at % 2 == 0;
        if (doubles || (before >> (at / 2) & 1)) shift = x_add_xyzz(shift, doubles ? shift : sum);
    }
    // These to the weighted sum, that to itself if buckets are odd, and the sum.
#pragma unroll 1
    for (uint32_t step = 0; step < 3; step++) {
        if (step == 1 && !params.odd) continue;
        weighted_sum = x_add_xyzz(weighted_sum, step == 0 ? shift : step == 1 ? weighted_sum : sum);
    }
    x_store(out + thread, weighted_sum);
}
