use evariste_backend::Error as DeviceError;
use evariste_hash::Error as HashError;

/// A result of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The errors of FRI. A call that fails has written nothing, unless the device itself failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The field has no subgroup of so many elements, or a plan cannot index it.
    #[error("a domain of 2^{actual} points is too large: the most is 2^{expected}")]
    Domain {
        /// log₂ of the most points.
        expected: u32,
        /// log₂ of those wanted.
        actual: u32,
    },
    /// A vector of evaluations is no power of two long.
    #[error("{what} has {actual} elements, expected a power of two")]
    Height {
        /// The argument.
        what: &'static str,
        /// Its length.
        actual: usize,
    },
    /// A vector of evaluations is longer than the plan is for.
    #[error("{what} has {actual} elements, the plan is for {expected} at most")]
    TooLong {
        /// The argument.
        what: &'static str,
        /// The most elements.
        expected: usize,
        /// Its length.
        actual: usize,
    },
    /// A vector of evaluations is too short to be folded to the final polynomial.
    #[error("{what} has {actual} elements, expected at least {expected}")]
    TooShort {
        /// The argument.
        what: &'static str,
        /// The fewest elements.
        expected: usize,
        /// Its length.
        actual: usize,
    },
    /// The lengths of the input and the output of a fold have no ratio that folds have.
    #[error("{values} evaluations do not fold to {folded}: the ratio must be 2, 4, 8 or 16")]
    Arity {
        /// The input's.
        values: usize,
        /// The output's.
        folded: usize,
    },
    /// There are no vectors, or no matrices.
    #[error("there is no input")]
    NoInput,
    /// A vector of evaluations is not shorter than the one before.
    #[error("input {index} has {actual} elements, expected less than the one before, of {before}")]
    Order {
        /// Its number.
        index: usize,
        /// The length of the one before.
        before: usize,
        /// Its length.
        actual: usize,
    },
    /// A parameter is none that the protocol has.
    #[error("{what} must be {expected}, got {actual}")]
    Parameter {
        /// The parameter.
        what: &'static str,
        /// What it may be.
        expected: &'static str,
        /// What was given.
        actual: u64,
    },
    /// A point lies in the domain, where the quotient is not defined.
    #[error("point {point} of matrix {matrix} lies in the domain")]
    PointInDomain {
        /// The matrix' number.
        matrix: usize,
        /// The point's number.
        point: usize,
    },
    /// A part of a proof has another length.
    #[error("wrong length of {what}: expected {expected}, got {actual}")]
    Proof {
        /// The part.
        what: &'static str,
        /// Its length for these parameters.
        expected: usize,
        /// Its length.
        actual: usize,
    },
    /// The values of a query are not folded to the value of the final polynomial.
    #[error("the query at {index} does not fold to the final polynomial")]
    OtherPolynomial {
        /// The index that was queried.
        index: usize,
    },
    /// A hash or a tree refuses an argument, or an opening.
    #[error(transparent)]
    Hash(HashError),
    /// The device refuses an argument, or fails:
    ///
    /// - An argument has a wrong length or lies on another device ([`DeviceError::Length`],
    ///   [`DeviceError::WrongDevice`]).
    /// - An input is secret and the output is not ([`DeviceError::SecretInput`]).
    /// - The memory does not suffice ([`DeviceError::OutOfMemory`]).
    /// - A kernel does not compile.
    /// - The device failed.
    #[error(transparent)]
    Device(#[from] DeviceError),
}

impl From<HashError> for Error {
    fn from(error: HashError) -> Self {
        match error {
            HashError::Device(error) => Error::Device(error),
            other => Error::Hash(other),
        }
    }
}
