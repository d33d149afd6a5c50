use crate::{DeviceId, Kind, Transfer};

/// A result of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What can go wrong between a caller and a device.
///
/// Every variant leaves the device usable, except [`Error::Lost`], which every later call on that device repeats.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A backend cannot run on this machine; `reason` says what to install or enable.
    #[error("the {backend} backend is unavailable: {reason}")]
    Unavailable {
        /// The backend that was asked for.
        backend: Kind,
        /// What is missing, and how to get it.
        reason: String,
    },
    /// A device name that cannot be parsed.
    #[error("unknown device {actual:?}: expected {expected}")]
    UnknownDevice {
        /// The names that are understood.
        expected: &'static str,
        /// The name that was given.
        actual: String,
    },
    /// A device index beyond the devices of its backend.
    #[error("there is no device {actual}: {available} {} device(s) found", actual.kind)]
    NoSuchDevice {
        /// The device that was asked for.
        actual: DeviceId,
        /// How many devices the backend found.
        available: usize,
    },
    /// Device or pinned host memory is exhausted; nothing was allocated.
    #[error("out of memory on {device}: {requested} bytes requested{}", .available.map(|b| format!(", {b} available")).unwrap_or_default())]
    OutOfMemory {
        /// The device.
        device: DeviceId,
        /// Bytes asked for.
        requested: u64,
        /// Bytes that were free, where the device tells.
        available: Option<u64>,
    },
    /// A buffer, queue or event of one device was given to another.
    #[error("{what} belongs to {actual}, expected {expected}")]
    WrongDevice {
        /// The argument at fault.
        what: &'static str,
        /// The device the call runs on.
        expected: DeviceId,
        /// The device that owns the argument.
        actual: DeviceId,
    },
    /// A length that does not fit the call.
    #[error("wrong length of {what}: expected {expected}, got {actual}")]
    Length {
        /// The argument at fault.
        what: &'static str,
        /// Elements needed.
        expected: u64,
        /// Elements given.
        actual: u64,
    },
    /// A range that leaves its buffer.
    #[error("{what}: the range {offset}..{} leaves a buffer of length {len}", offset.saturating_add(*count))]
    OutOfRange {
        /// The operation.
        what: &'static str,
        /// First element of the range.
        offset: u64,
        /// Elements in the range.
        count: u64,
        /// Elements in the buffer.
        len: u64,
    },
    /// A range of bytes that is not whole words.
    #[error("{what}: {count} bytes from byte {offset} on are not whole words of {expected} bytes")]
    Unaligned {
        /// The operation.
        what: &'static str,
        /// Bytes of a word.
        expected: u64,
        /// First byte of the range.
        offset: u64,
        /// Bytes of the range.
        count: u64,
    },
    /// Bytes that are no element: of a field, an integer that is not below the modulus, as in memory that was never
    /// written or that raw bytes were written to.
    #[error("the bytes of element {index} are not the device form of an element")]
    Undecodable {
        /// The first such element of those that were read, by its place in the buffer.
        index: u64,
    },
    /// Host memory for the other direction.
    #[error("{what} is for {actual:?}, expected {expected:?}")]
    WrongTransfer {
        /// The argument at fault.
        what: &'static str,
        /// The direction needed.
        expected: Transfer,
        /// The direction that the memory is for.
        actual: Transfer,
    },
    /// More than the device can hold in one piece.
    #[error("{what} is too large for {device}: at most {expected}, got {actual}")]
    TooLarge {
        /// What exceeds the limit.
        what: &'static str,
        /// The device.
        device: DeviceId,
        /// The largest value the device takes.
        expected: u64,
        /// The value given.
        actual: u64,
    },
    /// A kernel was launched with arguments other than those it declares.
    #[error("kernel {kernel}: expected {expected}, got {actual}")]
    Arguments {
        /// The kernel.
        kernel: &'static str,
        /// The declaration.
        expected: String,
        /// The call.
        actual: String,
    },
    /// A kernel did not compile: a defect of the kernel, or a compiler too old for the device.
    #[error("kernel {kernel} does not compile on {device}: {log}")]
    Compile {
        /// The kernel.
        kernel: String,
        /// The device or compiler target.
        device: String,
        /// The compiler's messages.
        log: String,
    },
    /// The device is gone (reset, unplugged, or a fault poisoned its context).
    #[error("{device} is lost: {reason}")]
    Lost {
        /// The device.
        device: DeviceId,
        /// What the driver said.
        reason: String,
    },
    /// A call of the driver failed.
    #[error("{call} failed on {device}: {reason}")]
    Driver {
        /// The device.
        device: DeviceId,
        /// The driver's function.
        call: &'static str,
        /// What the driver said.
        reason: String,
    },
}
