use std::io;

use evariste_backend::Error as DeviceError;

use crate::Method;

/// A result of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What can go wrong. Nothing has been written to the data then, unless the device itself or the system failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A key is given of a length for which AES, or the mode or type that it is for, has no cipher, or of another length
    /// than the first key of a plan.
    #[error("a key must have {expected} bytes, got {actual}")]
    KeyLength {
        /// The lengths that are possible.
        expected: &'static str,
        /// The length given.
        actual: usize,
    },
    /// A counter block or initialisation vector is given that has not 16 bytes, or a nonce without any.
    #[error("{what} must have {expected} bytes, got {actual}")]
    IvLength {
        /// The argument at fault.
        what: &'static str,
        /// The lengths that are possible.
        expected: &'static str,
        /// The length given.
        actual: usize,
    },
    /// A tag is given that is not as long as those of the plan, a sealed file is shorter than a tag or changes its length,
    /// or a length is asked for that tags of GCM cannot have.
    #[error("a tag must have {expected} bytes, got {actual}")]
    TagLength {
        /// The bytes of a tag of the plan; 16, the most possible, where a length was asked for.
        expected: usize,
        /// The length given.
        actual: usize,
    },
    /// Data or a message is given to CBC or ECB that is not whole blocks.
    #[error("the data must be whole blocks of {expected} bytes, got {actual} bytes")]
    PartialBlock {
        /// The bytes of a block, of which the length must be a multiple.
        expected: usize,
        /// Bytes given.
        actual: usize,
    },
    /// XTS is asked for a length of sectors below that of a block or above that of 2^20 blocks, or the data ends with a
    /// sector shorter than a block.
    #[error("a sector must have 16 to 16777216 bytes, got {actual}")]
    SectorLength {
        /// Bytes of the sector.
        actual: usize,
    },
    /// The last sector of the data would have a number above 2^128 − 1, so that numbers start again and tweaks repeat.
    #[error("{count} sectors from number {first} on pass number 2^128 - 1, the last")]
    SectorNumber {
        /// The number of the first sector.
        first: u128,
        /// The number of sectors, a shorter last one included.
        count: u64,
    },
    /// Two messages of a batch would be encrypted with the same part of one keystream: their keys are equal, and they have
    /// a counter block in common.
    #[error("messages {first} and {second} have the same key and counters that overlap: expected each counter once")]
    RepeatedKeystream {
        /// Index of one message.
        first: usize,
        /// Index of the other.
        second: usize,
    },
    /// The two halves of a key of XTS are equal.
    #[error("the two keys of XTS are equal")]
    EqualKeys,
    /// The keystream ends before the data does, since its counter would repeat, or before the position that is sought.
    #[error("the keystream has {expected} bytes: {len} bytes from position {position} on would repeat it")]
    Keystream {
        /// The position of the first byte of the data in the stream, or the one that is sought.
        position: u128,
        /// The bytes of data; 0 where a position is sought.
        len: u64,
        /// The bytes of the whole stream.
        expected: u128,
    },
    /// A message, nonce, associated data or file has more bytes than the mode takes at once, or than the machine can count.
    #[error("{what} can have at most {expected} bytes, got {actual}")]
    TooLong {
        /// The argument at fault.
        what: &'static str,
        /// The most bytes that are possible.
        expected: u64,
        /// The bytes that were given.
        actual: u64,
    },
    /// Two messages of a batch share bytes of the buffer, in whatever order they are given.
    #[error("messages {first} and {second} overlap")]
    Overlap {
        /// Index of one message.
        first: usize,
        /// Index of the other.
        second: usize,
    },
    /// A message of a batch does not start at a multiple of a block.
    #[error("message {message} must start at a multiple of {expected} bytes, got {actual}")]
    Alignment {
        /// Index of the message.
        message: usize,
        /// The bytes that its offset must be a multiple of.
        expected: usize,
        /// Its offset in bytes.
        actual: usize,
    },
    /// A message of a batch names a key whose number is not below the number of keys.
    #[error("message {message} names key {actual}, there are {expected}")]
    NoSuchKey {
        /// Index of the message.
        message: usize,
        /// The number of keys that there are.
        expected: usize,
        /// The number of the key that it names.
        actual: usize,
    },
    /// There are too few or too many of something: no key for a plan, more keys than GCM takes, or another number of tags
    /// than of messages.
    #[error("{what}: expected {expected}, got {actual}")]
    Count {
        /// The argument at fault.
        what: &'static str,
        /// How many are needed; the least or the most where `what` says so.
        expected: usize,
        /// How many were given.
        actual: usize,
    },
    /// The tag is not that of the data: the tag, the data, the associated data, the nonce or the key is wrong. No plaintext
    /// is given.
    #[error("the tag does not match{}", .message.map(|i| format!(" in message {i}")).unwrap_or_default())]
    Tag {
        /// The index of the first message of a batch whose tag is wrong; `None` where there is no batch, or if the tags
        /// change while they are compared.
        message: Option<usize>,
    },
    /// A method is asked for whose tables need more workgroup memory than the device has, with as few copies of them as
    /// kernels take.
    #[error("the method {method:?} needs {expected} bytes of workgroup memory, the device has {actual}")]
    Method {
        /// The method asked for.
        method: Method,
        /// The bytes of workgroup memory that it needs at least.
        expected: u32,
        /// The bytes of workgroup memory that the device has.
        actual: u32,
    },
    /// A file, reader or writer failed: one could not be opened, read, written or given its name, or the target of a file
    /// is no file.
    #[error("{what}: {reason}")]
    Io {
        /// What was being done, with the file's name where there is one.
        what: String,
        /// The kind of failure.
        kind: io::ErrorKind,
        /// What the system said.
        reason: String,
    },
    /// The device refused an argument, such as a range that leaves its buffer or a buffer of another device, or failed: it
    /// has too little memory, a kernel did not compile at its first use, or a call of its driver failed.
    #[error(transparent)]
    Device(#[from] DeviceError),
}

impl Error {
    pub(crate) fn io(what: impl Into<String>, error: &io::Error) -> Self {
        Self::Io { what: what.into(), kind: error.kind(), reason: error.to_string() }
    }
}
