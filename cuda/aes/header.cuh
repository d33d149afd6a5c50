// The AES block function, for the kernels of modes. A block is a uint4: word c is column c, byte r of it row r, as the
// bytes lie in memory.
//
// METHOD    METHOD_SBOX       SubBytes byte by byte from 256 bytes of shared memory, MixColumns computed
//           METHOD_TABLES     rounds by lookups in TABLES (1, 2 or 4) tables of 1 KiB, each with COPIES copies: with 32,
//                             one in every bank, no lookup waits for another
//           METHOD_BITSLICED  8 blocks a thread as bits of 32 words; no lookup, no branch on data: aes/bits.cuh
// ROUNDS    10, 12 or 14
// DECRYPT   0 or 1: the equivalent inverse cipher (FIPS 197, 5.3.5)
//
// `tables` has T_0 of encryption (256 words), T_0 of decryption, then both S-boxes (64 words each). T_r is T_0 rotated
// left by 8 r bits.
//
// A schedule is SCHEDULE_WORDS uint4: ROUND_KEYS round keys of encryption, then as many of decryption in the order of
// their use.

#define METHOD_SBOX 0
#define METHOD_TABLES 1
#define METHOD_BITSLICED 2

#define ROUND_KEYS 15u

__device__ __forceinline__ uint32_t rotl8(uint32_t x) { return __byte_perm(x, x, 0x2103); }
__device__ __forceinline__ uint32_t rotl16(uint32_t x) { return __byte_perm(x, x, 0x1032); }
__device__ __forceinline__ uint32_t rotl24(uint32_t x) { return __byte_perm(x, x, 0x0321); }
__device__ __forceinline__ uint32_t swap_bytes(uint32_t x) { return __byte_perm(x, x, 0x0123); }

__device__ __forceinline__ uint4 operator^(const uint4& a, const uint4& b) {
    return make_uint4(a.x ^ b.x, a.y ^ b.y, a.z ^ b.z, a.w ^ b.w);
}

// Bytes first to end - 1 of y, the others of x.
__device__ __forceinline__ uint4 select_bytes(const uint4& x, const uint4& y, uint32_t first, uint32_t end) {
    const uint32_t a[4] = {x.x, x.y, x.z, x.w}, b[4] = {y.x, y.y, y.z, y.w};
    uint32_t v[4];
#pragma unroll
    for (uint32_t w = 0; w < 4; w++) {
        uint32_t mask = 0;
#pragma unroll
        for (uint32_t i = 0; i < 4; i++) {
            if (4 * w + i >= first && 4 * w + i < end) mask |= 0xffu << (8 * i);
        }
        v[w] = (a[w] & ~mask) | (b[w] & mask);
    }
    return make_uint4(v[0], v[1], v[2], v[3]);
}

// Writes bytes first to end - 1 of y, the others of x: but nothing where a word of 4 bytes has only such, which may be another
// view's.
__device__ __forceinline__ void store_bytes(uint4* place, const uint4& x, const uint4& y, uint32_t first, uint32_t end) {
    uint4 v = select_bytes(x, y, first, end);
    if (first < 4) place->x = v.x;
    if (first < 8 && end > 4) place->y = v.y;
    if (first < 12 && end > 8) place->z = v.z;
    if (end > 12) place->w = v.w;
}

// A counter block plus n, as a big-endian number of 128 bits, or of its last 32 bits alone.
__device__ __forceinline__ uint4 add_big_endian(uint4 block, uint32_t n, bool wide) {
    uint32_t d = swap_bytes(block.w) + n;
    bool carry = wide && d < n;
    block.w = swap_bytes(d);
    if (carry) {
        uint32_t c = swap_bytes(block.z) + 1, b = swap_bytes(block.y), a = swap_bytes(block.x);
        if (c == 0) b++;
        if (c == 0 && b == 0) a++;
        block = make_uint4(swap_bytes(a), swap_bytes(b), swap_bytes(c), block.w);
    }
    return block;
}

