// AES on bits: 8 blocks a thread in 32 words, for METHOD_BITSLICED. Word (r, b) has bit b of the bytes of row r: byte c of
// the word is column c, bit j of that is block j. So ShiftRows rotates words, and everything else is logic on whole
// words: no lookup and no branch depends on data or key.
//
// SubBytes is the circuit of Boyar, Peralta and Calik ("SLP_AES_113") without its four negations: the schedule has the
// constant 0x63 added to the keys instead, to those after SubBytes for encryption (MixColumns keeps it as it is) and to
// those before it for decryption, where SubBytes's inverse is the circuit between two inverses of its linear part.
// Costs a round and block, in logic operations of up to three inputs: some 50 for SubBytes, 10 for MixColumns, 4 for the
// key, 3 for ShiftRows; slicing and its inverse some 40 a block each.
//
// A schedule is ROUND_KEYS round keys of 32 words for encryption, then as many for decryption in the order of their use.

#define PER_THREAD 8u

__device__ __forceinline__ void load_tables(const uint32_t*) {}

struct Sliced {
    uint32_t row[4][8];
};

__device__ __forceinline__ void swap_bits(uint32_t& a, uint32_t& b, uint32_t mask, uint32_t shift) {
    uint32_t t = ((a >> shift) ^ b) & mask;
    b ^= t;
    a ^= t << shift;
}

// Bit i of byte c of word j becomes bit j of byte c of word i.
__device__ __forceinline__ void transpose_bits(uint32_t (&x)[8]) {
#pragma unroll
    for (uint32_t i = 0; i < 8; i += 2) swap_bits(x[i], x[i + 1], 0x55555555u, 1);
#pragma unroll
    for (uint32_t i = 0; i < 8; i++) {
        if ((i & 2) == 0) swap_bits(x[i], x[i + 2], 0x33333333u, 2);
    }
#pragma unroll
    for (uint32_t i = 0; i < 4; i++) swap_bits(x[i], x[i + 4], 0x0f0f0f0fu, 4);
}

// Byte c of word r becomes byte r of word c.
__device__ __forceinline__ uint4 transpose_bytes(const uint4& x) {
    uint32_t a = __byte_perm(x.x, x.y, 0x5140), b = __byte_perm(x.z, x.w, 0x5140);
    uint32_t c = __byte_perm(x.x, x.y, 0x7362), d = __byte_perm(x.z, x.w, 0x7362);
    return make_uint4(__byte_perm(a, b, 0x5410), __byte_perm(a, b, 0x7632), __byte_perm(c, d, 0x5410),
                      __byte_perm(c, d, 0x7632));
}

__device__ __forceinline__ Sliced slice(const uint4 (&blocks)[8]) {
    Sliced s;
#pragma unroll
    for (uint32_t j = 0; j < 8; j++) {
        uint4 rows = transpose_bytes(blocks[j]);
        s.row[0][j] = rows.x, s.row[1][j] = rows.y, s.row[2][j] = rows.z, s.row[3][j] = rows.w;
    }
#pragma unroll
    for (uint32_t r = 0; r < 4; r++) transpose_bits(s.row[r]);
    return s;
}

// Eight times the same block.
__device__ __forceinline__ Sliced slice_same(const uint4& block) {
    uint4 rows = transpose_bytes(block);
    const uint32_t row[4] = {rows.x, rows.y, rows.z, rows.w};
    Sliced s;
#pragma unroll
    for (uint32_t r = 0; r < 4; r++) {
#pragma unroll
        for (uint32_t b = 0; b < 8; b++) s.row[r][b] = (row[r] >> b & 0x01010101u) * 255u;
    }
    return s;
}

__device__ __forceinline__ void unslice(Sliced& s, uint4 (&blocks)[8]) {
#pragma unroll
    for (uint32_t r = 0; r < 4; r++) transpose_bits(s.row[r]);
#pragma unroll
    for (uint32_t j = 0; j < 8; j++) {
        blocks[j] = transpose_bytes(make_uint4(s.row[0][j], s.row[1][j], s.row[2][j], s.row[3][j]));
    }
}

