// One pass of a transform: DFTs of 2^LOG_ROWS points over all lines, with the passes' twiddles, reorderings and scaling.
// The CUDA twin says what lines, tiles and flags are. Thread t owns butterflies t, t + THREADS, … of every step.

const ROWS = 1u << LOG_ROWS;
const COLUMNS = 1u << LOG_COLUMNS;
const TILE = ROWS * COLUMNS;

const LOAD_REVERSED = 1u;
const STORE_REVERSED = 2u;
const ROWS_IN_REVERSED = 4u;
const ROWS_OUT_REVERSED = 8u;
const TWIDDLE_OFFSET = 16u;
const TWIDDLE_BLOCK = 32u;
const INVERSE = 64u;
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
    if (is_set(SCALE_CONSTANT)) {
        return f_mul(x, scale_load(params.scales));
    }
    var i = address & ((1u << params.log_n) - 1u);
    if (is_set(SCALE_REVERSED)) {
        i = reverse(i, params.log_n);
    }
    let low = scale_load(params.scales + (i & ((1u << params.log_scales) - 1u)));
    let high = scale_load(params.scales + (1u << params.log_scales) + (i >> params.log_scales));
    return f_mul(x, f_mul(low, high));
}

// The exponent j of a line's twiddles, with the order of what is left to transform scaled to N.
fn twiddle_step(line: u32) -> u32 {
    let log_lines = params.log_n - LOG_ROWS;
    let stride = params.stride_in;
    let index = line & ((1u << log_lines) - 1u);
    if (is_set(TWIDDLE_OFFSET)) {
        return (index & ((1u << stride) - 1u)) << (log_lines - stride);
    }
    if (is_set(TWIDDLE_BLOCK)) {
        return reverse(index >> stride, log_lines - stride) << stride;
    }
    return 0u;
}

fn twiddled(x: F, exponent: u32) -> F {
    var e = exponent;
    if (is_set(INVERSE)) {
        e = (0u - e) & ((1u << params.log_n) - 1u);
    }
    if (e == 0u) {
        return x;
    }
    var w = tables_load(params.twiddles + (e & ((1u << params.log_twiddles) - 1u)));
    let high = e >> params.log_twiddles;
    if (high != 0u) {
        w = f_mul(w, tables_load(params.twiddles + (1u << params.log_twiddles) + high));
    }
    return f_mul(x, w);
}

@compute @workgroup_size(THREADS)
fn ntt_pass(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
            @builtin(local_invocation_index) thread: u32) {
    let first_line = (group.x + group.y * groups.x) * COLUMNS;

    for (var t = thread; t < TILE; t += THREADS) {
        // Neighbouring threads take neighbouring addresses: rows of a contiguous line, else columns.
        let contiguous = params.stride_in == 0u;
        let m = select(t / COLUMNS, t % ROWS, contiguous);
        let c = select(t % COLUMNS, t / ROWS, contiguous);
        let r = select(m, reverse(m, LOG_ROWS), is_set(ROWS_IN_REVERSED));
        if (first_line + c < params.lines) {
            let address = place(first_line + c, is_set(LOAD_REVERSED), params.stride_in) + (m << params.stride_in);
            var v = x_load(address);
            if (is_set(SCALE_IN)) {
                v = scaled(address, v);
            }
            tile_store(r * COLUMNS + c, v);
        }
    }
    workgroupBarrier();

    for (var step = 0u; step < LOG_ROWS; step++) {
        let half = ROWS >> (step + 1u);
        for (var t = thread; t < TILE / 2u; t += THREADS) {
            let c = t % COLUMNS;
            let butterfly = t / COLUMNS;
            let i = butterfly & (half - 1u);
            let top = (2u * butterfly - i) * COLUMNS + c;
            let bottom = top + half * COLUMNS;
            let u = tile_load(top);
            let v = tile_load(bottom);
            tile_store(top, f_add(u, v));
            let d = f_sub(u, v);
            if (half == 1u) {
                tile_store(bottom, d);
            } else {
                tile_store(bottom, f_mul(d, tables_load(params.roots + (i << (step + params.log_roots - LOG_ROWS)))));
            }
        }
        workgroupBarrier();
    }

    for (var t = thread; t < TILE; t += THREADS) {
        let contiguous = params.stride_out == 0u;
        let m = select(t / COLUMNS, t % ROWS, contiguous);
        let c = select(t % COLUMNS, t / ROWS, contiguous);
        let k = select(m, reverse(m, LOG_ROWS), is_set(ROWS_OUT_REVERSED));
        let line = first_line + c;
        if (line < params.lines) {
            var v = twiddled(tile_load(reverse(k, LOG_ROWS) * COLUMNS + c), twiddle_step(line) * k);
            let address = place(line, is_set(STORE_REVERSED), params.stride_out) + (m << params.stride_out);
            if (is_set(SCALE_OUT)) {
                v = scaled(address, v);
            }
            y_store(address, v);
        }
    }
}
