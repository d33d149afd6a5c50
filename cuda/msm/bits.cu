// Sums of parts of rows of 2^log elements. For each of the first `weighted` rows: for each bit b below log the sum of the
// elements whose index has bit b, then the sum of all; for each of the other rows the sum of all. out[k] is sum number k.
// Grid: one block a sum. Threads add elements one after the other, then each other's sums in a tree, in THREADS
// elements of `scratch` for each block. No shared memory.

extern "C" __global__ void __launch_bounds__(THREADS)
msm_bits(const Params params, BUFFERS(Xyzz, Xyzz, Xyzz)) {
    wait_for_previous();
    uint32_t task = blockIdx.x, each = params.log + 1, bit = params.log, row = task - params.weighted * params.log;
    if (task < params.weighted * each) {
        row = task / each;
        bit = task % each;
    }
    uint32_t len = bit == params.log ? 1u << params.log : 1u << (params.log - 1);
    const Xyzz* elements = input + ((size_t)row << params.log);
    Xyzz* own = scratch + (size_t)task * THREADS;
    uint32_t busy = min(len, THREADS);
    Xyzz sum = xyzz_infinity();
    uint32_t i = threadIdx.x;
    // Elements, then what other threads have.
    if (i < busy) {
#pragma unroll 1
        for (; i < len; i += THREADS) {
            uint32_t low = i & ((1u << bit) - 1);
            uint32_t at = bit == params.log ? i : (2 * (i - low) | 1u << bit | low);
            sum = x_add_xyzz(sum, c_load(elements + at));
        }
        x_store(own + threadIdx.x, sum);
    }
    __syncthreads();
#pragma unroll 1
    for (uint32_t width = busy / 2; width > 0; width /= 2) {
        if (threadIdx.x < width) {
            sum = x_add_xyzz(c_load(own + threadIdx.x), c_load(own + threadIdx.x + width));
            x_store(own + threadIdx.x, sum);
        }
        __syncthreads();
    }
    if (threadIdx.x == 0) x_store(out + task, c_load(own));
}
