// One pass of a radix sort: keys and their values to `keys_out` and `values_out`, in the order of the digit
// (key >> shift) & mask, of DIGITS, and among equal digits in the order they had. offsets[d * tiles + t] is where the
// first key of tile t with digit d goes.
//
// Grid: one block of 256 threads a tile of TILE keys, of which a thread owns RUN neighbours. Each thread counts its
// digits in counters of 16 bits, two in a word: word (d mod 8) * 256 + thread has digit d in its low half if d < 8,
// else in the high half. One scan over all words, with the total of the low halves added to the high ones, gives each
// thread where its keys of each digit go within the tile. Shared memory: the counters, then the tile in its new order.

#define RUN (TILE / THREADS)
#define WORDS (DIGITS / 2)

extern "C" __global__ void __launch_bounds__(THREADS)
sort_scatter(const Params params, BUFFERS(uint32_t, uint32_t, uint32_t, uint32_t, uint32_t)) {
    wait_for_previous();
    extern __shared__ uint32_t memory[];
    __shared__ uint32_t bases[DIGITS];
    uint32_t thread = threadIdx.x, start = blockIdx.x * TILE, valid = min(params.len - start, TILE);
    for (uint32_t w = 0; w < WORDS; w++) memory[w * THREADS + thread] = 0;
    __syncthreads();

    // Keys past the end have the last digit and come last, so that they take no valid key's place.
    uint32_t key[RUN], rank[RUN];
#pragma unroll
    for (int i = 0; i < RUN; i++) {
        uint32_t at = thread * RUN + i;
        key[i] = at < valid ? keys[start + at] : 0xffffffff;
        uint32_t digit = key[i] >> params.shift & params.mask, half = digit / WORDS * 16;
        uint32_t* counter = &memory[digit % WORDS * THREADS + thread];
        rank[i] = *counter >> half & 0xffff;
        *counter += 1u << half;
    }
    __syncthreads();

    uint32_t sum = 0, total;
    for (uint32_t w = 0; w < WORDS; w++) sum += memory[thread * WORDS + w];
    uint32_t before = group_scan(sum, total);
    before += total << 16;
    for (uint32_t w = 0; w < WORDS; w++) {
        uint32_t step = memory[thread * WORDS + w];
        memory[thread * WORDS + w] = before;
        before += step;
    }
    __syncthreads();

#pragma unroll
    for (int i = 0; i < RUN; i++) {
        uint32_t digit = key[i] >> params.shift & params.mask;
        rank[i] += memory[digit % WORDS * THREADS + thread] >> (digit / WORDS * 16) & 0xffff;
    }
    if (thread < DIGITS) {
        uint32_t local = memory[thread % WORDS * THREADS] >> (thread / WORDS * 16) & 0xffff;
        bases[thread] = offsets[thread * params.tiles + blockIdx.x] - local;
    }
    __syncthreads();

#pragma unroll
    for (int i = 0; i < RUN; i++) {
        uint32_t at = thread * RUN + i;
        memory[rank[i]] = key[i];
        memory[TILE + rank[i]] = at < valid ? values[start + at] : 0;
    }
    __syncthreads();
    for (uint32_t at = thread; at < valid; at += THREADS) {
        uint32_t k = memory[at], target = bases[k >> params.shift & params.mask] + at;
        // Counts of other keys, where these have changed since, lead anywhere.
        if (target < params.len) {
            keys_out[target] = k;
            values_out[target] = memory[TILE + at];
        }
    }
}
