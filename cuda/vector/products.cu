// out[i] = a[i] b[i] for first <= i < end, with the factors and the product in PLACE while they are worked on:
//   PLACE_GLOBAL   where they lie in global memory
//   PLACE_PRIVATE  in registers, where all factors of a round are loaded first
//   PLACE_SHARED   in shared memory, as a[i] and b[i], of which the product takes the place
//   PLACE_KEPT     in registers, where products stay: only those that are zero are written
// Grid: one thread a product; with SERIAL one thread for all, SERIAL products a round. Registers: two elements a product
// of a round. Shared memory: two elements a product of a round and thread. Bound by latency if serial, by memory if not.


#ifdef SERIAL
#define ROUND SERIAL
#else
#define ROUND 1
#endif

extern "C" __global__ void products(const Params params, BUFFERS(F, F, F)) {
    wait_for_previous();
    uint32_t start = params.first + (blockIdx.x * blockDim.x + threadIdx.x) * ROUND;
#ifdef SERIAL
    uint32_t end = params.end;
#else
    uint32_t end = start < params.end ? start + 1 : start;
#endif
#pragma unroll 1
    for (uint32_t i = start; i < end; i += ROUND) {
        uint32_t count = end - i < ROUND ? end - i : ROUND;
#if PLACE == PLACE_GLOBAL
#pragma unroll 1
        for (uint32_t k = 0; k < count; k++) out[i + k] = f_mul(a[i + k], b[i + k]);
#elif PLACE == PLACE_PRIVATE || PLACE == PLACE_KEPT
        F x[ROUND], y[ROUND];
#pragma unroll
        for (uint32_t k = 0; k < ROUND; k++) {
            if (k < count) x[k] = f_load(a + i + k), y[k] = f_load(b + i + k);
        }
#pragma unroll
        for (uint32_t k = 0; k < ROUND; k++) {
            if (k >= count) continue;
            F product = f_mul(x[k], y[k]);
#if PLACE == PLACE_KEPT
            if (!f_is_zero(product)) continue;
#endif
            out[i + k] = product;
        }
#else
        extern __shared__ __align__(16) unsigned char shared[];
        F* tile = reinterpret_cast<F*>(shared) + threadIdx.x * 2 * ROUND;
#pragma unroll 1
        for (uint32_t k = 0; k < count; k++) tile[2 * k] = a[i + k], tile[2 * k + 1] = b[i + k];
#pragma unroll 1
        for (uint32_t k = 0; k < count; k++) tile[2 * k] = f_mul(tile[2 * k], tile[2 * k + 1]);
#pragma unroll 1
        for (uint32_t k = 0; k < count; k++) out[i + k] = tile[2 * k];
#endif
    }
}
