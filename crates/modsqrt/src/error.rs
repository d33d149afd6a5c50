use std::ops::RangeInclusive;

use evariste_backend::Error as DeviceError;

/// A result of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Errors of roots and symbols modulo run-time integers, and of cryptosystems and puzzles that rest on them.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The device refused an argument, ran out of memory or failed. The error inside gives the reason.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// The list of moduli for a plan is empty.
    #[error("no modulus was given")]
    NoModulus,
    /// A modulus, or the length of a random prime, is too short or too long.
    #[error("modulus {index} has {actual} bits, expected {} to {}", expected.start(), expected.end())]
    ModulusBits {
        /// The index of the modulus.
        index: usize,
        /// The lengths that are possible.
        expected: RangeInclusive<u32>,
        /// The bits of the modulus.
        actual: u32,
    },
    /// A modulus is even.
    #[error("modulus {index} is even")]
    EvenModulus {
        /// The index of the modulus.
        index: usize,
    },
    /// A modulus that must be prime fails the tests for primes.
    #[error("modulus {index} is composite")]
    Composite {
        /// The index of the modulus.
        index: usize,
    },
    /// A modulus has another number of limbs than the first one of its plan or key.
    #[error("modulus {index} has {actual} limbs, the first one {expected}")]
    ModulusLimbs {
        /// The index of the modulus.
        index: usize,
        /// The limbs of the first modulus.
        expected: usize,
        /// The limbs of this one.
        actual: usize,
    },
    /// A plan for several moduli got a batch without an index for each element.
    #[error("there are {moduli} moduli: each element needs the index of its own")]
    Indices {
        /// The number of moduli of the plan.
        moduli: usize,
    },
    /// A value, a square or a ciphertext is not reduced: it is not below its modulus.
    #[error("value {index} is not below the modulus")]
    NotReduced {
        /// The index of the value.
        index: usize,
    },
    /// A prime of a key is not 3 modulo 4, or equals the other one.
    #[error("prime {index} of a key is not 3 modulo 4, or the same as the other one")]
    RabinPrime {
        /// 0 for p, 1 for q.
        index: usize,
    },
    /// A message to encrypt has another length than the key takes.
    #[error("message {index} has {actual} bytes, expected {expected}")]
    MessageLength {
        /// The index of the message.
        index: usize,
        /// The bytes that a message must have.
        expected: usize,
        /// The bytes of this one.
        actual: usize,
    },
    /// The system gives no random bytes. Tests for primes, random keys and puzzles need them.
    #[error("no random bytes: {reason}")]
    Randomness {
        /// The system's message.
        reason: String,
    },
}
