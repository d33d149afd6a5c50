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
