// One pass of a transform: DFTs of 2^LOG_ROWS points over all lines, with the passes' twiddles, reorderings and scaling.
//
// A line is the set of elements that one DFT takes; `place` says where it lies. A block owns a tile of 2^LOG_COLUMNS
// neighbouring lines, and each of its THREADS = TILE / 4 threads four elements in registers: rows i, i + q, i + 2q,
// i + 3q of one column, q = ROWS/4 at first. It loads them, runs radix-4 steps decimated in frequency (two levels of
// Gentleman-Sande butterflies; the first step has one level where LOG_ROWS is odd), and stores. Between two steps the
// tile passes through shared memory, where it is kept as F_WORDS arrays of 16-byte words, swizzled so that eight
// neighbouring threads use eight different groups of banks. Output k ends at row reverse(k).
//
// Two orders of passes use it (docs/architecture.md, "One pass kernel"):
//   from natural order   lines have strides N/R1, N/(R1 R2), …, 1, and j is the line's offset within its stride
//   from bit-reversed    lines have strides 1, R1, R1 R2, …, and j is the reversed index of the line's block
// After a DFT, output k of a line is multiplied by w^(j k), w of the order of what is left to transform.
//
// Where F_LAZY holds, values stay in [0, 2p) until the last pass, and the roots within a pass are multiplied by with
// precomputed quotients. 4 elements of 8 limbs, a root and its quotient need some 80 registers: three blocks of 256
// threads on a multiprocessor.

#define ROWS (1u << LOG_ROWS)
#define COLUMNS (1u << LOG_COLUMNS)
#define TILE (ROWS * COLUMNS)
#define PER_THREAD 4u

#define LOAD_REVERSED 1u     // lines are numbered by reversed block index, and contiguous, where they are loaded
#define STORE_REVERSED 2u    // … where they are stored
#define ROWS_IN_REVERSED 4u  // row m in memory is element reverse(m) of the line
#define ROWS_OUT_REVERSED 8u // output k goes to row reverse(k)
#define TWIDDLE_OFFSET 16u   // j is the line's offset within its stride
#define TWIDDLE_BLOCK 32u    // j is the reversed index of the line's block
#define TWIDDLE_ZERO 64u     // output 0 has a factor too
#define SCALE_IN 128u        // element i is multiplied by scale(i) when loaded
#define SCALE_OUT 256u       // … when stored
#define SCALE_REVERSED 512u  // i is the reversed place
#define SCALE_CONSTANT 1024u // scale(i) is the same for all i

struct Params {
    uint32_t lines;      // of all transforms of the batch
    uint32_t log_n;      // of one transform
    uint32_t stride_in;  // log2 of the distance of a line's elements where they are loaded
    uint32_t stride_out; // … where they are stored
    uint32_t flags;
    uint32_t roots;        // where in `roots` the roots w^i start, w of order 2^log_roots, i < 2^(log_roots - 1)
    uint32_t log_roots;
    uint32_t twiddles;     // where in `twiddles` the factor of k = 0 stands; those of j and k follow, k - 1 by rows of j
    uint32_t log_twiddles; // log2 of the number of j
    uint32_t scales;       // where in `scale` s^i starts, i < 2^log_scales; c s^(i 2^log_scales) follows
    uint32_t log_scales;
};

// A root in Montgomery form; as an integer, and floor(2^(32 F_LIMBS) / p) times that.
struct Root {
    F montgomery, integer, quotient;
};

#if F_LAZY
#define ADD f_add_lazy
#define SUB f_sub_lazy
#define MUL f_mul_lazy
#define CANONICAL f_reduce

__device__ __forceinline__ F mul_root(const F& x, const Root* root) {
    return f_mul_known(x, root->integer, root->quotient);
}
#else
#define ADD f_add
#define SUB f_sub
#define MUL f_mul
#define CANONICAL(x) (x)

__device__ __forceinline__ F mul_root(const F& x, const Root* root) {
    return f_mul(x, root->montgomery);
}
#endif

__device__ __forceinline__ uint32_t reverse(uint32_t x, uint32_t bits) {
    return __brev(x) >> 1 >> (31 - bits);
}

__device__ __forceinline__ uint32_t swizzle(uint32_t i) {
    return i ^ (i >> 2 & 7);
}

