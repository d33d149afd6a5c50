// One pass of a radix sort: keys and their values to `keys_out` and `values_out`, in the order of the digit
// (key >> shift) & mask, of DIGITS, and among equal digits in the order they had. offsets[d * tiles + t] is where the
// first key of tile t with digit d goes. The CUDA twin says how the counters are laid out. One workgroup a tile of TILE
// keys, of which a thread owns four neighbours.

const WORDS = DIGITS / 2u;

// The counters, then the tile in its new order: keys, and after them values.
var<workgroup> memory: array<u32, WORDS * THREADS>;
var<workgroup> bases: array<u32, DIGITS>;

fn digit_of(key: u32) -> u32 {
    return (key >> params.shift) & params.mask;
}

fn counter(digit: u32, thread: u32) -> u32 {
    return (digit % WORDS) * THREADS + thread;
}

// How many keys of this thread had this digit before.
fn count(key: u32, thread: u32) -> u32 {
    let digit = digit_of(key);
    let half = (digit / WORDS) * 16u;
    let at = counter(digit, thread);
    let before = memory[at];
    memory[at] = before + (1u << half);
    return (before >> half) & 0xffffu;
}

// Where the first key of this digit from this thread on goes within the tile.
fn place(digit: u32, thread: u32) -> u32 {
    return (memory[counter(digit, thread)] >> ((digit / WORDS) * 16u)) & 0xffffu;
}

// Keys past the end have the last digit and come last, so that they take no valid key's place.
fn key_at(i: u32) -> u32 {
    if (i < params.len) {
        return keys_get(i);
    }
    return 0xffffffffu;
}

fn order(start: u32, at: u32, rank: u32, key: u32) {
    memory[rank] = key;
    if (start + at < params.len) {
        memory[TILE + rank] = values_get(start + at);
    }
}

@compute @workgroup_size(THREADS)
fn sort_scatter(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
                @builtin(local_invocation_index) thread: u32) {
    let tile = group.x + group.y * groups.x;
    if (tile >= params.tiles) {
        return;
    }
    for (var w = 0u; w < WORDS; w++) {
        memory[w * THREADS + thread] = 0u;
    }
    workgroupBarrier();

    let start = tile * TILE;
    let mine = thread * 4u;
    let k0 = key_at(start + mine);
    let k1 = key_at(start + mine + 1u);
    let k2 = key_at(start + mine + 2u);
    let k3 = key_at(start + mine + 3u);
    var r0 = count(k0, thread);
    var r1 = count(k1, thread);
    var r2 = count(k2, thread);
    var r3 = count(k3, thread);
    workgroupBarrier();

    var sum = 0u;
    for (var w = 0u; w < WORDS; w++) {
        sum += memory[thread * WORDS + w];
    }
    let scanned = group_scan(thread, sum);
    var before = scanned.x + (scanned.y << 16u);
    for (var w = 0u; w < WORDS; w++) {
        let step = memory[thread * WORDS + w];
        memory[thread * WORDS + w] = before;
        before += step;
    }
    workgroupBarrier();

    r0 += place(digit_of(k0), thread);
    r1 += place(digit_of(k1), thread);
    r2 += place(digit_of(k2), thread);
    r3 += place(digit_of(k3), thread);
    if (thread < DIGITS) {
        bases[thread] = offsets_get(thread * params.tiles + tile) - place(thread, 0u);
    }
    workgroupBarrier();

    order(start, mine, r0, k0);
    order(start, mine + 1u, r1, k1);
    order(start, mine + 2u, r2, k2);
    order(start, mine + 3u, r3, k3);
    workgroupBarrier();

    let valid = min(params.len - start, TILE);
    for (var at = thread; at < valid; at += THREADS) {
        let key = memory[at];
        let target_index = bases[digit_of(key)] + at;
        // Counts of other keys, where these have changed since, lead anywhere.
        if (target_index < params.len) {
            keys_out_set(target_index, key);
            values_out_set(target_index, memory[TILE + at]);
        }
    }
}
