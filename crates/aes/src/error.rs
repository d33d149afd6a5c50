use std::io;

use evariste_backend::Error as DeviceError;

use crate::config::Method;

/// A result of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Errors of AES and its modes. Unless the device or the system failed, the call has written nothing to the data.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// AES, the mode or the type has no key of this length, or the first key of the plan has another one.
    #[error("a key must have {expected} bytes, got {actual}")]
    KeyLength {
        /// The lengths that are possible.
        expected: &'static str,
        /// The length given.
        actual: usize,
    },
    /// A counter block or initialisation vector has another length than 16 bytes, or a nonce is empty.
    #[error("{what} must have {expected} bytes, got {actual}")]
    IvLength {
        /// The argument at fault.
        what: &'static str,
        /// The lengths that are possible.
        expected: &'static str,
        /// The length given.
        actual: usize,
    },
    /// A tag has another length than those of the plan, or GCM has no tags of the length. Or a sealed file is shorter
    /// than a tag, or changes its length.
    #[error("a tag must have {expected} bytes, got {actual}")]
    TagLength {
        /// The bytes of a tag of the plan. For a length that GCM lacks, 16, the most possible.
        expected: usize,
        /// The length given.
        actual: usize,
    },
    /// Data or a message for CBC or ECB is not whole blocks.
    #[error("the data must be whole blocks of {expected} bytes, got {actual} bytes")]
    PartialBlock {
        /// The bytes of a block. The length must be a multiple.
        expected: usize,
        /// Bytes given.
        actual: usize,
    },
    /// Sectors for XTS are shorter than a block or longer than 2^20 blocks. Or the data ends with a sector shorter than
    /// a block.
    #[error("a sector must have 16 to 16777216 bytes, got {actual}")]
    SectorLength {
        /// Bytes of the sector.
        actual: usize,
    },
    /// The last sector would have a number above 2^128 − 1. Numbers would start again and tweaks repeat.
    #[error("{count} sectors from number {first} on pass number 2^128 - 1, the last")]
    SectorNumber {
        /// The number of the first sector.
        first: u128,
        /// The number of sectors, a shorter last one included.
        count: u64,
    },
    /// Two messages of a batch would share a part of one keystream: they have equal keys and a counter block in common.
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
    /// The keystream ends before the data does, since its counter would repeat. Or it ends before the position of a
    /// seek.
    #[error("the keystream has {expected} bytes: {len} bytes from position {position} on would repeat it")]
    Keystream {
        /// The position of the first byte of the data in the stream, or that of a seek.
        position: u128,
        /// The bytes of data; 0 for a seek.
        len: u64,
        /// The bytes of the whole stream.
        expected: u128,
    },
    /// A message, nonce, associated data or file is too long: the mode takes fewer bytes at once, or the machine cannot
    /// count them.
    #[error("{what} can have at most {expected} bytes, got {actual}")]
    TooLong {
        /// The argument at fault.
        what: &'static str,
        /// The most bytes that are possible.
        expected: u64,
        /// The bytes that were given.
        actual: u64,
    },
    /// Two messages of a batch share bytes of the buffer.
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
    /// A message of a batch names a key that the plan does not have.
    #[error("message {message} names key {actual}, there are {expected}")]
    NoSuchKey {
        /// Index of the message.
        message: usize,
        /// The number of keys.
        expected: usize,
        /// The index of the key that it names.
        actual: usize,
    },
    /// A plan has no key or more keys than GCM takes. Or a batch has another number of tags than of messages.
    #[error("{what}: expected {expected}, got {actual}")]
    Count {
        /// The argument at fault.
        what: &'static str,
        /// The number needed, or the least or the most where `what` says so.
        expected: usize,
        /// The number given.
        actual: usize,
    },
    /// The tag is wrong for the data, the associated data, the nonce and the key. No plaintext was written.
    #[error("the tag does not match{}", .message.map(|i| format!(" in message {i}")).unwrap_or_default())]
    Tag {
        /// The index of the first message of a batch whose tag is wrong. It is `None` without a batch, or if the tags
        /// change during the comparison.
        message: Option<usize>,
    },
    /// The tables of the method need more workgroup memory than the device has, even with the fewest copies of them.
    #[error("the method {method:?} needs {expected} bytes of workgroup memory, the device has {actual}")]
    Method {
        /// The method.
        method: Method,
        /// The bytes of workgroup memory that it needs at least.
        expected: u32,
        /// The bytes of workgroup memory that the device has.
        actual: u32,
    },
    /// A file, reader or writer failed: it could not be opened, read, written or given its name. Or the target of a
    /// file is no file.
    #[error("{what}: {reason}")]
    Io {
        /// The operation, with the file's name if it has one.
        what: String,
        /// The kind of the failure.
        kind: io::ErrorKind,
        /// The system's reason.
        reason: String,
    },
    /// The device failed, or it refused an argument, such as a range that leaves its buffer or a buffer of another
    /// device. The error inside gives the reason.
    #[error(transparent)]
    Device(#[from] DeviceError),
}

impl Error {
    pub(crate) fn io(what: impl Into<String>, error: &io::Error) -> Self {
        Self::Io { what: what.into(), kind: error.kind(), reason: error.to_string() }
    }
}
