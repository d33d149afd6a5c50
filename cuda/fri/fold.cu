// out[i] = the value at a challenge of the polynomial of degree below 2^FOLDED that has the values x[2^FOLDED i], ... at the
// points first + i of the rows; with ADDED more, plus challenge[1] added[i]. The points' inverses are t(j) (points.cuh) with
// j = (first + i) 2^(FOLDED - 1), and challenge[0] is the challenge divided by the shift of their coset.
//
// Each step halves the values: f(s), f(-s) become (f(s) + f(-s)) / 2 + u (f(s) - f(-s)) / (2 s), with the challenge u squared
// from step to step. Divisions by 2 come last.
// Grid: one thread a row, with its values in registers. Neighbours read neighbouring rows. No shared memory.

// Long elements: inlined, 30 products take compilers a minute.
#if F_LIMBS > 5 && FOLDED > 1
#define CALLED __noinline__
#else
#define CALLED __forceinline__
#endif

// a + b + u (a - b) x
__device__ CALLED F halved(F a, F b, F u, Point x) {
    return f_add(f_add(a, b), f_mul(u, f_by(f_sub(a, b), x)));
}

__device__ CALLED F halved(F a, F b, F u) {
    return f_add(f_add(a, b), f_mul(u, f_sub(a, b)));
}

extern "C" __global__ void __launch_bounds__(THREADS) fri_fold(const Params params, BUFFERS(Point, F, F ADDED_BUFFER, F)) {
    wait_for_previous();
    uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= params.len) return;
    F v[1 << FOLDED];
    const F* row = x + ((size_t)i << FOLDED);
#pragma unroll
    for (int j = 0; j < 1 << FOLDED; j++) v[j] = f_load(row + j);
    Point inverse = point_at(points, (params.first + i) << (FOLDED - 1), params.low_bits);
    F u = f_by(f_load(challenge), inverse);
#pragma unroll
    for (int step = 0; step < FOLDED; step++) {
        if (step > 0) u = f_mul(u, u);
#pragma unroll
        for (int j = 0; j < 1 << (FOLDED - 1 - step); j++) {
            F a = v[2 * j], b = v[2 * j + 1];
            v[j] = j > 0 ? halved(a, b, u, point_load(points + HALVES + j)) : halved(a, b, u);
        }
    }
    F r = f_by(v[0], point_load(points + FOLDED));
#if ADDED
    r = f_add(r, f_mul(f_load(challenge + 1), f_load(added + i)));
#endif
    out[i] = r;
}
