//! AES in all modes: against RustCrypto's crates, against published vectors, and with input that must be refused.

mod cross;
mod freed;
mod full;
mod places;
mod queues;
mod refuse;
mod secrets;
mod streams;
mod vectors;

use evariste::aes::{Aes, AesConfig, KeySize, Method};
use evariste::backend::{DeviceInfo, author::KernelSpec};
use libtest_mimic::Failed;

use crate::{
    area::Area,
    harness::DeviceTrials,
    launches::{Exception, KernelGroup, Launched},
};

pub(crate) const AREA: Area = Area {
    kernels: KERNELS,
    exceptions: &[
        // Sectors that are not whole blocks go one by one.
        Exception::new("aes_serial", "XtsSteal", Launched::ByOne),
        // The CPU keeps the blocks that CBC chains, takes bytes where they are, and a sector as a whole.
        Exception::new("aes_previous", "", Launched::NotByCpu),
        Exception::new("move_bytes", "", Launched::NotByCpu),
        Exception::new("aes_", "Tweak", Launched::NotByCpu),
        Exception::new("aes_", "XtsSteal", Launched::NotByCpu),
    ],
    operations: secrets::OPERATIONS,
    freed: freed::FREED,
    without_operation: &[
        ("aes_previous", "GPUs alone have to keep what CBC chains"),
        ("move_bytes", "GPUs alone need bytes at words"),
    ],
    ordered: queues::ORDERED,
    plans: queues::PLANS,
    common,
    ..Area::new("aes", add)
};

fn add(trials: &mut DeviceTrials<'_>) {
    cross::add(trials);
    refuse::add(trials);
    streams::add(trials);
    vectors::add(trials);
}

const KERNELS: &[KernelGroup] = &[
    KernelGroup { name: "aes-sbox", cases: &["sbox::"], kernels: |info| kernels(info, Method::Sbox) },
    KernelGroup { name: "aes-table", cases: &["table::"], kernels: |info| kernels(info, Method::Table) },
    KernelGroup { name: "aes-twotables", cases: &["twotables::"], kernels: |info| kernels(info, Method::TwoTables) },
    KernelGroup { name: "aes-fourtables", cases: &["fourtables::"], kernels: |info| kernels(info, Method::FourTables) },
    KernelGroup {
        name: "aes-bitsliced",
        cases: &["bitsliced::", "counters", "long_ghash"],
        kernels: |info| kernels(info, Method::Bitsliced),
    },
    KernelGroup { name: "aes-previous", cases: &["boundaries", "sbox::cbc", "bitsliced::cbc"], kernels: previous },
];

/// The kernels of a method without that of the previous blocks of CBC. Several workgroups of that one take much more
/// data.
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
fn common() -> Vec<libtest_mimic::Trial> {
    places::trials()
}

/// The trial that needs CUDA's sources on the host.
pub(crate) fn in_kernels(device: &evariste::backend::Device) -> crate::harness::Outcome {
    places::in_kernels(device)
}

pub(crate) fn add_long(trials: &mut DeviceTrials<'_>) {
    full::add(trials);
}

/// The lengths of keys.
const KEY_BYTES: [usize; 3] = [16, 24, 32];

/// Everything on the device, however short.
fn on_device(method: Method) -> AesConfig {
    AesConfig::default().method(method).cpu_threshold(0)
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
