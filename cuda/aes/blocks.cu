// The modes whose blocks do not wait for each other, in place, over many messages or sectors.
//
// MODE_ECB      each block on its own, in the direction of the kernel
// MODE_CBC      CBC decryption
// MODE_CTR      the keystream from `iv` on, over 128 bits of counter if `wide`, else over 32
// MODE_XTS      each block between its tweaks; sectors of `blocks` blocks lie `stride` words apart, sector i has the
//               encrypted tweak i of `messages`; a sector's last block that takes part in stealing is not counted
// MODE_TWEAK    the encryption of iv + i as a little-endian number: the tweaks of XTS
//
// Grid: a unit is the work of one thread, and what lies before every PREVIOUS_UNITS units was copied to `previous` by
// aes_previous for CBC, which needs the ciphertext of the block before, that another thread overwrites.
//
// With tables, whose lookups bound it (160 for a block of AES-128, one a lane and clock), warps stride over runs of
// PREVIOUS_UNITS units, lane l owning units l, l + 32, …, AT_ONCE of them under way at a time, with the round keys in
// registers: 512 threads a workgroup are as many as fit with AES-256. What depends on the message or the sector is
// computed anew only where a lane comes to another one; within a sector a lane's next tweak is the last one times x^32.
// CBC gets the block before from the neighbouring lane, or from what the warp loaded last.
//
// Otherwise thread u owns unit u, that is PER_THREAD blocks, and strides; for CBC workgroups load, wait, and store.


#if MODE == MODE_CBC
#define PREVIOUS , uint4
#else
#define PREVIOUS
#endif

#if METHOD == METHOD_TABLES

static_assert(WARP == 32, "a lane's next tweak is its last one times x^32");

// Blocks that a thread has under way at a time.
#define AT_ONCE 2u

// Where a lane is: its message, or its sector of XTS.
struct Walk {
    uint32_t message;
    uint32_t start, end; // units of it; `end` 0 before the first
    size_t word;         // of its first block
    uint32_t key;
    uint32_t tail;       // bytes in its last block
    bool chained;
    uint4 iv;            // for XTS the tweak of the unit
};

// From a unit 32 before, or from anywhere to a first one, where `end` is 0 for XTS.
__device__ __forceinline__ void walk_to(const Params& params, const uint4* messages, Walk& walk, uint32_t unit) {
#if MODE == MODE_XTS
    if (unit < walk.end) {
        walk.iv = xts_shift_word(walk.iv);
        return;
    }
    uint32_t sector = unit / params.blocks;
    walk.start = sector * params.blocks, walk.end = walk.start + params.blocks;
    walk.word = (size_t)sector * params.stride;
    walk.iv = xts_tweak(messages[sector], unit - walk.start);
#else
    if (unit < walk.end) return;
    uint32_t low = walk.message, high = params.messages;
    while (high - low > 1) {
        uint32_t middle = low + (high - low) / 2;
        if (messages[(size_t)middle * MESSAGE_WORDS].x <= unit) low = middle; else high = middle;
    }
    Place place = place_of(messages, low, unit);
    walk.message = low, walk.start = unit - place.first, walk.end = walk.start + place.blocks;
    walk.word = place.word, walk.key = place.key, walk.tail = place.tail, walk.chained = place.chained;
    walk.iv = place.iv;
#endif
}

__device__ __forceinline__ uint4 shuffle(const uint4& x, uint32_t lane) {
    return make_uint4(warp_shuffle(x.x, lane), warp_shuffle(x.y, lane),
                      warp_shuffle(x.z, lane), warp_shuffle(x.w, lane));
}

