//! The bytes that all cases work on.

use std::sync::OnceLock;

use anyhow::Result;
use evariste::backend::{Buffer, Device};
use rayon::prelude::*;

/// Bytes after which the pattern repeats: whole blocks, but of nothing that data is cut into.
pub(super) const PERIOD: usize = 16 * 65_537;

/// What all data is before, without a pattern that a cipher's blocks, sectors or pieces could hide.
fn pattern() -> &'static [u8] {
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
