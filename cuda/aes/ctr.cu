// XORs the keystream of one message onto it, in place: block k of the stream onto word k of the data, the first `skip` bytes of
// block 0 and what follows byte `tail` of the last block left as they are. A launch has at most 2^31 blocks.
//
// Grid: warps stride over runs. A run is the blocks whose counters differ in the last byte only, 256 but for the first
// and the last; lane l owns those with last bytes l, l + 32, …. In rounds 1 and 2 only that byte and what it reaches
// change, so that they cost 5 lookups of 32 (and 5 words that each lane computes for one of the warp's next 32 runs).
// Lookups bound the rest: 16 a round and block, one a lane and clock. Shared memory: the tables; bitsliced none.
// Round keys stay in registers, so that 512 threads a block are as many as fit with AES-256.

static_assert(WARP == 32, "a lane owns last bytes 32 apart");

__device__ __forceinline__ void add_keystream(const Params& params, uint4* data, uint32_t k, const uint4& stream) {
    uint4* place = data + k;
    uint4 x = *place, y = x ^ stream;
    // The first and the last block are the only ones that may be partial.
    bool first = k == 0, last = k == params.blocks - 1;
    if (first || last) {
        store_bytes(place, x, y, first ? params.skip : 0, last ? params.tail : 16);
    } else {
        *place = y;
    }
}

// The first of a run's counters, with the last byte zero.
__device__ __forceinline__ uint4 run_counter(const Params& params, uint32_t run) {
    uint4 first = make_uint4(params.counter[0], params.counter[1], params.counter[2], params.counter[3] & 0x00ffffffu);
    return add_big_endian(first, run << 8, params.wide != 0);
}

// Runs that the message touches; the first may start before it.
__device__ __forceinline__ uint32_t run_count(const Params& params) {
    return (uint32_t)(((unsigned long long)params.blocks + (params.counter[3] >> 24) + 255u) >> 8);
}

#if METHOD == METHOD_TABLES

// Blocks that a thread has under way at a time.
#define AT_ONCE 2u

// What rounds 1 and 2 make of a run's counters where the last byte does not reach.
struct Cached {
    uint32_t first;     // column 0 after round 1
    uint32_t second[4]; // after round 2
};

__device__ __forceinline__ Cached first_rounds(const uint4& counter, const uint4* keys) {
    uint4 s = counter ^ keys[0], k1 = keys[1], k2 = keys[2];
    uint4 t;
    t.x = 0;
    t.y = column(s.y, s.z, s.w, s.x, k1.y);
    t.z = column(s.z, s.w, s.x, s.y, k1.z);
    t.w = column(s.w, s.x, s.y, s.z, k1.w);
    Cached cached;
    // A column less the lookup that changes: the whole one plus that lookup.
    cached.first = column(s.x, s.y, s.z, s.w, k1.x);
    uint4 u = make_uint4(column(t.x, t.y, t.z, t.w, k2.x), column(t.y, t.z, t.w, t.x, k2.y),
                         column(t.z, t.w, t.x, t.y, k2.z), column(t.w, t.x, t.y, t.z, k2.w));
    cached.first ^= lookup(s.w, 3);
    cached.second[0] = u.x ^ lookup(0, 0);
    cached.second[1] = u.y ^ lookup(0, 3);
    cached.second[2] = u.z ^ lookup(0, 2);
    cached.second[3] = u.w ^ lookup(0, 1);
    return cached;
}

