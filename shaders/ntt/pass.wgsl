// One pass of a transform: DFTs of 2^LOG_ROWS points over all lines, with the passes' twiddles, reorderings and scaling.
// The CUDA twin says what lines, tiles and factors are. A thread takes GROUPS times RADIX elements: rows i + k q of
// one column, k < RADIX. The tile stays in workgroup memory between all steps, swizzled as there. What is done with the
// elements of a thread comes before this (ntt/plain.wgsl, ntt/lazy.wgsl): `two` and `four` leave elements that `product` and
// `whole`, which reduces them, take; `last_four` leaves sums for `sum_product` and `sum_reduced`.
//
// Source of a transform as passes with twiddles between them: Bailey, "FFTs in external or hierarchical memory",
// Journal of Supercomputing 4 (1990).

const ROWS = 1u << LOG_ROWS;
const COLUMNS = 1u << LOG_COLUMNS;
const LOG_TILE = LOG_ROWS + LOG_COLUMNS;
const TILE = 1u << LOG_TILE;
const RADIX = 1u << LOG_RADIX;
const GROUPS = TILE / RADIX / THREADS;
const FIRST_LEVELS = (LOG_ROWS - 1u) % LOG_RADIX + 1u;

// What a thread has of a column.
struct Two {
    e0: F,
    e1: F,
}

struct Four {
    e0: F,
    e1: F,
    e2: F,
    e3: F,
}

// The same before sums are reduced.
struct FourSums {
    e0: Sum,
    e1: Sum,
    e2: Sum,
    e3: Sum,
}

fn swizzle(i: u32) -> u32 {
    var x = i >> LOG_RADIX;
    if (LOG_COLUMNS > 0u && LOG_COLUMNS != LOG_RADIX) {
        x ^= i >> LOG_COLUMNS;
    }
    if (LOG_TILE > BANKS + LOG_RADIX && LOG_TILE > BANKS + LOG_COLUMNS) {
        x ^= i >> (LOG_TILE - BANKS);
    }
    return i ^ (x & ((1u << BANKS) - 1u));
}

// The stored factor of output k and index j.
fn stored(j: u32, k: u32) -> F {
    let row = 1u + (((k - 1u) << params.log_twiddles) | j);
    return twiddles_load(params.twiddles + select(row, 0u, k == 0u));
}

// x times the factor of output k and index j, as the next pass takes it.
fn twiddled(x: F, j: u32, k: u32) -> F {
    let zero = is_set(TWIDDLE_ZERO);
    if (TWIDDLES == STORED) {
        if (k == 0u && !zero) {
            return x;
        }
        return product(x, stored(j, k));
    }
    if (TWIDDLES == HALF_STORED) {
        // w is of the order 2 half, so that w^half is -1.
        let half = 1u << (params.log_n - params.shift - 1u);
        if (j * k == 0u && !zero) {
            return x;
        }
        var factor = twiddles_load(params.twiddles + 1u + ((j * k) & (half - 1u)));
        if (((j * k) & half) != 0u) {
            factor = f_sub(f_zero(), factor);
        }
        return product(x, factor);
    }
    if (TWIDDLES == TWO_POWERS) {
        var y = x;
        if (zero) {
            y = f_mul(y, twiddles_load(params.twiddles));
        }
        if (j == 0u || k == 0u) {
            return y;
        }
        return f_mul(y, power(power(twiddles_load(params.twiddles + 1u), j), k));
    }
    var e = (j * k) << params.shift;
    if (e == 0u && !zero) {
        return x;
    }
    if (TWIDDLES == TWO_TABLES) {
        let y = product(x, twiddles_load(params.twiddles + (e & ((1u << params.split) - 1u))));
        return product(y, twiddles_load(params.twiddles + (1u << params.split) + (e >> params.split)));
    }
    var y = x;
    if (zero) {
        y = f_mul(y, twiddles_load(params.twiddles));
    }
    var power = twiddles_load(params.twiddles + 1u);
    for (var bit = 1u; e != 0u; bit++) {
        if ((e & 1u) != 0u) {
            y = f_mul(y, power);
        }
        if (TWIDDLES == BINARY_POWERS) {
            power = twiddles_load(params.twiddles + bit + 1u);
        } else {
            power = f_mul(power, power);
        }
        e >>= 1u;
    }
    return y;
}

// Row r of a column: from memory in the first step, then from the tile.
fn element(first: bool, first_line: u32, start: u32, r: u32, column: u32) -> F {
    if (!first) {
        return tile_load(swizzle(r * COLUMNS + column));
    }
    if (first_line + column >= params.lines) {
        return f_zero();
    }
    let m = select(r, reverse(r, LOG_ROWS), is_set(ROWS_IN_REVERSED));
    let position = start + (m << params.stride_in);
    let x = x_load(address(first_line + column, position, params.row_in));
    if (is_set(SCALE_IN)) {
        return scaled(position, x);
    }
    return x;
}

// Output `output` of a line, as it is to be stored at a position.
fn finished(x: F, output: u32, line: u32, position: u32) -> F {
    if (is_set(TWIDDLE_OFFSET | TWIDDLE_BLOCK)) {
        return twiddled(x, twiddle_index(line), output);
    }
    if (is_set(SCALE_OUT)) {
        return scaled(position, x);
    }
    return whole(x);
}

