// The challenge of a round from the sums of the round before, by every workgroup for itself: adds up their partial sums, makes
// the round's message of them, and hashes it as the transcript does. What depends on the field is rendered before.

var<private> blake: array<u32, 16>;

fn blake3_mix(a: u32, b: u32, c: u32, d: u32, x: u32, y: u32) {
    blake[a] += blake[b] + x;
    var t = blake[d] ^ blake[a];
    blake[d] = (t >> 16u) | (t << 16u);
    blake[c] += blake[d];
    t = blake[b] ^ blake[c];
    blake[b] = (t >> 12u) | (t << 20u);
    blake[a] += blake[b] + y;
    t = blake[d] ^ blake[a];
    blake[d] = (t >> 8u) | (t << 24u);
    blake[c] += blake[d];
    t = blake[b] ^ blake[c];
    blake[b] = (t >> 7u) | (t << 25u);
}

// The compression function of BLAKE3 with its whole output, on the block of `words` at `at`.
fn blake3_compress(cv: array<u32, 8>, at: u32, counter: u32, bytes: u32, flags: u32) {
    var m: array<u32, 16>;
    for (var i = 0u; i < 16u; i++) {
        m[i] = words[at + i];
    }
    blake = array<u32, 16>(cv[0], cv[1], cv[2], cv[3], cv[4], cv[5], cv[6], cv[7], 0x6a09e667u, 0xbb67ae85u, 0x3c6ef372u,
                           0xa54ff53au, counter, 0u, bytes, flags);
    for (var round = 0u; round < 7u; round++) {
        blake3_mix(0u, 4u, 8u, 12u, m[0], m[1]);
        blake3_mix(1u, 5u, 9u, 13u, m[2], m[3]);
        blake3_mix(2u, 6u, 10u, 14u, m[4], m[5]);
        blake3_mix(3u, 7u, 11u, 15u, m[6], m[7]);
        blake3_mix(0u, 5u, 10u, 15u, m[8], m[9]);
        blake3_mix(1u, 6u, 11u, 12u, m[10], m[11]);
        blake3_mix(2u, 7u, 8u, 13u, m[12], m[13]);
        blake3_mix(3u, 4u, 9u, 14u, m[14], m[15]);
        m = array<u32, 16>(m[2], m[6], m[3], m[10], m[7], m[0], m[4], m[13], m[1], m[11], m[12], m[5], m[9], m[14], m[15],
                           m[8]);
    }
    for (var i = 0u; i < 8u; i++) {
        blake[i] ^= blake[i + 8u];
    }
    blake[8] ^= cv[0];
    blake[9] ^= cv[1];
    blake[10] ^= cv[2];
    blake[11] ^= cv[3];
    blake[12] ^= cv[4];
    blake[13] ^= cv[5];
    blake[14] ^= cv[6];
    blake[15] ^= cv[7];
}

fn draw(thread: u32, chief: bool) -> F {
    let parity = now.parity;
    if (thread < 2u) {
        values[thread] = f_zero();
    }
    for (var p = 0u; p < PREVIOUS_POINTS; p++) {
        var total = f_zero();
        for (var c = thread; c < now.previous_chunks; c += THREADS) {
            total = f_add(total, partials_load(now.previous_at + c * PREVIOUS_POINTS + p));
        }
        tile_store(thread, total);
        workgroupBarrier();
        for (var span = min(THREADS, now.previous_chunks) / 2u; span > 0u; span /= 2u) {
            if (thread < span) {
                total = f_add(total, tile_load(thread + span));
                tile_store(thread, total);
            }
            workgroupBarrier();
        }
        if (thread == 0u) {
            values[select(2u + p - PREVIOUS_FIRST, now.previous_at_one, PREVIOUS_FIRST == 1u && p == 0u)] = total;
        }
    }
    if (thread == 0u && PREVIOUS_FIRST == 1u) {
        let sum = partials_load(now.claim_at + parity);
        if (now.previous_at_one != 0u) {
            values[0] = sum;
        } else {
            // (sum − w0 q(0)) / w1, by one multiplication in the text.
            var factor = inputs_load(now.weights_at);
            var value = values[0];
            for (var i = 0u; i < 2u; i++) {
                value = f_mul(value, factor);
                if (i == 0u) {
                    value = f_sub(sum, value);
                }
                factor = inputs_load(now.weights_at + 1u);
            }
            values[1] = value;
        }
    }
    workgroupBarrier();
    if (thread < DEGREE) {
        var sum = f_zero();
        for (var k = 0u; k <= DEGREE; k++) {
            sum = f_add(sum, f_mul(inputs_load(now.matrix_at + thread * (DEGREE + 1u) + k), values[k]));
        }
        tile_store(thread, sum);
        canonical(sum, 2u + thread * LIMBS);
        if (chief) {
            partials_store(now.message_at + thread, sum);
        }
    }
    if (thread < 16u) {
        if (thread < 2u) {
            words[thread] = select(0u, 4u * DEGREE * LIMBS, thread == 0u);
        }
        if (TOTAL + thread < WORDS) {
            words[TOTAL + thread] = 0u;
        }
    }
    workgroupBarrier();
    if (thread <= PRIME_DEGREE) {
        var cv: array<u32, 8>;
        for (var i = 0u; i < 8u; i++) {
            cv[i] = state_get(8u * parity + i);
        }
        for (var at = 0u; at < TOTAL; at += 16u) {
            let last = at + 16u >= TOTAL;
            var flags = 16u;
            flags |= select(0u, 1u, at % 256u == 0u);
            flags |= select(0u, 10u, at % 256u == 240u || last);
            blake3_compress(cv, at, select(0u, thread, last), 4u * min(TOTAL - at, 16u), flags);
            for (var i = 0u; i < 8u; i++) {
                cv[i] = blake[i];
            }
        }
        if (thread == 0u) {
            if (chief) {
                for (var i = 0u; i < 8u; i++) {
                    state_set(8u * (1u - parity) + i, blake[i]);
                }
            }
        } else {
            wide_value((thread - 1u) * PRIME_LIMBS);
        }
    }
    workgroupBarrier();
    let challenge = drawn_value();
    if (thread == 0u && chief) {
        var value = tile_load(DEGREE - 1u);
        for (var j = DEGREE; j > 0u; j--) {
            value = f_mul(value, challenge);
            if (j > 1u) {
                value = f_add(value, tile_load(j - 2u));
            } else {
                value = f_add(value, values[0]);
            }
        }
        partials_store(now.claim_at + 1u - parity, value);
    }
    workgroupBarrier();
    return challenge;
}
