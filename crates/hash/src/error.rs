use evariste_backend::Error as DeviceError;

use crate::dimensions::Dimensions;

/// A result of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The errors of hashes. A call that fails has written nothing, unless the device itself failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Parameters give no permutation or no sponge.
    #[error("{what} must be {expected}, got {actual}")]
    Parameters {
        /// The parameter.
        what: &'static str,
        /// What it may be.
        expected: &'static str,
        /// What was given.
        actual: u64,
    },
    /// Messages of different lengths have another number of offsets than one more than there are digests.
    #[error("{actual} offsets of messages, expected {expected}")]
    Offsets {
        /// One more than there are digests.
        expected: usize,
        /// The number of offsets.
        actual: usize,
    },
    /// An offset is below the one before it, or beyond the bytes of all messages.
    #[error("offset {index} is {actual}, expected {least} to {most}")]
    Offset {
        /// Its number.
        index: usize,
        /// The offset before it.
        least: usize,
        /// The bytes that there are.
        most: usize,
        /// The offset.
        actual: usize,
    },
    /// A tree is over no matrices.
    #[error("a tree needs a matrix")]
    NoMatrices,
    /// A matrix has no columns, or its elements are no whole rows.
    #[error("matrix {matrix} has {elements} elements, expected a multiple of its {columns} columns, at least 1")]
    Columns {
        /// Its number among those given.
        matrix: usize,
        /// Elements of a row.
        columns: usize,
        /// All elements.
        elements: usize,
    },
    /// A tree over a matrix that comes by columns is given more of them than it has, or is finished before it has all.
    #[error("{actual} columns of a matrix, expected {expected}")]
    ColumnCount {
        /// Those that are missing.
        expected: usize,
        /// Those given.
        actual: usize,
    },
    /// The height of a matrix is no power of two.
    #[error("matrix {matrix} has {actual} rows, expected a power of two")]
    Height {
        /// Its number among those given.
        matrix: usize,
        /// Its rows.
        actual: usize,
    },
    /// Several matrices of bytes have one height.
    #[error("several matrices of bytes have {height} rows, expected one of each height")]
    SeveralMatrices {
        /// Their rows.
        height: usize,
    },
    /// The matrices have other dimensions than those of the tree.
    #[error("the tree is over matrices of {expected:?}, got {actual:?}")]
    OtherMatrices {
        /// Those of the tree.
        expected: Vec<Dimensions>,
        /// Those given.
        actual: Vec<Dimensions>,
    },
    /// An index is beyond the rows of the tallest matrices.
    #[error("row {index} does not exist: the tallest matrices have {height}")]
    OutOfRange {
        /// Rows of the tallest matrices.
        height: usize,
        /// The index.
        index: usize,
    },
    /// An opening has not the form that the dimensions of the matrices and the cap give it.
    #[error("wrong length of {what}: expected {expected}, got {actual}")]
    Opening {
        /// The part of the opening.
        what: &'static str,
        /// Its length for these dimensions.
        expected: usize,
        /// Its length.
        actual: usize,
    },
    /// The rows and the path of an opening do not lead to the cap: the rows, the path or the cap are of another tree or
    /// another index.
    #[error("the opening does not lead to the root")]
    OtherRoot,
    /// No integer below 2^64 and the modulus solves a proof of work.
    #[error("no element solves a proof of work of {bits} bits")]
    NoWitness {
        /// The bits that must be 0.
        bits: u32,
    },
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
