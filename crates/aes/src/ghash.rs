//! GHASH on the host (NIST SP 800-38D, 6.4), from keys that are expanded once.
//!
//! Processors with AVX-512 compute it by carry-less products, 32 blocks to a reduction. Others use RustCrypto's GHASH,
//! against which the former is tested.

use ghash::{GHash, universal_hash::UniversalHash};
use rayon::prelude::*;
use zeroize::Zeroizing;

use crate::{
    block::{BLOCK, Counter, add_counter},
    cpu::{self, SERIAL},
    gf128,
    host_cipher::HostCipher,
    params::SQUARES,
};

/// Bytes that one task hashes: enough to hide its start and the products that join its sum to the others'.
const SEGMENT: usize = 64 << 10;

/// What a hash has come to: a function of its key.
pub(crate) type Sum = Zeroizing<[u8; BLOCK]>;

/// A key of GHASH, expanded.
#[derive(Clone)]
pub(crate) struct HashKey {
    /// H, H^2, H^4, …
    squares: Zeroizing<[u128; SQUARES]>,
    blocks: Blocks,
}

#[derive(Clone)]
enum Blocks {
    #[cfg(target_arch = "x86_64")]
    Lanes(Box<Zeroizing<lanes::Powers>>),
    Portable(GHash),
}

impl HashKey {
    pub(crate) fn new(h: u128) -> Self {
        #[cfg(target_arch = "x86_64")]
        if lanes::available() {
            let mut powers = Zeroizing::new([0; lanes::BLOCKS + 1]);
            let mut power = 1;
            for slot in powers.iter_mut().rev() {
                *slot = power;
                power = gf128::multiply(power, h);
            }
            return Self::with(h, Blocks::Lanes(Box::new(Zeroizing::new(lanes::Powers::new(&powers)))));
        }
        Self::portable(h)
    }

    fn portable(h: u128) -> Self {
        Self::with(h, Blocks::Portable(GHash::new(&gf128::to_bytes(h).into())))
    }

    fn with(h: u128, blocks: Blocks) -> Self {
        Self { squares: Zeroizing::new(gf128::squares(h)), blocks }
    }

    pub(crate) fn squares(&self) -> &[u128; SQUARES] {
        &self.squares
    }

    /// (`sum` + X_0) H^n + X_1 H^(n−1) + … + X_(n−1) H over the n blocks of `data`, the last padded with zeros: GHASH,
    /// if `sum` is what came before.
    pub(crate) fn extend(&self, sum: &[u8; BLOCK], data: &[u8]) -> Sum {
        match &self.blocks {
            #[cfg(target_arch = "x86_64")]
            Blocks::Lanes(powers) => Sum::new(lanes::extend(powers, sum, data)),
            Blocks::Portable(start) => {
                let (first, rest) = data.split_at(data.len().min(BLOCK));
                let mut block = Sum::new(*sum);
                if first.is_empty() {
                    return block;
                }
                block.iter_mut().zip(first).for_each(|(sum, byte)| *sum ^= byte);
                let mut hash = start.clone();
                hash.update(std::slice::from_ref((&*block).into()));
                hash.update_padded(rest);
                Sum::new(hash.finalize().into())
            }
        }
    }

    /// [`HashKey::extend`] on all cores.
    pub(crate) fn extend_parallel(&self, sum: &[u8; BLOCK], data: &[u8]) -> Sum {
        match data.len() {
            ..=SERIAL => self.extend(sum, data),
            _ => self.join(sum, data.par_chunks(SEGMENT).map(|part| (self.extend(&[0; BLOCK], part), part.len()))),
        }
    }

    /// Encrypts data from a counter of 32 bits on, and goes on with a hash by the result, as
    /// [`HashKey::extend_parallel`] does.
    pub(crate) fn seal(&self, sum: &[u8; BLOCK], cipher: &HostCipher, counter: [u8; BLOCK], data: &mut [u8]) -> Sum {
        if data.len() <= SERIAL {
            return self.seal_part(sum, cipher, counter, data);
        }
        let part = |(i, part): (usize, &mut [u8])| {
            let counter = add_counter(counter, (i * SEGMENT / BLOCK) as u128, Counter::Bits32);
            (self.seal_part(&[0; BLOCK], cipher, counter, part), part.len())
        };
        self.join(sum, data.par_chunks_mut(SEGMENT).enumerate().map(part))
    }

