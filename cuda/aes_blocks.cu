// The modes whose blocks do not wait for each other, in place, over many messages or sectors.
//
// MODE_ECB      each block on its own, in the direction of the kernel
// MODE_CBC      CBC decryption
// MODE_CTR      the keystream from `iv` on, over 128 bits of counter if `wide`, else over 32
// MODE_XTS      each block between its tweaks; sectors of `blocks` blocks lie `stride` words apart, sector i has the
//               encrypted tweak i of `messages`; a sector's last block that takes part in stealing is not counted
// MODE_TWEAK    the encryption of iv + i as a little-endian number: the tweaks of XTS
//
// Grid: thread u owns unit u, that is PER_THREAD blocks, and strides. CBC needs the ciphertext of the block before,
// which another thread overwrites: workgroups load, wait, and store, and what lies before a workgroup's first unit was
// copied to `borders` by aes_borders.

#define MODE_ECB 0
#define MODE_CBC 1
#define MODE_CTR 2
#define MODE_XTS 3
#define MODE_TWEAK 4

struct Params {
    uint32_t units;
    uint32_t messages; // how many; for XTS units of a sector
    uint32_t wide;     // CTR only
    uint32_t word[2];  // XTS only, as are the following: where sector 0 lies
    uint32_t stride;
    uint32_t blocks;
    uint32_t key;
};

__device__ __forceinline__ Place find(const Params& params, const uint4* messages, uint32_t unit) {
#if MODE == MODE_XTS
    uint32_t sector = unit / params.messages;
    Place place;
    place.word = wide_word(params.word) + (size_t)sector * params.stride, place.blocks = params.blocks;
    place.first = (unit - sector * params.messages) * PER_THREAD;
    place.key = params.key, place.tail = 16, place.chained = false;
    place.iv = xts_tweak(messages[sector], place.first);
    return place;
#else
    return locate(messages, params.messages, unit);
#endif
}

extern "C" __global__ void __launch_bounds__(THREADS)
aes_blocks(const Params params, uint4* data, const uint4* messages, const uint4* schedule, const uint32_t* tables
#if MODE == MODE_CBC
           , const uint4* borders
#endif
) {
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
        if (place.first > 0 || place.chained) before = threadIdx.x == 0 ? borders[tile] : *(words + place.first - 1);
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
            if (block + 1 == place.blocks) y[j] = select_bytes(x[j], y[j], 0, place.tail);
#endif
            if (block < place.blocks) words[block] = y[j];
        }
    }
}