__device__ __forceinline__ void sub_bytes(uint32_t (&x)[8]) {
    uint32_t u7 = x[0], u6 = x[1], u5 = x[2], u4 = x[3], u3 = x[4], u2 = x[5], u1 = x[6], u0 = x[7];
    uint32_t y14 = u3 ^ u5; uint32_t y13 = u0 ^ u6; uint32_t y12 = y13 ^ y14; uint32_t t1 = u4 ^ y12;
    uint32_t y15 = t1 ^ u5; uint32_t t2 = y12 & y15; uint32_t y6 = y15 ^ u7; uint32_t y20 = t1 ^ u1;
    uint32_t y9 = u0 ^ u3; uint32_t y11 = y20 ^ y9; uint32_t t12 = y9 & y11; uint32_t y7 = u7 ^ y11;
    uint32_t y8 = u0 ^ u5; uint32_t t0 = u1 ^ u2; uint32_t y10 = y15 ^ t0; uint32_t y17 = y10 ^ y11;
    uint32_t t13 = y14 & y17; uint32_t t14 = t13 ^ t12; uint32_t y19 = y10 ^ y8; uint32_t t15 = y8 & y10;
    uint32_t t16 = t15 ^ t12; uint32_t y16 = t0 ^ y11; uint32_t y21 = y13 ^ y16; uint32_t t7 = y13 & y16;
    uint32_t y18 = u0 ^ y16; uint32_t y1 = t0 ^ u7; uint32_t y4 = y1 ^ u3; uint32_t t5 = y4 & u7;
    uint32_t t6 = t5 ^ t2; uint32_t t18 = t6 ^ t16; uint32_t t22 = t18 ^ y19; uint32_t y2 = y1 ^ u0;
    uint32_t t10 = y2 & y7; uint32_t t11 = t10 ^ t7; uint32_t t20 = t11 ^ t16; uint32_t t24 = t20 ^ y18;
    uint32_t y5 = y1 ^ u6; uint32_t t8 = y5 & y1; uint32_t t9 = t8 ^ t7; uint32_t t19 = t9 ^ t14;
    uint32_t t23 = t19 ^ y21; uint32_t y3 = y5 ^ y8; uint32_t t3 = y3 & y6; uint32_t t4 = t3 ^ t2;
    uint32_t t17 = t4 ^ y20; uint32_t t21 = t17 ^ t14; uint32_t t26 = t21 & t23; uint32_t t27 = t24 ^ t26;
    uint32_t t31 = t22 ^ t26; uint32_t t25 = t21 ^ t22; uint32_t t28 = t25 & t27; uint32_t t29 = t28 ^ t22;
    uint32_t z14 = t29 & y2; uint32_t z5 = t29 & y7; uint32_t t30 = t23 ^ t24; uint32_t t32 = t31 & t30;
    uint32_t t33 = t32 ^ t24; uint32_t t35 = t27 ^ t33; uint32_t t36 = t24 & t35; uint32_t t38 = t27 ^ t36;
    uint32_t t39 = t29 & t38; uint32_t t40 = t25 ^ t39; uint32_t t43 = t29 ^ t40; uint32_t z3 = t43 & y16;
    uint32_t tc12 = z3 ^ z5; uint32_t z12 = t43 & y13; uint32_t z13 = t40 & y5; uint32_t z4 = t40 & y1;
    uint32_t tc6 = z3 ^ z4; uint32_t t34 = t23 ^ t33; uint32_t t37 = t36 ^ t34; uint32_t t41 = t40 ^ t37;
    uint32_t z8 = t41 & y10; uint32_t z17 = t41 & y8; uint32_t t44 = t33 ^ t37; uint32_t z0 = t44 & y15;
    uint32_t z9 = t44 & y12; uint32_t z10 = t37 & y3; uint32_t z1 = t37 & y6; uint32_t tc5 = z1 ^ z0;
    uint32_t tc11 = tc6 ^ tc5; uint32_t z11 = t33 & y4; uint32_t t42 = t29 ^ t33; uint32_t t45 = t42 ^ t41;
    uint32_t z7 = t45 & y17; uint32_t tc8 = z7 ^ tc6; uint32_t z16 = t45 & y14; uint32_t z6 = t42 & y11;
    uint32_t tc16 = z6 ^ tc8; uint32_t z15 = t42 & y9; uint32_t tc20 = z15 ^ tc16; uint32_t tc1 = z15 ^ z16;
    uint32_t tc2 = z10 ^ tc1; uint32_t tc21 = tc2 ^ z11; uint32_t tc3 = z9 ^ tc2; uint32_t s0 = tc3 ^ tc16;
    uint32_t s3 = tc3 ^ tc11; uint32_t s1 = s3 ^ tc16; uint32_t tc13 = z13 ^ tc1; uint32_t z2 = t33 & u7;
    uint32_t tc4 = z0 ^ z2; uint32_t tc7 = z12 ^ tc4; uint32_t tc9 = z8 ^ tc7; uint32_t tc10 = tc8 ^ tc9;
    uint32_t tc17 = z14 ^ tc10; uint32_t s5 = tc21 ^ tc17; uint32_t tc26 = tc17 ^ tc20; uint32_t s2 = tc26 ^ z17;
    uint32_t tc14 = tc4 ^ tc12; uint32_t tc18 = tc13 ^ tc14; uint32_t s6 = tc10 ^ tc18; uint32_t s7 = z12 ^ tc18;
    uint32_t s4 = tc14 ^ s3;
    x[0] = s7, x[1] = s6, x[2] = s5, x[3] = s4, x[4] = s3, x[5] = s2, x[6] = s1, x[7] = s0;
}

