// Jacobi symbols by divsteps: the CUDA twin says how. One thread an element. A sum of 64 bits is a word and an i32 above it.

// What the signs of a batch do to the symbol.
fn symbol_turns(turns: u32, negative: u32, f_sign: u32, g_sign: u32, last_sign: u32) -> u32 {
    let others = ((last_sign ^ f_sign) & 1u) ^ negative;
    return (turns + others * select(1u, 0xffffffffu, f_sign == g_sign) + (~f_sign & 1u)) >> 1u;
}

// a x + b y + carry, for factors a and b with signs.
fn m_sum(a: u32, x: u32, b: u32, y: u32, carry: u32) -> vec2<u32> {
    let first = f_mac(a, x, carry, 0u);
    let second = f_mac(b, y, first.x, 0u);
    let less = select(0u, x, a > 0x7fffffffu) + select(0u, y, b > 0x7fffffffu) + (carry >> 31u);
    return vec2(second.x, first.y + second.y - less);
}

fn f_at(j: u32) -> u32 {
    return j * params.len;
}

fn g_at(j: u32) -> u32 {
    return (LIMBS + 1u + j) * params.len;
}

@compute @workgroup_size(THREADS)
fn mod_symbols(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
               @builtin(local_invocation_index) thread: u32) {
    let element = (group.x + group.y * groups.x) * THREADS + thread;
    if (element >= params.len) {
        return;
    }
    let rest = element + (2u * LIMBS + 2u) * params.len;
    var delta = 1i;
    var flips = 0u;
    if (params.first == 0u) {
        var which = 0u;
        if (params.indexed != 0u) {
            which = indices_get(element);
        }
        let known = which < params.moduli;
        let modulus = select(0u, which, known) * params.stride + HEAD;
        var borrow = 0u;
        for (var j = 0u; j < LIMBS; j++) {
            let limb = values_get(element * LIMBS + j);
            let part = limb - constants_get(modulus + j);
            borrow = u32(part > limb) | u32(part < borrow);
        }
        let valid = known && borrow == 1u;
        for (var j = 0u; j < LIMBS; j++) {
            state_set(element + f_at(j), constants_get(modulus + j));
            state_set(element + g_at(j), select(0u, values_get(element * LIMBS + j), valid));
        }
        state_set(element + f_at(LIMBS), 0u);
        state_set(element + g_at(LIMBS), 0u);
        symbols_set(element, select(NO_PRIME, select(TOO_LARGE, ROOT, borrow == 1u), known));
    } else {
        delta = bitcast<i32>(state_get(rest));
        flips = state_get(rest + params.len);
    }

    for (var batch = params.first; batch < params.end; batch++) {
        var low = state_get(element + f_at(0u));
        var other = state_get(element + g_at(0u));
        var u = 1u;
        var v = 0u;
        var q = 0u;
        var r = 1u;
        var turns = 0u;
        var negative = 0u;
        for (var i = 0u; i < DIVSTEPS; i++) {
            let odd = 0u - (other & 1u);
            let swap = odd & (0u - u32(delta > 0i));
            flips ^= swap & (other >> 1u) & ~(low >> 1u);
            let x = (low ^ other) & swap;
            let y = (u ^ q) & swap;
            let z = (v ^ r) & swap;
            low ^= x;
            u ^= y;
            v ^= z;
            other = ((other ^ x) ^ swap) - swap;
            q = ((q ^ y) ^ swap) - swap;
            r = ((r ^ z) ^ swap) - swap;
            delta = bitcast<i32>((bitcast<u32>(delta) ^ swap) - swap) + 2i;
            let sign = select(v, u, u != 0u) >> 31u;
            turns += sign ^ negative;
            negative = sign;
            other += low & odd;
            q += u & odd;
            r += v & odd;
            flips ^= (low >> 1u) ^ (low >> 2u);
            other >>= 1u;
            u <<= 1u;
            v <<= 1u;
        }
        let f_sign = state_get(element + f_at(LIMBS));
        let g_sign = state_get(element + g_at(LIMBS));
        var f_sum = vec2(0u, 0u);
        var g_sum = vec2(0u, 0u);
        var f_last = 0u;
        var g_last = 0u;
        for (var j = 0u; j < LIMBS; j++) {
            let x = state_get(element + f_at(j));
            let y = state_get(element + g_at(j));
            f_sum = m_sum(u, x, v, y, f_sum.y);
            g_sum = m_sum(q, x, r, y, g_sum.y);
            if (j > 0u) {
                state_set(element + f_at(j - 1u), (f_last >> DIVSTEPS) | (f_sum.x << (32u - DIVSTEPS)));
                state_set(element + g_at(j - 1u), (g_last >> DIVSTEPS) | (g_sum.x << (32u - DIVSTEPS)));
            }
            f_last = f_sum.x;
            g_last = g_sum.x;
        }
        // The words of the signs are 0 or -1. What is above the limbs needs two bits and a sign: there is no borrow to look at.
        let f_top = f_sum.y - (u & f_sign) - (v & g_sign);
        let g_top = g_sum.y - (q & f_sign) - (r & g_sign);
        state_set(element + f_at(LIMBS - 1u), (f_last >> DIVSTEPS) | (f_top << (32u - DIVSTEPS)));
        state_set(element + g_at(LIMBS - 1u), (g_last >> DIVSTEPS) | (g_top << (32u - DIVSTEPS)));
        let last = 0u - (f_top >> 31u);
        state_set(element + f_at(LIMBS), last);
        state_set(element + g_at(LIMBS), 0u - (g_top >> 31u));
        flips ^= symbol_turns(turns, negative, f_sign, g_sign, last);
    }

    if (params.end < params.batches) {
        state_set(rest, bitcast<u32>(delta));
        state_set(rest + params.len, flips);
        return;
    }
    // g is 0 and f the greatest common divisor, or its opposite.
    let sign = state_get(element + f_at(LIMBS));
    var differs = state_get(element) ^ (sign | 1u);
    for (var j = 1u; j < LIMBS; j++) {
        differs |= state_get(element + f_at(j)) ^ sign;
    }
    let symbol = select(select(1u, 0xffffffffu, (flips & 1u) == 1u), 0u, differs != 0u);
    if (symbols_get(element) == ROOT) {
        symbols_set(element, symbol);
    }
}