// Stores what row r of a column holds after the last step, from where it was computed.
fn store_sum(x: Sum, first_line: u32, r: u32, column: u32) {
    let line = first_line + column;
    if (line >= params.lines) {
        return;
    }
    let output = reverse(r, LOG_ROWS);
    let m = select(output, r, is_set(ROWS_OUT_REVERSED));
    let position = place(line, is_set(STORE_REVERSED), params.stride_out, params.pitch_out) + (m << params.stride_out);
    let at = address(line, position, params.row_out);
    if (TWIDDLES == STORED && is_set(TWIDDLE_OFFSET | TWIDDLE_BLOCK) && (output != 0u || is_set(TWIDDLE_ZERO))) {
        y_store(at, sum_product(x, stored(twiddle_index(line), output)));
        return;
    }
    y_store(at, finished(sum_reduced(x), output, line, position));
}

// Levels of butterflies on the rows of thread v of a tile that has lines from `first_line` on.
fn step(first: bool, first_line: u32, v: u32, log_q: u32, levels: u32) {
    let q = 1u << log_q;
    var column = v % COLUMNS;
    let u = v / COLUMNS;
    var row = ((u >> log_q) << (log_q + LOG_RADIX)) + (u & (q - 1u));
    var start = 0u;
    if (first) {
        // Neighbouring threads take neighbouring addresses: columns, or rows of a contiguous line; the rows of a thread
        // are neighbours where they are reversed in memory.
        if (is_set(LINES_IN)) {
            row = v % (ROWS / RADIX);
            column = v / (ROWS / RADIX);
            if (is_set(ROWS_IN_REVERSED)) {
                row = reverse(row, log_q);
            }
        }
        start = place(first_line + column, is_set(LOAD_REVERSED), params.stride_in, params.pitch_in);
    }
    let trivial = log_q == 0u;
    let done = LOG_ROWS - LOG_RADIX - log_q + log_root();
    let i = row & (q - 1u);
    var e0 = element(first, first_line, start, row, column);
    var e1 = element(first, first_line, start, row + q, column);
    if (LOG_RADIX == 1u) {
        let y = two(e0, e1, i << done, trivial);
        e0 = y.e0;
        e1 = y.e1;
    } else {
        let e2 = element(first, first_line, start, row + 2u * q, column);
        let e3 = element(first, first_line, start, row + 3u * q, column);
        if (trivial) {
            // The last step has both levels, whatever their number.
            let y = last_four(Four(e0, e1, e2, e3), 1u << done);
            if (DIRECT) {
                // Stored from here, elements pass neither the tile nor a reduction once more.
                store_sum(y.e0, first_line, row, column);
                store_sum(y.e1, first_line, row + 1u, column);
                store_sum(y.e2, first_line, row + 2u, column);
                store_sum(y.e3, first_line, row + 3u, column);
                return;
            }
            e0 = sum_reduced(y.e0);
            e1 = sum_reduced(y.e1);
            tile_store(swizzle((row + 2u) * COLUMNS + column), sum_reduced(y.e2));
            tile_store(swizzle((row + 3u) * COLUMNS + column), sum_reduced(y.e3));
        } else {
            let y = four(Four(e0, e1, e2, e3), i << done, q << done, levels == 2u);
            e0 = y.e0;
            e1 = y.e1;
            tile_store(swizzle((row + 2u * q) * COLUMNS + column), y.e2);
            tile_store(swizzle((row + 3u * q) * COLUMNS + column), y.e3);
        }
    }
    tile_store(swizzle(row * COLUMNS + column), e0);
    tile_store(swizzle((row + q) * COLUMNS + column), e1);
}

@compute @workgroup_size(THREADS)
fn ntt_pass(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
            @builtin(local_invocation_index) thread: u32) {
    let first_line = params.first + (group.x + group.y * groups.x) * COLUMNS;
    const STEPS = (LOG_ROWS + LOG_RADIX - 1u) / LOG_RADIX;
    var log_q = LOG_ROWS - LOG_RADIX;
    var levels = FIRST_LEVELS;
    for (var s = 0u; s < STEPS; s++) {
        for (var g = 0u; g < GROUPS; g++) {
            step(s == 0u, first_line, thread + g * THREADS, log_q, levels);
        }
        workgroupBarrier();
        log_q -= levels;
        levels = LOG_RADIX;
    }

    if (DIRECT) {
        return;
    }

    // Row + k now holds output reverse(row + k).
    let contiguous = is_set(LINES_OUT);
    for (var k = 0u; k < GROUPS * RADIX; k++) {
        let t = thread + k * THREADS;
        let m = select(t / COLUMNS, t % ROWS, contiguous);
        let column = select(t % COLUMNS, t / ROWS, contiguous);
        let output = select(m, reverse(m, LOG_ROWS), is_set(ROWS_OUT_REVERSED));
        let line = first_line + column;
        if (line < params.lines) {
            let position = place(line, is_set(STORE_REVERSED), params.stride_out, params.pitch_out) + (m << params.stride_out);
            let x = tile_load(swizzle(reverse(output, LOG_ROWS) * COLUMNS + column));
            y_store(address(line, position, params.row_out), finished(x, output, line, position));
        }
    }
}
