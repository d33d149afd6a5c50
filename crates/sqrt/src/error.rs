use std::ops::RangeInclusive;

use evariste_backend::Error as DeviceError;
use evariste_curve::CurveError;

use crate::{Method, PointError};

/// A result of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What can go wrong with roots, symbols, points and what rests on them.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The device refused the arguments, ran out of memory or failed, as the error inside says.
    #[error(transparent)]
    Device(#[from] DeviceError),

    /// A plan was asked for without any modulus.
    #[error("no modulus was given")]
    NoModulus,
    /// A modulus, or one that is to be drawn, is too short or too long.
    #[error("modulus {index} has {actual} bits, expected {} to {}", expected.start(), expected.end())]
    ModulusBits {
        /// Which one, from 0 on.
        index: usize,
        /// The lengths that are possible.
        expected: RangeInclusive<u32>,
        /// Its bits.
        actual: u32,
    },
    /// A modulus is even.
    #[error("modulus {index} is even")]
    EvenModulus {
        /// Which one, from 0 on.
        index: usize,
    },
    /// A modulus that is to be a prime does not pass the tests for primes.
    #[error("modulus {index} is composite")]
    Composite {
        /// Which one, from 0 on.
        index: usize,
    },
    /// A modulus has another number of limbs than the first one of its plan or key.
    #[error("modulus {index} has {actual} limbs, the first one {expected}")]
    ModulusLimbs {
        /// Which one, from 0 on.
        index: usize,
        /// Limbs of the first one.
        expected: usize,
        /// Its limbs.
        actual: usize,
    },
    /// A batch for a plan of several primes or moduli was given without an index for each element.
    #[error("there are {primes} primes: each element needs the index of its own")]
    Indices {
        /// How many primes the plan has.
        primes: usize,
    },
    /// A value, a square or a ciphertext is not below its modulus.
    #[error("value {index} is not below the modulus")]
    TooLarge {
        /// Which one, from 0 on.
        index: usize,
    },
    /// A prime of a key is not 3 modulo 4, or is the same as the other one.
    #[error("prime {index} of a key is not 3 modulo 4, or the same as the other one")]
    RabinPrime {
        /// 0 for p, 1 for q.
        index: usize,
    },
    /// A message to be encrypted has another length than the key takes.
    #[error("message {index} has {actual} bytes, expected {expected}")]
    MessageLength {
        /// Which one, from 0 on.
        index: usize,
        /// Bytes of a message.
        expected: usize,
        /// Its bytes.
        actual: usize,
    },
    /// The system gives no random bytes, which tests for primes, keys and puzzles take.
    #[error("no random bytes: {reason}")]
    Randomness {
        /// What the system said.
        reason: String,
    },
    // Fields that are known when a program is compiled.
    /// The method of the configuration is for other primes than that of the field.
    #[error("{method:?} is not for primes p with {two_adicity} as the exponent of 2 in p − 1")]
    Method {
        /// The method that was asked for.
        method: Method,
        /// The largest n with 2^n dividing p − 1.
        two_adicity: u32,
    },
    /// Roots of this degree are not served.
    #[error("roots of degree {actual} are not served: it is to be an odd prime up to {expected}")]
    Degree {
        /// The largest degree.
        expected: u32,
        /// The degree that was asked for.
        actual: u32,
    },
    /// The field is none that is served: neither prime nor a quadratic extension x² = β of a prime field, or an
    /// extension where a prime field is needed, or one of another length than a suite of hashes to curves takes.
    #[error("{what} are not for a field of degree {degree}, or not for its polynomial")]
    Field {
        /// What was asked for.
        what: &'static str,
        /// The degree of the field.
        degree: u64,
    },
    /// The modulus of the field is no prime, as an element without a root tells. Some composites pass.
    #[error("the modulus of {field} is no prime")]
    Modulus {
        /// The type of the field.
        field: &'static str,
    },
    /// The root of unity of a field's configuration is not primitive, since that comes of a generator that is a square: arkworks'
    /// square roots, which a suite of hashes to curves is compared with, rest on it.
    #[error("the root of unity of {field} is not primitive")]
    Root {
        /// The type of the field.
        field: &'static str,
    },
    /// A constant of a curve's configuration does not hold.
    #[error(transparent)]
    Curve(#[from] CurveError),
    /// The Z of the configuration, the constant of the simplified map, or the β of an extension x² = β is a square.
    #[error("the constant that is to be no square is a square")]
    Square,
    /// The coordinates of points leave no room for the flags of the encoding.
    #[error("the encoding needs {expected} bits above those of a coordinate, and there are {actual}")]
    Flags {
        /// Bits needed.
        expected: u32,
        /// Bits of whole bytes that coordinates leave.
        actual: u32,
    },
    /// The domain separation tag has no byte, which RFC 9380 forbids.
    #[error("the domain separation tag is empty")]
    Domain,
    /// Bytes are the encoding of no point that passes the check.
    #[error("point {index}: {kind}")]
    Point {
        /// The first such point.
        index: usize,
        /// What it is instead.
        kind: PointError,
    },
}