extern "C" __global__ void __launch_bounds__(THREADS, 1)
aes_blocks(const Params params, BUFFERS(uint4, uint4, uint4, uint32_t PREVIOUS)) {
    wait_for_previous();
    load_tables(tables);
    uint32_t lane = warp_lane();
    uint32_t runs = params.units / PREVIOUS_UNITS + (params.units % PREVIOUS_UNITS > 0 ? 1 : 0);
    uint4 keys[ROUNDS + 1];
    uint32_t loaded = params.key;
#pragma unroll
    for (uint32_t i = 0; i <= ROUNDS; i++) {
        keys[i] = schedule[(size_t)loaded * SCHEDULE_WORDS + ROUND_KEYS * DECRYPT + i];
    }
    Walk walk = {};
    walk.key = loaded;
    for (uint32_t run = first_run(runs); run < runs; run += gridDim.x * (THREADS / WARP)) {
        uint32_t first = run * PREVIOUS_UNITS, count = min(PREVIOUS_UNITS, params.units - first);
#if MODE == MODE_XTS
        walk.end = 0;
#elif MODE == MODE_CBC
        // For lane 0: the block before it.
        uint4 carried = make_uint4(0, 0, 0, 0);
#endif
#pragma unroll 1
        for (uint32_t b = 0; b < count; b += WARP * AT_ONCE) {
            uint4 y[AT_ONCE];
            uint4* place[AT_ONCE];
            uint32_t key[AT_ONCE];
#if MODE == MODE_CBC || MODE == MODE_XTS
            uint4 mask[AT_ONCE];
#elif MODE == MODE_CTR
            uint32_t tail[AT_ONCE];
#endif
#pragma unroll
            for (uint32_t j = 0; j < AT_ONCE; j++) {
                uint32_t unit = first + b + WARP * j + lane;
                bool active = unit < params.units;
                if (active) walk_to(params, messages, walk, unit);
                uint32_t block = unit - walk.start;
                place[j] = active ? data + walk.word + block : nullptr;
                key[j] = walk.key;
                y[j] = make_uint4(0, 0, 0, 0);
#if MODE == MODE_ECB || MODE == MODE_CBC || MODE == MODE_XTS
                if (active) y[j] = *place[j];
#elif MODE == MODE_CTR
                y[j] = add_big_endian(walk.iv, block, params.wide != 0);
                tail[j] = unit + 1 == walk.end ? walk.tail : 16u;
#elif MODE == MODE_TWEAK
                y[j] = add_little_endian(walk.iv, block);
#endif
#if MODE == MODE_XTS
                mask[j] = walk.iv;
                y[j] = y[j] ^ mask[j];
#elif MODE == MODE_CBC
                bool goes_on = block > 0 || walk.chained;
                if (b == 0 && j == 0 && lane == 0 && goes_on) carried = previous[run];
                uint4 before = shuffle(y[j], (lane + WARP - 1) % WARP);
                mask[j] = goes_on ? (lane == 0 ? carried : before) : walk.iv;
                carried = before;
#endif
            }
            bool same = true;
#if MODE != MODE_XTS
            uint32_t wanted = warp_shuffle(key[0], 0);
#pragma unroll
            for (uint32_t j = 0; j < AT_ONCE; j++) same = same && key[j] == wanted;
            same = warp_ballot(same) == ALL_LANES;
            if (same && wanted != loaded) {
                loaded = wanted;
#pragma unroll
                for (uint32_t i = 0; i <= ROUNDS; i++) {
                    keys[i] = schedule[(size_t)loaded * SCHEDULE_WORDS + ROUND_KEYS * DECRYPT + i];
                }
            }
#endif
            if (same) {
#pragma unroll
                for (uint32_t j = 0; j < AT_ONCE; j++) y[j] = y[j] ^ keys[0];
#pragma unroll
                for (uint32_t i = 1; i < ROUNDS; i++) {
#pragma unroll
                    for (uint32_t j = 0; j < AT_ONCE; j++) y[j] = round_of(y[j], keys[i]);
                }
#pragma unroll
                for (uint32_t j = 0; j < AT_ONCE; j++) y[j] = last_round_of(y[j], keys[ROUNDS]);
            } else {
#pragma unroll
                for (uint32_t j = 0; j < AT_ONCE; j++) y[j] = cipher(y[j], schedule + (size_t)key[j] * SCHEDULE_WORDS);
            }
#pragma unroll
            for (uint32_t j = 0; j < AT_ONCE; j++) {
                if (place[j] == nullptr) continue;
#if MODE == MODE_CBC || MODE == MODE_XTS
                y[j] = y[j] ^ mask[j];
#elif MODE == MODE_CTR
                uint4 x = *place[j];
                y[j] = x ^ y[j];
                if (tail[j] < 16) {
                    store_bytes(place[j], x, y[j], 0, tail[j]);
                    continue;
                }
#endif
                *place[j] = y[j];
            }
        }
    }
}

#else

__device__ __forceinline__ Place find(const Params& params, const uint4* messages, uint32_t unit) {
#if MODE == MODE_XTS
    uint32_t sector = unit / params.messages;
    Place place;
    place.word = (size_t)sector * params.stride, place.blocks = params.blocks;
    place.first = (unit - sector * params.messages) * PER_THREAD;
    place.key = params.key, place.tail = 16, place.chained = false;
    place.iv = xts_tweak(messages[sector], place.first);
    return place;
#else
    return locate(messages, params.messages, unit);
#endif
}

extern "C" __global__ void __launch_bounds__(THREADS)
aes_blocks(const Params params, BUFFERS(uint4, uint4, uint4, uint32_t PREVIOUS)) {
    wait_for_previous();
    load_tables(tables);
    for (uint32_t tile = blockIdx.x; tile * THREADS < params.units; tile += gridDim.x) {
        uint32_t unit = tile * THREADS + threadIdx.x;
        bool active = unit < params.units;
        Place place = find(params, messages, active ? unit : 0);
        if (!active) place.blocks = 0;
        uint4* words = data + place.word;
        uint4 x[PER_THREAD], y[PER_THREAD];
#if MODE == MODE_CBC || MODE == MODE_XTS
        uint4 before = place.iv;
#endif
#if MODE == MODE_CBC
        if (place.first > 0 || place.chained) {
            before = threadIdx.x == 0 ? previous[tile * (THREADS / PREVIOUS_UNITS)] : *(words + place.first - 1);
        }
#endif
#pragma unroll
        for (uint32_t j = 0; j < PER_THREAD; j++) {
            uint32_t block = place.first + j;
#if MODE != MODE_TWEAK
            x[j] = block < place.blocks ? words[block] : make_uint4(0, 0, 0, 0);
#endif
#if MODE == MODE_ECB || MODE == MODE_CBC
            y[j] = x[j];
#elif MODE == MODE_CTR
            y[j] = add_big_endian(place.iv, block, params.wide != 0);
#elif MODE == MODE_XTS
            y[j] = x[j] ^ before;
            x[j] = before;
            before = xts_double(before);
#elif MODE == MODE_TWEAK
            y[j] = add_little_endian(place.iv, block);
#endif
        }
        cipher_all(y, schedule + (size_t)place.key * SCHEDULE_WORDS);
#if MODE == MODE_CBC
        __syncthreads();
#endif
#pragma unroll
        for (uint32_t j = 0; j < PER_THREAD; j++) {
            uint32_t block = place.first + j;
#if MODE == MODE_CBC
            y[j] = y[j] ^ before;
            before = x[j];
#elif MODE == MODE_XTS
            y[j] = y[j] ^ x[j];
#elif MODE == MODE_CTR
            y[j] = y[j] ^ x[j];
            if (block + 1 == place.blocks && place.tail < 16) {
                store_bytes(words + block, x[j], y[j], 0, place.tail);
                continue;
            }
#endif
            if (block < place.blocks) words[block] = y[j];
        }
    }
}

#endif
