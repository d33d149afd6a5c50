// One pass of a transform: DFTs of 2^LOG_ROWS points over all lines, with the passes' twiddles, reorderings and scaling.
// The CUDA twin says what lines, tiles and flags are. A thread owns four elements: rows i, i + q, i + 2q, i + 3q of one
// column. The tile in workgroup memory is swizzled as there.

const ROWS = 1u << LOG_ROWS;
const COLUMNS = 1u << LOG_COLUMNS;
const TILE = ROWS * COLUMNS;
const LOG_QUARTER = LOG_ROWS - 2u;

const LOAD_REVERSED = 1u;
const STORE_REVERSED = 2u;
const ROWS_IN_REVERSED = 4u;
const ROWS_OUT_REVERSED = 8u;
const TWIDDLE_OFFSET = 16u;
const TWIDDLE_BLOCK = 32u;
const TWIDDLE_ZERO = 64u;
const SCALE_IN = 128u;
const SCALE_OUT = 256u;
const SCALE_REVERSED = 512u;
const SCALE_CONSTANT = 1024u;

struct Params {
    lines: u32,
    log_n: u32,
    stride_in: u32,
    stride_out: u32,
    flags: u32,
    roots: u32,
    log_roots: u32,
    twiddles: u32,
    log_twiddles: u32,
    scales: u32,
    log_scales: u32,
}

fn reverse(x: u32, bits: u32) -> u32 {
    return (reverseBits(x) >> 1u) >> (31u - bits);
}

fn swizzle(i: u32) -> u32 {
    return i ^ ((i >> 2u) & 7u);
}

fn is_set(flag: u32) -> bool {
    return (params.flags & flag) != 0u;
}

// Where row 0 of a line lies; row r lies r << stride further.
fn place(line: u32, reversed: bool, stride: u32) -> u32 {
    let log_lines = params.log_n - LOG_ROWS;
    let start = (line >> log_lines) << params.log_n;
    let index = line & ((1u << log_lines) - 1u);
    if (reversed) {
        return start + (reverse(index, log_lines) << LOG_ROWS);
    }
    return start + ((index >> stride) << (stride + LOG_ROWS)) + (index & ((1u << stride) - 1u));
}

fn scaled(address: u32, x: F) -> F {
    var low = params.scales;
    var y = x;
    if (!is_set(SCALE_CONSTANT)) {
        var i = address & ((1u << params.log_n) - 1u);
        if (is_set(SCALE_REVERSED)) {
            i = reverse(i, params.log_n);
        }
        low += i & ((1u << params.log_scales) - 1u);
        y = f_mul(x, scale_load(params.scales + (1u << params.log_scales) + (i >> params.log_scales)));
    }
    return f_mul(y, scale_load(low));
}

fn loaded(address: u32) -> F {
    let x = x_load(address);
    if (is_set(SCALE_IN)) {
        return scaled(address, x);
    }
    return x;
}

// The j of a line's twiddles.
fn twiddle_index(line: u32) -> u32 {
    let log_lines = params.log_n - LOG_ROWS;
    let index = line & ((1u << log_lines) - 1u);
    if (is_set(TWIDDLE_OFFSET)) {
        return index & ((1u << params.stride_in) - 1u);
    }
    return reverse(index >> params.stride_in, log_lines - params.stride_in);
}

// x times root i, which is one if `trivial`. Of the three forms of a root, Montgomery's is the first.
fn times(x: F, i: u32, trivial: bool) -> F {
    if (trivial) {
        return x;
    }
    return f_mul(x, roots_load(3u * (params.roots + i)));
}

// Output `output` of a line with twiddle index j, as it is to be stored.
fn finished(x: F, output: u32, j: u32, address: u32) -> F {
    if (is_set(TWIDDLE_OFFSET | TWIDDLE_BLOCK)) {
        if (output == 0u && !is_set(TWIDDLE_ZERO)) {
            return x;
        }
        let row = 1u + (((output - 1u) << params.log_twiddles) | j);
        return f_mul(x, twiddles_load(params.twiddles + select(row, 0u, output == 0u)));
    }
    if (is_set(SCALE_OUT)) {
        return scaled(address, x);
    }
    return x;
}

