//! The bytes that all cases work on, and what is compared of what becomes of them.

use std::sync::OnceLock;

use anyhow::{Result, ensure};
use evariste_aes::Tag;
use evariste_backend::{Buffer, Device};
use rayon::prelude::*;

use super::{
    IV, KEY, NONCE,
    reference::{reference_blocks, reference_seal, stream},
};

/// Bytes that are compared at each place, at least.
pub(super) const CHECKED: usize = 1 << 10;

/// Bytes after which the pattern repeats: whole blocks, but of nothing that data is cut into.
pub(super) const PERIOD: usize = 16 * 65_537;

/// What all data is before, without a pattern that a cipher's blocks, sectors or pieces could hide.
pub(super) fn pattern() -> &'static [u8] {
    static PATTERN: OnceLock<Vec<u8>> = OnceLock::new();
    PATTERN.get_or_init(|| {
        let mut state = 1_u64;
        let mut next = || {
            state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
            (state >> 32) as u32
        };
        (0..PERIOD / 4).flat_map(|_| next().to_le_bytes()).collect()
    })
}

/// `len` bytes of the pattern from a place on.
pub(super) fn pattern_at(at: usize, len: usize) -> Vec<u8> {
    pattern().iter().cycle().skip(at % PERIOD).take(len).copied().collect()
}

pub(super) fn patterned_slice(data: &mut [u8]) {
    data.par_chunks_mut(PERIOD).for_each(|part| part.copy_from_slice(&pattern()[..part.len()]));
}

pub(super) fn patterned_vec(len: usize) -> Vec<u8> {
    let mut data = vec![0; len];
    patterned_slice(&mut data);
    data
}

pub(super) fn patterned(device: &Device, len: usize) -> Result<Buffer<u8>> {
    let mut data = device.alloc(len)?;
    for start in (0..len).step_by(PERIOD) {
        let end = len.min(start + PERIOD);
        data.view_mut(start..end)?.write(&pattern()[..end - start])?;
    }
    Ok(data)
}

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

/// Most bytes of which RustCrypto computes a tag for a check.
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
