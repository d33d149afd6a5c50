use evariste_backend::Error as DeviceError;

/// A result of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What can go wrong with a transform. Nothing has been written to the data then, unless the device itself failed; to a host
/// slice only if the error is [`Error::Interrupted`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A host slice has a length that is no power of two.
    #[error("the length of a transform must be a power of two, got {actual}")]
    NotPowerOfTwo {
        /// The length given.
        actual: usize,
    },
    /// A plan or a slice is of more elements than the field has a root of unity for.
    #[error("a transform of 2^{actual} elements needs a field of two-adicity {actual}, got {expected}")]
    TwoAdicity {
        /// The field's two-adicity: the largest size is 2^`expected`.
        expected: u32,
        /// log₂ of the size asked for.
        actual: u32,
    },
    /// The field's constants have no primitive root of unity: neither the configured one is one, nor does a small integer give
    /// one, as modulo a number that is no prime.
    #[error("{field} has no primitive root of unity of the order that its configuration says")]
    NoRoot {
        /// The type of the field.
        field: &'static str,
    },
    /// A transform, a batch or a product has more elements than one call takes.
    #[error("at most 2^{expected} elements can be transformed, got {actual}")]
    TooLarge {
        /// log₂ of the number that must not be exceeded, or for a batch not be reached.
        expected: u32,
        /// Elements asked for.
        actual: u64,
    },
    /// Data on the device is no whole number of transforms, or memory has another length than the plan's.
    #[error("the data must be {expected} elements long, or a multiple where several are transformed, got {actual}")]
    Length {
        /// Elements of one transform, of one matrix of columns, or of the plan: what the length must be a multiple of,
        /// or for [`OutOfCore`](crate::OutOfCore) and [`Pipeline`](crate::Pipeline) be.
        expected: usize,
        /// Elements given.
        actual: usize,
    },
    /// Host memory is no whole number of elements.
    #[error("host memory of {expected} bytes would be whole elements, got {actual}")]
    HostBytes {
        /// The next number of bytes that is one.
        expected: usize,
        /// Bytes given.
        actual: usize,
    },
    /// A transform out of core is allowed less device memory than its smallest pieces take.
    #[error("the smallest pieces of the transform take {expected} bytes of device memory, got {actual}")]
    InsufficientMemory {
        /// Bytes of the smallest pieces with their scratch and factors.
        expected: u64,
        /// Bytes allowed.
        actual: u64,
    },
    /// The generator of a coset is 0, which generates none.
    #[error("zero does not generate a coset")]
    ZeroCoset,
    /// The device failed while the result came back to a host slice, which may hold parts of it now: what it was is lost.
    #[error("the transform was interrupted, and the slice may hold parts of its result: {0}")]
    Interrupted(#[source] DeviceError),
    /// The device refused the arguments, ran out of memory or failed, as the error inside says.
    #[error(transparent)]
    Device(#[from] DeviceError),
}