@compute @workgroup_size(THREADS)
fn ntt_pass(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
            @builtin(local_invocation_index) thread: u32) {
    let first_line = (group.x + group.y * groups.x) * COLUMNS;

    // u numbers the threads of a column, c is the column. Neighbouring threads take neighbouring addresses: columns, or
    // rows of a contiguous line; the four rows of a thread are neighbours where they are reversed in memory.
    var log_q = LOG_QUARTER;
    var u = thread / COLUMNS;
    var c = thread % COLUMNS;
    if (params.stride_in == 0u) {
        u = thread % (ROWS / 4u);
        c = thread / (ROWS / 4u);
        if (is_set(ROWS_IN_REVERSED)) {
            u = reverse(u, LOG_QUARTER);
        }
    }
    var e0 = f_zero();
    var e1 = f_zero();
    var e2 = f_zero();
    var e3 = f_zero();
    if (first_line + c < params.lines) {
        let start = place(first_line + c, is_set(LOAD_REVERSED), params.stride_in);
        let reversed = is_set(ROWS_IN_REVERSED);
        let q = 1u << log_q;
        e0 = loaded(start + (select(u, reverse(u, LOG_ROWS), reversed) << params.stride_in));
        e1 = loaded(start + (select(u + q, reverse(u + q, LOG_ROWS), reversed) << params.stride_in));
        e2 = loaded(start + (select(u + 2u * q, reverse(u + 2u * q, LOG_ROWS), reversed) << params.stride_in));
        e3 = loaded(start + (select(u + 3u * q, reverse(u + 3u * q, LOG_ROWS), reversed) << params.stride_in));
    }

    // Two levels of butterflies a step; one in the first step where LOG_ROWS is odd.
    let steps = (LOG_ROWS + 1u) / 2u;
    var row = u;
    for (var step = 0u; step < steps; step++) {
        let trivial = log_q == 0u;
        let both = step > 0u || LOG_ROWS % 2u == 0u;
        let done = LOG_QUARTER - log_q + params.log_roots - LOG_ROWS;
        let i = row & ((1u << log_q) - 1u);
        var d = f_sub(e0, e2);
        e0 = f_add(e0, e2);
        e2 = times(d, i << done, trivial);
        d = f_sub(e1, e3);
        e1 = f_add(e1, e3);
        e3 = times(d, (i + (1u << log_q)) << done, false);
        if (both) {
            d = f_sub(e0, e1);
            e0 = f_add(e0, e1);
            e1 = times(d, i << (done + 1u), trivial);
            d = f_sub(e2, e3);
            e2 = f_add(e2, e3);
            e3 = times(d, i << (done + 1u), trivial);
        }
        if (step + 1u < steps) {
            let before = 1u << log_q;
            tile_store(swizzle(row * COLUMNS + c), e0);
            tile_store(swizzle((row + before) * COLUMNS + c), e1);
            tile_store(swizzle((row + 2u * before) * COLUMNS + c), e2);
            tile_store(swizzle((row + 3u * before) * COLUMNS + c), e3);
            workgroupBarrier();
            log_q -= select(1u, 2u, both);
            let q = 1u << log_q;
            u = thread / COLUMNS;
            c = thread % COLUMNS;
            row = ((u >> log_q) << (log_q + 2u)) + (u & (q - 1u));
            e0 = tile_load(swizzle(row * COLUMNS + c));
            e1 = tile_load(swizzle((row + q) * COLUMNS + c));
            e2 = tile_load(swizzle((row + 2u * q) * COLUMNS + c));
            e3 = tile_load(swizzle((row + 3u * q) * COLUMNS + c));
        }
    }

    // Row + k now holds output reverse(row + k); contiguous lines go through workgroup memory to be stored by rows.
    tile_store(swizzle(row * COLUMNS + c), e0);
    tile_store(swizzle((row + 1u) * COLUMNS + c), e1);
    tile_store(swizzle((row + 2u) * COLUMNS + c), e2);
    tile_store(swizzle((row + 3u) * COLUMNS + c), e3);
    workgroupBarrier();
    let contiguous = params.stride_out == 0u;
    for (var k = 0u; k < 4u; k++) {
        let t = thread + k * THREADS;
        let m = select(t / COLUMNS, t % ROWS, contiguous);
        let column = select(t % COLUMNS, t / ROWS, contiguous);
        let output = select(m, reverse(m, LOG_ROWS), is_set(ROWS_OUT_REVERSED));
        let line = first_line + column;
        if (line < params.lines) {
            let address = place(line, is_set(STORE_REVERSED), params.stride_out) + (m << params.stride_out);
            let v = tile_load(swizzle(reverse(output, LOG_ROWS) * COLUMNS + column));
            y_store(address, finished(v, output, twiddle_index(line), address));
        }
    }
}