    /// [`HashKey::seal`] on one core.
    fn seal_part(&self, sum: &[u8; BLOCK], cipher: &HostCipher, counter: [u8; BLOCK], data: &mut [u8]) -> Sum {
        #[cfg(target_arch = "x86_64")]
        if let (Blocks::Lanes(powers), Some(lanes)) = (&self.blocks, &cipher.lanes)
            && data.len() >= lanes::ROUND
        {
            return Sum::new(lanes::seal(powers, sum, lanes.keystream(counter, Counter::Bits32), data));
        }
        cpu::ctr(cipher, counter, Counter::Bits32, 0, data);
        self.extend(sum, data)
    }

    /// The hash over all parts, from the hash of each from zero on and its length.
    fn join(&self, sum: &[u8; BLOCK], parts: impl IndexedParallelIterator<Item = (Sum, usize)>) -> Sum {
        let mut sums = Vec::new();
        parts.collect_into_vec(&mut sums);
        sums.iter().fold(Sum::new(*sum), |sum, (part, len)| self.append(&sum, part, *len))
    }

    /// [`HashKey::extend`] of `sum` by data of `len` bytes whose own hash, from zero on, is `part`.
    pub(crate) fn append(&self, sum: &[u8; BLOCK], part: &[u8; BLOCK], len: usize) -> Sum {
        let power = Zeroizing::new(gf128::power(&*self.squares, len.div_ceil(BLOCK) as u64));
        let shifted = Zeroizing::new(gf128::multiply(gf128::from_bytes(*sum), *power));
        Sum::new(gf128::to_bytes(*shifted ^ gf128::from_bytes(*part)))
    }

    /// A sum times H^2.
    pub(crate) fn times_square(&self, sum: &[u8; BLOCK]) -> Sum {
        Sum::new(gf128::to_bytes(gf128::multiply(gf128::from_bytes(*sum), self.squares[1])))
    }

    /// Σ X_i H^(n−1−i) over n blocks, from the sum of each segment of `segment` blocks; the last may be shorter.
    pub(crate) fn join_segments(&self, sums: &[[u8; BLOCK]], segment: u64, blocks: u64) -> Sum {
        let Some((last, before)) = sums.split_last() else { return Sum::default() };
        if before.is_empty() {
            return Sum::new(*last);
        }
        let before_last = segment * before.len() as u64;
        let step = Zeroizing::new(gf128::power(&*self.squares, segment));
        let sum = match before.len() {
            // Expanding a key takes the time of a hundred products.
            ..100 => {
                let add = |sum, part: &[u8; BLOCK]| gf128::multiply(sum, *step) ^ gf128::from_bytes(*part);
                Sum::new(gf128::to_bytes(before.iter().fold(0, add)))
            }
            _ => Self::new(*step).sum(before.as_flattened()),
        };
        self.append(&sum, last, (blocks - before_last) as usize * BLOCK)
    }

    /// Σ X_i H^(n−1−i) over the n blocks of `data`, as the kernel has it: one H less than [`HashKey::extend_parallel`].
    pub(crate) fn sum(&self, data: &[u8]) -> Sum {
        #[cfg(target_arch = "x86_64")]
        if let Blocks::Lanes(powers) = &self.blocks
            && data.len() <= SERIAL
        {
            return Sum::new(lanes::sum(powers, data));
        }
        let Some(last) = data.len().checked_sub(1) else { return Sum::default() };
        let (blocks, end) = data.split_at(last / BLOCK * BLOCK);
        let mut sum = self.extend_parallel(&[0; BLOCK], blocks);
        sum.iter_mut().zip(end).for_each(|(sum, byte)| *sum ^= byte);
        sum
    }
}

