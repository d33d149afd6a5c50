//! Integers on the host, and how they lie in buffers.

use crypto_bigint::{BoxedUint, Limb};
use zeroize::Zeroizing;

/// The bits of the shortest modulus, 3.
pub const MIN_BITS: u32 = 2;

/// Bits of the shortest prime that is drawn at random.
pub(crate) const MIN_RANDOM_BITS: u32 = 64;

/// The bits of the longest modulus.
pub const MAX_BITS: u32 = 4096;

/// Returns the number of 32-bit limbs of a value modulo a prime of `bits` bits. It is ⌈bits / 32⌉, rounded up: to a
/// multiple of 2 for up to 1024 bits, of 4 for up to 2048, and of 8 beyond.
pub const fn limbs(bits: u32) -> usize {
    let limbs = bits.div_ceil(32);
    let step = 2 * lanes(limbs as usize);
    limbs.next_multiple_of(step) as usize
}

/// Threads of a GPU that share an element. So one holds at most 32 limbs of the modulus and of the value, and in CUDA
/// two accumulators of 32, in its registers.
pub(crate) const fn lanes(limbs: usize) -> u32 {
    match limbs {
        0..=32 => 1,
        33..=64 => 2,
        _ => 4,
    }
}

/// Writes a value to little-endian limbs, zeros above it.
pub(crate) fn store(value: &BoxedUint, out: &mut [u32]) {
    let words = value.as_words();
    for (i, limb) in out.iter_mut().enumerate() {
        let bit = 32 * i as u32;
        let word = words.get((bit / Limb::BITS) as usize).copied().unwrap_or(0);
        *limb = (word >> (bit % Limb::BITS)) as u32;
    }
}

/// The value of little-endian limbs.
pub(crate) fn load(limbs: &[u32]) -> BoxedUint {
    let each = (Limb::BITS / 32) as usize;
    BoxedUint::from_words(limbs.chunks(each).map(|limbs| {
        limbs
            .iter()
            .zip((0..).step_by(32))
            .fold(0, |word, (limb, shift)| word | crypto_bigint::Word::from(*limb) << shift)
    }))
}

/// Values as elements of `limbs` limbs, one after the other.
pub(crate) fn encode(values: &[BoxedUint], limbs: usize) -> Zeroizing<Vec<u32>> {
    let mut words = Zeroizing::new(vec![0; limbs * values.len()]);
    words.chunks_exact_mut(limbs).zip(values).for_each(|(words, value)| store(value, words));
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limbs_are_enough_and_divide_among_the_lanes() {
        for bits in MIN_BITS..=MAX_BITS {
            let limbs = limbs(bits);
            let lanes = lanes(limbs) as usize;
            assert!(32 * limbs >= bits as usize && limbs <= 128);
            assert!(limbs.is_multiple_of(2 * lanes) && limbs / lanes <= 32, "{bits} bits");
        }
        assert_eq!([64, 65, 521, 1024, 1025, 2048, 2049, 4096].map(limbs), [2, 4, 18, 32, 36, 64, 72, 128]);
    }

    #[test]
    fn values_are_read_back() {
        let limbs = [1, 2, 3, 0x8000_0000, 5, 0];
        let mut out = [9; 8];
        store(&load(&limbs), &mut out);
        assert_eq!(out, [1, 2, 3, 0x8000_0000, 5, 0, 0, 0]);
    }
}
