// Runs a list of steps on each element: multiplications modulo its prime, and what stands between them. LANES threads an
// element, of which the first one does what is no multiplication. The steps from `first` to `end` are of one launch; the
// accumulator, which is slot 0, and the other slots lie in `state`, the limbs of an element's slots at a distance of `len` words.
//
// `constants` has for each prime HEAD words, the first of which is -1/p mod 2^32, and sections of LIMBS words. Codes and
// sections are those of the host, and so is `m_multiply(slot: bool, at: u32)`: the accumulator times a slot, or times a
// section, that starts there. Threads behind the last element do as the last one's do, and write nothing.

// The thread, its element and whether it has one, which of the element's threads it is, and where the sections of the prime start.
var<private> thread: u32;
var<private> element: u32;
var<private> present: bool;
var<private> lane: u32;
var<private> own: u32;

fn slot_at(slot: u32) -> u32 {
    return slot * LIMBS * params.len + element;
}

fn section_at(section: u32) -> u32 {
    return own + section * LIMBS;
}

fn accumulator(j: u32) -> u32 {
    return state_get(element + j * params.len);
}

fn factor(slot: bool, at: u32, j: u32) -> u32 {
    if (slot) {
        return state_get(at + j * params.len);
    }
    return constants_get(at + j);
}

fn m_copy(slot: bool, source: u32, target_at: u32) {
    for (var j = 0u; j < LIMBS; j++) {
        state_set(target_at + j * params.len, factor(slot, source, j));
    }
}

// Whether the accumulator is something else.
fn m_differs(slot: bool, at: u32) -> bool {
    var differs = 0u;
    for (var j = 0u; j < LIMBS; j++) {
        differs |= accumulator(j) ^ factor(slot, at, j);
    }
    return differs != 0u;
}

fn m_start(known: bool) {
    var borrow = 0u;
    for (var j = 0u; j < LIMBS; j++) {
        let limb = values_get(element * LIMBS + j);
        let part = limb - constants_get(section_at(MODULUS) + j);
        borrow = u32(part > limb) | u32(part < borrow);
    }
    let valid = known && borrow == 1u;
    for (var j = 0u; j < LIMBS; j++) {
        state_set(element + j * params.len, select(0u, values_get(element * LIMBS + j), valid));
    }
    mask_set(element, select(NO_PRIME, select(TOO_LARGE, ROOT, borrow == 1u), known));
}

// The accumulator a or p - a.
fn m_finish() {
    let p = section_at(MODULUS);
    var borrow = 0u;
    var less = 0u;
    var any = 0u;
    for (var j = 0u; j < LIMBS; j++) {
        let limb = constants_get(p + j);
        let part = limb - accumulator(j);
        let other = part - borrow;
        borrow = u32(part > limb) | u32(part < borrow);
        let below = other - accumulator(j);
        any |= accumulator(j);
        less = u32(below > other) | u32(below < less);
    }
    // The opposite of 0 is 0.
    let swap = (params.choice == EVEN && (accumulator(0u) & 1u) == 1u) || (params.choice == SMALLER && less == 1u)
        || (params.choice == LARGER && less == 0u && any != 0u);
    let valid = mask_get(element) == ROOT;
    borrow = 0u;
    for (var j = 0u; j < LIMBS; j++) {
        let limb = constants_get(p + j);
        let part = limb - accumulator(j);
        let other = part - borrow;
        borrow = u32(part > limb) | u32(part < borrow);
        out_set(element * LIMBS + j, select(0u, select(accumulator(j), other, swap), valid));
    }
}

@compute @workgroup_size(THREADS)
fn mod_run(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
           @builtin(local_invocation_index) index: u32) {
    thread = index;
    lane = thread % LANES;
    element = (group.x + group.y * groups.x) * (THREADS / LANES) + thread / LANES;
    present = element < params.len;
    element = min(element, params.len - 1u);
    let leads = present && lane == 0u;
    var prime = 0u;
    if (params.indexed != 0u) {
        prime = indices_get(element);
    }
    own = select(0u, prime, prime < params.primes) * params.stride + HEAD;
    for (var at = params.first; at < params.end; at++) {
        let step = program_get(at);
        let code = step & 15u;
        var x = (step >> 4u) & ((1u << ARGUMENT_BITS) - 1u);
        let y = step >> (4u + ARGUMENT_BITS);
        // The bit of a logarithm.
        let bit = select(x, y, code == CORRECT);
        let bits = slot_at(BITS) + bit / 32u * params.len;
        if (code < MULTIPLICATIONS) {
            if (code == DIGIT) {
                let low = x * WINDOW;
                x = TABLE + ((constants_get(section_at(y) + low / 32u) >> (low % 32u)) & ((1u << WINDOW) - 1u));
            }
            if (code == CORRECT && ((state_get(bits) >> (bit % 32u)) & 1u) == 0u) {
                x = ONE;
            }
            if (code == SQUARE) {
                x = 0u;
            }
            let slot = code == SQUARE || code == SLOT || code == DIGIT;
            m_multiply(slot, select(section_at(x), slot_at(x), slot));
        } else if (!leads) {
            // The first thread does the rest.
        } else if (code == START) {
            m_start(prime < params.primes);
        } else if (code == STORE) {
            m_copy(true, element, slot_at(x));
        } else if (code == LOAD) {
            m_copy(true, slot_at(x), element);
        } else if (code == LOAD_CONSTANT) {
            m_copy(false, section_at(x), element);
        } else if (code == BIT) {
            var word = 0u;
            if (bit % 32u != 0u) {
                word = state_get(bits);
            }
            state_set(bits, word | (u32(m_differs(false, section_at(ONE))) << (bit % 32u)));
        } else if (code == CHECK) {
            if (m_differs(true, slot_at(x)) && mask_get(element) == ROOT) {
                mask_set(element, NO_ROOT);
            }
        } else { // FINISH
            m_finish();
        }
        if (LANES > 1u) {
            storageBarrier();
        }
    }
}