/// Polynomials in the reverse order of bits, as GHASH has them in memory: a block as a big-endian number, coefficient i
/// in bit 127 − i.
///
/// Of factors in this order the product of 256 bits is that of the polynomials times x. What divides by x^128 as it
/// reduces (Gueron, Kounaves: Intel's Carry-Less Multiplication Instruction, 2014) then needs one of them times x^−1.
#[cfg(target_arch = "x86_64")]
mod lanes {
    use std::arch::x86_64::{
        __m128i, __m512i, _mm_bslli_si128, _mm_bsrli_si128, _mm_clmulepi64_si128, _mm_set_epi64x, _mm_shuffle_epi32,
        _mm_xor_si128, _mm512_broadcast_i32x4, _mm512_clmulepi64_epi128, _mm512_extracti32x4_epi32, _mm512_loadu_si512,
        _mm512_setzero_si512, _mm512_shuffle_epi8, _mm512_ternarylogic_epi64, _mm512_xor_si512, _mm512_zextsi128_si512,
    };

    use evariste_backend::author::{CpuVectors, cpu_vectors};
    use zeroize::{Zeroize, Zeroizing};

    use crate::{
        block::BLOCK,
        gf128,
        vaes::{self, Keystream},
    };

    /// Blocks between two reductions.
    pub(super) const BLOCKS: usize = vaes::BLOCKS;

    pub(super) const ROUND: usize = vaes::ROUND;

    /// Bytes up to which blocks are taken one by one.
    const SHORT: usize = 3 * BLOCK;

    /// x^−1 in the order of `gf128`.
    const INVERSE_OF_X: u128 = 1 << 127 | 1 << 6 | 1 << 1 | 1;

    /// x^−64 − x^64, reversed: what a reduction of 64 bits multiplies by.
    const REDUCTION: i64 = 0xc200_0000_0000_0000_u64 as i64;

    /// H^32 … H^0, each times x^−1.
    #[derive(Clone)]
    #[repr(align(64))]
    pub(super) struct Powers([u128; BLOCKS + 1]);

    impl Powers {
        /// From H^32 … H^0.
        pub(super) fn new(powers: &[u128; BLOCKS + 1]) -> Self {
            Self(powers.map(|power| gf128::multiply(power, INVERSE_OF_X).reverse_bits()))
        }
    }

    impl Zeroize for Powers {
        fn zeroize(&mut self) {
            self.0.zeroize();
        }
    }

    pub(super) fn available() -> bool {
        cpu_vectors() >= Some(CpuVectors::Avx512Ifma)
            && is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("pclmulqdq")
            && is_x86_feature_detected!("vpclmulqdq")
    }

    pub(super) fn extend(powers: &Powers, sum: &[u8; BLOCK], data: &[u8]) -> [u8; BLOCK] {
        // SAFETY: keys are made of lanes only where `available` has found these instructions.
        unsafe { run(powers, sum, data, 0) }
    }

    /// With one H less.
    pub(super) fn sum(powers: &Powers, data: &[u8]) -> [u8; BLOCK] {
        // SAFETY: as above.
        unsafe { run(powers, &[0; BLOCK], data, 1) }
    }

    /// Encrypts data, and goes on with the hash by what becomes of it: by 32 blocks while the next ones are encrypted,
    /// so that the processor has both to do.
    pub(super) fn seal(powers: &Powers, sum: &[u8; BLOCK], stream: Keystream<'_>, data: &mut [u8]) -> [u8; BLOCK] {
        // SAFETY: as above; there are lanes of AES only where these have been found.
        unsafe { seal_lanes(powers, sum, stream, data) }
    }

    #[target_feature(enable = "avx512f,avx512bw,pclmulqdq,vpclmulqdq,vaes")]
    fn seal_lanes(powers: &Powers, sum: &[u8; BLOCK], mut stream: Keystream<'_>, data: &mut [u8]) -> [u8; BLOCK] {
        let (rounds, rest) = data.as_chunks_mut::<ROUND>();
        let mut hashed = number(*sum);
        let mut before: Option<&[u8; ROUND]> = None;
        for round in rounds {
            match before {
                None => stream.apply_round(round, |_| ()),
                Some(before) => {
                    let mut products = Products::new(hashed);
                    // A part between two rounds of the cipher.
                    stream.apply_round(round, |i| {
                        if i <= ROUND / 64 {
                            products.add(&powers.0, before, i - 1);
                        }
                    });
                    hashed = reduce(products.sums());
                }
            }
            before = Some(round);
        }
        if let Some(before) = before {
            hashed = reduce(products(&powers.0, hashed, before));
        }
        stream.apply_lanes(rest);
        let sum = Zeroizing::new(bytemuck::cast::<_, u128>(hashed).to_be_bytes());
        run(powers, &sum, rest, 0)
    }

