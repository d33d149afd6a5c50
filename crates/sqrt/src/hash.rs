//! A function without collisions on the elements of a small subgroup, for logarithms by one look into a table.

use evariste_field::DevicePrimeField;

/// `((low · multipliers[0] + high · multipliers[1]) mod 2^32) >> shift`, with the lowest and the highest limb of an
/// element in device form, is a place in a table that has the element's logarithm.
#[derive(Clone, Debug)]
pub(crate) struct Hash {
    pub(crate) multipliers: [u32; 2],
    pub(crate) shift: u32,
    /// Four logarithms of 8 bits a word.
    pub(crate) entries: Vec<u32>,
}

impl Default for Hash {
    fn default() -> Self {
        Self { multipliers: [0; 2], shift: 31, entries: vec![0] }
    }
}

/// Bits of places by which tables exceed 2 to the power of `width`, at the least and at the most. One multiplier in
/// exp(2^(width − 1 − bits)) has no collisions: for 8 bits and 4 more one in 3,000, for 5 more one in 55.
const ROOM: std::ops::RangeInclusive<u32> = 4..=7;

/// Multipliers that are tried for a table of one size.
const TRIES: u32 = 1 << 16;

impl Hash {
    /// For the elements `generator`^i with i below 2^`width`, at most 2^8. `None` if no multipliers were found.
    pub(crate) fn new<B: DevicePrimeField>(generator: B, width: u32) -> Option<Self> {
        let mut limbs = vec![0; B::LIMBS];
        let powers = std::iter::successors(Some(B::ONE), |x| Some(*x * generator));
        let words: Vec<[u32; 2]> = powers
            .take(1 << width)
            .map(|x| {
                x.store(&mut limbs);
                [limbs[0], limbs[B::LIMBS - 1]]
            })
            .collect();
        ROOM.into_iter().find_map(|room| {
            let bits = width + room;
            let mut seen = vec![0u32; 1 << bits];
            // Multipliers from a Weyl sequence; where the lowest limbs differ, those of the highest are not needed.
            (1..=TRIES).find_map(|try_| {
                let first = try_.wrapping_mul(0x9e37_79b9) | 1;
                let multipliers = [first, if try_ % 2 == 0 { first.rotate_left(16) | 1 } else { 0 }];
                let hash = Self { multipliers, shift: 32 - bits, entries: Vec::new() };
                let apart = words.iter().all(|words| {
                    let place = &mut seen[hash.place(*words)];
                    std::mem::replace(place, try_) != try_
                });
                apart.then(|| hash.filled(&words, bits))
            })
        })
    }

    fn filled(mut self, words: &[[u32; 2]], bits: u32) -> Self {
        self.entries = vec![0; (1usize << bits) / 4];
        for (logarithm, words) in words.iter().enumerate() {
            let place = self.place(*words);
            self.entries[place / 4] |= (logarithm as u32) << (8 * (place % 4));
        }
        self
    }

    fn place(&self, [low, high]: [u32; 2]) -> usize {
        let [a, b] = self.multipliers;
        (low.wrapping_mul(a).wrapping_add(high.wrapping_mul(b)) >> self.shift) as usize
    }
}

/// The logarithm of an element of the subgroup, given in device form, with the entries of the hash as a kernel has
/// them.
pub(crate) fn logarithm(hash: &Hash, entries: &[u32], limbs: &[u32]) -> u32 {
    let place = hash.place([limbs[0], limbs[limbs.len() - 1]]);
    entries[place / 4] >> (8 * (place % 4)) & 0xff
}
