// The states s = COMBINE(a[i], s) over the elements in order, from a carried state on: before each element or after it.
//
// COMBINE(near, far, log) joins the results of two segments, the second (earlier in the order) 2^log elements away. With
// WEIGHTS there is a buffer weights[j] = z^(2^j). carries[tile] has the state before a tile, carries[tiles] gets the last.
//
// Grid: a block of 2^LOG_THREADS threads for each tile; thread t owns a run of 2^LOG_RUN neighbouring elements, which it
// reads twice. Shared memory: one element a thread. With ASSIGN, `a` is also the output.

#define THREADS (1u << LOG_THREADS)
#define RUN (1u << LOG_RUN)

#ifdef WEIGHTS
#define WEIGHT_BUFFER , F
#else
#define WEIGHT_BUFFER
#endif

#ifdef ASSIGN
extern "C" __global__ void __launch_bounds__(THREADS)
prefix(const Params params, BUFFERS(F, F WEIGHT_BUFFER)) {
    F* out = a;
#else
extern "C" __global__ void __launch_bounds__(THREADS)
prefix(const Params params, BUFFERS(F, F, F WEIGHT_BUFFER)) {
#endif
    wait_for_previous();
    extern __shared__ __align__(16) unsigned char shared[];
    F* tile = reinterpret_cast<F*>(shared);
    uint32_t thread = threadIdx.x, block = blockIdx.x;
    size_t first = ((size_t)block * THREADS + thread) * RUN, len = params.len;
    uint32_t count = first >= len ? 0 : len - first < RUN ? (uint32_t)(len - first) : RUN;

    F total = IDENTITY;
#pragma unroll 1
    for (uint32_t r = 0; r < count; r++) {
        size_t i = params.reversed ? len - 1 - (first + r) : first + r;
        total = COMBINE(a[i], total, 0);
    }
    F carry = IDENTITY;
    if (params.carried) carry = carries[params.reversed ? params.tiles - 1 - block : block];
    if (thread == 0) total = COMBINE(total, carry, LOG_RUN);
#pragma unroll 1
    for (uint32_t log = 0; log < LOG_THREADS; log++) {
        tile[thread] = total;
        __syncthreads();
        if (thread >= 1u << log) total = COMBINE(total, tile[thread - (1u << log)], LOG_RUN + log);
        __syncthreads();
    }
    tile[thread] = total;
    __syncthreads();

    F state = thread == 0 ? carry : tile[thread - 1];
#pragma unroll 1
    for (uint32_t r = 0; r < count; r++) {
        size_t i = params.reversed ? len - 1 - (first + r) : first + r;
        F before = state;
        state = COMBINE(a[i], state, 0);
        out[i] = params.exclusive ? before : state;
    }
    if (count > 0 && first + count == len) carries[params.tiles] = state;
}
