// One pass of a transform: DFTs of 2^LOG_ROWS points over all lines, with the passes' twiddles, reorderings and scaling.
//
// A line is the set of elements that one DFT takes; `place` says where it lies. A block owns a tile of 2^LOG_COLUMNS
// neighbouring lines, and each of its threads GROUPS times RADIX = 2^LOG_RADIX elements in registers: rows i + k q of one
// column, k < RADIX, q = ROWS / RADIX at first. It loads them, runs radix-RADIX steps decimated in frequency (LOG_RADIX
// levels of Gentleman-Sande butterflies; the first step has fewer where LOG_ROWS is no multiple), and stores. Between two
// steps the tile passes through shared memory, where it is kept as F_WORDS arrays of words, swizzled so that neighbouring
// threads use different banks. Output k ends at row reverse(k).
//
// Two orders of passes use it (docs/architecture.md, "One pass kernel"):
//   from natural order   lines have strides N/R1, N/(R1 R2), …, 1, and j is the line's offset within its stride
//   from bit-reversed    lines have strides 1, R1, R1 R2, …, and j is the reversed index of the line's block
// After a DFT, output k of a line is multiplied by w^(j k), w of the order of what is left to transform. FACTORS says
// where that comes from: a table of all, two tables whose products they are, or the binary powers of w.
//
// Where INTERLEAVED is defined, element i of transform c lies at i * params.interleaved + c, and neighbouring lines are
// those of neighbouring transforms.
//
// Where F_LAZY holds, values stay in [0, 2p) until the last pass, and the roots within a pass are multiplied by with
// precomputed quotients. 4 elements of 8 limbs, a root and its quotient need some 80 registers: three blocks of 256
// threads on a multiprocessor.

#define ROWS (1u << LOG_ROWS)
#define COLUMNS (1u << LOG_COLUMNS)
#define LOG_TILE (LOG_ROWS + LOG_COLUMNS)
#define TILE (1u << LOG_TILE)
#define RADIX (1u << LOG_RADIX)
#define GROUPS (TILE / RADIX / THREADS)
#define FIRST_LEVELS ((LOG_ROWS - 1) % LOG_RADIX + 1)

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

#define STORED 0
#define TWO_TABLES 1
#define BINARY_POWERS 2
#define ON_THE_FLY 3

