#![doc = include_str!("../README.md")]
#![no_std]

/// `pointwise`: one operation on two vectors.
pub const POINTWISE: &str = include_str!("../pointwise.wgsl");

/// `batch_inverse`: the inverse of each element, with one inversion for a run of elements.
pub const BATCH_INVERSE: &str = include_str!("../batch_inverse.wgsl");

/// `mul_chain`: many multiplications on each element, to measure their rate.
pub const MUL_CHAIN: &str = include_str!("../mul_chain.wgsl");

/// `powers`: the powers of an element.
pub const POWERS: &str = include_str!("../powers.wgsl");

/// `ntt_pair`: transforms of two points.
pub const NTT_PAIR: &str = include_str!("../ntt_pair.wgsl");

/// `ntt_pass`: one pass of a number-theoretic transform.
pub const NTT_PASS: &str = include_str!("../ntt_pass.wgsl");

/// `ntt_twiddles`: the factors between two passes.
pub const NTT_TWIDDLES: &str = include_str!("../ntt_twiddles.wgsl");

/// What the kernels of AES share.
pub const AES_HEADER: &str = include_str!("../aes.wgsl");

/// The AES block function on words.
pub const AES_WORDS: &str = include_str!("../aes_words.wgsl");

/// The columns of a round by S-box.
pub const AES_SBOX: &str = include_str!("../aes_sbox.wgsl");

/// The columns of a round by tables.
pub const AES_TABLES: &str = include_str!("../aes_tables.wgsl");

/// The AES block function on bits, in constant time.
pub const AES_BITS: &str = include_str!("../aes_bits.wgsl");

/// Where the blocks of independent messages lie.
pub const AES_MESSAGE: &str = include_str!("../aes_message.wgsl");

/// Tweaks of XTS.
pub const AES_XTS: &str = include_str!("../aes_xts.wgsl");

/// `aes_ctr`: the keystream of counter mode onto one message.
pub const AES_CTR: &str = include_str!("../aes_ctr.wgsl");

/// `aes_blocks`: modes whose blocks do not wait for each other.
pub const AES_BLOCKS: &str = include_str!("../aes_blocks.wgsl");

/// `aes_borders`: what CBC decryption in place needs of the neighbouring workgroup.
pub const AES_BORDERS: &str = include_str!("../aes_borders.wgsl");

/// `aes_serial`: modes that go block after block.
pub const AES_SERIAL: &str = include_str!("../aes_serial.wgsl");

/// `ghash`: GHASH of segments of blocks.
pub const GHASH: &str = include_str!("../ghash.wgsl");

/// `move_bytes`: a copy between places of any alignment.
pub const MOVE_BYTES: &str = include_str!("../move_bytes.wgsl");
