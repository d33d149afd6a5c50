// out[i] = FINISH(a[i], 1 / DENOMINATOR(a[i])), or of a[i] and b[i] with BINARY: affine points that need one division
// each, by Montgomery's trick.
// Grid: thread t owns the elements t, t + threads, t + 2 threads, … (`threads` of the whole grid, so that neighbours
// read neighbours). out[i].x holds the prefix products in between. 3 multiplications an element and one inversion a
// thread come to those of the operation. No shared memory.

struct Params {
    uint32_t len;
    uint32_t threads;
};

#ifdef BINARY
#define OPERANDS a[i], b[i]
extern "C" __global__ void __launch_bounds__(256) point_divide(const Params params, const A* a, const A* b, Affine* out) {
#else
#define OPERANDS a[i]
extern "C" __global__ void __launch_bounds__(256) point_divide(const Params params, const A* a, Affine* out) {
#endif
    size_t thread = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (thread >= params.threads) return;
    F product = f_one();
    size_t i = thread;
    for (; i < params.len; i += params.threads) {
        out[i].x = product;
        product = f_mul(product, DENOMINATOR(OPERANDS));
    }
    F inverse = f_inverse(product);
    while (i > thread) {
        i -= params.threads;
        F own = f_mul(inverse, out[i].x);
        inverse = f_mul(inverse, DENOMINATOR(OPERANDS));
        out[i] = FINISH(OPERANDS, own);
    }
}
