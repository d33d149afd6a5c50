use std::ops::RangeInclusive;

use evariste_backend::Error as DeviceError;
use evariste_curve::CurveError;

/// A result of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What can go wrong with a multi-scalar multiplication. Nothing has been computed then.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Scalars are more than the bases, are no whole number for each sum, or are not as many as the call needs.
    #[error("{what}: expected {expected}, got {actual}")]
    Length {
        /// What is counted, and how many there may be.
        what: &'static str,
        /// The number needed, or the most that there may be; of bytes for host memory.
        expected: usize,
        /// The number given.
        actual: usize,
    },
    /// A value of the configuration lies outside of its bounds, or needs more buckets or points than can be numbered.
    #[error("{what} must lie between {} and {}, got {actual}", .expected.start(), .expected.end())]
    Config {
        /// The field of the configuration.
        what: &'static str,
        /// The values that it may have.
        expected: RangeInclusive<u32>,
        /// The value given.
        actual: u32,
    },
    /// A base is not on the curve, and the configuration asks for a check.
    #[error("base {index} is not on the curve")]
    NotOnCurve {
        /// The place of the first such base.
        index: usize,
    },
    /// A base is at infinity, and the configuration refuses such ones.
    #[error("base {index} is at infinity")]
    AtInfinity {
        /// The place of the first such base.
        index: usize,
    },
    /// A constant of the curve's configuration does not hold.
    #[error(transparent)]
    Curve(#[from] CurveError),
    /// The memory that is allowed holds not even what one scalar takes, or a budget for tables not the bases
    /// themselves.
    #[error(
        "a multi-scalar multiplication of this shape takes at least {expected} bytes of device memory, got {actual}"
    )]
    InsufficientMemory {
        /// The least bytes that would do.
        expected: u64,
        /// Bytes allowed.
        actual: u64,
    },
    /// The device refused the arguments, ran out of memory or failed, as the error inside says.
    #[error(transparent)]
    Device(#[from] DeviceError),
}
