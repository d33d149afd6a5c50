//! What launches tell the kernels: modes, parameters, and descriptors of messages.

use bytemuck::{Pod, Zeroable};
use evariste_backend::{ParamType, params};

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

/// A place in a buffer, counted in words of 16 bytes: parameters are 32-bit words, the low half first.
#[repr(transparent)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
pub(crate) struct Place(pub(crate) [u32; 2]);

// SAFETY: it is an array of words.
unsafe impl ParamType for Place {
    const LEN: Option<usize> = Some(2);
}

impl Place {
    /// That of a byte.
    pub(crate) fn of(byte: usize) -> Self {
        let word = (byte / BLOCK) as u64;
        Self([word as u32, (word >> 32) as u32])
    }

    /// The number of the word.
    pub(crate) fn word(self) -> usize {
        (u64::from(self.0[0]) | u64::from(self.0[1]) << 32) as usize
    }
}

params! {
    pub(crate) struct CtrParams {
        /// Of block 0, as it lies in memory.
        pub(crate) counter: [u32; 4],
        /// The counter is 128 bits long, else 32 that wrap.
        pub(crate) wide: u32,
        pub(crate) start: Place,
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
        /// XTS only, as are the following: where sector 0 lies.
        pub(crate) word: Place,
        pub(crate) stride: u32,
        pub(crate) blocks: u32,
        pub(crate) key: u32,
    }

    pub(crate) struct PreviousParams {
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
        /// XTS only, as are the following: where sector 0 lies.
        pub(crate) word: Place,
        pub(crate) stride: u32,
        pub(crate) tail: u32,
        pub(crate) key: u32,
    }

    pub(crate) struct GhashParams {
        /// Segments.
        pub(crate) count: u32,
        /// Where the data starts, as are the following not for messages.
        pub(crate) word: Place,
        pub(crate) blocks: u32,
        /// Bytes in the last block.
        pub(crate) tail: u32,
        /// Blocks of each, or 0 for messages.
        pub(crate) segment: u32,
        /// Entry of H.
        pub(crate) power: u32,
    }

    pub(crate) struct MoveParams {
        pub(crate) dst_word: Place,
        pub(crate) src_word: Place,
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

/// One message of a batch, as kernels see it: see `aes_message.cuh`.
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
    /// 1 if the message goes on with the one that lies before it, whose last block is the initialisation vector of CBC then.
    pub(crate) chained: u32,
    pub(crate) iv: [u8; BLOCK],
}

impl Descriptor {
    /// Where it starts, in words.
    pub(crate) fn word(&self) -> usize {
        Place([self.word_low, self.word_high]).word()
    }
}
