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
    /// Bytes that are no point.
    #[error("point {index}: {kind}")]
    Point {
        /// The first such point.
        index: usize,
        /// What it is instead.
        kind: PointError,
    },
}
