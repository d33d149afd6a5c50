//! What kernels take.

use evariste_backend::{constants, params};

/// Threads of a workgroup.
pub(super) const THREADS: u32 = 128;

/// Bytes of a chunk of BLAKE3.
pub(super) const CHUNK: usize = 1024;

params! {
    /// What `hash_messages` takes.
    pub(super) struct MessageParams {
        /// How many messages.
        pub(super) len: u32,
        /// The byte of the first word where they start.
        pub(super) at: u32,
        /// The distance of messages, in bytes.
        pub(super) pitch: u32,
        /// The bytes of each message; of the longest, if there is a table.
        pub(super) bytes: u32,
        /// The distance of digests in the output, in digests.
        pub(super) stride: u32,
        /// The byte behind a message.
        pub(super) pad: u32,
        pub(super) flags: u32,
    }

    /// What `blake3_chunks` takes.
    pub(super) struct ChunkParams {
        /// How many chunks.
        pub(super) len: u32,
        /// The byte of the first word where messages start.
        pub(super) at: u32,
        /// The distance of messages, in bytes.
        pub(super) pitch: u32,
        /// The bytes of each message from chunk `first` on.
        pub(super) bytes: u32,
        /// The distance of values in the output, in values.
        pub(super) stride: u32,
        pub(super) flags: u32,
        /// The chunks of each message that there are.
        pub(super) chunks: u32,
        /// The number of the first of them.
        pub(super) first: u32,
    }

    /// What `blake3_parents` takes.
    pub(super) struct ParentParams {
        /// How many parents.
        pub(super) len: u32,
        /// The distance of values in the output, in values.
        pub(super) stride: u32,
        pub(super) flags: u32,
        /// The children of each message.
        pub(super) nodes: u32,
    }
}

constants! {
    pub(super) mod flags {
        /// A table says where messages, chunks or parents are.
        TABLE = 1,
        /// The values are digests.
        ROOT = 2,
    }
}

constants! {
    /// The flags of BLAKE3's compression.
    pub(super) mod domain {
        CHUNK_START = 1,
        CHUNK_END = 2,
        PARENT = 4,
        AS_ROOT = 8,
    }
}

constants! {
    /// In a table of parents.
    pub(super) mod parents {
        /// The parent has one child, and is it.
        COPY = 1 << 31,
    }
}
