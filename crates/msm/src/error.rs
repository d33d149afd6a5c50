use std::ops::RangeInclusive;

use evariste_backend::Error as DeviceError;

/// A result of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What can go wrong with a multi-scalar multiplication. Nothing has been computed then.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Scalars that do not go with the bases.
    #[error("{what}: expected {expected} scalars, got {actual}")]
    Length {
        /// What their number must be.
        what: &'static str,
        /// The number or the limit.
        expected: usize,
        /// Scalars given.
        actual: usize,
    },
    /// A value of the configuration that makes no sense.
    #[error("{what} must lie between {} and {}, got {actual}", .expected.start(), .expected.end())]
    Config {
        /// The field of the configuration.
        what: &'static str,
        /// The values that it may have.
        expected: RangeInclusive<u32>,
        /// The value given.
        actual: u32,
    },
    /// A base that is not on the curve.
    #[error("base {index} is not on the curve")]
    NotOnCurve {
        /// The first such base.
        index: usize,
    },
    /// Less memory than the smallest pieces need.
    #[error(
        "a multi-scalar multiplication of this shape takes at least {expected} bytes of device memory, got {actual}"
    )]
    TooLittle {
        /// Bytes that would do.
        expected: u64,
        /// Bytes given.
        actual: u64,
    },
    /// The device refused or failed.
    #[error(transparent)]
    Device(#[from] DeviceError),
}