struct Params {
    uint32_t lines;      // of all transforms of the batch
    uint32_t log_n;      // of one transform
    uint32_t stride_in;  // log2 of the distance of a line's elements where they are loaded
    uint32_t stride_out; // … where they are stored
    uint32_t flags;
    uint32_t roots;        // where in `roots` the roots w^i start, w of order 2^log_roots, i < 2^(log_roots - 1)
    uint32_t log_roots;
    uint32_t twiddles;     // where in `twiddles` this pass' factors start
    uint32_t log_twiddles; // log2 of the number of j
    uint32_t shift;        // log2 of the power of the plan's root that w is
    uint32_t split;        // TWO_TABLES: log2 of the entries of the first
    uint32_t scales;       // where in `scale` s^i starts, i < 2^log_scales; c s^(i 2^log_scales) follows
    uint32_t log_scales;
    uint32_t interleaved; // transforms side by side
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

// Neighbouring threads take neighbouring columns, rows at a distance of RADIX, neighbouring rows, or such with their
// bits reversed: each time different banks, 2^BANKS words wide.
__device__ __forceinline__ uint32_t swizzle(uint32_t i) {
    constexpr uint32_t BANKS = F_ALIGN == 16 ? 3 : F_ALIGN == 8 ? 4 : 5;
    uint32_t x = i >> LOG_RADIX;
    if (LOG_COLUMNS > 0 && LOG_COLUMNS != LOG_RADIX) x ^= i >> LOG_COLUMNS;
    if (LOG_TILE > BANKS + LOG_RADIX && LOG_TILE > BANKS + LOG_COLUMNS) x ^= i >> (LOG_TILE - BANKS);
    return i ^ (x & ((1u << BANKS) - 1));
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

// Where an element of a line lies.
__device__ __forceinline__ uint32_t address(const Params& params, const Line& line, uint32_t position) {
#ifdef INTERLEAVED
    return position * params.interleaved + line.column;
#else
    return position;
#endif
}

// Whether the elements of a line are neighbours.
__device__ __forceinline__ bool contiguous(uint32_t stride) {
#ifdef INTERLEAVED
    return false;
#else
    return stride == 0;
#endif
}

// The position of row 0 of a line; that of row r is r << stride further.
__device__ __forceinline__ uint32_t place(const Params& params, const Line& line, bool reversed, uint32_t stride) {
    uint32_t log_lines = params.log_n - LOG_ROWS, index = line.index & ((1u << log_lines) - 1);
    uint32_t start = line.index >> log_lines << params.log_n;
    if (reversed) return start + (reverse(index, log_lines) << LOG_ROWS);
    return start + (index >> stride << (stride + LOG_ROWS)) + (index & ((1u << stride) - 1));
}

__device__ __noinline__ F scaled(uint32_t flags, uint32_t log_n, uint32_t log_scales, const F* scale, uint32_t position,
                                 F x) {
    if (flags & SCALE_CONSTANT) return MUL(scale[0], x);
    uint32_t i = position & ((1u << log_n) - 1);
    if (flags & SCALE_REVERSED) i = reverse(i, log_n);
    x = MUL(scale[i & ((1u << log_scales) - 1)], x);
    return MUL(scale[(1u << log_scales) + (i >> log_scales)], x);
}

// The j of a line's twiddles.
__device__ __forceinline__ uint32_t twiddle_index(const Params& params, const Line& line) {
    uint32_t log_lines = params.log_n - LOG_ROWS, stride = params.stride_in;
    uint32_t index = line.index & ((1u << log_lines) - 1);
    return params.flags & TWIDDLE_OFFSET ? index & ((1u << stride) - 1) : reverse(index >> stride, log_lines - stride);
}

// x times the factor of output k and index j.
__device__ __forceinline__ F twiddled(const Params& params, const F* twiddles, uint32_t j, uint32_t k, F x) {
#if FACTORS == STORED
    if (k != 0) return MUL(twiddles[1 + ((k - 1) << params.log_twiddles | j)], x);
    return params.flags & TWIDDLE_ZERO ? MUL(twiddles[0], x) : x;
#else
    uint32_t e = j * k << params.shift;
    if (e == 0 && !(params.flags & TWIDDLE_ZERO)) return x;
#if FACTORS == TWO_TABLES
    x = MUL(twiddles[e & ((1u << params.split) - 1)], x);
    return MUL(twiddles[(1u << params.split) + (e >> params.split)], x);
#else
    if (params.flags & TWIDDLE_ZERO) x = MUL(twiddles[0], x);
    F power = twiddles[1];
    for (uint32_t bit = 1; e != 0; bit++, e >>= 1) {
        if (e & 1) x = MUL(power, x);
        power = FACTORS == BINARY_POWERS ? twiddles[bit + 1] : f_mul(power, power);
    }
    return x;
#endif
#endif
}

// Levels of butterflies on rows i + k q of a block of RADIX q rows; `roots` are of order ROWS.
__device__ __forceinline__ void butterflies(F (&e)[RADIX], const Root* roots, uint32_t log_root, uint32_t i,
                                            uint32_t log_q, uint32_t levels) {
    uint32_t done = LOG_ROWS - LOG_RADIX - log_q + log_root;
#pragma unroll
    for (uint32_t level = 0; level < LOG_RADIX; level++) {
        if (level >= levels) return;
        uint32_t distance = RADIX >> (level + 1);
#pragma unroll
        for (uint32_t k = 0; k < RADIX; k++) {
            if (k & distance) continue;
            uint32_t x = k & (distance - 1);
            F difference = SUB(e[k], e[k + distance]);
            e[k] = ADD(e[k], e[k + distance]);
            bool trivial = x == 0 && log_q == 0;
            e[k + distance] = trivial ? difference : mul_root(difference, roots + ((i + (x << log_q)) << (done + level)));
        }
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

    // Neighbouring threads take neighbouring addresses: columns, or rows of a contiguous line; the rows of a thread are
    // neighbours where they are reversed in memory.
    uint32_t log_q = LOG_ROWS - LOG_RADIX;
    uint32_t row[GROUPS], column[GROUPS];
    F e[GROUPS][RADIX];
#pragma unroll
    for (uint32_t g = 0; g < GROUPS; g++) {
        uint32_t v = threadIdx.x + g * THREADS;
        row[g] = v / COLUMNS, column[g] = v % COLUMNS;
        if (contiguous(params.stride_in)) {
            row[g] = v % (ROWS / RADIX), column[g] = v / (ROWS / RADIX);
            if (params.flags & ROWS_IN_REVERSED) row[g] = reverse(row[g], log_q);
        }
        if (first_line + column[g] < params.lines) {
            Line line = line_of(params, first_line + column[g]);
            uint32_t start = place(params, line, params.flags & LOAD_REVERSED, params.stride_in);
#pragma unroll
            for (uint32_t k = 0; k < RADIX; k++) {
                uint32_t r = row[g] + (k << log_q), m = params.flags & ROWS_IN_REVERSED ? reverse(r, LOG_ROWS) : r;
                e[g][k] = x[address(params, line, start + (m << params.stride_in))];
            }
            if (params.flags & SCALE_IN) {
#pragma unroll
                for (uint32_t k = 0; k < RADIX; k++) {
                    uint32_t r = row[g] + (k << log_q), m = params.flags & ROWS_IN_REVERSED ? reverse(r, LOG_ROWS) : r;
                    uint32_t position = start + (m << params.stride_in);
                    e[g][k] = scaled(params.flags, params.log_n, params.log_scales, scale, position, e[g][k]);
                }
            }
        } else {
#pragma unroll
            for (uint32_t k = 0; k < RADIX; k++) e[g][k] = f_zero();
        }
    }

    uint32_t levels = FIRST_LEVELS;
    while (true) {
#pragma unroll
        for (uint32_t g = 0; g < GROUPS; g++) {
            butterflies(e[g], roots, log_root, row[g] & ((1u << log_q) - 1), log_q, levels);
        }
        if (log_q == 0) break;
#pragma unroll
        for (uint32_t g = 0; g < GROUPS; g++) {
#pragma unroll
            for (uint32_t k = 0; k < RADIX; k++) {
                tile_store(tile, swizzle((row[g] + (k << log_q)) * COLUMNS + column[g]), e[g][k]);
            }
        }
        __syncthreads();
        log_q -= levels;
        levels = LOG_RADIX;
#pragma unroll
        for (uint32_t g = 0; g < GROUPS; g++) {
            uint32_t v = threadIdx.x + g * THREADS, u = v / COLUMNS;
            row[g] = (u >> log_q << (log_q + LOG_RADIX)) + (u & ((1u << log_q) - 1)), column[g] = v % COLUMNS;
#pragma unroll
            for (uint32_t k = 0; k < RADIX; k++) {
                e[g][k] = tile_load(tile, swizzle((row[g] + (k << log_q)) * COLUMNS + column[g]));
            }
        }
    }

    // Row + k now holds output reverse(row + k).
#pragma unroll
    for (uint32_t g = 0; g < GROUPS; g++) {
        bool inside = first_line + column[g] < params.lines;
        Line line = line_of(params, first_line + column[g]);
        bool factors = params.flags & (TWIDDLE_OFFSET | TWIDDLE_BLOCK);
        uint32_t j = factors ? twiddle_index(params, line) : 0;
        uint32_t start = place(params, line, params.flags & STORE_REVERSED, params.stride_out);
#pragma unroll
        for (uint32_t k = 0; k < RADIX; k++) {
            uint32_t output = reverse(row[g] + k, LOG_ROWS);
            uint32_t m = params.flags & ROWS_OUT_REVERSED ? row[g] + k : output;
            uint32_t position = start + (m << params.stride_out);
            if (factors) {
                if (inside) e[g][k] = twiddled(params, twiddles, j, output, e[g][k]);
            } else {
                if (params.flags & SCALE_OUT) {
                    e[g][k] = scaled(params.flags, params.log_n, params.log_scales, scale, position, e[g][k]);
                }
                e[g][k] = CANONICAL(e[g][k]);
            }
            if (!contiguous(params.stride_out) && inside) y[address(params, line, position)] = e[g][k];
        }
    }
    if (!contiguous(params.stride_out)) return;

    // Contiguous lines are stored by rows.
#pragma unroll
    for (uint32_t g = 0; g < GROUPS; g++) {
#pragma unroll
        for (uint32_t k = 0; k < RADIX; k++) {
            tile_store(tile, swizzle((row[g] + k) * COLUMNS + column[g]), e[g][k]);
        }
    }
    __syncthreads();
#pragma unroll
    for (uint32_t k = 0; k < GROUPS * RADIX; k++) {
        uint32_t t = threadIdx.x + k * THREADS, m = t % ROWS, line = first_line + t / ROWS;
        uint32_t p = params.flags & ROWS_OUT_REVERSED ? m : reverse(m, LOG_ROWS);
        if (line < params.lines) {
            y[place(params, {line, 0}, params.flags & STORE_REVERSED, 0) + m] =
                tile_load(tile, swizzle(p * COLUMNS + t / ROWS));
        }
    }
}
