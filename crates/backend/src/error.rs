use crate::info::{DeviceId, Kind, Transfer};

/// A result of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// An error between a caller and a device.
///
/// Every variant leaves the device usable, except [`Error::Lost`], which every later call on that device repeats.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A backend or its compiler cannot be used on this machine. The program was built without its feature, the driver
    /// or the compiler is missing, too old or does not start, or there is no GPU.
    #[error("the {backend} backend is unavailable: {reason}")]
    Unavailable {
        /// The backend that was asked for, or whose compiler is missing.
        backend: Kind,
        /// What is missing, and what to install or enable.
        reason: String,
    },
    /// A text, such as that in `EVARISTE_DEVICE`, is parsed as the name of a device and is none.
    #[error("unknown device {actual:?}: expected {expected}")]
    UnknownDevice {
        /// The forms of names that are understood.
        expected: &'static str,
        /// The text that was given.
        actual: String,
    },
    /// A device is asked for whose index is not below the number of devices that its backend finds.
    #[error("there is no device {actual}: {available} {} device(s) found", actual.kind)]
    NoSuchDevice {
        /// The device that was asked for.
        actual: DeviceId,
        /// The number of devices that the backend finds.
        available: usize,
    },
    /// An allocation of device memory, of pinned host memory or of staging memory finds too little left, also after
    /// pools were emptied. Nothing was allocated.
    #[error("out of memory on {device}: {requested} bytes requested{}", .available.map(|b| format!(", {b} available")).unwrap_or_default())]
    OutOfMemory {
        /// The device.
        device: DeviceId,
        /// The bytes that were asked for.
        requested: u64,
        /// The bytes that were free at that time, where the device tells.
        available: Option<u64>,
    },
    /// The memory that a call may use does not hold the smallest piece of its work. The limit is a budget of yours, or
    /// the device's memory beside what a plan holds. Nothing was allocated; an allocation that fails is
    /// [`Error::OutOfMemory`].
    #[error("{needed} bytes of device memory are needed at least, {available} are available")]
    InsufficientMemory {
        /// The least bytes that suffice.
        needed: u64,
        /// The bytes that the call may use.
        available: u64,
    },
    /// A buffer, host memory, queue, event or kernel of one device was given to a call on another.
    #[error("{what} belongs to {actual}, expected {expected}")]
    WrongDevice {
        /// The argument at fault.
        what: &'static str,
        /// The device the call runs on.
        expected: DeviceId,
        /// The device that owns the argument.
        actual: DeviceId,
    },
    /// A group of devices has the same device twice, and does not ask for that.
    #[error("{device} is twice in a group of devices")]
    RepeatedDevice {
        /// The device.
        device: DeviceId,
    },
    /// An argument has a length that the call does not take. Algorithms report all their lengths by this variant too.
    #[error("wrong length of {what}: expected {expected}, got {actual}")]
    Length {
        /// The argument at fault, such as "scalars, at most" or "host memory, in bytes". It names the unit unless that
        /// is elements, and the rule unless `expected` is the only length.
        what: &'static str,
        /// The length that the call takes.
        expected: u64,
        /// The length given.
        actual: u64,
    },
    /// A range ends beyond the buffer, view or allocation that it is of, or before it starts. An index that is too large
    /// is a range of one element.
    #[error("{what}: the range {offset}..{} exceeds the length {len}", offset.saturating_add(*count))]
    OutOfRange {
        /// The operation, or the index.
        what: &'static str,
        /// The first element of the range, or its first byte where the operation counts bytes.
        offset: u64,
        /// The elements in the range; 0 for one that ends before it starts.
        count: u64,
        /// The elements that there are.
        len: u64,
    },
    /// A view is copied, cleared, divided or bound to a kernel, and does not start or end at a whole word. The end of a
    /// buffer counts as one.
    #[error("{what}: {count} bytes from byte {offset} on are not whole words of {expected} bytes")]
    Unaligned {
        /// The operation.
        what: &'static str,
        /// The bytes of a word: 4 for copies, those of the binding for a kernel.
        expected: u64,
        /// The first byte of the range, by its place in the buffer.
        offset: u64,
        /// The bytes of the range.
        count: u64,
    },
    /// An element is read from the device whose bytes are none: of a field, an integer that is not below the modulus.
    /// Memory that was never written holds such bytes, or memory that raw bytes were written to.
    #[error("the bytes of element {index} are not the device form of an element")]
    Undecodable {
        /// The first such element of those that were read, by its place in the buffer.
        index: u64,
    },
    /// Host memory was given to a copy in a direction that it was not made for.
    #[error("{what} is for {actual:?}, expected {expected:?}")]
    WrongTransfer {
        /// The argument at fault.
        what: &'static str,
        /// The direction of the copy.
        expected: Transfer,
        /// The direction that the memory is for.
        actual: Transfer,
    },
    /// A value that depends on secret memory would come to public memory, which nobody zeroes. A kernel gets both, the
    /// first to read and the second to write, or one is copied to the other. Make the target secret
    /// ([`crate::Device::alloc_with`]), or say that the result is no secret ([`crate::View::declassify`]).
    #[error("{operation}: {input} is secret, and {output}, which is written, is public")]
    SecretInput {
        /// The kernel or the copy.
        operation: &'static str,
        /// The first secret argument: a kernel's binding, by its name, or the source of a copy.
        input: &'static str,
        /// The first public argument that is written.
        output: &'static str,
    },
    /// A buffer, host memory, a kernel or a launch exceeds what the device takes at once. `what` names the quantity,
    /// such as bytes, threads or iterations of loops.
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
    /// A kernel was launched with another number of buffers than it declares, with one for another access, or with
    /// parameters of another size. This is a defect of the function that launches it.
    #[error("kernel {kernel}: expected {expected}, got {actual}")]
    Arguments {
        /// The kernel.
        kernel: &'static str,
        /// What the kernel declares.
        expected: String,
        /// What the launch gave.
        actual: String,
    },
    /// The compiler or the driver refuses the text of a kernel. This is a defect of the kernel, or the compiler or
    /// driver is too old or too new for the device.
    #[error("kernel {kernel} does not compile on {device}: {log}")]
    Compile {
        /// The kernel.
        kernel: String,
        /// The device or the architecture that it was compiled for.
        device: String,
        /// The compiler's messages.
        log: String,
    },
    /// The device is gone: it was reset or unplugged, or a fault of a kernel made its context unusable. Every later
    /// call on it fails so.
    #[error("{device} is lost: {reason}")]
    Lost {
        /// The device.
        device: DeviceId,
        /// What the driver said.
        reason: String,
    },
    /// A call of the driver or of the API below failed for a reason that has no variant of its own. Or a handle is of
    /// another backend, or the body of a kernel for the CPU panicked.
    #[error("{call} failed on {device}: {reason}")]
    Driver {
        /// The device.
        device: DeviceId,
        /// The function that failed, or the kernel whose body panicked.
        call: &'static str,
        /// What the driver said.
        reason: String,
    },
}

impl Error {
    /// [`Error::Length`], from lengths of the host.
    pub fn length(what: &'static str, expected: usize, actual: usize) -> Self {
        Self::Length { what, expected: expected as u64, actual: actual as u64 }
    }
}
