//! Hash functions of bytes, by their standards.

use std::array;

use crate::{
    blake::{PLACES, SIGMA, blake3_orders},
    bytes::function::HashFunction,
};

/// Where SHA-256, BLAKE2s and BLAKE3 start.
const IV: [u32; 8] =
    [0x6a09_e667, 0xbb67_ae85, 0x3c6e_f372, 0xa54f_f53a, 0x510e_527f, 0x9b05_688c, 0x1f83_d9ab, 0x5be0_cd19];

/// The digest of a message.
pub fn digest(function: HashFunction, message: &[u8]) -> [u8; 32] {
    match function {
        HashFunction::Keccak256 => keccak_256(message),
        HashFunction::Sha3_256 => sha3_256(message),
        HashFunction::Sha256 => sha_256(message),
        HashFunction::Blake2s256 => blake2s_256(message),
        HashFunction::Blake3 => blake3(message),
    }
}

/// Keccak-256 with Keccak's own padding: the byte 1 behind a message.
fn keccak_256(message: &[u8]) -> [u8; 32] {
    sponge(message, 0x01)
}

/// SHA3-256 (FIPS 202): the byte 6 behind a message.
fn sha3_256(message: &[u8]) -> [u8; 32] {
    sponge(message, 0x06)
}

/// The sponge over Keccak-f\[1600\] of rate 136 (FIPS 202, sections 4 and 5).
fn sponge(message: &[u8], pad: u8) -> [u8; 32] {
    const RATE: usize = 136;
    let mut padded = message.to_vec();
    padded.push(pad);
    padded.resize(padded.len().next_multiple_of(RATE), 0);
    if let Some(last) = padded.last_mut() {
        *last |= 0x80;
    }
    let mut state = [0u64; 25];
    for block in padded.chunks_exact(RATE) {
        for (lane, bytes) in state.iter_mut().zip(block.chunks_exact(8)) {
            *lane ^= bytes.iter().rev().fold(0, |lane, byte| lane << 8 | u64::from(*byte));
        }
        keccak_f(&mut state);
    }
    let mut digest = [0; 32];
    for (bytes, lane) in digest.chunks_exact_mut(8).zip(state) {
        bytes.copy_from_slice(&lane.to_le_bytes());
    }
    digest
}

/// Keccak-f\[1600\] (FIPS 202, section 3); lane (x, y) is number x + 5·y.
fn keccak_f(a: &mut [u64; 25]) {
    // The register that constants come from: x⁸ + x⁶ + x⁵ + x⁴ + 1.
    let mut register = 1u8;
    for _ in 0..24 {
        let parity: [u64; 5] = array::from_fn(|x| (0..5).fold(0, |sum, y| sum ^ a[x + 5 * y]));
        for (i, lane) in a.iter_mut().enumerate() {
            *lane ^= parity[(i + 4) % 5] ^ parity[(i + 1) % 5].rotate_left(1);
        }
        let mut b = *a;
        let (mut x, mut y) = (1, 0);
        for t in 0..24 {
            let lane = a[x + 5 * y].rotate_left((t + 1) * (t + 2) / 2 % 64);
            (x, y) = (y, (2 * x + 3 * y) % 5);
            b[x + 5 * y] = lane;
        }
        for (i, lane) in a.iter_mut().enumerate() {
            let row = i / 5 * 5;
            *lane = b[i] ^ !b[row + (i + 1) % 5] & b[row + (i + 2) % 5];
        }
        for j in 0..7 {
            a[0] ^= u64::from(register & 1) << ((1 << j) - 1);
            register = register << 1 ^ if register >> 7 == 1 { 0x71 } else { 0 };
        }
    }
}

/// SHA-256 (FIPS 180-4).
fn sha_256(message: &[u8]) -> [u8; 32] {
    let mut padded = message.to_vec();
    padded.push(0x80);
    padded.resize((padded.len() + 8).next_multiple_of(64) - 8, 0);
    padded.extend((8 * message.len() as u64).to_be_bytes());
    let constants = sha_256_constants();
    let mut hash = IV;
    for block in padded.chunks_exact(64) {
        let mut w: Vec<u32> =
            block.chunks_exact(4).map(|bytes| bytes.iter().fold(0, |w, byte| w << 8 | u32::from(*byte))).collect();
        for t in 16..64 {
            let (a, b) = (w[t - 15], w[t - 2]);
            let small = a.rotate_right(7) ^ a.rotate_right(18) ^ a >> 3;
            let large = b.rotate_right(17) ^ b.rotate_right(19) ^ b >> 10;
            w.push(large.wrapping_add(w[t - 7]).wrapping_add(small).wrapping_add(w[t - 16]));
        }
        let [mut a, mut b, mut c, mut d, mut e, mut f, mut g, mut h] = hash;
        for (constant, w) in constants.iter().zip(&w) {
            let sum = e.rotate_right(6) ^ e.rotate_right(11) ^ e.rotate_right(25);
            let first = [sum, e & f ^ !e & g, *constant, *w].into_iter().fold(h, u32::wrapping_add);
            let sum = a.rotate_right(2) ^ a.rotate_right(13) ^ a.rotate_right(22);
            let second = sum.wrapping_add(a & b ^ a & c ^ b & c);
            (h, g, f, e, d, c, b, a) = (g, f, e, d.wrapping_add(first), c, b, a, first.wrapping_add(second));
        }
        for (word, more) in hash.iter_mut().zip([a, b, c, d, e, f, g, h]) {
            *word = word.wrapping_add(more);
        }
    }
    let mut digest = [0; 32];
    for (bytes, word) in digest.chunks_exact_mut(4).zip(hash) {
        bytes.copy_from_slice(&word.to_be_bytes());
    }
    digest
}

