//! Keys and key schedules on the host.

use std::fmt;

use zeroize::{Zeroize, Zeroizing};

use crate::{
    error::{Error, Result},
    tables,
};

/// Round keys that a schedule has room for, in each direction.
pub(crate) const ROUND_KEYS: usize = 15;

/// Words of a schedule for methods on words.
pub(crate) const SCHEDULE_WORDS: usize = 2 * 4 * ROUND_KEYS;

/// Words of a schedule for the bitsliced method.
pub(crate) const SLICED_WORDS: usize = 2 * 32 * ROUND_KEYS;

/// The constant of SubBytes, which the bitsliced method adds with the keys.
const AFFINE: u32 = 0x6363_6363;

/// Bytes of the stack that what makes schedules and ciphers of a key stays within.
const STACK: usize = 16 << 10;

/// Does work with keys, and zeroes the stack that it used: schedules are moved there, and what another library moves to
/// the heap later would take them along as padding. What the work gives must hold its secrets on the heap.
pub(crate) fn on_wiped_stack<T>(work: impl FnOnce() -> T) -> T {
    #[inline(never)]
    fn call<T>(work: impl FnOnce() -> T) -> T {
        work()
    }

    #[inline(never)]
    fn wipe() {
        [0u8; STACK].zeroize();
    }

    let result = call(work);
    wipe();
    result
}

/// The size of a key, one of three.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum KeySize {
    /// AES-128: keys of 16 bytes, 10 rounds.
    Aes128,
    /// AES-192: keys of 24 bytes, 12 rounds.
    Aes192,
    /// AES-256: keys of 32 bytes, 14 rounds.
    Aes256,
}

impl KeySize {
    /// Returns the bytes of a key.
    pub const fn bytes(self) -> usize {
        match self {
            KeySize::Aes128 => 16,
            KeySize::Aes192 => 24,
            KeySize::Aes256 => 32,
        }
    }

    /// Returns the rounds of the cipher.
    pub const fn rounds(self) -> usize {
        self.bytes() / 4 + 6
    }

    fn of(bytes: usize) -> Result<Self> {
        match bytes {
            16 => Ok(KeySize::Aes128),
            24 => Ok(KeySize::Aes192),
            32 => Ok(KeySize::Aes256),
            actual => Err(Error::KeyLength { expected: "16, 24 or 32", actual }),
        }
    }
}

/// A key, zeroed when dropped.
#[derive(Clone)]
pub(crate) struct Key(Zeroizing<Vec<u8>>);

impl Key {
    pub(crate) fn new(bytes: &[u8]) -> Result<Self> {
        KeySize::of(bytes.len())?;
        Ok(Self(Zeroizing::new(bytes.to_vec())))
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.0
    }

    pub(crate) fn size(&self) -> KeySize {
        match self.0.len() {
            16 => KeySize::Aes128,
            24 => KeySize::Aes192,
            _ => KeySize::Aes256,
        }
    }

    /// The round keys of encryption (FIPS 197, 5.2) and of the equivalent inverse cipher (5.3.5), column by column.
    /// Takes the same time for every key.
    pub(crate) fn schedule(&self) -> Zeroizing<[u32; SCHEDULE_WORDS]> {
        let (n, rounds) = (self.0.len() / 4, self.size().rounds());
        let mut words = Zeroizing::new([0; SCHEDULE_WORDS]);
        for (word, bytes) in words.iter_mut().zip(self.0.as_chunks().0) {
            *word = u32::from_le_bytes(*bytes);
        }
        let mut constant = 1;
        for i in n..4 * (rounds + 1) {
            let mut word = words[i - 1];
            if i % n == 0 {
                word = substitute_word(word.rotate_right(8)) ^ u32::from(constant);
                constant = tables::multiply(constant, 2);
            } else if n > 6 && i % n == 4 {
                word = substitute_word(word);
            }
            words[i] = words[i - n] ^ word;
        }
        for round in 0..=rounds {
            for column in 0..4 {
                let word = words[4 * (rounds - round) + column];
                let inner = round > 0 && round < rounds;
                words[4 * (ROUND_KEYS + round) + column] = if inner { inverse_mix_column(word) } else { word };
            }
        }
        words
    }

    /// The schedule on bits: a word for each row and bit, with byte c all ones where column c has the bit set.
    pub(crate) fn sliced_schedule(&self) -> Zeroizing<Vec<u32>> {
        let (schedule, rounds) = (self.schedule(), self.size().rounds());
        let mut sliced = Zeroizing::new(vec![0; SLICED_WORDS]);
        for (i, keys) in schedule.as_chunks::<4>().0.iter().enumerate() {
            let (round, decrypt) = (i % ROUND_KEYS, i >= ROUND_KEYS);
            let constant = if decrypt { round < rounds } else { round > 0 };
            for row in 0..4 {
                for bit in 0..8 {
                    let column = |c: usize| {
                        let word = keys[c] ^ if constant { AFFINE } else { 0 };
                        (word >> (8 * row + bit) & 1) * (0xff << (8 * c))
                    };
                    sliced[32 * i + 8 * row + bit] = (0..4).map(column).sum();
                }
            }
        }
        sliced
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Key").field("size", &self.size()).finish_non_exhaustive()
    }
}

fn substitute_word(word: u32) -> u32 {
    u32::from_le_bytes(word.to_le_bytes().map(tables::substitute))
}

fn inverse_mix_column(word: u32) -> u32 {
    let bytes = word.to_le_bytes();
    let row = |r: usize| {
        [14, 11, 13, 9].iter().enumerate().fold(0, |sum, (i, &f)| sum ^ tables::multiply(bytes[(r + i) % 4], f))
    };
    u32::from_le_bytes([row(0), row(1), row(2), row(3)])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// FIPS 197, Appendix A.
    #[test]
    fn schedules_are_those_of_the_standard() {
        let bytes = |text: &str| -> Vec<u8> {
            (0..text.len() / 2).map(|i| u8::from_str_radix(&text[2 * i..2 * i + 2], 16).unwrap()).collect()
        };
        for (key, last) in [
            ("2b7e151628aed2a6abf7158809cf4f3c", "b6630ca6"),
            ("8e73b0f7da0e6452c810f32b809079e562f8ead2522c6b7b", "01002202"),
            ("603deb1015ca71be2b73aef0857d77811f352c073b6108d72d9810a30914dff4", "706c631e"),
        ] {
            let key = Key::new(&bytes(key)).unwrap();
            let word = key.schedule()[4 * key.size().rounds() + 3];
            assert_eq!(word.to_le_bytes().to_vec(), bytes(last));
        }
    }

    #[test]
    fn keys_of_other_lengths_are_refused() {
        assert_eq!(Key::new(&[0; 17]).unwrap_err(), Error::KeyLength { expected: "16, 24 or 32", actual: 17 });
    }
}
