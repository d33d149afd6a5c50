// Where the blocks of independent messages lie, for kernels that work on many at once.
//
// A message is three words of `messages`: {first unit, low half of its first word of the data, blocks, key}, {bytes in its
// last block, its GHASH powers, the high half, 1 if it goes on with the message that lies before it: CBC then takes the block
// before it for the initialisation vector}, {initialisation vector}. A unit is PER_THREAD neighbouring blocks of one message,
// the work of one thread; messages stand in the order of their first units.

#define MESSAGE_WORDS 3u

struct Place {
    size_t word;     // where block 0 of the message lies
    uint32_t blocks; // of the message
    uint32_t first;  // block of the unit
    uint32_t key;
    uint32_t tail;   // bytes in the last block
    bool chained;    // to the block before it
    uint4 iv;
};

__device__ __forceinline__ Place place_of(const uint4* messages, uint32_t message, uint32_t unit) {
    uint4 head = messages[(size_t)message * MESSAGE_WORDS], more = messages[(size_t)message * MESSAGE_WORDS + 1];
    Place place;
    place.word = (size_t)more.z << 32 | head.y, place.blocks = head.z, place.key = head.w;
    place.first = (unit - head.x) * PER_THREAD;
    place.tail = more.x, place.chained = more.w != 0;
    place.iv = messages[(size_t)message * MESSAGE_WORDS + 2];
    return place;
}

// The last message that starts at or before the unit.
__device__ __forceinline__ Place locate(const uint4* messages, uint32_t count, uint32_t unit) {
    uint32_t low = 0, high = count;
    while (high - low > 1) {
        uint32_t middle = low + (high - low) / 2;
        if (messages[(size_t)middle * MESSAGE_WORDS].x <= unit) low = middle; else high = middle;
    }
    return place_of(messages, low, unit);
}
