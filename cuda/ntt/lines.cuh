// Where the lines of a pass lie, which numbers their factors have, and how elements are scaled: before the kernels of a transform.
// ntt/pass.cu says what lines are; each has 2^LOG_ROWS elements.

// Where F_LAZY holds, operands and results are in [0, 2p), of products the second operand: the first is below p.
#if F_LAZY
#define ADD f_add_lazy
#define SUB f_sub_lazy
#define MUL f_mul_lazy
#else
#define ADD f_add
#define SUB f_sub
#define MUL f_mul
#endif

#ifdef FLAGS
#define IS_SET(flag) ((FLAGS & (flag)) != 0)
#else
#define IS_SET(flag) ((params.flags & (flag)) != 0)
#endif

__device__ __forceinline__ uint32_t reverse(uint32_t x, uint32_t bits) {
    return __brev(x) >> 1 >> (31 - bits);
}

// A line: its number among those of its transforms, and which of the transforms side by side it is of.
struct Line {
    uint32_t index, column;
};

__device__ __forceinline__ Line line_of(const Params& params, uint32_t line) {
#ifdef INTERLEAVED
    return {line / params.interleaved, line % params.interleaved};
#else
    return {line, 0};
#endif
}

// Where an element of a line lies, in rows of so many elements.
__device__ __forceinline__ uint32_t address(const Line& line, uint32_t position, uint32_t row) {
#ifdef INTERLEAVED
    return position * row + line.column;
#else
    return position;
#endif
}

// The position of row 0 of a line; that of row r is r << stride further.
__device__ __forceinline__ uint32_t place(const Params& params, const Line& line, bool reversed, uint32_t stride,
                                          uint32_t pitch) {
    uint32_t log_lines = params.log_n - LOG_ROWS, index = line.index & ((1u << log_lines) - 1);
    uint32_t start = line.index >> log_lines << pitch;
    if (reversed) return start + (reverse(index, log_lines) << LOG_ROWS);
    return start + (index >> stride << (stride + LOG_ROWS)) + (index & ((1u << stride) - 1));
}

__device__ __noinline__ F times_power(uint32_t i, uint32_t log_scales, const F* scale, F x) {
    x = MUL(scale[i & ((1u << log_scales) - 1)], x);
    return MUL(scale[(1u << log_scales) + (i >> log_scales)], x);
}

// The power that scales the element of a position, or of the reversed one.
__device__ __forceinline__ F scale_of(const Params& params, const F* scale, uint32_t position, bool reversed) {
    uint32_t i = position & ((1u << params.log_n) - 1);
    if (reversed) i = reverse(i, params.log_n);
    return MUL(scale[i & ((1u << params.log_scales) - 1)], scale[(1u << params.log_scales) + (i >> params.log_scales)]);
}

__device__ __forceinline__ F scaled(const Params& params, const F* scale, uint32_t position, const F& x) {
    if (IS_SET(SCALE_CONSTANT)) return MUL(scale[0], x);
    uint32_t i = position & ((1u << params.log_n) - 1);
    return times_power(IS_SET(SCALE_REVERSED) ? reverse(i, params.log_n) : i, params.log_scales, scale, x);
}

// The j of a line's twiddles.
__device__ __forceinline__ uint32_t twiddle_index(const Params& params, const Line& line) {
    uint32_t log_lines = params.log_n - LOG_ROWS, stride = params.stride_in;
    uint32_t index = line.index & ((1u << log_lines) - 1);
    return IS_SET(TWIDDLE_OFFSET) ? index & ((1u << stride) - 1) : reverse(index >> stride, log_lines - stride);
}
