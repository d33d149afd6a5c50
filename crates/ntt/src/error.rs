use evariste_backend::Error as DeviceError;

/// A result of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What can go wrong with a transform. Nothing has been written to the data then, unless the device itself failed; to a host
/// slice only if the error is [`Error::Interrupted`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A host slice whose length is no size of a transform.
    #[error("the length of a transform must be a power of two, got {actual}")]
    NotPowerOfTwo {
        /// The length given.
        actual: usize,
    },
    /// The field has no root of unity of this order.
    #[error("a transform of 2^{actual} elements needs a field of two-adicity {actual}, got {expected}")]
    TwoAdicity {
        /// The field's two-adicity: the largest size is 2^`expected`.
        expected: u32,
        /// log₂ of the size asked for.
        actual: u32,
    },
    /// More elements than a transform or batch may have.
    #[error("at most 2^{expected} elements can be transformed, got {actual}")]
    TooLarge {
        /// log₂ of the largest size.
        expected: u32,
        /// The size asked for.
        actual: u64,
    },
    /// Data that is not a whole number of transforms.
    #[error("the data must be a multiple of {expected} elements long, got {actual}")]
    Length {
        /// Elements of one transform.
        expected: usize,
        /// Elements given.
        actual: usize,
    },
    /// Less device memory than the smallest pieces of a transform out of core take.
    #[error("the smallest pieces of the transform take {expected} bytes of device memory, got {actual}")]
    TooLittle {
        /// Bytes of the smallest pieces with their scratch.
        expected: u64,
        /// Bytes given.
        actual: u64,
    },
    /// The generator of a coset must not be zero.
    #[error("zero does not generate a coset")]
    ZeroCoset,
    /// The device failed while the result came back to a host slice, which may hold parts of it now: what it was is lost.
    #[error("the transform was interrupted, and the slice may hold parts of its result: {0}")]
    Interrupted(#[source] DeviceError),
    /// The device refused or failed.
    #[error(transparent)]
    Device(#[from] DeviceError),
}
