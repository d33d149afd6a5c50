// out[c] = the reduction of chunk c: COMBINE(a[s], COMBINE(a[s + 1], …)), from IDENTITY at its end.
//
// COMBINE(near, far, log) joins the results of two segments, the second 2^log elements behind the first. With WEIGHTS
// there is a buffer weights[j] = z^(2^j); with PRODUCTS, a[i] * b[i] stands for a[i], and COMBINE adds. Where TERM(i) is defined
// before, with INPUTS the types of the buffers that it reads, it stands for a[i].
//
// Grid: a block of 2^LOG_THREADS threads for each chunk; thread t owns the chunk's elements t, t + THREADS, …, from the
// last to the first. Shared memory: one element a thread. Registers: a few elements.

#define THREADS (1u << LOG_THREADS)

#if defined(PRODUCTS)
#define INPUTS F, F
#define TERM(i) f_mul(a[i], b[i])
#elif defined(WEIGHTS)
#define INPUTS F, F
#define TERM(i) a[i]
#elif !defined(TERM)
#define INPUTS F
#define TERM(i) a[i]
#endif

extern "C" __global__ void __launch_bounds__(THREADS)
reduce(const Params params, BUFFERS(INPUTS, F)) {
    wait_for_previous();
    extern __shared__ __align__(16) unsigned char shared[];
    F* tile = reinterpret_cast<F*>(shared);
    uint32_t thread = threadIdx.x, chunk = blockIdx.x, size = 1u << params.log_chunk;
    size_t before = (size_t)chunk << params.log_chunk, left = params.len - before;
    uint32_t count = left < size ? (uint32_t)left : size;
    size_t start = params.reversed ? left - count : before;

    F acc = IDENTITY;
#if defined(PRODUCTS) && F_LAZY
    FSum sum = f_sum_zero();
#pragma unroll 1
    for (size_t i = start + thread; i < start + count; i += THREADS) f_mac(sum, a[i], b[i]);
    acc = f_sum_reduce(sum);
#else
    if (thread < count) {
        uint32_t rounds = (count - thread + THREADS - 1) / THREADS;
#pragma unroll 1
        for (size_t i = start + thread + (size_t)(rounds - 1) * THREADS; rounds > 0; rounds--, i -= THREADS) {
            acc = COMBINE(TERM(i), acc, LOG_THREADS);
        }
    }
#endif
    tile[thread] = acc;
    __syncthreads();
#pragma unroll 1
    for (uint32_t log = LOG_THREADS; log-- > 0;) {
        if (thread < 1u << log) {
            acc = COMBINE(acc, tile[thread + (1u << log)], log);
            tile[thread] = acc;
        }
        __syncthreads();
    }
    if (thread == 0) out[params.reversed ? params.chunks - 1 - chunk : chunk] = acc;
}
