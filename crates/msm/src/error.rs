use std::ops::RangeInclusive;

use evariste_backend::{Distribution, Error as DeviceError};
use evariste_curve::CurveError;

/// A result of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The errors of multi-scalar multiplications. A call that fails has computed nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A value of the configuration is out of its bounds, or needs more buckets or points than 32-bit numbers name.
    #[error("{what} must lie between {} and {}, got {actual}", .expected.start(), .expected.end())]
    Config {
        /// The field of the configuration.
        what: &'static str,
        /// The values that it may have.
        expected: RangeInclusive<u32>,
        /// The value given.
        actual: u32,
    },
    /// A base is not on the curve, and [`MsmConfig::check`](crate::MsmConfig::check) is set.
    #[error("base {index} is not on the curve")]
    NotOnCurve {
        /// The index of the first such base.
        index: usize,
    },
    /// A base is at infinity, and the configuration has [`Infinity::Refused`](crate::Infinity::Refused).
    #[error("base {index} is at infinity")]
    AtInfinity {
        /// The index of the first such base.
        index: usize,
    },
    /// Digits were made for other plans ([`Msm::digits`](crate::Msm::digits)).
    #[error("the digits are for {expected}, the plan has {actual}")]
    Digits {
        /// The bases that the digits are for.
        expected: String,
        /// Those of the plan.
        actual: String,
    },
    /// Bases or scalars on several devices do not lie in blocks.
    #[error("{what} have the distribution {actual:?}, expected blocks")]
    Distribution {
        /// The argument at fault.
        what: &'static str,
        /// The distribution given.
        actual: Distribution,
    },
    /// A constant of the curve's configuration is wrong.
    #[error(transparent)]
    Curve(#[from] CurveError),
    /// The device refuses an argument, or fails:
    ///
    /// - An argument has a wrong length or lies on another device ([`DeviceError::Length`],
    ///   [`DeviceError::WrongDevice`]).
    /// - The memory does not suffice ([`DeviceError::InsufficientMemory`], [`DeviceError::OutOfMemory`]).
    /// - A kernel does not compile.
    /// - The device failed.
    #[error(transparent)]
    Device(#[from] DeviceError),
}
