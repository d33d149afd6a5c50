// halves[k] = the elements of bucket k, from firsts[k] to ends[k], after neighbours have been added up: half of them, rounded up.
// Grid: one thread a bucket. No shared memory.

extern "C" __global__ void __launch_bounds__(256) msm_halves(const Params params, BUFFERS(uint32_t, uint32_t, uint32_t)) {
    wait_for_previous();
    uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < params.buckets) halves[i] = (ends[i] - firsts[i] + 1) / 2;
}
