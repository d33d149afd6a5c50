use std::io;

use evariste_backend::Error as DeviceError;

use crate::Method;

/// A result of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What can go wrong. Nothing has been written to the data then, unless the device itself or the system failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A key that is not as long as the mode needs.
    #[error("a key must have {expected} bytes, got {actual}")]
    KeyLength {
        /// The lengths that are possible.
        expected: &'static str,
        /// The length given.
        actual: usize,
    },
    /// An initialisation vector, counter block or nonce of the wrong length.
    #[error("{what} must have {expected} bytes, got {actual}")]
    IvLength {
        /// The argument at fault.
        what: &'static str,
        /// The lengths that are possible.
        expected: &'static str,
        /// The length given.
        actual: usize,
    },
    /// A tag of the wrong length.
    #[error("a tag must have {expected} bytes, got {actual}")]
    TagLength {
        /// The length of a tag.
        expected: usize,
        /// The length given.
        actual: usize,
    },
    /// Data that is not whole blocks, in a mode that needs them.
    #[error("the data must be whole blocks of {expected} bytes, got {actual} bytes")]
    PartialBlock {
        /// Bytes of a block.
        expected: usize,
        /// Bytes given.
        actual: usize,
    },
    /// A sector of XTS that is shorter than a block or longer than 2^20 blocks; a shorter last sector counts too.
    #[error("a sector must have 16 to 16777216 bytes, got {actual}")]
    SectorLength {
        /// Bytes of the sector.
        actual: usize,
    },
    /// Sectors of XTS beyond number 2^128 − 1, the last: their numbers would start again, and tweaks repeat.
    #[error("{count} sectors from number {first} on pass number 2^128 - 1, the last")]
    SectorNumber {
        /// The number of the first sector.
        first: u128,
        /// Sectors given.
        count: u64,
    },
    /// Two messages of a batch would be encrypted with the same part of one keystream: they have the same key, and their
    /// counters overlap.
    #[error("messages {first} and {second} have the same key and counters that overlap: expected each counter once")]
    RepeatedKeystream {
        /// Index of one message.
        first: usize,
        /// Index of the other.
        second: usize,
    },
    /// The two keys of XTS must differ.
    #[error("the two keys of XTS are equal")]
    EqualKeys,
    /// The keystream ends before the data does: its counter would repeat.
    #[error("the keystream has {expected} bytes: {len} bytes from position {position} on would repeat it")]
    Keystream {
        /// Where the data starts in the stream.
        position: u128,
        /// Bytes of data.
        len: u64,
        /// Bytes of the whole stream.
        expected: u128,
    },
    /// More than a mode takes at once.
    #[error("{what} can have at most {expected} bytes, got {actual}")]
    TooLong {
        /// The argument at fault.
        what: &'static str,
        /// The most that is possible.
        expected: u64,
        /// What was given.
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
    /// A message of a batch that does not start at a multiple of a block.
    #[error("message {message} must start at a multiple of {expected} bytes, got {actual}")]
    Alignment {
        /// Index of the message.
        message: usize,
        /// What its offset must be a multiple of.
        expected: usize,
        /// Its offset.
        actual: usize,
    },
    /// A message of a batch names a key that is not there.
    #[error("message {message} names key {actual}, there are {expected}")]
    NoSuchKey {
        /// Index of the message.
        message: usize,
        /// Keys that there are.
        expected: usize,
        /// The key named.
        actual: usize,
    },
    /// As many of one thing as of another are needed.
    #[error("{what}: expected {expected}, got {actual}")]
    Count {
        /// The argument at fault.
        what: &'static str,
        /// How many are needed.
        expected: usize,
        /// How many were given.
        actual: usize,
    },
    /// The tag is not that of the data: it, the associated data, the nonce or the key is wrong. No plaintext is given.
    #[error("the tag does not match{}", .message.map(|i| format!(" in message {i}")).unwrap_or_default())]
    Tag {
        /// Index of the message in its batch.
        message: Option<usize>,
    },
    /// A method that needs more workgroup memory than the device has.
    #[error("the method {method:?} needs {expected} bytes of workgroup memory, the device has {actual}")]
    Method {
        /// The method asked for.
        method: Method,
        /// Bytes it needs.
        expected: u32,
        /// Bytes there are.
        actual: u32,
    },
    /// Reading or writing failed.
    #[error("{what}: {reason}")]
    Io {
        /// What was being done.
        what: String,
        /// The kind of failure.
        kind: io::ErrorKind,
        /// What the system said.
        reason: String,
    },
    /// The device refused or failed.
    #[error(transparent)]
    Device(#[from] DeviceError),
}

impl Error {
    pub(crate) fn io(what: impl Into<String>, error: &io::Error) -> Self {
        Self::Io { what: what.into(), kind: error.kind(), reason: error.to_string() }
    }
}
