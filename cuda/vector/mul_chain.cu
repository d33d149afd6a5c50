// out[i] = LENGTH steps from x[i], each of which waits for the one before:
//   STEP_MUL     x[i]^(LENGTH + 1), multiplied by x[i] each time
//   STEP_SQUARE  x[i]^(2^LENGTH)
//   STEP_MAC     the sum of x[i] x[(i + j) mod len] for j < LENGTH, reduced once where there is f_mac
//   STEP_SHOUP   x[i] w^LENGTH, by Shoup's product with a constant where there is one
// Grid: one thread an element. Registers: two elements. No shared memory. Bound by arithmetic alone: it tells the rate
// of multiplications that a device can reach.


// A factor in Montgomery form; as an integer, and floor(2^(32 F_LIMBS) / p) times that.
struct Constant {
    F montgomery, integer, quotient;
};

extern "C" __global__ void mul_chain(const Params params, BUFFERS(F, Constant, F)) {
    wait_for_previous();
    size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= params.len) return;
    F factor = x[i], product = factor;
#if STEP == STEP_MUL
#pragma unroll 1
    for (uint32_t j = 0; j < LENGTH; j++) product = f_mul(product, factor);
#elif STEP == STEP_SQUARE
#pragma unroll 1
    for (uint32_t j = 0; j < LENGTH; j++) product = f_square(product);
#elif STEP == STEP_MAC
    size_t k = i;
#if F_LAZY
    FSum sum = f_sum_zero();
#else
    product = f_zero();
#endif
#pragma unroll 1
    for (uint32_t j = 0; j < LENGTH; j++) {
#if F_LAZY
        f_mac(sum, factor, x[k]);
#else
        product = f_add(product, f_mul(factor, x[k]));
#endif
        k = k + 1 == params.len ? 0 : k + 1;
    }
#if F_LAZY
    product = f_sum_reduce(sum);
#endif
#elif F_LAZY
    F integer = w->integer, quotient = w->quotient;
#pragma unroll 1
    for (uint32_t j = 0; j < LENGTH; j++) product = f_mul_shoup(product, integer, quotient);
    product = f_reduce(product);
#else
    factor = w->montgomery;
#pragma unroll 1
    for (uint32_t j = 0; j < LENGTH; j++) product = f_mul(product, factor);
#endif
    out[i] = product;
}
