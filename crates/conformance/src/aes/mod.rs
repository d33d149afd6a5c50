//! AES in all modes: against RustCrypto's crates, against published vectors, and with input that must be refused.

mod cross;
mod full;
mod places;
mod refuse;
mod streams;
mod vectors;

use evariste_aes::{Config, Method};

use crate::Suite;

pub(crate) fn add(suite: &mut Suite<'_>) {
    cross::add(suite);
    refuse::add(suite);
    streams::add(suite);
    vectors::add(suite);
}

/// The trials that need no device.
pub(crate) fn common() -> Vec<libtest_mimic::Trial> {
    places::trials()
}

/// The trial that needs CUDA's sources on the host.
pub(crate) fn in_kernels(device: &evariste_backend::Device) -> crate::Outcome {
    places::in_kernels(device)
}

pub(crate) fn add_long(suite: &mut Suite<'_>) {
    full::add(suite);
}

/// The lengths of keys.
const KEY_BYTES: [usize; 3] = [16, 24, 32];

/// Everything on the device, however short.
fn on_device(method: Method) -> Config {
    Config { crossover: Some(0), ..Config::method(method) }
}

/// Bytes without a pattern.
fn bytes(len: usize, seed: u64) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x0123_4567_89ab_cdef;
    let mut next = || {
        state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        (state >> 32) as u32
    };
    let mut bytes: Vec<u8> = (0..len.div_ceil(4)).flat_map(|_| next().to_le_bytes()).collect();
    bytes.truncate(len);
    bytes
}
