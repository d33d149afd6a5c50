//! Input of launches to the kernels: modes, parameters, and descriptors of messages.

use bytemuck::{Pod, Zeroable};
use evariste_backend::params;

use crate::block::BLOCK;

/// Powers H^(2^k) of each key, for putting sums of any number of blocks together.
pub(crate) const SQUARES: usize = 48;

/// Powers of each key that GHASH has on the device: those, and then H^0 to H^31 for the lanes of a warp.
pub(crate) const POWERS: usize = SQUARES + 32;

/// The ways of the kernel `aes_blocks`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BlockMode {
    Ecb,
    Cbc,
    Ctr,
    Xts,
    Tweak,
}

impl BlockMode {
    pub(crate) const ALL: [Self; 5] =
        [BlockMode::Ecb, BlockMode::Cbc, BlockMode::Ctr, BlockMode::Xts, BlockMode::Tweak];
}

/// The ways of the kernel `aes_serial`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SerialMode {
    CbcEncrypt,
    XtsSteal,
}

/// A direction of the cipher.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    Encrypt,
    Decrypt,
}

params! {
    pub(crate) struct CtrParams {
        /// Of block 0, as it lies in memory.
        pub(crate) counter: [u32; 4],
        /// The counter is 128 bits long, else 32 that wrap.
        pub(crate) wide: u32,
        pub(crate) blocks: u32,
        pub(crate) skip: u32,
        pub(crate) tail: u32,
    }

    pub(crate) struct BlockParams {
        pub(crate) units: u32,
        /// How many; for XTS units of a sector.
        pub(crate) messages: u32,
        /// CTR only.
        pub(crate) wide: u32,
        /// XTS only, as are the following.
        pub(crate) stride: u32,
        pub(crate) blocks: u32,
        pub(crate) key: u32,
        /// Of one message that is all of the data, where `messages` is 0: in bodies for the CPU, which so need no
        /// memory for it. For XTS there the number of sector 0; `stride` counts bytes then.
        pub(crate) iv: [u32; 4],
    }

    pub(crate) struct ChainedParams {
        pub(crate) tiles: u32,
        pub(crate) messages: u32,
        pub(crate) tile_units: u32,
    }

    pub(crate) struct SerialParams {
        /// Messages or sectors.
        pub(crate) count: u32,
        /// CBC only.
        pub(crate) first: u32,
        pub(crate) blocks: u32,
        /// XTS only, as are the following.
        pub(crate) stride: u32,
        pub(crate) tail: u32,
        pub(crate) key: u32,
        /// CBC only: that of [`BlockParams`], where `count` is 0.
        pub(crate) iv: [u32; 4],
    }

    pub(crate) struct GhashParams {
        /// Segments.
        pub(crate) count: u32,
        /// Of the data, as are the following not for messages.
        pub(crate) blocks: u32,
        /// Bytes in the last block.
        pub(crate) tail: u32,
        /// Blocks of each, or 0 for messages.
        pub(crate) segment: u32,
        /// Entry of H.
        pub(crate) power: u32,
    }

    pub(crate) struct MoveParams {
        pub(crate) to: u32,
        pub(crate) from_byte: u32,
        /// Of the target that are touched.
        pub(crate) words: u32,
        /// Bytes of the last of them, up to where the copy reaches.
        pub(crate) tail: u32,
        /// Of the source that may be read.
        pub(crate) src_words: u32,
        pub(crate) fresh: u32,
    }
}

/// One message of a batch, as kernels see it: see `aes/message.cuh`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
pub(crate) struct Descriptor {
    pub(crate) first_unit: u32,
    pub(crate) word_low: u32,
    pub(crate) blocks: u32,
    pub(crate) key: u32,
    pub(crate) tail: u32,
    pub(crate) powers: u32,
    pub(crate) word_high: u32,
    /// 1 if the message goes on with the one that lies before it, whose last block is the initialisation vector of CBC
    /// then.
    pub(crate) chained: u32,
    pub(crate) iv: [u8; BLOCK],
}

impl Descriptor {
    /// With another place for where it starts, a multiple of 16.
    pub(crate) fn at(self, byte: usize) -> Self {
        let word = (byte / BLOCK) as u64;
        Self { word_low: word as u32, word_high: (word >> 32) as u32, ..self }
    }

    /// Where it starts, in words.
    pub(crate) fn word(&self) -> usize {
        (u64::from(self.word_low) | u64::from(self.word_high) << 32) as usize
    }
}