    /// The last blocks are multiplied by the powers from number `last` on.
    #[target_feature(enable = "avx512f,avx512bw,pclmulqdq,vpclmulqdq")]
    fn run(powers: &Powers, sum: &[u8; BLOCK], data: &[u8], last: usize) -> [u8; BLOCK] {
        let (rounds, rest) = data.as_chunks::<ROUND>();
        let mut sum = number(*sum);
        for (i, round) in rounds.iter().enumerate() {
            let first = if rest.is_empty() && i + 1 == rounds.len() { last } else { 0 };
            sum = reduce(products(&powers.0[first..], sum, round));
        }
        if rest.len() <= SHORT {
            for (i, part) in rest.chunks(BLOCK).enumerate() {
                let first = if (i + 1) * BLOCK >= rest.len() { last } else { 0 };
                let h: __m128i = bytemuck::cast(powers.0[BLOCKS - 1 + first]);
                let mut block = [0; BLOCK];
                block[..part.len()].copy_from_slice(part);
                let x = _mm_xor_si128(sum, number(block));
                let middle = _mm_xor_si128(_mm_clmulepi64_si128::<0x01>(x, h), _mm_clmulepi64_si128::<0x10>(x, h));
                sum = reduce([_mm_clmulepi64_si128::<0x00>(x, h), middle, _mm_clmulepi64_si128::<0x11>(x, h)]);
            }
        } else {
            // Zeros in front count for nothing; the sum belongs to the first block of the data.
            let mut round = [0; ROUND];
            let start = ROUND - rest.len().next_multiple_of(BLOCK);
            round[start..][..rest.len()].copy_from_slice(rest);
            let before = Zeroizing::new(bytemuck::cast::<_, u128>(sum).to_be_bytes());
            round[start..].iter_mut().zip(*before).for_each(|(byte, sum)| *byte ^= sum);
            sum = reduce(products(&powers.0[last..], number([0; BLOCK]), &round));
            round[start..][..BLOCK].zeroize();
        }
        bytemuck::cast::<_, u128>(sum).to_be_bytes()
    }

    fn number(block: [u8; BLOCK]) -> __m128i {
        bytemuck::cast(u128::from_be_bytes(block))
    }

    /// The low, middle and high parts of Σ X_i P_i over the first 32 powers, with `sum` added to X_0.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,pclmulqdq,vpclmulqdq")]
    fn products(powers: &[u128], sum: __m128i, data: &[u8; ROUND]) -> [__m128i; 3] {
        let mut products = Products::new(sum);
        for part in 0..ROUND / 64 {
            products.add(powers, data, part);
        }
        products.sums()
    }

    /// [`products`] so far, to which four blocks are added at a time.
    struct Products {
        /// What is added to the next blocks.
        sum: __m512i,
        low: __m512i,
        middle: __m512i,
        high: __m512i,
    }

    impl Products {
        #[inline]
        #[target_feature(enable = "avx512f")]
        fn new(sum: __m128i) -> Self {
            let zero = _mm512_setzero_si512();
            Self { sum: _mm512_zextsi128_si512(sum), low: zero, middle: zero, high: zero }
        }

