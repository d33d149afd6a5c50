// A machine that computes on one element of a field in the steps of a program. The CUDA twin says what is rendered before it;
// here `m_hash(r)` is there as a function.

var<private> slots: array<F, SLOTS>;
var<private> digits: array<u32, DIGITS>;

// The element that a step computes with: a slot or (1) a constant, moved on by (2) the flag or (4) the counter; or (8) of the
// table that which a digit says.
fn m_operand(kind: u32, index: u32, flag: u32, counter: u32) -> F {
    var at = index;
    if ((kind & 2u) != 0u) {
        at += flag;
    }
    if ((kind & 4u) != 0u) {
        at += counter;
    }
    if ((kind & 8u) != 0u) {
        at = TABLE + ((index & 0xffffu) << DIGIT_BITS) + digits[index >> 16u];
    }
    if ((kind & 1u) != 0u) {
        return constants_load(at);
    }
    return slots[at];
}

// Runs the program on what is in slots, and gives its verdict. `want` is the parity of the root that is chosen.
fn m_run(want: u32) -> u32 {
    var flag = 0u;
    var counter = 0u;
    var verdict = 1u;
    var wanted = want;
    var decided = false;
    var r = f_zero();
    for (var at = 0u; at < STEPS; at++) {
        let step = program_get(2u * at);
        let index = program_get(2u * at + 1u);
        let code = step & 15u;
        let times = step >> 8u;
        var x = r;
        if (code == 1u || code == 2u || (code >= 4u && code <= 7u)) {
            x = m_operand((step >> 4u) & 15u, index, flag, counter);
        }
        if (code <= 1u) {
            // Squarings, then the multiplication, in one loop: there is one multiplication in the code.
            for (var i = 0u; i < times + code; i++) {
                var y = r;
                if (i == times) {
                    y = x;
                }
                r = f_mul(r, y);
            }
        } else if (code == 2u) {
            r = x;
        } else if (code == 3u) {
            slots[index] = r;
        } else if (code == 4u) {
            r = f_add(r, x);
        } else if (code <= 7u) {
            let difference = f_sub(r, x);
            let equal = u32(f_is_zero(difference));
            if (code == 5u) {
                r = difference;
            } else if (code == 6u) {
                flag = equal;
            } else {
                verdict &= equal;
            }
        } else if (code == 8u) {
            let place = m_hash(r);
            digits[index] = (hashed_get(place / 4u) >> (8u * (place % 4u))) & 255u;
        } else if (code == 9u) {
            flag = (digits[0] >> DIGIT_PAD) & 1u;
            digits[0] ^= flag << DIGIT_PAD;
            for (var i = 0u; i < DIGITS; i++) {
                var above = 0u;
                if (i + 1u < DIGITS) {
                    above = digits[i + 1u] & 1u;
                }
                digits[i] = (digits[i] >> 1u) | (above << (DIGIT_BITS - 1u));
            }
        } else if (code == 10u) {
            if (!decided) {
                flag = (r.l0 & 1u) ^ wanted;
                decided = !f_is_zero(r);
            }
        } else if (code == 11u) {
            if (flag == 1u) {
                r = f_sub(f_zero(), r);
            }
        } else if (code == 12u) {
            verdict = select(0xffffffffu, 1u, f_is_zero(f_sub(r, f_one())));
            if (f_is_zero(r)) {
                verdict = 0u;
            }
        } else if (code == 13u) {
            if (flag == times) {
                at = index - 1u;
            }
        } else if (code == 14u) {
            counter++;
            flag = u32(counter < index);
        } else {
            wanted = flag;
            decided = false;
        }
    }
    return verdict;
}