/// The first 32 bits of the fractional parts of the cube roots of the first 64 primes.
fn sha_256_constants() -> Vec<u32> {
    let primes = (2u128..).filter(|n| (2..*n).take_while(|d| d * d <= *n).all(|d| n % d != 0));
    // The largest c with c³ ≤ p·2⁹⁶.
    let root = |p: u128| {
        (0..35).rev().fold(0u128, |c, bit| {
            let more = c | 1 << bit;
            if more * more * more <= p << 96 { more } else { c }
        })
    };
    primes.take(64).map(|p| root(p) as u32).collect()
}

/// A round of BLAKE2s and BLAKE3, with the words of a block in this order.
fn round(v: &mut [u32; 16], m: &[u32; 16], order: &[usize; 16]) {
    for ([a, b, c, d], words) in PLACES.into_iter().zip(order.chunks_exact(2)) {
        for (word, [first, second]) in words.iter().zip([[16, 12], [8, 7]]) {
            v[a] = v[a].wrapping_add(v[b]).wrapping_add(m[*word]);
            v[d] = (v[d] ^ v[a]).rotate_right(first);
            v[c] = v[c].wrapping_add(v[d]);
            v[b] = (v[b] ^ v[c]).rotate_right(second);
        }
    }
}

/// A block's words, the lowest byte first; behind the bytes are zeros.
fn words(bytes: &[u8]) -> [u32; 16] {
    let mut words = [0; 16];
    bytes.iter().enumerate().for_each(|(i, byte)| words[i / 4] |= u32::from(*byte) << (8 * (i % 4)));
    words
}

fn bytes_of(words: [u32; 8]) -> [u8; 32] {
    array::from_fn(|i| words[i / 4].to_le_bytes()[i % 4])
}

/// BLAKE2s with digests of 32 bytes and no key (RFC 7693).
fn blake2s_256(message: &[u8]) -> [u8; 32] {
    let mut h = IV;
    h[0] ^= 0x0101_0020;
    let blocks = message.len().div_ceil(64).max(1);
    for block in 0..blocks {
        let (start, is_last) = (64 * block, block + 1 == blocks);
        let end = message.len().min(start + 64);
        let mut v: [u32; 16] = array::from_fn(|i| if i < 8 { h[i] } else { IV[i - 8] });
        v[12] ^= end as u32;
        v[13] ^= (end as u64 >> 32) as u32;
        if is_last {
            v[14] = !v[14];
        }
        let m = words(&message[start..end]);
        SIGMA.iter().for_each(|order| round(&mut v, &m, order));
        h = array::from_fn(|i| h[i] ^ v[i] ^ v[i + 8]);
    }
    bytes_of(h)
}

/// The first 8 words of a compression ("BLAKE3: one function, fast everywhere", section 2.2).
fn blake3_compress(h: [u32; 8], m: [u32; 16], number: u64, len: usize, flags: u32) -> [u32; 8] {
    let ends = [number as u32, (number >> 32) as u32, len as u32, flags];
    let mut v: [u32; 16] = array::from_fn(|i| match i {
        0..8 => h[i],
        8..12 => IV[i - 8],
        _ => ends[i - 12],
    });
    blake3_orders().iter().for_each(|order| round(&mut v, &m, order));
    array::from_fn(|i| v[i] ^ v[i + 8])
}

/// BLAKE3 in its plain mode: chunks of 1024 bytes are the leaves of a tree, of which each left part is the largest full
/// one ("BLAKE3: one function, fast everywhere", section 2).
fn blake3(message: &[u8]) -> [u8; 32] {
    const CHUNK_START: u32 = 1;
    const CHUNK_END: u32 = 2;
    const PARENT: u32 = 4;
    const ROOT: u32 = 8;
    fn node(message: &[u8], first: u64, root: u32) -> [u32; 8] {
        if message.len() <= 1024 {
            let blocks = message.len().div_ceil(64).max(1);
            return (0..blocks).fold(IV, |h, i| {
                let block = &message[64 * i..message.len().min(64 * i + 64)];
                let start = if i == 0 { CHUNK_START } else { 0 };
                let end = if i + 1 == blocks { CHUNK_END | root } else { 0 };
                blake3_compress(h, words(block), first, block.len(), start | end)
            });
        }
        let left = (message.len().div_ceil(1024).next_power_of_two() / 2) * 1024;
        let (a, b) = message.split_at(left);
        let (a, b) = (node(a, first, 0), node(b, first + left as u64 / 1024, 0));
        let block = array::from_fn(|i| if i < 8 { a[i] } else { b[i - 8] });
        blake3_compress(IV, block, 0, 64, PARENT | root)
    }
    bytes_of(node(message, 0, ROOT))
}
