use std::ops::RangeInclusive;

use evariste_backend::Error as DeviceError;

use crate::{Method, PointError};

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
    // Fields that are known when a program is compiled.
    /// A method for other primes.
    #[error("{method:?} is not for primes p with {two_adicity} as the exponent of 2 in p − 1")]
    Method {
        /// The method that was asked for.
        method: Method,
        /// The largest n with 2^n dividing p − 1.
        two_adicity: u32,
    },
    /// A field that is neither prime nor a quadratic extension x² = β of a prime field, for what was asked.
    #[error("{what} are not for a field of degree {degree}, or not for its polynomial")]
    Field {
        /// What was asked for.
        what: &'static str,
        /// The degree of the field.
        degree: u64,
    },
    /// What should be no square is one.
    #[error("the constant that is to be no square is a square")]
    Square,
    /// An encoding that has no room for its flags in this field.
    #[error("the encoding needs {expected} bits above those of a coordinate, and there are {actual}")]
    Flags {
        /// Bits needed.
        expected: u32,
        /// Bits of whole bytes that coordinates leave.
        actual: u32,
    },
    /// A domain separation tag without a byte.
    #[error("the domain separation tag is empty")]
    Domain,
    /// Bytes that are no point.
    #[error("point {index}: {kind}")]
    Point {
        /// The first such point.
        index: usize,
        /// What it is instead.
        kind: PointError,
    },
}
