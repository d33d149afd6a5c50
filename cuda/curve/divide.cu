// out[i] = FINISH(a[i], 1 / DENOMINATOR(a[i])), or of a[i] and b[i] with BINARY: affine points that need one division
// each, by Montgomery's trick.
// Grid: thread t owns the elements t, t + threads, t + 2 threads, … (`threads` of the whole grid, so that neighbours
// read neighbours). out[i].x holds the prefix products in between. 3 multiplications an element and ROOTS inversions
// a block come to those of the operation. Shared memory: two elements a thread.

#ifdef BINARY
#define LOAD A p = c_load(a + i), q = c_load(b + i)
#define OPERANDS p, q
extern "C" __global__ void __launch_bounds__(THREADS) point_divide(const Params params, BUFFERS(A, A, Affine)) {
#else
#define LOAD A p = c_load(a + i)
#define OPERANDS p
extern "C" __global__ void __launch_bounds__(THREADS) point_divide(const Params params, BUFFERS(A, Affine)) {
#endif
    wait_for_previous();
    extern __shared__ __align__(16) unsigned char shared[];
    size_t thread = (size_t)blockIdx.x * THREADS + threadIdx.x;
    F product = f_one();
    size_t i = thread;
    if (thread < params.threads) {
        for (; i < params.len; i += params.threads) {
            LOAD;
            out[i].x = product;
            product = f_mul(product, DENOMINATOR(OPERANDS));
        }
    }
    F inverse = group_inverse(reinterpret_cast<F*>(shared), product);
    while (i > thread) {
        i -= params.threads;
        LOAD;
        F own = f_mul(inverse, f_load(&out[i].x));
        inverse = f_mul(inverse, DENOMINATOR(OPERANDS));
        out[i] = FINISH(OPERANDS, own);
    }
}
