// One pass of a radix sort: keys and their values to `keys_out` and `values_out`, in the order of the digit
// (key >> shift) & mask, and among equal digits in the order they had. Decoupled look-back (Adinets and Merrill,
// "Onesweep: A Faster Least Significant Digit Radix Sort for GPUs", 2022): every key is read and written once.
//
// Grid: one block of 256 threads a tile of TILE keys. Tiles are taken in the order in which blocks start, so that a
// block only waits for blocks that run or are done. Thread d owns digit d when it comes to counts. Shared memory: the
// tile, put in order before it is written, so that neighbours write neighbours.
//
// `totals` has, from params.totals on, how many keys have each digit. `state` has a word for each pass, from which
// blocks draw their tiles, and from word TICKETS on for each tile and digit a pair: a count, and above it a flag that
// tells what it counts. Each pass has flags of its own, so that `state` is zeroed once for all.

#define ITEMS (TILE / THREADS)
#define DIGITS 256
#define TICKETS 8

// The lanes of the warp whose digit is this thread's.
__device__ __forceinline__ LaneMask equal_lanes(uint32_t digit) {
    LaneMask lanes = ALL_LANES;
#pragma unroll
    for (int bit = 0; bit < 8; bit++) {
        bool set = digit >> bit & 1;
        LaneMask vote = warp_ballot(set);
        lanes &= set ? vote : ~vote;
    }
    return lanes;
}

// Left alone, the compiler takes 128 registers to load early; three blocks a multiprocessor hide more.
extern "C" __global__ void __launch_bounds__(THREADS, 3)
sort_sweep(const Params params, BUFFERS(uint32_t, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t)) {
    wait_for_previous();
    extern __shared__ uint32_t ordered[];
    __shared__ uint32_t counts[WARPS][DIGITS];
    __shared__ uint32_t bases[DIGITS];
    __shared__ uint32_t ticket;
    uint32_t thread = threadIdx.x, lane = warp_lane(), warp = thread / WARP;

    if (thread == 0) ticket = atomicAdd(&state[params.pass_index], 1);
#pragma unroll
    for (int w = 0; w < WARPS; w++) counts[w][thread] = 0;
    __syncthreads();
    uint32_t tile = ticket, start = tile * TILE, valid = min(params.len - start, TILE);
    uint32_t mine = warp * (TILE / WARPS) + lane;

    // Keys past the end have the last digit and come last, so that they take no valid key's place.
    uint32_t key[ITEMS], rank[ITEMS];
#pragma unroll
    for (int i = 0; i < ITEMS; i++) {
        uint32_t at = mine + WARP * i;
        key[i] = at < valid ? keys[start + at] : 0xffffffff;
    }

    // Among the keys of the warp with the same digit.
#pragma unroll
    for (int i = 0; i < ITEMS; i++) {
        uint32_t digit = key[i] >> params.shift & params.mask;
        LaneMask lanes = equal_lanes(digit);
        uint32_t leader = warp_first(lanes), before = 0;
        if (lane == leader) {
            before = counts[warp][digit];
            counts[warp][digit] = before + warp_count(lanes);
        }
        rank[i] = warp_shuffle(before, leader) + warp_count(lanes & warp_below(lane));
        warp_sync();
    }
    __syncthreads();

    // Thread d: how many keys of the tile have digit d. Told at once to the tiles that follow.
    uint32_t count = 0;
#pragma unroll
    for (int w = 0; w < WARPS; w++) count += counts[w][thread];
    volatile uint64_t* own = reinterpret_cast<uint64_t*>(state + TICKETS) + (size_t)tile * DIGITS + thread;
    uint64_t partial = (uint64_t)(2 * params.pass_index + 1) << 32, inclusive = (uint64_t)(2 * params.pass_index + 2) << 32;
    if (tile > 0) *own = partial | count;

    uint32_t unused, local = group_scan(count, unused);
    uint32_t global = group_scan(thread <= params.mask ? totals[params.totals + thread] : 0, unused);
    uint32_t place = local;
#pragma unroll
    for (int w = 0; w < WARPS; w++) {
        uint32_t step = counts[w][thread];
        counts[w][thread] = place;
        place += step;
    }
    __syncthreads();
#pragma unroll
    for (int i = 0; i < ITEMS; i++) {
        rank[i] += counts[warp][key[i] >> params.shift & params.mask];
        ordered[rank[i]] = key[i];
    }
    // From here on, `key` holds the values.
#pragma unroll
    for (int i = 0; i < ITEMS; i++) {
        uint32_t at = mine + WARP * i;
        key[i] = at < valid ? values[start + at] : 0;
    }

    // Thread d: how many keys of the tiles before have digit d.
    uint32_t before = 0;
    volatile uint64_t* other = own;
    for (uint32_t t = tile; t > 0; t--) {
        other -= DIGITS;
        uint64_t seen;
        do {
            seen = *other;
        } while (seen < partial);
        before += (uint32_t)seen;
        if (seen >= inclusive) break;
    }
    *own = inclusive | (before + count);
    bases[thread] = global + before - local;
    __syncthreads();

    uint32_t target[ITEMS];
#pragma unroll
    for (int i = 0; i < ITEMS; i++) {
        uint32_t at = thread + THREADS * i, k = ordered[at];
        target[i] = bases[k >> params.shift & params.mask] + at;
        // Totals of other keys, where these have changed since, lead anywhere.
        if (at >= valid) target[i] = params.len;
        if (target[i] < params.len) keys_out[target[i]] = k;
    }
    __syncthreads();
#pragma unroll
    for (int i = 0; i < ITEMS; i++) ordered[rank[i]] = key[i];
    __syncthreads();
#pragma unroll
    for (int i = 0; i < ITEMS; i++) {
        if (target[i] < params.len) values_out[target[i]] = ordered[thread + THREADS * i];
    }
}
