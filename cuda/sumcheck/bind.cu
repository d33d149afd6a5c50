// folded[x] = a + challenge * (b - a), where a and b are the elements x and x + len of the source, or with `neighbours` 2x and
// 2x + 1.
// Grid: one thread an element of the target.

extern "C" __global__ void sumcheck_bind(const Params params, BUFFERS(SOURCE, F, F)) {
    wait_for_previous();
    uint32_t x = blockIdx.x * blockDim.x + threadIdx.x;
    if (x >= params.len) return;
    F a = lift(source[params.neighbours ? 2 * (size_t)x : x]);
    F b = lift(source[params.neighbours ? 2 * (size_t)x + 1 : (size_t)x + params.len]);
    folded[x] = f_add(a, f_mul(f_sub(b, a), f_load(challenge)));
}
