// The challenge of a round from the sums of the round before, by every workgroup for itself: adds up their partial sums, makes
// the round's message of them, and hashes it as the transcript does. A thread makes one product of a message or one piece of a
// challenge. What depends on the field is rendered before.

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

// The values of the round before, of the partial sums that all its chunks left.
fn previous_values(thread: u32) {
    if (thread == 0u) {
        values[0] = partials_load(now.claim_at + now.parity);
    }
    if (thread == 1u) {
        values[1] = f_zero();
    }
    for (var p = 0u; p < PREVIOUS_POINTS; p++) {
        var total = f_zero();
        for (var c = thread; c < now.previous_chunks; c += THREADS) {
            total = f_add(total, partials_load(now.previous_at + c * PREVIOUS_POINTS + p));
        }
        total = group_sum(total, thread, THREADS, now.previous_chunks);
        if (thread == 0u) {
            values[2u + p - PREVIOUS_FIRST] = total;
        }
    }
}

// The challenge behind the round with these values, `round` rounds behind the first that the parameters speak of, of which it
// leaves the message. The last thread alone finds the sum that the next round has to have, and leaves it too: others go on.
fn draw(thread: u32, round: u32, chief: bool) -> F {
    let parity = (now.parity + round) & 1u;
    workgroupBarrier();
    if (thread < 2u * DEGREE * PARTS) {
        let row = thread / PARTS;
        let line = now.lines_at + (round * 2u * DEGREE + row) * 2u;
        let others = now.matrix_at + row * (DEGREE - 1u);
        var sum = f_zero();
        for (var k = thread % PARTS; k <= DEGREE; k += PARTS) {
            var at = line + k;
            if (k >= 2u) {
                at = others + k - 2u;
            }
            sum = f_add(sum, f_mul(inputs_load(at), values[k]));
        }
        tile_store(thread, sum);
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
    if (thread < 2u * DEGREE) {
        var sum = f_zero();
        for (var part = 0u; part < PARTS; part++) {
            sum = f_add(sum, tile_load(thread * PARTS + part));
        }
        if (thread < DEGREE) {
            message[thread] = sum;
            if (chief) {
                partials_store(now.message_at + DEGREE * round + thread, sum);
            }
        } else {
            put_words(sum, 2u + (thread - DEGREE) * LIMBS);
        }
    }
    workgroupBarrier();
    if (thread <= PRIME_DEGREE * LANES) {
        var cv: array<u32, 8>;
        for (var i = 0u; i < 8u; i++) {
            cv[i] = state_get(8u * parity + i);
        }
        let counter = (thread + LANES - 1u) / LANES;
        for (var at = 0u; at < TOTAL; at += 16u) {
            let last = at + 16u >= TOTAL;
            var flags = 16u;
            flags |= select(0u, 1u, at % 256u == 0u);
            flags |= select(0u, 10u, at % 256u == 240u || last);
            blake3_compress(cv, at, select(0u, counter, last), 4u * min(TOTAL - at, 16u), flags);
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
            wide_part((thread - 1u) % LANES, (thread - 1u) * PRIME_LIMBS);
        }
    }
    workgroupBarrier();
    let challenge = drawn_value();
    if (thread == THREADS - 1u && chief) {
        var value = message[DEGREE - 1u];
        for (var j = DEGREE; j > 0u; j--) {
            value = f_mul(value, challenge);
            if (j > 1u) {
                value = f_add(value, message[j - 2u]);
            } else if (PREVIOUS_FIRST == 1u) {
                value = f_add(value, values[1u - ((now.ones >> round) & 1u)]);
            }
        }
        partials_store(now.claim_at + 1u - parity, value);
        values[0] = value;
    }
    return challenge;
}
