use evariste_backend::{Distribution, Error as DeviceError};

/// A result of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The errors of transforms. A call that fails leaves the data unchanged, unless the device itself failed; it changes a
/// host slice only with [`Error::Interrupted`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The length of a host slice is no power of two.
    #[error("the length of a transform must be a power of two, got {actual}")]
    NotPowerOfTwo {
        /// The length given.
        actual: usize,
    },
    /// The field has no root of unity for a plan or a slice of this size.
    #[error("a transform of 2^{actual} elements needs a field of two-adicity {actual}, got {expected}")]
    TwoAdicity {
        /// The field's two-adicity: the largest size is 2^`expected`.
        expected: u32,
        /// log₂ of the size given.
        actual: u32,
    },
    /// The field's configuration names no primitive root of unity, and no small integer gives one: the modulus may be
    /// composite.
    #[error("{field} has no primitive root of unity of the order that its configuration says")]
    NoRoot {
        /// The type of the field.
        field: &'static str,
    },
    /// A transform, a batch or a product has more elements than one call takes.
    #[error("at most {expected} elements can be transformed, got {actual}")]
    TooLarge {
        /// The most elements that the call takes.
        expected: u64,
        /// The elements given.
        actual: u64,
    },
    /// The generator of a coset is 0, which generates none.
    #[error("zero does not generate a coset")]
    ZeroCoset,
    /// A transform over several devices takes a power of two of them.
    #[error("a transform over several devices takes a power of two of them, got {actual}")]
    Devices {
        /// The number of devices given.
        actual: usize,
    },
    /// Data on several devices is distributed otherwise than data in its order is.
    #[error("the data of the transform has the distribution {actual:?}, expected {expected:?}")]
    Distribution {
        /// The distribution of data in this order.
        expected: Distribution,
        /// The distribution given.
        actual: Distribution,
    },
    /// The device failed during the copy of the result to a host slice. The slice may hold a part of the result; the
    /// input is lost.
    #[error("the transform was interrupted, and the slice may hold parts of its result: {0}")]
    Interrupted(#[source] DeviceError),
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
