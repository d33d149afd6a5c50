// One pass of a transform: DFTs of 2^LOG_ROWS points over all lines, with the passes' twiddles, reorderings and scaling.
//
// A line is the set of elements that one DFT takes; `place` (ntt/lines.cuh) says where it lies. A block owns a tile of 2^LOG_COLUMNS
// neighbouring lines, from params.first on, and each of its threads GROUPS times RADIX = 2^LOG_RADIX elements in registers: rows i + k q of one
// column, k < RADIX, q = ROWS / RADIX at first. It loads them, runs radix-RADIX steps decimated in frequency (LOG_RADIX
// levels of Gentleman-Sande butterflies; the first step has fewer where LOG_ROWS is no multiple), and stores. Between two
// steps the tile passes through shared memory, where it is kept as F_WORDS arrays of words, swizzled so that neighbouring
// threads use different banks. Output k ends at row reverse(k).
//
// Two orders of passes use it (docs/design/ntt.md, "One pass kernel"):
//   from natural order   lines have strides N/R1, N/(R1 R2), …, 1, and j is the line's offset within its stride
//   from bit-reversed    lines have strides 1, R1, R1 R2, …, and j is the reversed index of the line's block
// After a DFT, output k of a line is multiplied by w^(j k), w of the order of what is left to transform. TWIDDLES says
// where that comes from: a table of all or of half of them, two tables whose products they are, or powers of w.
//
// Where INTERLEAVED is defined, element i of transform c < params.interleaved lies at i * params.row_in + c where it is loaded, and
// neighbouring lines are those of neighbouring transforms.
//
// The flags and the values of TWIDDLES are declared in `pass.rs` of the crate for transforms, which says what each does. FLAGS,
// where it is defined, is params.flags known ahead: on an H200 a transform of 2^24 elements then took 3.4 instead of 3.7 ms
// with 8 limbs, and 0.18 instead of 0.33 ms with one, most of whose instructions were about flags. LOG_ROOT is defined with it:
// params.log_roots less LOG_ROWS.
//
// Where F_LAZY holds, values stay in [0, 2p) until the last pass, and the roots within a pass are multiplied by with
// precomputed quotients, as are factors WITH_QUOTIENTS, each an integer and its quotient. 4 elements of 8 limbs, a root and its quotient need some 80 registers: three blocks of 256
// threads on a multiprocessor.
//
// Sources: Gentleman and Sande, "Fast Fourier transforms: for fun and profit", AFIPS Conference Proceedings 29 (1966),
// for the butterflies; Bailey, "FFTs in external or hierarchical memory", Journal of Supercomputing 4 (1990), for a
// transform as passes with twiddles between them; field/shoup.cuh and field/goldilocks.cuh name those of products with
// roots.

#define ROWS (1u << LOG_ROWS)
#define COLUMNS (1u << LOG_COLUMNS)
#define LOG_TILE (LOG_ROWS + LOG_COLUMNS)
#define TILE (1u << LOG_TILE)
#define RADIX (1u << LOG_RADIX)
#define GROUPS (TILE / RADIX / THREADS)
#define FIRST_LEVELS ((LOG_ROWS - 1) % LOG_RADIX + 1)
#define STEPS ((LOG_ROWS + LOG_RADIX - 1) / LOG_RADIX)
// Loops over steps are unrolled: where their elements lie in the tile is known then.
// Short elements take less time to multiply by twice than stored factors take to load: few are loaded.
#define SHORT (F_LIMBS <= 2 && LOG_RADIX > 2)
#define STEPPED (TWIDDLES == STORED && SHORT)

// Where ROOT_SHIFT is defined, the root of order 16 of the direction of the transform is 2^ROOT_SHIFT: a step does its transforms
// by shifts, and multiplies by other roots once afterwards.
#ifdef ROOT_SHIFT
#define BY_SHIFTS (F_GOLDILOCKS)
#else
#define BY_SHIFTS 0
#endif

// A root in Montgomery form; as an integer, and floor(2^(32 F_LIMBS) / p) times that.
struct Root {
    F montgomery, integer, quotient;
};

#if F_LAZY
#define CANONICAL f_reduce

__device__ __forceinline__ F mul_root(const F& x, const Root* root) {
    return f_mul_shoup(x, f_load(&root->integer), f_load(&root->quotient));
}
#else
#if BY_SHIFTS
#define CANONICAL f_canonical
#else
#define CANONICAL(x) (x)
#endif

