use std::ops::RangeInclusive;

use evariste_backend::Error as DeviceError;

/// A result of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What can go wrong with roots.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The device refused or failed.
    #[error(transparent)]
    Device(#[from] DeviceError),

    /// No modulus was given.
    #[error("no modulus was given")]
    NoModulus,
    /// A modulus that is too short or too long.
    #[error("modulus {index} has {actual} bits, expected {} to {}", expected.start(), expected.end())]
    ModulusBits {
        /// Which one, from 0 on.
        index: usize,
        /// The lengths that are possible.
        expected: RangeInclusive<u32>,
        /// Its bits.
        actual: u32,
    },
    /// A modulus that is even.
    #[error("modulus {index} is even")]
    EvenModulus {
        /// Which one, from 0 on.
        index: usize,
    },
    /// A modulus that is not prime.
    #[error("modulus {index} is composite")]
    Composite {
        /// Which one, from 0 on.
        index: usize,
    },
    /// A modulus of another length than the others.
    #[error("modulus {index} has {actual} limbs, the first one {expected}")]
    ModulusLimbs {
        /// Which one, from 0 on.
        index: usize,
        /// Limbs of the first one.
        expected: usize,
        /// Its limbs.
        actual: usize,
    },
    /// A batch of several primes, without an index for each element.
    #[error("there are {primes} primes: each element needs the index of its own")]
    Indices {
        /// How many primes the plan has.
        primes: usize,
    },
    /// A value that is not below the modulus.
    #[error("value {index} is not below the modulus")]
    TooLarge {
        /// Which one, from 0 on.
        index: usize,
    },
    /// A prime that makes no key: not 3 modulo 4, or the same as the other one.
    #[error("prime {index} of a key is not 3 modulo 4, or the same as the other one")]
    RabinPrime {
        /// 0 for p, 1 for q.
        index: usize,
    },
    /// A message of the wrong length.
    #[error("message {index} has {actual} bytes, expected {expected}")]
    MessageLength {
        /// Which one, from 0 on.
        index: usize,
        /// Bytes of a message.
        expected: usize,
        /// Its bytes.
        actual: usize,
    },
    /// The system gives no random bytes.
    #[error("no random bytes: {reason}")]
    Randomness {
        /// What the system said.
        reason: String,
    },
}
