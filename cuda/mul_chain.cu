// x[i] = x[i]^(LENGTH + 1), by LENGTH multiplications that each wait for the one before.
// Grid: one thread an element. Registers: two elements. No shared memory. Bound by arithmetic alone: it tells the rate
// of multiplications that a device can reach.

struct Params {
    uint32_t len;
};

extern "C" __global__ void mul_chain(const Params params, F* x) {
    size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= params.len) return;
    F factor = x[i], product = factor;
#pragma unroll 1
    for (uint32_t j = 0; j < LENGTH; j++) product = f_mul(product, factor);
    x[i] = product;
}
