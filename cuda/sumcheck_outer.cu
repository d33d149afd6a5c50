// out[x] = eq[2^low + low bits of x] * eq[high_at + the other bits of x].
// Grid: one thread an element.

struct Params {
    uint32_t len;
    uint32_t low;
    uint32_t high_at;
};

extern "C" __global__ void sumcheck_outer(const Params params, const F* eq, F* out) {
    uint32_t x = blockIdx.x * blockDim.x + threadIdx.x, size = 1u << params.low;
    if (x < params.len) out[x] = f_mul(f_load(eq + size + (x & (size - 1))), f_load(eq + params.high_at + (x >> params.low)));
}