__device__ __forceinline__ F tile_load(const FWord* tile, uint32_t i) {
    F x;
#pragma unroll
    for (int w = 0; w < F_WORDS; w++) reinterpret_cast<FWord*>(&x)[w] = tile[w * TILE + i];
    return x;
}

__device__ __forceinline__ void tile_store(FWord* tile, uint32_t i, const F& x) {
#pragma unroll
    for (int w = 0; w < F_WORDS; w++) tile[w * TILE + i] = reinterpret_cast<const FWord*>(&x)[w];
}

// Where row 0 of a line lies; row r lies r << stride further.
__device__ __forceinline__ size_t place(const Params& params, uint32_t line, bool reversed, uint32_t stride) {
    uint32_t log_lines = params.log_n - LOG_ROWS;
    size_t start = (size_t)(line >> log_lines) << params.log_n;
    line &= (1u << log_lines) - 1;
    if (reversed) return start + ((size_t)reverse(line, log_lines) << LOG_ROWS);
    return start + ((size_t)(line >> stride) << (stride + LOG_ROWS)) + (line & ((1u << stride) - 1));
}

__device__ __noinline__ F scaled(uint32_t flags, uint32_t log_n, uint32_t log_scales, const F* scale, size_t address,
                                 F x) {
    if (flags & SCALE_CONSTANT) return MUL(scale[0], x);
    uint32_t i = (uint32_t)address & ((1u << log_n) - 1);
    if (flags & SCALE_REVERSED) i = reverse(i, log_n);
    x = MUL(scale[i & ((1u << log_scales) - 1)], x);
    return MUL(scale[(1u << log_scales) + (i >> log_scales)], x);
}

// The j of a line's twiddles.
__device__ __forceinline__ uint32_t twiddle_index(const Params& params, uint32_t line) {
    uint32_t log_lines = params.log_n - LOG_ROWS, stride = params.stride_in;
    line &= (1u << log_lines) - 1;
    return params.flags & TWIDDLE_OFFSET ? line & ((1u << stride) - 1)
                                         : reverse(line >> stride, log_lines - stride);
}

// Two levels of butterflies on rows i, i + q, i + 2q, i + 3q of a block of 4q rows, the second one if `both`;
// `roots` are of order ROWS.
__device__ __forceinline__ void butterflies(F (&e)[PER_THREAD], const Root* roots, uint32_t log_root, uint32_t i,
                                            uint32_t log_q, bool both) {
    uint32_t done = LOG_ROWS - 2 - log_q + log_root;
#pragma unroll
    for (uint32_t x = 0; x < 2; x++) {
        F difference = SUB(e[x], e[x + 2]);
        e[x] = ADD(e[x], e[x + 2]);
        e[x + 2] = x == 0 && log_q == 0 ? difference : mul_root(difference, roots + ((i + (x << log_q)) << done));
    }
    if (!both) return;
#pragma unroll
    for (uint32_t x = 0; x < PER_THREAD; x += 2) {
        F difference = SUB(e[x], e[x + 1]);
        e[x] = ADD(e[x], e[x + 1]);
        e[x + 1] = log_q == 0 ? difference : mul_root(difference, roots + (i << (done + 1)));
    }
}