// The inverse of the linear part of SubBytes.
__device__ __forceinline__ void inverse_affine(uint32_t (&x)[8]) {
    uint32_t y[8];
#pragma unroll
    for (uint32_t i = 0; i < 8; i++) y[i] = x[(i + 2) % 8] ^ x[(i + 5) % 8] ^ x[(i + 7) % 8];
#pragma unroll
    for (uint32_t i = 0; i < 8; i++) x[i] = y[i];
}

__device__ __forceinline__ void sub_and_shift(Sliced& s) {
#pragma unroll
    for (uint32_t r = 0; r < 4; r++) {
#if DECRYPT
        inverse_affine(s.row[r]);
        sub_bytes(s.row[r]);
        inverse_affine(s.row[r]);
#else
        sub_bytes(s.row[r]);
#endif
    }
#pragma unroll
    for (uint32_t b = 0; b < 8; b++) {
#if DECRYPT
        s.row[1][b] = rotl8(s.row[1][b]), s.row[2][b] = rotl16(s.row[2][b]), s.row[3][b] = rotl24(s.row[3][b]);
#else
        s.row[1][b] = rotl24(s.row[1][b]), s.row[2][b] = rotl16(s.row[2][b]), s.row[3][b] = rotl8(s.row[3][b]);
#endif
    }
}

// Twice a field element on bits.
__device__ __forceinline__ void times_two(uint32_t (&x)[8]) {
    uint32_t top = x[7];
#pragma unroll
    for (uint32_t b = 7; b > 0; b--) x[b] = x[b - 1];
    x[0] = top;
    x[1] ^= top, x[3] ^= top, x[4] ^= top;
}

__device__ __forceinline__ void mix_columns(Sliced& s) {
#if DECRYPT
    // The inverse matrix is the matrix times circ(5, 0, 4, 0).
#pragma unroll
    for (uint32_t r = 0; r < 2; r++) {
        uint32_t t[8];
#pragma unroll
        for (uint32_t b = 0; b < 8; b++) t[b] = s.row[r][b] ^ s.row[r + 2][b];
        times_two(t);
        times_two(t);
#pragma unroll
        for (uint32_t b = 0; b < 8; b++) s.row[r][b] ^= t[b], s.row[r + 2][b] ^= t[b];
    }
#endif
    // Row r becomes 2 (x_r + x_(r+1)) + x_(r+1) + (x_(r+2) + x_(r+3)).
    Sliced t = s;
#pragma unroll
    for (uint32_t r = 0; r < 4; r++) {
#pragma unroll
        for (uint32_t b = 0; b < 8; b++) t.row[r][b] ^= s.row[(r + 1) % 4][b];
    }
    Sliced mixed;
#pragma unroll
    for (uint32_t r = 0; r < 4; r++) {
#pragma unroll
        for (uint32_t b = 0; b < 8; b++) {
            uint32_t x = t.row[r][(b + 7) % 8] ^ s.row[(r + 1) % 4][b] ^ t.row[(r + 2) % 4][b];
            if (b == 1 || b == 3 || b == 4) x ^= t.row[r][7];
            mixed.row[r][b] = x;
        }
    }
    s = mixed;
}

// `keys` are those of one round; all threads of a warp that share a schedule read the same words.
__device__ __forceinline__ void add_key(Sliced& s, const uint4* keys) {
#pragma unroll
    for (uint32_t r = 0; r < 4; r++) {
        uint4 low = keys[2 * r], high = keys[2 * r + 1];
        s.row[r][0] ^= low.x, s.row[r][1] ^= low.y, s.row[r][2] ^= low.z, s.row[r][3] ^= low.w;
        s.row[r][4] ^= high.x, s.row[r][5] ^= high.y, s.row[r][6] ^= high.z, s.row[r][7] ^= high.w;
    }
}

__device__ __forceinline__ void cipher_sliced(Sliced& s, const uint4* schedule) {
    const uint4* keys = schedule + ROUND_KEYS * 8u * DECRYPT;
    add_key(s, keys);
#pragma unroll 1
    for (uint32_t i = 1; i < ROUNDS; i++) {
        sub_and_shift(s);
        mix_columns(s);
        add_key(s, keys + 8u * i);
    }
    sub_and_shift(s);
    add_key(s, keys + 8u * ROUNDS);
}

__device__ __forceinline__ void cipher_all(uint4 (&blocks)[PER_THREAD], const uint4* schedule) {
    Sliced s = slice(blocks);
    cipher_sliced(s, schedule);
    unslice(s, blocks);
}
