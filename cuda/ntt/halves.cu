// The pre-kernel of a transform in halves: one round of butterflies, with its factors. Elements x_i and x_(i + n/2)
// become x_i + x_(i + n/2) and (x_i - x_(i + n/2)) w^i, which are the inputs of two independent transforms of n/2: of the outputs
// with even index, and of those with odd index. Where these are halved again, w is the root of theirs.
// The factors are computed here: w^e is a product of `twiddles` = { w^i for i < 2^split }, { c w^(i 2^split) }. Where TWIDDLE_ZERO is
// set, sums are multiplied by c too.
// Grid: one thread a pair, which is a line of two rows (ntt/lines.cuh). No shared memory.
//
// Sources: Gentleman and Sande, "Fast Fourier transforms: for fun and profit", AFIPS Conference Proceedings 29 (1966); "PreNTT:
// a GPU-based acceleration method for number theoretic transforms of zk-SNARKs", sections 2 and 3.1, for a kernel of its own.

// What is stored is below p: others may read it.
#if F_LAZY
#define STORED f_reduce
#else
#define STORED(x) (x)
#endif

#ifdef IN_PLACE
extern "C" __global__ void ntt_halves(const Params params, BUFFERS(F, F, F, F)) {
    F* y = x;
#else
extern "C" __global__ void ntt_halves(const Params params, BUFFERS(F, F, F, F, F)) {
#endif
    wait_for_previous();
    uint32_t number = params.first + blockIdx.x * blockDim.x + threadIdx.x;
    if (number >= params.lines) return;
    Line line = line_of(params, number);
    scale += params.scales;
    twiddles += params.twiddles;

    uint32_t from = place(params, line, false, params.stride_in, params.pitch_in);
    uint32_t to = place(params, line, false, params.stride_out, params.pitch_out);
    uint32_t e = twiddle_index(params, line) << params.shift;
    F a = x[address(line, from, params.row_in)], b = x[address(line, from + (1u << params.stride_in), params.row_in)];
    if (IS_SET(SCALE_IN)) {
        a = scaled(params, scale, from, a);
        b = scaled(params, scale, from + (1u << params.stride_in), b);
    }
    F sum = ADD(a, b), difference = SUB(a, b);
    const F* high = twiddles + (1u << params.split);
    if (IS_SET(TWIDDLE_ZERO)) sum = MUL(high[0], sum);
    y[address(line, to, params.row_out)] = STORED(sum);
    F factor = f_mul(twiddles[e & ((1u << params.split) - 1)], high[e >> params.split]);
    y[address(line, to + (1u << params.stride_out), params.row_out)] = STORED(MUL(factor, difference));
}
