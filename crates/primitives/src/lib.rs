#![doc = include_str!("../README.md")]
//!
//! All are queued and return at once: on the queue that they were made of, or that their method `on` was given. They take buffers
//! and views of parts of them, of at most [`MAX_LEN`] elements. Their scratch comes from the device's pool and has the secrecy of
//! the input.
//!
//! # Choices
//! Workgroups never wait for each other where [`Features::forward_progress`] is not promised: there, totals are reduced
//! first, scanned, and added in a last kernel. Where it is promised, [`RadixSort`] uses decoupled look-back. No kernel
//! counts in device memory with atomics, for which workgroups would wait for each other: they count in their own memory and
//! write rows, which another kernel adds. [`ByIndex`] has the largest of some numbers in device memory, which is the same in
//! whatever order they come.
//!
//! [`Features::forward_progress`]: evariste_backend::Features::forward_progress

mod by_index;
mod histogram;
pub mod reference;
mod scan;
mod segmented;
mod shared;
mod sort;

use std::ops::Range;

use evariste_backend::{Device, Error, Result};

pub use by_index::ByIndex;
pub use histogram::{Histogram, MAX_BITS};
pub use scan::Scan;
pub use segmented::{Monoid, SegmentedSum};
pub use sort::{RadixSort, SortMethod};

/// The most elements that a vector may have: so the index of any element of the last tile fits 32 bits.
pub const MAX_LEN: usize = 1 << 31;

/// Threads of every workgroup here: what WebGPU promises.
const THREADS: u32 = 256;

/// Refuses a vector longer than [`MAX_LEN`], which `what` names, and returns its length otherwise.
///
/// # Errors
/// [`Error::TooLarge`] for a longer one, which `what` names in the error.
pub fn checked_len(device: &Device, what: &'static str, len: usize) -> Result<u32> {
    match u32::try_from(len) {
        Ok(short) if len <= MAX_LEN => Ok(short),
        _ => Err(Error::TooLarge { what, device: device.info().id, expected: MAX_LEN as u64, actual: len as u64 }),
    }
}

/// The shift and the number of a range of key bits.
fn checked_bits(bits: &Range<u32>) -> Result<(u32, u32)> {
    match bits.end.checked_sub(bits.start) {
        Some(count) if bits.end <= u32::BITS => Ok((bits.start, count)),
        _ => {
            let (offset, count) = (bits.start.into(), u64::from(bits.end.saturating_sub(bits.start)));
            Err(Error::OutOfRange { what: "bits of a key", offset, count, len: u32::BITS.into() })
        }
    }
}

/// The lowest `bits` bits, of at most 32.
const fn mask(bits: u32) -> u32 {
    match bits {
        0 => 0,
        _ => u32::MAX >> (u32::BITS - bits),
    }
}

/// A kernel on words: constants, then the sources.
fn source(language: evariste_backend::Language, constants: &[(&str, u32)], cuda: &[&str], wgsl: &[&str]) -> String {
    use evariste_backend::Language;

    let mut text = String::new();
    for (name, value) in constants {
        text += &match language {
            Language::Cuda => format!("#define {name} {value}u\n"),
            Language::Wgsl { .. } => format!("const {name} = {value}u;\n"),
        };
    }
    let parts = match language {
        Language::Cuda => cuda,
        Language::Wgsl { .. } => wgsl,
    };
    text + &parts.concat()
}