extern __shared__ __align__(1024) unsigned char shared[];

#if METHOD == METHOD_TABLES

// Entry x of a pair of tables has the copies of the first table, then those of the second; the second pair follows the
// first. With 32 copies that is 256 bytes an entry: one byte permutation makes the address, the load's offset picks the
// table, and every lane has a bank to itself. Devices with less shared memory have fewer copies.
#define COPY_BYTES (4u * COPIES)
#define ENTRY_BYTES (TABLES == 1 ? COPY_BYTES : 2 * COPY_BYTES)

__device__ __forceinline__ uint32_t table_offset(uint32_t number) {
    return number / 2 * 256u * ENTRY_BYTES + number % 2 * COPY_BYTES;
}

__device__ __forceinline__ void load_tables(const uint32_t* tables) {
    const uint32_t* source = tables + 256 * DECRYPT;
    // A thread writes 16 bytes: an entry for four lanes.
    for (uint32_t i = threadIdx.x; i < TABLES * 256u * (COPIES / 4u); i += blockDim.x) {
        uint32_t copy = i % (COPIES / 4u), x = i / (COPIES / 4u) % 256u, number = i / (COPIES / 4u) / 256u;
        uint32_t v = source[x];
        if (number & 1) v = rotl8(v);
        if (number & 2) v = rotl16(v);
        *reinterpret_cast<uint4*>(shared + table_offset(number) + x * ENTRY_BYTES + copy * 16u) = make_uint4(v, v, v, v);
    }
    __syncthreads();
}

// The first of some runs that a warp takes, which strides over them: neighbouring ones go to the warps of a workgroup, but
// where there are too few for all warps to different workgroups, so that short data is spread over the device.
__device__ __forceinline__ uint32_t first_run(uint32_t runs) {
    uint32_t warp = threadIdx.x / WARP, warps = THREADS / WARP;
    return runs < gridDim.x * warps ? blockIdx.x + gridDim.x * warp : blockIdx.x * warps + warp;
}

// The entry of byte `row` of a word in a table.
__device__ __forceinline__ uint32_t table(uint32_t number, uint32_t word, uint32_t row) {
    uint32_t lane = threadIdx.x % COPIES * 4u;
    uint32_t entry = ENTRY_BYTES == 256u ? __byte_perm(word, lane, 0x5504u | (row << 4))
                                         : (word >> (8 * row) & 255u) * ENTRY_BYTES | lane;
    return *reinterpret_cast<const uint32_t*>(shared + entry + table_offset(number));
}

// What byte `row` of a word adds to a column.
__device__ __forceinline__ uint32_t lookup(uint32_t word, uint32_t row) {
    uint32_t v = table(row % TABLES, word, row), turned = row - row % TABLES;
    return turned == 0 ? v : turned == 1 ? rotl8(v) : turned == 2 ? rotl16(v) : rotl24(v);
}

__device__ __forceinline__ uint32_t column(uint32_t a, uint32_t b, uint32_t c, uint32_t d, uint32_t key) {
#if TABLES == 4
    return table(0, a, 0) ^ table(1, b, 1) ^ table(2, c, 2) ^ table(3, d, 3) ^ key;
#elif TABLES == 2
    return rotl16(table(0, c, 2) ^ table(1, d, 3)) ^ table(0, a, 0) ^ table(1, b, 1) ^ key;
#else
    return lookup(a, 0) ^ lookup(b, 1) ^ lookup(c, 2) ^ lookup(d, 3) ^ key;
#endif
}