__device__ __forceinline__ F mul_root(const F& x, const Root* root) {
#if F_LIMBS == 1 && !F_FULL
    return f_mul_shoup(x, root->integer, root->quotient);
#else
    return f_mul(x, root->montgomery);
#endif
}
#endif

// (a - b) times a root, or one that is trivial.
__device__ __forceinline__ F difference(const F& a, const F& b, const Root* root, bool trivial) {
    if (trivial) return SUB(a, b);
#if F_LIMBS == 1 && F_PTX
    // One factor may be up to 2p, as that is below 2^32.
    return mul_root(F{{a.l[0] - b.l[0] + f_modulus(0)}}, root);
#else
    return mul_root(SUB(a, b), root);
#endif
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

// How far apart elements of a line are whose rows are 2^log_rows apart.
__device__ __forceinline__ uint32_t distance(uint32_t row, uint32_t log_rows, uint32_t stride) {
#ifdef INTERLEAVED
    return row << (log_rows + stride);
#else
    return 1u << (log_rows + stride);
#endif
}

// The k-th element, k a constant, of those so far apart. One wide product finds it, or where multiplying is what a pass waits for,
// one of 32 bits and additions: on an H200 the last pass of 2^24 elements of 8 limbs took 650 us so, and 665 with wide products,
// and a pass over BabyBear 53.7 us, and 51.0 with wide products.
template <typename T>
__device__ __forceinline__ T* at(T* first, uint32_t k, uint32_t distance) {
#if F_LIMBS > 2
    return first + distance * k;
#else
    return (T*)((char*)first + (uint64_t)distance * (k * (uint32_t)sizeof(T)));
#endif
}

// An element that this pass reads once. Where tables need the caches more, it leaves them first: transforms of 2^20 elements of 8
// limbs took 191 us without on an H200, and 189 with; shorter ones more.
__device__ __forceinline__ F load_once(const F* a) {
#if F_LIMBS > 2 && defined(__CUDA_ARCH__)
    F r;
#pragma unroll
    for (int i = 0; i < F_WORDS; i++) reinterpret_cast<FWord*>(&r)[i] = __ldcs(reinterpret_cast<const FWord*>(a) + i);
    return r;
#else
    return *a;
#endif
}

// x times the factor of output k and index j; k may be 0 if `first`.
__device__ __forceinline__ F twiddled(const Params& params, const F* twiddles, uint32_t j, uint32_t k, bool first, F x) {
#if TWIDDLES == WITH_QUOTIENTS
    uint32_t entry = !first || k != 0 ? 1 + ((k - 1) << params.log_twiddles | j) : 0;
    if (entry == 0 && !IS_SET(TWIDDLE_ZERO)) return x;
#if F_LAZY
    return f_mul_shoup(x, f_load(twiddles + 2 * entry), f_load(twiddles + 2 * entry + 1));
#else
    // Where quotients do not serve, the integer's Montgomery form does.
    return MUL(x, f_mul(f_load(twiddles + 2 * entry), F{F_SQUARE}));
#endif
#elif TWIDDLES == STORED
    if (!first || k != 0) return MUL(f_load(twiddles + 1 + ((k - 1) << params.log_twiddles | j)), x);
    return IS_SET(TWIDDLE_ZERO) ? MUL(twiddles[0], x) : x;
#elif TWIDDLES == HALF_STORED
    // w is of the order 2 half, so that w^half is -1.
    uint32_t e = j * k, half = 1u << (params.log_n - params.shift - 1);
    if (e == 0 && !IS_SET(TWIDDLE_ZERO)) return x;
    F factor = f_load(twiddles + 1 + (e & (half - 1)));
    return MUL((e & half) != 0 ? f_sub(f_zero(), factor) : factor, x);
#elif TWIDDLES == TWO_POWERS
    if (IS_SET(TWIDDLE_ZERO)) x = MUL(twiddles[0], x);
    return j == 0 || k == 0 ? x : MUL(power(power(twiddles[1], j), k), x);
#else
    uint32_t e = j * k << params.shift;
    if (e == 0 && !IS_SET(TWIDDLE_ZERO)) return x;
#if TWIDDLES == TWO_TABLES
    x = MUL(twiddles[e & ((1u << params.split) - 1)], x);
    return MUL(twiddles[(1u << params.split) + (e >> params.split)], x);
#else
    if (IS_SET(TWIDDLE_ZERO)) x = MUL(twiddles[0], x);
    F power = twiddles[1];
    for (uint32_t bit = 1; e != 0; bit++, e >>= 1) {
        if (e & 1) x = MUL(power, x);
        power = TWIDDLES == BINARY_POWERS ? twiddles[bit + 1] : f_mul(power, power);
    }
    return x;
#endif
#endif
}

#if SHORT
// Factors of the elements of a thread: each is the one before times the same step.
struct Powers {
    F factor;
#if F_LIMBS == 1 && !F_FULL
    F constant, quotient;
#else
    F step;
#endif
};

__device__ __forceinline__ Powers powers_of(const F& factor, const F& step) {
    Powers powers;
    powers.factor = factor;
#if F_LIMBS == 1 && !F_FULL
    f_shoup_constant(step, &powers.constant, &powers.quotient);
#else
    powers.step = step;
#endif
    return powers;
}

__device__ __forceinline__ void advance(Powers& powers) {
#if F_LIMBS == 1 && !F_FULL
    powers.factor = f_mul_shoup(powers.factor, powers.constant, powers.quotient);
#else
    powers.factor = MUL(powers.factor, powers.step);
#endif
}
#endif

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
            F sum = ADD(e[k], e[k + distance]);
            const Root* root = roots + ((i + (x << log_q)) << (done + level));
            e[k + distance] = difference(e[k], e[k + distance], root, x == 0 && log_q == 0);
            e[k] = sum;
        }
    }
}

