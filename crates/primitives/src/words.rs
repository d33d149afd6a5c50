//! Lengths, keys and texts of kernels on words.

use std::ops::Range;

use evariste_backend::{Device, Error, Result, author::Language};

/// The most elements of a vector: the index of any element of its last tile fits 32 bits.
pub const MAX_LEN: usize = 1 << 31;

/// Threads of every workgroup here: what WebGPU promises.
pub(crate) const THREADS: u32 = 256;

/// Returns the length of a vector, which `what` names in the error.
///
/// # Errors
/// [`Error::TooLarge`] if the vector is longer than [`MAX_LEN`].
pub fn checked_len(device: &Device, what: &'static str, len: usize) -> Result<u32> {
    match u32::try_from(len) {
        Ok(short) if len <= MAX_LEN => Ok(short),
        _ => Err(Error::TooLarge { what, device: device.info().id, expected: MAX_LEN as u64, actual: len as u64 }),
    }
}

/// The shift and the number of a range of key bits.
pub(crate) fn checked_bits(bits: &Range<u32>) -> Result<(u32, u32)> {
    match bits.end.checked_sub(bits.start) {
        Some(count) if bits.end <= u32::BITS => Ok((bits.start, count)),
        _ => {
            let (offset, count) = (bits.start.into(), u64::from(bits.end.saturating_sub(bits.start)));
            Err(Error::OutOfRange { what: "bits of a key", offset, count, len: u32::BITS.into() })
        }
    }
}

/// The lowest `bits` bits, of at most 32.
pub(crate) const fn mask(bits: u32) -> u32 {
    match bits {
        0 => 0,
        _ => u32::MAX >> (u32::BITS - bits),
    }
}

/// A kernel on words: constants, then the sources.
pub(crate) fn source(language: Language, constants: &[(&str, u32)], cuda: &[&str], wgsl: &[&str]) -> String {
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
