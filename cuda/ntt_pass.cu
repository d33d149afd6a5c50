// One pass of a transform: DFTs of 2^LOG_ROWS points over all lines, with the passes' twiddles, reorderings and scaling.
//
// A line is the set of elements that one DFT takes; `place` says where it lies. A block owns a tile of 2^LOG_COLUMNS
// neighbouring lines in shared memory (F_WORDS arrays of 16-byte words, so that neighbours use neighbouring banks):
// it loads them, runs LOG_ROWS radix-2 steps decimated in frequency (Gentleman-Sande), which leave output k at row
// reverse(k), and stores. Thread t owns butterfly t of every step.
//
// Two orders of passes use it (docs/architecture.md, "One pass kernel"):
//   from natural order   lines have strides N/R1, N/(R1 R2), …, 1, and j is the line's offset within its stride
//   from bit-reversed    lines have strides 1, R1, R1 R2, …, and j is the reversed index of the line's block
// After a DFT, output k of a line is multiplied by w^(j k), w of the order of what is left to transform.

#define ROWS (1u << LOG_ROWS)
#define COLUMNS (1u << LOG_COLUMNS)
#define TILE (ROWS * COLUMNS)

#define LOAD_REVERSED 1u     // lines are numbered by reversed block index, and contiguous, where they are loaded
#define STORE_REVERSED 2u    // … where they are stored
#define ROWS_IN_REVERSED 4u  // row m in memory is element reverse(m) of the line
#define ROWS_OUT_REVERSED 8u // output k goes to row reverse(k)
#define TWIDDLE_OFFSET 16u   // j is the line's offset within its stride
#define TWIDDLE_BLOCK 32u    // j is the reversed index of the line's block
#define INVERSE 64u          // twiddles and roots are inverted
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
    uint32_t roots;           // where in `tables` the roots w_ROOTS^i start, i < 2^(log_roots - 1)
    uint32_t log_roots;
    uint32_t twiddles;        // where w_N^i starts, i < 2^log_twiddles; w_N^(i 2^log_twiddles) follows
    uint32_t log_twiddles;
    uint32_t scales;          // where in `scale` s^i starts, i < 2^log_scales; c s^(i 2^log_scales) follows
    uint32_t log_scales;
};

__device__ __forceinline__ uint32_t reverse(uint32_t x, uint32_t bits) {
    return __brev(x) >> 1 >> (31 - bits);
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

// first[e mod 2^log] * second[e / 2^log], where the second table follows the first; the first alone if e < 2^log.
__device__ __forceinline__ F power(const F* first, uint32_t log, uint32_t e) {
    F x = first[e & ((1u << log) - 1)];
    uint32_t high = e >> log;
    return high == 0 ? x : f_mul(x, first[(1u << log) + high]);
}

__device__ __forceinline__ F scaled(const Params& params, const F* scale, size_t address, const F& x) {
    const F* table = scale + params.scales;
    if (params.flags & SCALE_CONSTANT) return f_mul(x, table[0]);
    uint32_t i = (uint32_t)address & ((1u << params.log_n) - 1);
    if (params.flags & SCALE_REVERSED) i = reverse(i, params.log_n);
    F s = table[i & ((1u << params.log_scales) - 1)];
    return f_mul(x, f_mul(s, table[(1u << params.log_scales) + (i >> params.log_scales)]));
}

// The exponent j of a line's twiddles, with the order of what is left to transform scaled to N.
__device__ __forceinline__ uint32_t twiddle_step(const Params& params, uint32_t line) {
    uint32_t log_lines = params.log_n - LOG_ROWS, stride = params.stride_in;
    line &= (1u << log_lines) - 1;
    if (params.flags & TWIDDLE_OFFSET) return (line & ((1u << stride) - 1)) << (log_lines - stride);
    if (params.flags & TWIDDLE_BLOCK) return reverse(line >> stride, log_lines - stride) << stride;
    return 0;
}

#ifdef IN_PLACE
extern "C" __global__ void __launch_bounds__(THREADS)
ntt_pass(const Params params, F* x, const F* tables, const F* scale) {
    F* y = x;
#else
extern "C" __global__ void __launch_bounds__(THREADS)
ntt_pass(const Params params, const F* x, F* y, const F* tables, const F* scale) {
#endif
    extern __shared__ __align__(16) unsigned char shared[];
    FWord* tile = reinterpret_cast<FWord*>(shared);
    uint32_t first_line = blockIdx.x * COLUMNS;

    for (uint32_t t = threadIdx.x; t < TILE; t += THREADS) {
        // Neighbouring threads take neighbouring addresses: rows of a contiguous line, else columns.
        bool contiguous = params.stride_in == 0;
        uint32_t m = contiguous ? t % ROWS : t / COLUMNS, c = contiguous ? t / ROWS : t % COLUMNS;
        uint32_t r = params.flags & ROWS_IN_REVERSED ? reverse(m, LOG_ROWS) : m;
        if (first_line + c < params.lines) {
            size_t address = place(params, first_line + c, params.flags & LOAD_REVERSED, params.stride_in)
                + ((size_t)m << params.stride_in);
            F v = x[address];
            if (params.flags & SCALE_IN) v = scaled(params, scale, address, v);
            tile_store(tile, r * COLUMNS + c, v);
        }
    }
    __syncthreads();

    for (uint32_t step = 0; step < LOG_ROWS; step++) {
        uint32_t half = ROWS >> (step + 1);
        for (uint32_t t = threadIdx.x; t < TILE / 2; t += THREADS) {
            uint32_t c = t % COLUMNS, butterfly = t / COLUMNS, i = butterfly & (half - 1);
            uint32_t top = (2 * butterfly - i) * COLUMNS + c, bottom = top + half * COLUMNS;
            F u = tile_load(tile, top), v = tile_load(tile, bottom);
            F w = tables[params.roots + (i << (step + params.log_roots - LOG_ROWS))];
            tile_store(tile, top, f_add(u, v));
            v = f_sub(u, v);
            tile_store(tile, bottom, half == 1 ? v : f_mul(v, w));
        }
        __syncthreads();
    }

    for (uint32_t t = threadIdx.x; t < TILE; t += THREADS) {
        bool contiguous = params.stride_out == 0;
        uint32_t m = contiguous ? t % ROWS : t / COLUMNS, c = contiguous ? t / ROWS : t % COLUMNS;
        uint32_t k = params.flags & ROWS_OUT_REVERSED ? reverse(m, LOG_ROWS) : m, line = first_line + c;
        if (line < params.lines) {
            F v = tile_load(tile, reverse(k, LOG_ROWS) * COLUMNS + c);
            uint32_t e = twiddle_step(params, line) * k;
            if (params.flags & INVERSE) e = (0 - e) & ((1u << params.log_n) - 1);
            if (e != 0) v = f_mul(v, power(tables + params.twiddles, params.log_twiddles, e));
            size_t address = place(params, line, params.flags & STORE_REVERSED, params.stride_out)
                + ((size_t)m << params.stride_out);
            if (params.flags & SCALE_OUT) v = scaled(params, scale, address, v);
            y[address] = v;
        }
    }
}