#if BY_SHIFTS
// The same by shifts. `circle` holds all powers of the root. What is left are words, maybe not below p.
__device__ __forceinline__ void butterflies(F (&e)[RADIX], const F* circle, uint32_t log_root, uint32_t i, uint32_t log_q,
                                            uint32_t levels) {
    FWide v[RADIX];
#pragma unroll
    for (uint32_t k = 0; k < RADIX; k++) v[k] = f_wide(e[k]);
    // Every output of a whole transform has input 0 as a term, that is never shifted.
    if (levels == LOG_RADIX) v[0] = f_wide_add(v[0], f_wide_multiple());
#pragma unroll
    for (uint32_t level = 0; level < LOG_RADIX; level++) {
        if (level >= levels) break;
        uint32_t distance = RADIX >> (level + 1);
#pragma unroll
        for (uint32_t k = 0; k < RADIX; k++) {
            if (k & distance) continue;
            // 2^96 is -1.
            uint32_t shift = ((k & (distance - 1)) << level) * (16 / RADIX) * ROOT_SHIFT % 192;
            FWide sum = f_wide_add(v[k], v[k + distance]);
            FWide difference = shift < 96 ? f_wide_sub(v[k], v[k + distance]) : f_wide_sub(v[k + distance], v[k]);
            v[k + distance] = f_wide_shift(difference, shift % 96);
            v[k] = sum;
        }
    }
    uint32_t done = LOG_ROWS - LOG_RADIX - log_q + log_root;
#pragma unroll
    for (uint32_t k = 0; k < RADIX; k++) {
        if (levels < LOG_RADIX) v[k] = f_wide_add(v[k], f_wide_multiple());
        e[k] = f_wide_word(v[k]);
        uint32_t output = reverse(k, LOG_RADIX) & ((1u << levels) - 1);
        if (log_q > 0 && output > 0) e[k] = f_mul(e[k], f_load(at(circle, output, i << done)));
    }
}
#endif

// log2 of the distance q of a thread's rows in a step.
__device__ __forceinline__ constexpr uint32_t log_distance(uint32_t step) {
    return step == 0 ? LOG_ROWS - LOG_RADIX : LOG_ROWS - FIRST_LEVELS - step * LOG_RADIX;
}