extern "C" __global__ void __launch_bounds__(THREADS, 1)
aes_ctr(const Params params, BUFFERS(uint4, uint4, uint32_t)) {
    wait_for_previous();
    load_tables(tables);
    uint4 keys[ROUNDS + 1];
#pragma unroll
    for (uint32_t i = 3; i <= ROUNDS; i++) keys[i] = schedule[i];
    uint32_t key_byte = schedule[0].w & 0xff000000u;

    uint32_t lane = warp_lane();
    uint32_t before = params.counter[3] >> 24; // counters of the first run that come before the stream
    uint32_t runs = run_count(params);
    uint32_t warp = first_run(runs), warps = gridDim.x * (THREADS / WARP);

    for (uint32_t batch = warp; batch < runs; batch += WARP * warps) {
        Cached mine = first_rounds(run_counter(params, batch + lane * warps), schedule);
        for (uint32_t i = 0; i < WARP; i++) {
            uint32_t run = batch + i * warps;
            if (run >= runs) break;
            Cached cached;
            cached.first = warp_shuffle(mine.first, i);
#pragma unroll
            for (uint32_t c = 0; c < 4; c++) cached.second[c] = warp_shuffle(mine.second[c], i);

#pragma unroll 1
            for (uint32_t b = lane; b < 256u; b += WARP * AT_ONCE) {
                uint4 s[AT_ONCE];
#pragma unroll
                for (uint32_t j = 0; j < AT_ONCE; j++) {
                    uint32_t t = cached.first ^ lookup((b + WARP * j) << 24 ^ key_byte, 3);
                    s[j] = make_uint4(cached.second[0] ^ lookup(t, 0), cached.second[1] ^ lookup(t, 3),
                                      cached.second[2] ^ lookup(t, 2), cached.second[3] ^ lookup(t, 1));
                }
#pragma unroll
                for (uint32_t i = 3; i < ROUNDS; i++) {
#pragma unroll
                    for (uint32_t j = 0; j < AT_ONCE; j++) s[j] = round_of(s[j], keys[i]);
                }
#pragma unroll
                for (uint32_t j = 0; j < AT_ONCE; j++) {
                    uint32_t k = (run << 8) + b + WARP * j - before;
                    uint4 stream = last_round_of(s[j], keys[ROUNDS]);
                    if (k < params.blocks) add_keystream(params, data, k, stream);
                }
            }
        }
    }
}

#elif METHOD == METHOD_SBOX

__device__ __forceinline__ uint4 counter_of(const Params& params, uint32_t k) {
    uint4 counter = make_uint4(params.counter[0], params.counter[1], params.counter[2], params.counter[3]);
    return add_big_endian(counter, k, params.wide != 0);
}

extern "C" __global__ void __launch_bounds__(THREADS)
aes_ctr(const Params params, BUFFERS(uint4, uint4, uint32_t)) {
    wait_for_previous();
    load_tables(tables);
    for (size_t k = blockIdx.x * THREADS + threadIdx.x; k < params.blocks; k += (size_t)gridDim.x * THREADS) {
        add_keystream(params, data, k, cipher(counter_of(params, k), schedule));
    }
}

#else

// The blocks of a lane differ in the upper three bits of the last byte only.
extern "C" __global__ void __launch_bounds__(THREADS)
aes_ctr(const Params params, BUFFERS(uint4, uint4, uint32_t)) {
    wait_for_previous();
    uint32_t lane = warp_lane();
    uint32_t warp = blockIdx.x * (THREADS / WARP) + threadIdx.x / WARP, warps = gridDim.x * (THREADS / WARP);
    uint32_t before = params.counter[3] >> 24, runs = run_count(params);
    for (uint32_t run = warp; run < runs; run += warps) {
        uint4 counter = run_counter(params, run);
        counter.w |= lane << 24;
        Sliced s = slice_same(counter);
        s.row[3][5] = (s.row[3][5] & 0x00ffffffu) | 0xaa000000u;
        s.row[3][6] = (s.row[3][6] & 0x00ffffffu) | 0xcc000000u;
        s.row[3][7] = (s.row[3][7] & 0x00ffffffu) | 0xf0000000u;
        cipher_sliced(s, schedule);
        uint4 stream[PER_THREAD];
        unslice(s, stream);
#pragma unroll
        for (uint32_t j = 0; j < PER_THREAD; j++) {
            uint32_t k = (run << 8) + lane + WARP * j - before;
            if (k < params.blocks) add_keystream(params, data, k, stream[j]);
        }
    }
}

#endif
