// What goes block after block within a message or sector, in place: one thread each.
//
// MODE_CBC_ENCRYPT  CBC encryption of `blocks` blocks of each message from block `first` on, as far as it has them
// MODE_XTS_STEAL    the last two blocks of each sector, of which the last has `tail` bytes: block `blocks` of a sector is
//                   the last whole one; sectors lie `stride` words apart, sector i has the encrypted tweak i of `messages`


__device__ __forceinline__ uint4 cipher_one(const uint4& x, const uint4* schedule) {
    uint4 s[PER_THREAD];
#pragma unroll
    for (uint32_t j = 0; j < PER_THREAD; j++) s[j] = x;
    cipher_all(s, schedule);
    return s[0];
}

extern "C" __global__ void __launch_bounds__(THREADS)
aes_serial(const Params params, BUFFERS(uint4, uint4, uint4, uint32_t)) {
    wait_for_previous();
    load_tables(tables);
    for (uint32_t i = blockIdx.x * THREADS + threadIdx.x; i < params.count; i += gridDim.x * THREADS) {
#if MODE == MODE_CBC_ENCRYPT
        Place place = place_of(messages, i, 0);
        const uint4* keys = schedule + (size_t)place.key * SCHEDULE_WORDS;
        uint4* words = data + place.word;
        uint4 chain = place.iv;
        uint32_t end = min(place.blocks, params.first + params.blocks);
        if (params.first < end && (params.first > 0 || place.chained)) chain = *(words + params.first - 1);
        for (uint32_t j = params.first; j < end; j++) {
            chain = cipher_one(chain ^ words[j], keys);
            words[j] = chain;
        }
#else
        const uint4* keys = schedule + (size_t)params.key * SCHEDULE_WORDS;
        uint4* words = data + (size_t)i * params.stride + params.blocks;
        uint4 tweak = xts_tweak(messages[i], params.blocks), next = xts_double(tweak);
        uint4 whole = words[0], part = words[1];
        // Encryption takes the tweaks in order, decryption the other way around.
        uint4 first = DECRYPT ? next : tweak, second = DECRYPT ? tweak : next;
#pragma unroll 1
        for (uint32_t pass = 0; pass < 2; pass++) {
            uint4 now = pass == 0 ? first : second;
            uint4 y = cipher_one(whole ^ now, keys) ^ now;
            if (pass == 0) {
                // The short block gets the head of the result, and gives its own in exchange.
                store_bytes(words + 1, part, y, 0, params.tail);
                whole = select_bytes(y, part, 0, params.tail);
            } else {
                words[0] = y;
            }
        }
#endif
    }
}
