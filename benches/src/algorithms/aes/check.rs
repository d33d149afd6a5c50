//! What is compared of what becomes of the pattern.

use anyhow::{Result, ensure};
use evariste::aes::Tag;
use evariste::backend::Buffer;

use super::{
    IV, KEY, NONCE,
    pattern::{pattern_at, patterned_vec},
    reference::{reference_blocks, reference_seal, stream},
};

/// Bytes that are compared at each place, at least.
pub(super) const CHECKED: usize = 1 << 10;

/// Where results are compared: each place is a multiple of `unit`, and the last part reaches to the very end.
pub(super) fn places(len: usize, unit: usize) -> Vec<(usize, usize)> {
    let window = CHECKED.next_multiple_of(unit).min(len);
    let middle = [1, 2, 3].map(|quarter| quarter * (len / 4) / unit * unit);
    let mut places: Vec<(usize, usize)> =
        [0, (len - window) / unit * unit].into_iter().chain(middle).map(|at| (at, window.min(len - at))).collect();
    places.sort_unstable();
    places.dedup();
    places
}

/// Compares what a mode made of the pattern with what it should be: `expected` changes the pattern from a place on.
pub(super) fn check(
    len: usize,
    unit: usize,
    mut read: impl FnMut(usize, &mut [u8]) -> Result<()>,
    expected: impl Fn(usize, &mut [u8]),
) -> Result<String> {
    let places = places(len, unit);
    for &(at, window) in &places {
        let mut actual = vec![0; window];
        read(at, &mut actual)?;
        let mut wanted = pattern_at(at, window);
        expected(at, &mut wanted);
        ensure!(actual == wanted, "the result is wrong at {at} of {len}");
    }
    Ok(format!("RustCrypto, {} × {} bytes", places.len(), places[0].1))
}

pub(super) fn check_buffer(data: &Buffer<u8>, unit: usize, expected: impl Fn(usize, &mut [u8])) -> Result<String> {
    check(data.len(), unit, |at, part| Ok(data.view(at..at + part.len())?.read(part)?), expected)
}

pub(super) fn check_slice(data: &[u8], unit: usize, expected: impl Fn(usize, &mut [u8])) -> Result<String> {
    let read = |at: usize, part: &mut [u8]| {
        part.copy_from_slice(&data[at..at + part.len()]);
        Ok(())
    };
    check(data.len(), unit, read, expected)
}

/// Bytes of a message at most for a check of its tag by RustCrypto.
pub(super) const TAGGED: usize = 64 << 20;

/// Compares a tag over the pattern with RustCrypto's, unless that takes long.
pub(super) fn check_tag(key_bytes: usize, len: usize, tag: &Tag) -> Result<&'static str> {
    if len > TAGGED {
        return Ok("");
    }
    let mut data = patterned_vec(len);
    ensure!(reference_seal(key_bytes, &NONCE, &mut data)? == tag.as_ref(), "the tag is wrong");
    Ok(", and the tag")
}

/// Compares counter mode with AES-128 over the pattern.
pub(super) fn check_host(data: &[u8]) -> Result<String> {
    check_slice(data, 16, |at, part| stream(16, IV, at, part))
}

/// Compares CBC encryption of the pattern, which nobody can start in the middle of, by decrypting it there.
pub(super) fn check_chain(key_bytes: usize, data: &[u8]) -> Result<String> {
    let places = places(data.len(), 16);
    for &(at, window) in &places {
        let before = if at == 0 { &IV[..] } else { &data[at - 16..at] };
        let previous = [before, &data[at..at + window]].concat();
        let mut plain = data[at..at + window].to_vec();
        reference_blocks(&KEY[..key_bytes], true, &mut plain);
        plain.iter_mut().zip(previous).for_each(|(byte, before)| *byte ^= before);
        ensure!(plain == pattern_at(at, window), "the result is wrong at {at}");
    }
    Ok(format!("RustCrypto, {} × {} bytes", places.len(), places[0].1))
}
