// out[i] = z[0] - (point number first + i of the subgroup in bit-reversed order). That is t(j) (points.cuh) with j half the number,
// negated for odd numbers.
// Grid: one thread a point. No shared memory.

extern "C" __global__ void __launch_bounds__(THREADS) fri_denominators(const Params params, BUFFERS(Point, F, F)) {
    wait_for_previous();
    uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= params.len) return;
    F at = f_load(z), x = f_lift(point_at(points, (params.first + i) >> 1, params.low_bits));
    out[i] = (params.first + i) & 1 ? f_add(at, x) : f_sub(at, x);
}