        /// Adds blocks 4 · part to 4 · part + 3.
        #[inline]
        #[target_feature(enable = "avx512f,avx512bw,pclmulqdq,vpclmulqdq")]
        fn add(&mut self, powers: &[u128], data: &[u8; ROUND], part: usize) {
            /// The sum of all three.
            const XOR: i32 = 0x96;
            let reverse = _mm512_broadcast_i32x4(_mm_set_epi64x(0x0001_0203_0405_0607, 0x0809_0a0b_0c0d_0e0f));
            let power = load(bytemuck::cast_ref(&powers.as_chunks::<4>().0[part]));
            let x = _mm512_xor_si512(_mm512_shuffle_epi8(load(&data.as_chunks().0[part]), reverse), self.sum);
            self.sum = _mm512_setzero_si512();
            self.low = _mm512_xor_si512(self.low, _mm512_clmulepi64_epi128::<0x00>(x, power));
            let (a, b) = (_mm512_clmulepi64_epi128::<0x01>(x, power), _mm512_clmulepi64_epi128::<0x10>(x, power));
            self.middle = _mm512_ternarylogic_epi64::<XOR>(self.middle, a, b);
            self.high = _mm512_xor_si512(self.high, _mm512_clmulepi64_epi128::<0x11>(x, power));
        }

        #[inline]
        #[target_feature(enable = "avx512f")]
        fn sums(&self) -> [__m128i; 3] {
            [fold(self.low), fold(self.middle), fold(self.high)]
        }
    }

    #[inline]
    #[target_feature(enable = "avx512f")]
    fn load(bytes: &[u8; 64]) -> __m512i {
        // SAFETY: the reference covers the loaded bytes.
        unsafe { _mm512_loadu_si512(bytes.as_ptr().cast()) }
    }

    #[inline]
    #[target_feature(enable = "avx512f")]
    fn fold(x: __m512i) -> __m128i {
        let [a, b] = [_mm512_extracti32x4_epi32::<0>(x), _mm512_extracti32x4_epi32::<1>(x)];
        let [c, d] = [_mm512_extracti32x4_epi32::<2>(x), _mm512_extracti32x4_epi32::<3>(x)];
        _mm_xor_si128(_mm_xor_si128(a, b), _mm_xor_si128(c, d))
    }

