//! AES in all modes: against RustCrypto's crates, against published vectors, and with input that must be refused.

mod cross;
mod full;
mod places;
mod refuse;
mod streams;
mod vectors;

use evariste_aes::{Aes, Config, KeySize, Method};
use evariste_backend::{DeviceInfo, KernelSpec};
use libtest_mimic::Failed;

use crate::{Suite, launches::Family};

pub(crate) fn add(suite: &mut Suite<'_>) {
    cross::add(suite);
    refuse::add(suite);
    streams::add(suite);
    vectors::add(suite);
}

pub(crate) const FAMILIES: &[Family] = &[
    Family { name: "aes-sbox", cases: &["sbox::"], kernels: |info| kernels(info, Method::Sbox) },
    Family { name: "aes-table", cases: &["table::"], kernels: |info| kernels(info, Method::Table) },
    Family { name: "aes-twotables", cases: &["twotables::"], kernels: |info| kernels(info, Method::TwoTables) },
    Family { name: "aes-fourtables", cases: &["fourtables::"], kernels: |info| kernels(info, Method::FourTables) },
    Family {
        name: "aes-bitsliced",
        cases: &["bitsliced::", "counters", "long_ghash"],
        kernels: |info| kernels(info, Method::Bitsliced),
    },
    Family { name: "aes-previous", cases: &["boundaries", "sbox::cbc", "bitsliced::cbc"], kernels: previous },
];

/// The kernels of a method, but for that of the previous blocks of CBC, of which several workgroups take much more data.
fn kernels(info: &DeviceInfo, method: Method) -> Result<Vec<KernelSpec>, Failed> {
    let mut kernels = Aes::kernels(info, method, KeySize::Aes256)?;
    kernels.retain(|kernel| kernel.name != "aes_previous");
    Ok(kernels)
}

fn previous(info: &DeviceInfo) -> Result<Vec<KernelSpec>, Failed> {
    let of = |method| Aes::kernels(info, method, KeySize::Aes256);
    let mut kernels = [Method::Sbox, Method::Bitsliced].map(of).into_iter().collect::<Result<Vec<_>, _>>()?.concat();
    kernels.retain(|kernel| kernel.name == "aes_previous");
    Ok(kernels)
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
