//! Transcripts, which challenges come from.

use std::marker::PhantomData;

use ark_ff::{BigInteger, PrimeField};
use evariste_field::DeviceField;

/// Absorbs the messages of a proof, and draws challenges that depend on all of them.
///
/// Give prover and verifier transcripts in the same state.
pub trait Transcript<E> {
    /// Absorbs a message.
    fn absorb(&mut self, message: &[u8]);

    /// Draws the next challenge. Two without a message in between differ.
    fn challenge(&mut self) -> E;

    /// The transcript that devices compute themselves, if this is it.
    fn blake3(&mut self) -> Option<&mut Blake3Transcript> {
        None
    }
}

/// The transcript of this crate: a chain of BLAKE3 hashes, which every backend computes with the same result.
///
/// The state is a key of 32 bytes, at first `derive_key(`[`Self::CONTEXT`]`, domain)`. A message is preceded by its
/// length in bytes, 8 in little-endian order. It is cut into pieces of 1,024 bytes; the last may be shorter. Each piece
/// is hashed by `keyed_hash` under the state, and the first 32 bytes of the (extendable) output are the next state.
///
/// After the last piece, challenges come from the same output from its byte 64 on. A coefficient of a challenge is the
/// next 64 bytes, as an integer in little-endian order modulo the prime. If the prime has more than 384 bits, it is a
/// larger multiple of 64 bytes.
#[derive(Clone, Debug)]
pub struct Blake3Transcript {
    key: [u8; 32],
    output: blake3::OutputReader,
}

/// Bytes of a piece of a message.
pub(crate) const PIECE: usize = 1024;

/// Bytes of a block of output.
const BLOCK: usize = 64;

impl Blake3Transcript {
    /// The context for key derivation from which the first state comes.
    pub const CONTEXT: &str = "evariste 2026-11-22 sumcheck transcript v1";

    /// Starts a transcript for a protocol that `domain` names.
    pub fn new(domain: &[u8]) -> Self {
        let mut hasher = blake3::Hasher::new_derive_key(Self::CONTEXT);
        hasher.update(domain);
        let mut output = hasher.finalize_xof();
        let mut key = [0; 32];
        output.fill(&mut key);
        output.set_position(BLOCK as u64);
        Self { key, output }
    }

    /// Returns the state. Two transcripts in the same state draw the same challenges after the next message.
    pub fn state(&self) -> [u8; 32] {
        self.key
    }

    /// The transcript of this state, before any message: challenges come after one.
    pub(crate) fn from_words(words: &[u32]) -> Self {
        let mut key = [0; 32];
        for (bytes, word) in key.chunks_exact_mut(4).zip(words) {
            bytes.copy_from_slice(&word.to_le_bytes());
        }
        Self { key, output: blake3::Hasher::new_keyed(&key).finalize_xof() }
    }

    /// The state as words.
    pub(crate) fn words(&self) -> [u32; 8] {
        std::array::from_fn(|i| u32::from_le_bytes(std::array::from_fn(|j| self.key[4 * i + j])))
    }

    /// Takes a message.
    pub fn absorb(&mut self, message: &[u8]) {
        let mut framed = (message.len() as u64).to_le_bytes().to_vec();
        framed.extend_from_slice(message);
        for piece in framed.chunks(PIECE) {
            let mut hasher = blake3::Hasher::new_keyed(&self.key);
            hasher.update(piece);
            self.output = hasher.finalize_xof();
            self.output.fill(&mut self.key);
        }
        self.output.set_position(BLOCK as u64);
    }

    /// The next challenge.
    pub fn challenge<E: DeviceField>(&mut self) -> E {
        let mut bytes = vec![0; BLOCK * blocks::<E>()];
        let coefficients = (0..E::extension_degree()).map(|_| {
            self.output.fill(&mut bytes);
            reduced(&bytes)
        });
        let coefficients: Vec<_> = coefficients.collect();
        match E::from_base_prime_field_elems(coefficients) {
            Some(challenge) => challenge,
            None => unreachable!("an element has as many coefficients as its degree says"),
        }
    }
}

/// An integer in little-endian order modulo the prime. Pieces have the most whole bytes that are below the prime, the
/// highest first. That takes a fraction of the time of one byte after the other.
fn reduced<F: PrimeField>(bytes: &[u8]) -> F {
    let width = (F::MODULUS_BIT_SIZE as usize - 1) / 8;
    if width == 0 {
        return F::from_le_bytes_mod_order(bytes);
    }
    let below = |bytes: &[u8]| {
        let mut integer = F::BigInt::default();
        for (limb, bytes) in integer.as_mut().iter_mut().zip(bytes.chunks(8)) {
            let mut word = [0; 8];
            word[..bytes.len()].copy_from_slice(bytes);
            *limb = u64::from_le_bytes(word);
        }
        F::from_bigint(integer).unwrap_or(F::ZERO)
    };
    let mut shift = vec![0; width + 1];
    shift[width] = 1;
    let shift = below(&shift);
    bytes.chunks(width).rev().fold(F::ZERO, |value, piece| value * shift + below(piece))
}