    #[inline]
    #[target_feature(enable = "sse2,pclmulqdq")]
    fn reduce([low, middle, high]: [__m128i; 3]) -> __m128i {
        let mut low = _mm_xor_si128(low, _mm_bslli_si128::<8>(middle));
        let high = _mm_xor_si128(high, _mm_bsrli_si128::<8>(middle));
        let reduction = _mm_set_epi64x(0, REDUCTION);
        for _ in 0..2 {
            let folded = _mm_clmulepi64_si128::<0x00>(low, reduction);
            low = _mm_xor_si128(_mm_shuffle_epi32::<0x4e>(low), folded);
        }
        _mm_xor_si128(low, high)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::{
        alloc::{GlobalAlloc, Layout, System},
        sync::atomic::{AtomicUsize, Ordering},
    };

    use super::*;
    use crate::key::Key;

    /// Secrets of tests, of each its own, to be told from all other memory.
    pub(crate) const WATCHED: [u128; 3] = {
        let first = 0xf00d_5eed_0123_4567_89ab_cdef_dead_10cc;
        [first, first + 1, first + 2]
    };

    /// How often each lay in memory that was given back.
    static LEFT: [AtomicUsize; 3] = [const { AtomicUsize::new(0) }; 3];

    pub(crate) fn left(watched: usize) -> usize {
        LEFT[watched].load(Ordering::Relaxed)
    }

    /// The system's allocator, which looks for [`WATCHED`] in what is given back.
    struct Watching;

    // SAFETY: all memory is the system's.
    unsafe impl GlobalAlloc for Watching {
        unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
            // SAFETY: the caller's.
            unsafe { System.alloc_zeroed(layout) }
        }

        unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
            // SAFETY: `layout.size()` bytes are allocated, and `alloc` has written them all.
            let bytes = unsafe { std::slice::from_raw_parts(memory, layout.size()) };
            let (_, words, _) = bytemuck::pod_align_to::<u8, u128>(bytes);
            for word in words {
                if let Some(left) = LEFT.get(word.wrapping_sub(WATCHED[0]).try_into().unwrap_or(usize::MAX)) {
                    left.fetch_add(1, Ordering::Relaxed);
                }
            }
            // SAFETY: the caller's.
            unsafe { System.dealloc(memory, layout) }
        }
    }

    #[global_allocator]
    static ALLOCATOR: Watching = Watching;

    const H: u128 = 0x0123_4567_89ab_cdef_0f1e_2d3c_4b5a_6978;

    /// Horner's rule.
    fn slow(h: u128, sum: [u8; BLOCK], data: &[u8]) -> [u8; BLOCK] {
        gf128::to_bytes(data.chunks(BLOCK).fold(gf128::from_bytes(sum), |sum, part| {
            let mut block = [0; BLOCK];
            block[..part.len()].copy_from_slice(part);
            gf128::multiply(sum ^ gf128::from_bytes(block), h)
        }))
    }

    /// Sealing is counter mode and then the hash, with and without vectors, where the counter's 32 bits start again
    /// too.
    #[test]
    fn sealing_hashes_the_stream() {
        let cipher = HostCipher::new(&Key::new(&[7; 24]).unwrap());
        for len in [0, 1, 127, 128, 511, 512, 1000, 1024, 1536 + 17, SEGMENT + 1, SERIAL + 700] {
            let plain: Vec<u8> = (0..len as u32).map(|i| (i.wrapping_mul(0x9e37_79b9) >> 24) as u8).collect();
            for counter in [[0xff; BLOCK], [3; BLOCK]] {
                let mut expected = plain.clone();
                for (i, part) in expected.chunks_mut(BLOCK).enumerate() {
                    let block = cipher.encrypt(add_counter(counter, i as u128, Counter::Bits32));
                    part.iter_mut().zip(block).for_each(|(byte, mask)| *byte ^= mask);
                }
                let sum = &[0xa5; BLOCK];
                for key in [HashKey::new(H), HashKey::portable(H)] {
                    let mut sealed = plain.clone();
                    let hash = key.seal(sum, &cipher, counter, &mut sealed);
                    assert!(sealed == expected, "{len}");
                    assert_eq!(*hash, slow(H, *sum, &expected), "{len}");
                }
                // And with 128 bits, from where the lower ones start again soon.
                let counter = (u128::from_be_bytes(counter) << 32 | 0xffff_fff0).to_be_bytes();
                let mut stream = plain.clone();
                cpu::ctr(&cipher, counter, Counter::Bits128, 0, &mut stream);
                for (i, (part, plain)) in stream.chunks(BLOCK).zip(plain.chunks(BLOCK)).enumerate() {
                    let block = cipher.encrypt(add_counter(counter, i as u128, Counter::Bits128));
                    assert!(part.iter().zip(plain).zip(block).all(|((a, b), mask)| *a == b ^ mask), "{len}");
                }
            }
        }
    }

    /// Sums of segments make the sum of all.
    #[test]
    fn segments_join() {
        let key = HashKey::new(H);
        let data: Vec<u8> = (0..BLOCK as u32 * 1003).map(|i| (i.wrapping_mul(0x9e37_79b9) >> 24) as u8).collect();
        for segment in [1, 8, 64, 1002, 1003] {
            let sums: Vec<[u8; BLOCK]> = data.chunks(segment * BLOCK).map(|part| *key.sum(part)).collect();
            assert_eq!(key.join_segments(&sums, segment as u64, 1003), key.sum(&data), "{segment}");
        }
    }

    #[test]
    fn keys_of_all_kinds_hash_alike() {
        let data: Vec<u8> = (0..3 * SERIAL as u32 + 7).map(|i| (i.wrapping_mul(0x9e37_79b9) >> 24) as u8).collect();
        let sum = &[0xa5; BLOCK];
        let lengths =
            (0..=70).chain([511, 512, 513, 527, 528, 1000, 1024, 1040, SEGMENT, SEGMENT + 1, SERIAL + 5, data.len()]);
        for len in lengths {
            let data = &data[..len];
            let expected = Sum::new(slow(H, *sum, data));
            for key in [HashKey::new(H), HashKey::portable(H)] {
                assert_eq!(key.extend(sum, data), expected, "{len}");
                assert_eq!(key.extend_parallel(sum, data), expected, "{len}");
                let product = gf128::multiply(gf128::from_bytes(*key.sum(data)), H);
                assert_eq!(gf128::to_bytes(product), slow(H, [0; BLOCK], data), "{len}");
            }
        }
    }
}
