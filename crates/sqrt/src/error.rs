use evariste_backend::Error as DeviceError;
use evariste_curve::CurveError;

use crate::method::Method;

/// A result of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Errors of roots, symbols and points.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The device refused an argument, ran out of memory or failed. The error inside gives the reason.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// The method of the configuration does not suit the prime of the field.
    #[error("{method:?} is not for primes p with {two_adicity} as the exponent of 2 in p − 1")]
    Method {
        /// The method of the configuration.
        method: Method,
        /// The largest n with 2^n dividing p − 1.
        two_adicity: u32,
    },
    /// The degree of a root is not an odd prime, or is too large.
    #[error("roots of degree {actual} are not served: expected an odd prime up to {expected}")]
    Degree {
        /// The largest degree.
        expected: u32,
        /// The degree of the call.
        actual: u32,
    },
    /// The operation does not serve this field. The field is neither prime nor a quadratic extension x² = β of a prime
    /// field, or the operation needs a prime field. Or a suite of hashes to curves needs a field of another length.
    #[error("{what} are not for a field of degree {degree}, or not for its polynomial")]
    Field {
        /// The operation.
        what: &'static str,
        /// The degree of the field.
        degree: u64,
    },
    /// The modulus of the field is composite: an element without a root proves it. Some composites pass.
    #[error("the modulus of {field} is no prime")]
    Modulus {
        /// The type of the field.
        field: &'static str,
    },
    /// The root of unity of a field's configuration is not primitive, since its generator is a square. Plans for hashes
    /// to curves compare themselves with arkworks' square roots, which need it.
    #[error("the root of unity of {field} is not primitive")]
    Root {
        /// The type of the field.
        field: &'static str,
    },
    /// A constant of a curve's configuration does not hold.
    #[error(transparent)]
    Curve(#[from] CurveError),
    /// A constant is a square: the Z of the configuration, that of the simplified map, or β of an extension x² = β.
    #[error("the constant that must be a non-residue is a square")]
    Square,
    /// The coordinates of points leave no room for the flags of the encoding.
    #[error("the encoding needs {expected} bits above those of a coordinate, and there are {actual}")]
    Flags {
        /// Bits needed.
        expected: u32,
        /// Bits of whole bytes that coordinates leave.
        actual: u32,
    },
    /// The domain separation tag is empty, which RFC 9380 forbids.
    #[error("the domain separation tag is empty")]
    Domain,
    /// An encoding is invalid, or its point fails the check.
    #[error("point {index}: {kind}")]
    Point {
        /// The index of the first such point.
        index: usize,
        /// The reason.
        kind: PointError,
    },
}

/// The reason why an encoding or a point is invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum PointError {
    /// The flags are not those of a compressed point, or they mean infinity beside a coordinate other than 0.
    #[error("the flags are not those of a compressed point")]
    Flags,
    /// A coefficient of the coordinate is not below p.
    #[error("the coordinate is not in canonical form")]
    NotCanonical,
    /// No point of the curve has this x, or not this y.
    #[error("the point is not on the curve")]
    NotOnCurve,
    /// The point is not in the subgroup of prime order.
    #[error("the point is not in the subgroup")]
    NotInSubgroup,
}

impl PointError {
    /// Reads a status of [`Decompress::decompress`](crate::Decompress::decompress) or
    /// [`PointCheck::check`](crate::PointCheck::check); `None` for a valid point.
    pub fn from_status(status: u32) -> Option<Self> {
        match status {
            0 => None,
            1 => Some(PointError::Flags),
            2 => Some(PointError::NotCanonical),
            3 => Some(PointError::NotOnCurve),
            _ => Some(PointError::NotInSubgroup),
        }
    }
}