#ifdef IN_PLACE
extern "C" __global__ void __launch_bounds__(THREADS, MIN_BLOCKS)
ntt_pass(const Params params, F* x, const Root* roots, const F* twiddles, const F* scale) {
    F* y = x;
#else
extern "C" __global__ void __launch_bounds__(THREADS, MIN_BLOCKS)
ntt_pass(const Params params, const F* x, F* y, const Root* roots, const F* twiddles, const F* scale) {
#endif
    extern __shared__ __align__(16) unsigned char shared[];
    FWord* tile = reinterpret_cast<FWord*>(shared);
    uint32_t first_line = blockIdx.x * COLUMNS;
    roots += params.roots;
    scale += params.scales;
    twiddles += params.twiddles;
    uint32_t log_root = params.log_roots - LOG_ROWS;

    // u numbers the threads of a column, c is the column. Neighbouring threads take neighbouring addresses: columns,
    // or rows of a contiguous line; the four rows of a thread are neighbours where they are reversed in memory.
    uint32_t log_q = LOG_ROWS - 2, u = threadIdx.x / COLUMNS, c = threadIdx.x % COLUMNS;
    if (params.stride_in == 0) {
        u = threadIdx.x % (ROWS / PER_THREAD), c = threadIdx.x / (ROWS / PER_THREAD);
        if (params.flags & ROWS_IN_REVERSED) u = reverse(u, log_q);
    }
    F e[PER_THREAD];
    if (first_line + c < params.lines) {
        size_t start = place(params, first_line + c, params.flags & LOAD_REVERSED, params.stride_in);
#pragma unroll
        for (uint32_t k = 0; k < PER_THREAD; k++) {
            uint32_t r = u + (k << log_q), m = params.flags & ROWS_IN_REVERSED ? reverse(r, LOG_ROWS) : r;
            e[k] = x[start + ((size_t)m << params.stride_in)];
        }
        if (params.flags & SCALE_IN) {
#pragma unroll
            for (uint32_t k = 0; k < PER_THREAD; k++) {
                uint32_t r = u + (k << log_q), m = params.flags & ROWS_IN_REVERSED ? reverse(r, LOG_ROWS) : r;
                size_t address = start + ((size_t)m << params.stride_in);
                e[k] = scaled(params.flags, params.log_n, params.log_scales, scale, address, e[k]);
            }
        }
    } else {
#pragma unroll
        for (uint32_t k = 0; k < PER_THREAD; k++) e[k] = f_zero();
    }

    bool both = LOG_ROWS % 2 == 0;
    uint32_t row = u;
    while (true) {
        butterflies(e, roots, log_root, row & ((1u << log_q) - 1), log_q, both);
        if (log_q == 0) break;
#pragma unroll
        for (uint32_t k = 0; k < PER_THREAD; k++) {
            tile_store(tile, swizzle((row + (k << log_q)) * COLUMNS + c), e[k]);
        }
        __syncthreads();
        log_q -= both ? 2 : 1;
        both = true;
        u = threadIdx.x / COLUMNS, c = threadIdx.x % COLUMNS;
        row = (u >> log_q << (log_q + 2)) + (u & ((1u << log_q) - 1));
#pragma unroll
        for (uint32_t k = 0; k < PER_THREAD; k++) {
            e[k] = tile_load(tile, swizzle((row + (k << log_q)) * COLUMNS + c));
        }
    }

    // Row + k now holds output reverse(row + k).
    uint32_t line = first_line + c;
    bool twiddled = params.flags & (TWIDDLE_OFFSET | TWIDDLE_BLOCK);
    uint32_t j = twiddled ? twiddle_index(params, line) : 0;
    size_t start = place(params, line, params.flags & STORE_REVERSED, params.stride_out);
#pragma unroll
    for (uint32_t k = 0; k < PER_THREAD; k++) {
        uint32_t output = reverse(row + k, LOG_ROWS), m = params.flags & ROWS_OUT_REVERSED ? row + k : output;
        size_t address = start + ((size_t)m << params.stride_out);
        if (twiddled) {
            if (output != 0 && line < params.lines) {
                e[k] = MUL(twiddles[1 + ((output - 1) << params.log_twiddles | j)], e[k]);
            } else if (params.flags & TWIDDLE_ZERO) {
                e[k] = MUL(twiddles[0], e[k]);
            }
        } else {
            if (params.flags & SCALE_OUT) {
                e[k] = scaled(params.flags, params.log_n, params.log_scales, scale, address, e[k]);
            }
            e[k] = CANONICAL(e[k]);
        }
        if (params.stride_out != 0 && line < params.lines) y[address] = e[k];
    }
    if (params.stride_out != 0) return;

    // Contiguous lines are stored by rows.
#pragma unroll
    for (uint32_t k = 0; k < PER_THREAD; k++) tile_store(tile, swizzle((row + k) * COLUMNS + c), e[k]);
    __syncthreads();
#pragma unroll
    for (uint32_t k = 0; k < PER_THREAD; k++) {
        uint32_t t = threadIdx.x + k * THREADS, m = t % ROWS, line = first_line + t / ROWS;
        uint32_t p = params.flags & ROWS_OUT_REVERSED ? m : reverse(m, LOG_ROWS);
        if (line < params.lines) {
            y[place(params, line, params.flags & STORE_REVERSED, 0) + m] =
                tile_load(tile, swizzle(p * COLUMNS + t / ROWS));
        }
    }
}