/// Blocks of output for a coefficient: at least 128 bits more than the prime has.
pub(crate) fn blocks<E: DeviceField>() -> usize {
    (<E::BasePrimeField as PrimeField>::MODULUS_BIT_SIZE as usize + 128).div_ceil(8 * BLOCK)
}

impl<E: DeviceField> Transcript<E> for Blake3Transcript {
    fn absorb(&mut self, message: &[u8]) {
        Self::absorb(self, message);
    }

    fn challenge(&mut self) -> E {
        Self::challenge(self)
    }

    fn blake3(&mut self) -> Option<&mut Blake3Transcript> {
        Some(self)
    }
}

/// A transcript of the user's own: a function of all bytes since the last challenge that gives the next one. It gets
/// each byte once, and no bytes if two challenges follow each other. So it has to keep a state, such as its last hash,
/// on which challenges depend too. Without a state, challenges would not depend on earlier messages.
#[derive(Debug)]
pub struct Closure<E, C> {
    function: C,
    pending: Vec<u8>,
    challenge: PhantomData<fn() -> E>,
}

impl<E, C: FnMut(&[u8]) -> E> Closure<E, C> {
    /// The transcript that `function` gives.
    pub fn new(function: C) -> Self {
        Self { function, pending: Vec::new(), challenge: PhantomData }
    }
}

impl<E, C: FnMut(&[u8]) -> E> Transcript<E> for Closure<E, C> {
    fn absorb(&mut self, message: &[u8]) {
        self.pending.extend_from_slice(message);
    }

    fn challenge(&mut self) -> E {
        (self.function)(&std::mem::take(&mut self.pending))
    }
}

/// Bytes of an element in proofs and messages.
pub(crate) fn element_bytes<E: DeviceField>() -> usize {
    4 * E::LIMBS
}

/// Appends the coefficients of `x` as integers below the prime, each in the bytes that it has on devices, in
/// little-endian order.
pub(crate) fn put<E: DeviceField>(bytes: &mut Vec<u8>, x: &E) {
    x.to_base_prime_field_elements().for_each(|coefficient| put_coefficient::<E>(bytes, &coefficient));
}

/// Appends one of them.
pub(crate) fn put_coefficient<E: DeviceField>(bytes: &mut Vec<u8>, coefficient: &E::BasePrimeField) {
    let each = element_bytes::<E>() / E::extension_degree() as usize;
    let mut integer = coefficient.into_bigint().to_bytes_le();
    integer.resize(each, 0);
    bytes.extend_from_slice(&integer);
}

/// The bytes of some elements.
pub(crate) fn bytes_of<E: DeviceField>(elements: &[E]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(elements.len() * element_bytes::<E>());
    elements.iter().for_each(|x| put(&mut bytes, x));
    bytes
}

/// The element of these bytes, unless they are not what [`put`] gives.
pub(crate) fn get<E: DeviceField>(bytes: &[u8]) -> Option<E> {
    let each = element_bytes::<E>() / E::extension_degree() as usize;
    let coefficients = bytes.chunks(each).map(|bytes| {
        let mut integer = <E::BasePrimeField as PrimeField>::BigInt::default();
        for (i, byte) in bytes.iter().enumerate() {
            match integer.as_mut().get_mut(i / 8) {
                Some(limb) => *limb |= u64::from(*byte) << (8 * (i % 8)),
                None if *byte != 0 => return None,
                None => {}
            }
        }
        E::BasePrimeField::from_bigint(integer)
    });
    E::from_base_prime_field_elems(coefficients.collect::<Option<Vec<_>>>()?)
}

#[cfg(test)]
mod tests {
    use ark_bls12_381::{Fq, Fr};
    use evariste_field::small::{BabyBear, Goldilocks};

    use super::*;

    fn check<F: PrimeField>() {
        for byte in [0, 1, 0x80, 0xff] {
            for len in [0, 1, 31, 32, 33, 64, 128] {
                let mut bytes = vec![byte; len];
                bytes.iter_mut().step_by(3).for_each(|byte| *byte ^= 0x5a);
                assert_eq!(reduced::<F>(&bytes), F::from_le_bytes_mod_order(&bytes));
            }
        }
    }

    #[test]
    fn integers_are_reduced_as_arkworks_does() {
        check::<Fr>();
        check::<Fq>();
        check::<Goldilocks>();
        check::<BabyBear>();
    }
}
