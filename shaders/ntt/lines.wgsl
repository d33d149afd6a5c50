// Where the lines of a pass lie, which numbers their factors have, and how elements are scaled: before the kernels of a transform.
// The CUDA twin of ntt/pass.wgsl says what lines are; each has 2^LOG_ROWS elements.

fn reverse(x: u32, bits: u32) -> u32 {
    return (reverseBits(x) >> 1u) >> (31u - bits);
}

fn is_set(flag: u32) -> bool {
    return (flags() & flag) != 0u;
}

// Number of a line among those of its transforms.
fn index_of(line: u32) -> u32 {
    if (INTERLEAVED) {
        return line / params.interleaved;
    }
    return line;
}

// Where the element of a line at a position lies, in rows of so many elements.
fn address(line: u32, position: u32, row: u32) -> u32 {
    if (INTERLEAVED) {
        return position * row + line % params.interleaved;
    }
    return position;
}

// The position of row 0 of a line; that of row r is r << stride further.
fn place(line: u32, reversed: bool, stride: u32, pitch: u32) -> u32 {
    let log_lines = params.log_n - LOG_ROWS;
    let start = (index_of(line) >> log_lines) << pitch;
    let index = index_of(line) & ((1u << log_lines) - 1u);
    if (reversed) {
        return start + (reverse(index, log_lines) << LOG_ROWS);
    }
    return start + ((index >> stride) << (stride + LOG_ROWS)) + (index & ((1u << stride) - 1u));
}

fn scaled(position: u32, x: F) -> F {
    var low = params.scales;
    var y = x;
    if (!is_set(SCALE_CONSTANT)) {
        var i = position & ((1u << params.log_n) - 1u);
        if (is_set(SCALE_REVERSED)) {
            i = reverse(i, params.log_n);
        }
        low += i & ((1u << params.log_scales) - 1u);
        y = f_mul(x, scale_load(params.scales + (1u << params.log_scales) + (i >> params.log_scales)));
    }
    return f_mul(y, scale_load(low));
}

// The j of a line's twiddles.
fn twiddle_index(line: u32) -> u32 {
    let log_lines = params.log_n - LOG_ROWS;
    let index = index_of(line) & ((1u << log_lines) - 1u);
    if (is_set(TWIDDLE_OFFSET)) {
        return index & ((1u << params.stride_in) - 1u);
    }
    return reverse(index >> params.stride_in, log_lines - params.stride_in);
}
