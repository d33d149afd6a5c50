//! Counter mode by the vector instructions of AVX-512 for AES, 32 blocks at a time: RustCrypto's block functions have them
//! too, but its counter mode makes the stream in memory before it adds it.

use std::arch::x86_64::{
    __m128i, __m512i, _mm_set_epi64x, _mm512_add_epi32, _mm512_aesenc_epi128, _mm512_aesenclast_epi128,
    _mm512_broadcast_i32x4, _mm512_loadu_si512, _mm512_set_epi32, _mm512_setzero_si512, _mm512_shuffle_epi8,
    _mm512_storeu_si512, _mm512_xor_si512,
};

use evariste_backend::cpu_has_ifma;
use zeroize::Zeroizing;

use crate::{
    cpu::{BLOCK, add_counter},
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
pub(crate) struct Counter<'a> {
    lanes: &'a Lanes,
    next: [u8; BLOCK],
    wide: bool,
}

impl Lanes {
    /// None where the processor lacks the instructions.
    pub(crate) fn new(key: &Key) -> Option<Self> {
        let available = cpu_has_ifma() && is_x86_feature_detected!("avx512bw") && is_x86_feature_detected!("vaes");
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
    pub(crate) fn counter(&self, counter: [u8; BLOCK], wide: bool) -> Counter<'_> {
        Counter { lanes: self, next: counter, wide }
    }
}

impl Counter<'_> {
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
            self.apply_round(round);
        }
        if !rest.is_empty() {
            let mut round = Zeroizing::new([0; ROUND]);
            round[..rest.len()].copy_from_slice(rest);
            let blocks = rest.len().div_ceil(BLOCK);
            let next = add_counter(self.next, blocks as u128, self.wide);
            self.apply_round(&mut round);
            self.next = next;
            rest.copy_from_slice(&round[..rest.len()]);
        }
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,vaes")]
    pub(crate) fn apply_round(&mut self, data: &mut [u8; ROUND]) {
        let counters = self.counters();
        let stream = match self.lanes.rounds {
            10 => encrypt::<10>(&self.lanes.keys, counters),
            12 => encrypt::<12>(&self.lanes.keys, counters),
            _ => encrypt::<14>(&self.lanes.keys, counters),
        };
        for (part, stream) in data.as_chunks_mut::<64>().0.iter_mut().zip(stream) {
            let sum = _mm512_xor_si512(load(part), stream);
            // SAFETY: the reference is to as many bytes as are stored.
            unsafe { _mm512_storeu_si512(part.as_mut_ptr().cast(), sum) };
        }
        self.next = add_counter(self.next, BLOCKS as u128, self.wide);
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,vaes")]
    fn counters(&self) -> [__m512i; BLOCKS / 4] {
        let mut counters = [_mm512_setzero_si512(); BLOCKS / 4];
        let value = u128::from_be_bytes(self.next);
        // Only the last 32 bits count within a round, unless the carry goes further.
        if self.wide && value as u32 > u32::MAX - BLOCKS as u32 {
            let mut blocks = [[0; BLOCK]; BLOCKS];
            for (i, block) in blocks.iter_mut().enumerate() {
                *block = add_counter(self.next, i as u128, true);
            }
            for (counter, part) in counters.iter_mut().zip(blocks.as_flattened().as_chunks().0) {
                *counter = load(part);
            }
            return counters;
        }
        let reverse = _mm512_broadcast_i32x4(_mm_set_epi64x(0x0001_0203_0405_0607, 0x0809_0a0b_0c0d_0e0f));
        let steps = _mm512_set_epi32(0, 0, 0, 3, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 0);
        let four = _mm512_set_epi32(0, 0, 0, 4, 0, 0, 0, 4, 0, 0, 0, 4, 0, 0, 0, 4);
        let mut number = _mm512_add_epi32(_mm512_broadcast_i32x4(bytemuck::cast::<u128, __m128i>(value)), steps);
        for counter in &mut counters {
            *counter = _mm512_shuffle_epi8(number, reverse);
            number = _mm512_add_epi32(number, four);
        }
        counters
    }
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,vaes")]
fn encrypt<const ROUNDS: usize>(keys: &[u128; ROUND_KEYS], mut blocks: [__m512i; BLOCKS / 4]) -> [__m512i; BLOCKS / 4] {
    for (i, key) in keys[..=ROUNDS].iter().enumerate() {
        let key = _mm512_broadcast_i32x4(bytemuck::cast::<u128, __m128i>(*key));
        for block in &mut blocks {
            *block = match i {
                0 => _mm512_xor_si512(*block, key),
                _ if i == ROUNDS => _mm512_aesenclast_epi128(*block, key),
                _ => _mm512_aesenc_epi128(*block, key),
            };
        }
    }
    blocks
}

#[inline]
#[target_feature(enable = "avx512f")]
fn load(bytes: &[u8; 64]) -> __m512i {
    // SAFETY: the reference is to as many bytes as are loaded.
    unsafe { _mm512_loadu_si512(bytes.as_ptr().cast()) }
}
