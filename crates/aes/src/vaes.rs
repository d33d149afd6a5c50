//! Counter mode by the vector instructions of AVX-512 for AES, 32 blocks at a time. RustCrypto's block functions use
//! them too, but its counter mode writes the stream to memory before it adds it.

use std::arch::x86_64::{
    __m128i, __m512i, _mm_set_epi64x, _mm512_add_epi32, _mm512_aesenc_epi128, _mm512_aesenclast_epi128,
    _mm512_broadcast_i32x4, _mm512_loadu_si512, _mm512_set_epi32, _mm512_setzero_si512, _mm512_shuffle_epi8,
    _mm512_storeu_si512, _mm512_xor_si512,
};

use evariste_backend::author::{CpuVectors, cpu_vectors};
use zeroize::Zeroizing;

use crate::{
    block::{BLOCK, Counter, add_counter},
    key::{Key, ROUND_KEYS},
};

/// Blocks at a time.
pub(crate) const BLOCKS: usize = 32;

/// Bytes at a time.
pub(crate) const ROUND: usize = BLOCKS * BLOCK;

/// Round keys of encryption, and how many.
#[derive(Clone)]
pub(crate) struct Lanes {
    keys: Zeroizing<[u128; ROUND_KEYS]>,
    rounds: usize,
}

/// Counter mode at a place of its stream.
pub(crate) struct Keystream<'a> {
    lanes: &'a Lanes,
    next: [u8; BLOCK],
    width: Counter,
}

impl Lanes {
    /// None where the processor lacks the instructions.
    pub(crate) fn new(key: &Key) -> Option<Self> {
        let available = cpu_vectors() >= Some(CpuVectors::Avx512Ifma)
            && is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("vaes");
        if !available {
            return None;
        }
        let schedule = key.schedule();
        let mut keys = Zeroizing::new([0; ROUND_KEYS]);
        for (key, words) in keys.iter_mut().zip(schedule.as_chunks::<4>().0) {
            *key = bytemuck::cast(*words);
        }
        Some(Self { keys, rounds: key.size().rounds() })
    }

    /// The stream from a counter on.
    pub(crate) fn keystream(&self, counter: [u8; BLOCK], width: Counter) -> Keystream<'_> {
        Keystream { lanes: self, next: counter, width }
    }
}

impl Keystream<'_> {
    /// XORs the stream onto any number of bytes.
    pub(crate) fn apply(&mut self, data: &mut [u8]) {
        // SAFETY: there are lanes only where `Lanes::new` has found these instructions.
        unsafe { self.apply_lanes(data) }
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,vaes")]
    pub(crate) fn apply_lanes(&mut self, data: &mut [u8]) {
        let (rounds, rest) = data.as_chunks_mut::<ROUND>();
        for round in rounds {
            self.apply_round(round, |_| ());
        }
        if !rest.is_empty() {
            let mut round = Zeroizing::new([0; ROUND]);
            round[..rest.len()].copy_from_slice(rest);
            let blocks = rest.len().div_ceil(BLOCK);
            let next = add_counter(self.next, blocks as u128, self.width);
            self.apply_round(&mut round, |_| ());
            self.next = next;
            rest.copy_from_slice(&round[..rest.len()]);
        }
    }

    /// `between` is called after each round of the cipher but the last, from number 1 on, for what the processor can do
    /// at the same time.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,vaes")]
    pub(crate) fn apply_round(&mut self, data: &mut [u8; ROUND], between: impl FnMut(usize)) {
        let value = u128::from_be_bytes(self.next);
        // Only the last 32 bits count within a round, unless the carry goes further.
        if self.width == Counter::Bits128 && value as u32 > u32::MAX - BLOCKS as u32 {
            self.apply_carrying(data, between);
        } else {
            self.apply_from(counters(value), data, between);
        }
        self.next = add_counter(self.next, BLOCKS as u128, self.width);
    }

    #[cold]
    #[inline(never)]
    #[target_feature(enable = "avx512f,avx512bw,vaes")]
    fn apply_carrying(&self, data: &mut [u8; ROUND], between: impl FnMut(usize)) {
        let mut blocks = [[0; BLOCK]; BLOCKS];
        for (i, block) in blocks.iter_mut().enumerate() {
            *block = add_counter(self.next, i as u128, Counter::Bits128);
        }
        let mut counters = [_mm512_setzero_si512(); BLOCKS / 4];
        for (counter, part) in counters.iter_mut().zip(blocks.as_flattened().as_chunks().0) {
            *counter = load(part);
        }
        self.apply_from(counters, data, between);
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,vaes")]
    fn apply_from(&self, counters: [__m512i; BLOCKS / 4], data: &mut [u8; ROUND], between: impl FnMut(usize)) {
        match self.lanes.rounds {
            10 => encrypt::<10>(&self.lanes.keys, counters, data, between),
            12 => encrypt::<12>(&self.lanes.keys, counters, data, between),
            _ => encrypt::<14>(&self.lanes.keys, counters, data, between),
        }
    }
}

/// So many counters from one on, where only the last 32 bits count.
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn counters(first: u128) -> [__m512i; BLOCKS / 4] {
    let reverse = _mm512_broadcast_i32x4(_mm_set_epi64x(0x0001_0203_0405_0607, 0x0809_0a0b_0c0d_0e0f));
    let steps = _mm512_set_epi32(0, 0, 0, 3, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 0);
    let four = _mm512_set_epi32(0, 0, 0, 4, 0, 0, 0, 4, 0, 0, 0, 4, 0, 0, 0, 4);
    let mut number = _mm512_add_epi32(_mm512_broadcast_i32x4(bytemuck::cast::<u128, __m128i>(first)), steps);
    let mut counters = [_mm512_setzero_si512(); BLOCKS / 4];
    for counter in &mut counters {
        *counter = _mm512_shuffle_epi8(number, reverse);
        number = _mm512_add_epi32(number, four);
    }
    counters
}

/// XORs what the cipher makes of blocks onto data. Loops have no branches, and nothing is merged after a branch:
/// vectors fall to pieces there.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,vaes")]
fn encrypt<const ROUNDS: usize>(
    keys: &[u128; ROUND_KEYS],
    mut blocks: [__m512i; BLOCKS / 4],
    data: &mut [u8; ROUND],
    mut between: impl FnMut(usize),
) {
    let key = |i: usize| _mm512_broadcast_i32x4(bytemuck::cast::<u128, __m128i>(keys[i]));
    let first = key(0);
    for block in &mut blocks {
        *block = _mm512_xor_si512(*block, first);
    }
    for i in 1..ROUNDS {
        let key = key(i);
        for block in &mut blocks {
            *block = _mm512_aesenc_epi128(*block, key);
        }
        between(i);
    }
    let last = key(ROUNDS);
    for (part, block) in data.as_chunks_mut::<64>().0.iter_mut().zip(blocks) {
        let sum = _mm512_xor_si512(load(part), _mm512_aesenclast_epi128(block, last));
        // SAFETY: the reference covers the stored bytes.
        unsafe { _mm512_storeu_si512(part.as_mut_ptr().cast(), sum) };
    }
}

#[inline]
#[target_feature(enable = "avx512f")]
fn load(bytes: &[u8; 64]) -> __m512i {
    // SAFETY: the reference covers the loaded bytes.
    unsafe { _mm512_loadu_si512(bytes.as_ptr().cast()) }
}
