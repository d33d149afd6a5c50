// Points of a curve from their compressed encodings. The CUDA twin says what is rendered before it; here `starts(k)` and
// `counts(k)` are functions, `e_element(point, start, count)` makes an element of `e_limb`s, and `outputs(i, none)` stores what is
// in slots, or the point at infinity. One thread a point.

fn e_flags(point: u32) -> u32 {
    let at = point + FLAGS_AT;
    return (bytes_get(at / 4u) >> (8u * (at % 4u))) & 255u;
}

// A byte of a point that starts at byte `point`, without the flags.
fn e_byte(point: u32, offset: u32) -> u32 {
    let at = point + offset;
    let value = (bytes_get(at / 4u) >> (8u * (at % 4u))) & 255u;
    return select(value, value & (255u ^ FLAGS), offset == FLAGS_AT);
}

// Byte i of a coefficient, counted from the lowest.
fn e_digit(point: u32, start: u32, count: u32, i: u32) -> u32 {
    if (i >= count) {
        return 0u;
    }
    return e_byte(point, select(start + i, start + count - 1u - i, BIG_ENDIAN));
}

fn e_limb(point: u32, start: u32, count: u32, i: u32) -> u32 {
    return e_digit(point, start, count, 4u * i) | (e_digit(point, start, count, 4u * i + 1u) << 8u)
        | (e_digit(point, start, count, 4u * i + 2u) << 16u) | (e_digit(point, start, count, 4u * i + 3u) << 24u);
}

@compute @workgroup_size(THREADS)
fn sqrt_points(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
               @builtin(local_invocation_index) thread: u32) {
    let i = (group.x + group.y * groups.x) * THREADS + thread;
    if (i >= params.len) {
        return;
    }
    let point = i * BYTES;
    var canonical = true;
    var zero = true;
    for (var k = 0u; k < COEFFICIENTS; k++) {
        let start = starts(k);
        let count = counts(k);
        let x = e_element(point, start, count);
        slots[k] = x;
        // What is not below p loses p by the reduction.
        canonical = canonical && f_is_zero(f_sub(x, f_reduce(x, 0u)));
        for (var at = 4u * LIMBS; at < count; at++) {
            canonical = canonical && e_digit(point, start, count, at) == 0u;
        }
        zero = zero && canonical && f_is_zero(x);
    }
    let flags = e_flags(point);
    let infinite = (flags & INFINITE) != 0u;
    let larger = (flags & LARGER) != 0u;
    var wrong = 0u;
    if ((flags & REQUIRED) != REQUIRED || (infinite && (larger || !zero))) {
        wrong = 1u;
    } else if (!canonical) {
        wrong = 2u;
    } else if (!infinite) {
        wrong = select(3u, 0u, m_run(u32(larger)) != 0u);
    }
    outputs(i, wrong != 0u || infinite);
    status_set(i, wrong);
}
