// Transforms of two points: x, y becomes x + y, x - y, with scaling before or after.
// Grid: one thread a transform. No shared memory. Parameters as in ntt_pass, of which it needs few.

#define SCALE_IN 128u
#define SCALE_OUT 256u
#define SCALE_CONSTANT 1024u

struct Params {
    uint32_t lines, log_n, stride_in, stride_out, flags, roots, log_roots, twiddles, log_twiddles, scales, log_scales;
};

// s^k: with one digit, the lower table has both powers and the upper one the constant.
__device__ __forceinline__ F scaled(const Params& params, const F* scale, uint32_t k, const F& x) {
    if (params.flags & SCALE_CONSTANT) return f_mul(x, scale[0]);
    return f_mul(f_mul(x, scale[k]), scale[2]);
}

extern "C" __global__ void ntt_pair(const Params params, F* x, const F* roots, const F* twiddles, const F* scale) {
    size_t line = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (line >= params.lines) return;
    scale += params.scales;
    F u = x[2 * line], v = x[2 * line + 1];
    if (params.flags & SCALE_IN) u = scaled(params, scale, 0, u), v = scaled(params, scale, 1, v);
    F sum = f_add(u, v);
    v = f_sub(u, v), u = sum;
    if (params.flags & SCALE_OUT) u = scaled(params, scale, 0, u), v = scaled(params, scale, 1, v);
    x[2 * line] = u;
    x[2 * line + 1] = v;
}