// The bytes' S-box values, without MixColumns.
__device__ __forceinline__ uint32_t last_column(uint32_t a, uint32_t b, uint32_t c, uint32_t d, uint32_t key) {
    a = table(0, a, 0), b = table(0, b, 1), c = table(0, c, 2), d = table(0, d, 3);
#if DECRYPT
    // T_0 has the multiples by 14, 9, 13 and 11, whose sum is the value itself: all four sums at once.
    uint32_t ab = __byte_perm(a, b, 0x5410) ^ __byte_perm(a, b, 0x7632);
    uint32_t cd = __byte_perm(c, d, 0x5410) ^ __byte_perm(c, d, 0x7632);
    return __byte_perm(ab, cd, 0x6420) ^ __byte_perm(ab, cd, 0x7531) ^ key;
#else
    // Byte 1 of T_0 is the value itself.
    return __byte_perm(__byte_perm(a, b, 0x0051), __byte_perm(c, d, 0x0051), 0x5410) ^ key;
#endif
}

#elif METHOD == METHOD_SBOX

__device__ __forceinline__ void load_tables(const uint32_t* tables) {
    for (uint32_t i = threadIdx.x; i < 64; i += blockDim.x) {
        reinterpret_cast<uint32_t*>(shared)[i] = tables[512 + 64 * DECRYPT + i];
    }
    __syncthreads();
}

__device__ __forceinline__ uint32_t times_two(uint32_t x) {
    return ((x & 0x7f7f7f7fu) << 1) ^ ((x >> 7 & 0x01010101u) * 0x1bu);
}

__device__ __forceinline__ uint32_t last_column(uint32_t a, uint32_t b, uint32_t c, uint32_t d, uint32_t key) {
    uint32_t x = shared[a & 255u] | shared[b >> 8 & 255u] << 8;
    return (x | shared[c >> 16 & 255u] << 16 | (uint32_t)shared[d >> 24] << 24) ^ key;
}

__device__ __forceinline__ uint32_t column(uint32_t a, uint32_t b, uint32_t c, uint32_t d, uint32_t key) {
    uint32_t x = last_column(a, b, c, d, 0);
#if DECRYPT
    x ^= times_two(times_two(x ^ rotl16(x)));
#endif
    return times_two(x ^ rotl24(x)) ^ rotl24(x) ^ rotl16(x) ^ rotl8(x) ^ key;
}

#endif

#if METHOD != METHOD_BITSLICED

// Blocks that a thread has at a time.
#define PER_THREAD 1u

// One round: columns after SubBytes, ShiftRows and MixColumns, plus the key.
__device__ __forceinline__ uint4 round_of(const uint4& s, const uint4& key) {
#if DECRYPT
    return make_uint4(column(s.x, s.w, s.z, s.y, key.x), column(s.y, s.x, s.w, s.z, key.y),
                      column(s.z, s.y, s.x, s.w, key.z), column(s.w, s.z, s.y, s.x, key.w));
#else
    return make_uint4(column(s.x, s.y, s.z, s.w, key.x), column(s.y, s.z, s.w, s.x, key.y),
                      column(s.z, s.w, s.x, s.y, key.z), column(s.w, s.x, s.y, s.z, key.w));
#endif
}

__device__ __forceinline__ uint4 last_round_of(const uint4& s, const uint4& key) {
#if DECRYPT
    return make_uint4(last_column(s.x, s.w, s.z, s.y, key.x), last_column(s.y, s.x, s.w, s.z, key.y),
                      last_column(s.z, s.y, s.x, s.w, key.z), last_column(s.w, s.z, s.y, s.x, key.w));
#else
    return make_uint4(last_column(s.x, s.y, s.z, s.w, key.x), last_column(s.y, s.z, s.w, s.x, key.y),
                      last_column(s.z, s.w, s.x, s.y, key.z), last_column(s.w, s.x, s.y, s.z, key.w));
#endif
}

__device__ __forceinline__ uint4 cipher(uint4 s, const uint4* schedule) {
    const uint4* keys = schedule + ROUND_KEYS * DECRYPT;
    s = s ^ keys[0];
#pragma unroll 2
    for (uint32_t i = 1; i < ROUNDS; i++) s = round_of(s, keys[i]);
    return last_round_of(s, keys[ROUNDS]);
}

__device__ __forceinline__ void cipher_all(uint4 (&s)[PER_THREAD], const uint4* schedule) {
    s[0] = cipher(s[0], schedule);
}

#endif