#ifdef IN_PLACE
extern "C" __global__ void __launch_bounds__(THREADS, MIN_BLOCKS)
ntt_pass(const Params params, BUFFERS(F, Root, F, F)) {
    F* y = x;
#else
extern "C" __global__ void __launch_bounds__(THREADS, MIN_BLOCKS)
ntt_pass(const Params params, BUFFERS(F, F, Root, F, F)) {
#endif
    wait_for_previous();
    extern __shared__ __align__(16) unsigned char shared[];
    FWord* tile = reinterpret_cast<FWord*>(shared);
    uint32_t first_line = params.first + blockIdx.x * COLUMNS;
#if BY_SHIFTS
    // Behind the other roots and 1/n, those of both directions.
    const F* circle = reinterpret_cast<const F*>(roots + (1u << params.log_roots) + 1) + 2 * params.roots;
#endif
    roots += params.roots;
    scale += params.scales;
    twiddles += params.twiddles;
#ifdef LOG_ROOT
    constexpr uint32_t log_root = LOG_ROOT;
#else
    uint32_t log_root = params.log_roots - LOG_ROWS;
#endif

    // Neighbouring threads take neighbouring addresses: columns, or rows of a line of neighbours; the rows of a thread are
    // neighbours where they are reversed in memory.
    uint32_t row[GROUPS], column[GROUPS];
    F e[GROUPS][RADIX];
#pragma unroll
    for (uint32_t g = 0; g < GROUPS; g++) {
        constexpr uint32_t log_q = LOG_ROWS - LOG_RADIX;
        uint32_t v = threadIdx.x + g * THREADS;
        row[g] = v / COLUMNS, column[g] = v % COLUMNS;
        if (IS_SET(LINES_IN)) {
            row[g] = v % (ROWS / RADIX), column[g] = v / (ROWS / RADIX);
            if (IS_SET(ROWS_IN_REVERSED)) row[g] = reverse(row[g], log_q);
        }
        if (first_line + column[g] < params.lines) {
            Line line = line_of(params, first_line + column[g]);
            uint32_t start = place(params, line, IS_SET(LOAD_REVERSED), params.stride_in, params.pitch_in);
            // Rows first + k step, or where they are reversed in memory rows first + reverse(k).
            uint32_t first = IS_SET(ROWS_IN_REVERSED) ? reverse(row[g], LOG_ROWS) : row[g];
            uint32_t step = distance(params.row_in, IS_SET(ROWS_IN_REVERSED) ? 0 : log_q, params.stride_in);
            const F* from = x + address(line, start + (first << params.stride_in), params.row_in);
#pragma unroll
            for (uint32_t k = 0; k < RADIX; k++) {
                e[g][k] = load_once(at(from, IS_SET(ROWS_IN_REVERSED) ? reverse(k, LOG_RADIX) : k, step));
            }
            if (IS_SET(SCALE_IN)) {
#if SHORT
                // Rows row + k q. Where rows are reversed in memory, so are the places that scale.
                bool reversed = IS_SET(ROWS_IN_REVERSED);
                uint32_t log_apart = log_q + (reversed ? params.log_n - LOG_ROWS - params.stride_in : params.stride_in);
                Powers powers = powers_of(scale_of(params, scale, start + (first << params.stride_in), reversed),
                                          scale_of(params, scale, 1u << log_apart, false));
#pragma unroll
                for (uint32_t k = 0; k < RADIX; k++) {
                    e[g][k] = MUL(e[g][k], powers.factor);
                    if (k + 1 < RADIX) advance(powers);
                }
#else
#pragma unroll
                for (uint32_t k = 0; k < RADIX; k++) {
                    uint32_t m = first + (IS_SET(ROWS_IN_REVERSED) ? reverse(k << log_q, LOG_ROWS) : k << log_q);
                    e[g][k] = scaled(params, scale, start + (m << params.stride_in), e[g][k]);
                }
#endif
            }
        } else {
#pragma unroll
            for (uint32_t k = 0; k < RADIX; k++) e[g][k] = f_zero();
        }
    }

#pragma unroll STEPS
    for (uint32_t step = 0; step < STEPS; step++) {
        uint32_t log_q = log_distance(step);
        if (step > 0) {
            // A thread stores where it loaded, so there is no need to wait before.
            uint32_t log_before = log_distance(step - 1);
#pragma unroll
            for (uint32_t g = 0; g < GROUPS; g++) {
                uint32_t first = swizzle(row[g] * COLUMNS + column[g]);
#pragma unroll
                for (uint32_t k = 0; k < RADIX; k++) tile_store(tile, first ^ swizzle((k << log_before) * COLUMNS), e[g][k]);
            }
            __syncthreads();
#pragma unroll
            for (uint32_t g = 0; g < GROUPS; g++) {
                uint32_t v = threadIdx.x + g * THREADS, u = v / COLUMNS;
                row[g] = (u >> log_q << (log_q + LOG_RADIX)) + (u & ((1u << log_q) - 1)), column[g] = v % COLUMNS;
                uint32_t first = swizzle(row[g] * COLUMNS + column[g]);
#pragma unroll
                for (uint32_t k = 0; k < RADIX; k++) e[g][k] = tile_load(tile, first ^ swizzle((k << log_q) * COLUMNS));
            }
        }
#pragma unroll
        for (uint32_t g = 0; g < GROUPS; g++) {
#if BY_SHIFTS
            const F* roots = circle;
#endif
            butterflies(e[g], roots, log_root, row[g] & ((1u << log_q) - 1), log_q, step == 0 ? FIRST_LEVELS : LOG_RADIX);
        }
    }

    // Row + k now holds output reverse(row + k).
#pragma unroll
    for (uint32_t g = 0; g < GROUPS; g++) {
        bool inside = first_line + column[g] < params.lines;
        Line line = line_of(params, first_line + column[g]);
        bool factors = IS_SET(TWIDDLE_OFFSET | TWIDDLE_BLOCK);
        uint32_t j = factors ? twiddle_index(params, line) : 0;
        uint32_t start = place(params, line, IS_SET(STORE_REVERSED), params.stride_out, params.pitch_out);
        uint32_t reversed = reverse(row[g], LOG_ROWS), first = swizzle(row[g] * COLUMNS + column[g]);
#if STEPPED
        if (factors && inside) {
            // Outputs reversed + m ROWS / RADIX, m < RADIX: each has the factor of the one before, times that of ROWS / RADIX.
            const F* table = twiddles + 1 + j;
            F factor = IS_SET(TWIDDLE_ZERO) ? f_load(twiddles) : f_one();
            if (reversed > 0) factor = f_load(table + ((reversed - 1) << params.log_twiddles));
            F step = f_load(table + ((ROWS / RADIX - 1) << params.log_twiddles));
            if (IS_SET(TWIDDLE_ZERO)) step = MUL(step, f_load(twiddles + 1 + ((ROWS - 1) << params.log_twiddles)));
            Powers powers = powers_of(factor, step);
#pragma unroll
            for (uint32_t m = 0; m < RADIX; m++) {
                uint32_t k = reverse(m, LOG_RADIX);
                e[g][k] = MUL(e[g][k], powers.factor);
                if (m + 1 < RADIX) advance(powers);
            }
        }
#else
#pragma unroll
        for (uint32_t k = 0; k < RADIX; k++) {
            uint32_t output = reversed + reverse(k, LOG_ROWS);
            if (factors && inside) e[g][k] = twiddled(params, twiddles, j, output, k == 0, e[g][k]);
        }
#endif
        uint32_t stored = IS_SET(ROWS_OUT_REVERSED) ? row[g] : reversed;
        uint32_t step = distance(params.row_out, IS_SET(ROWS_OUT_REVERSED) ? 0 : LOG_ROWS - LOG_RADIX, params.stride_out);
        F* to = y + address(line, start + (stored << params.stride_out), params.row_out);
#pragma unroll
        for (uint32_t k = 0; k < RADIX; k++) {
            if (!factors) {
                uint32_t m = IS_SET(ROWS_OUT_REVERSED) ? row[g] + k : reversed + reverse(k, LOG_ROWS);
                if (IS_SET(SCALE_OUT)) e[g][k] = scaled(params, scale, start + (m << params.stride_out), e[g][k]);
                e[g][k] = CANONICAL(e[g][k]);
            }
            if (IS_SET(LINES_OUT)) {
                tile_store(tile, first ^ swizzle(k * COLUMNS), e[g][k]);
            } else if (inside) {
                *at(to, IS_SET(ROWS_OUT_REVERSED) ? k : reverse(k, LOG_RADIX), step) = e[g][k];
            }
        }
    }
    if (!IS_SET(LINES_OUT)) return;

    // Lines of neighbours are stored by rows.
    __syncthreads();
#pragma unroll
    for (uint32_t k = 0; k < GROUPS * RADIX; k++) {
        uint32_t t = threadIdx.x + k * THREADS, m = t % ROWS, line = first_line + t / ROWS;
        uint32_t p = IS_SET(ROWS_OUT_REVERSED) ? m : reverse(m, LOG_ROWS);
        if (line < params.lines) {
            y[place(params, {line, 0}, IS_SET(STORE_REVERSED), 0, params.pitch_out) + m] =
                tile_load(tile, swizzle(p * COLUMNS + t / ROWS));
        }
    }
}
