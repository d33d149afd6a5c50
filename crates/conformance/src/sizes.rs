//! The sizes that trials on a device go through: all, or few, which sanitizers and the emulator are quick with.

use std::sync::atomic::{AtomicBool, Ordering};

use evariste::backend::Device;

/// Whether trials on a device keep to few sizes.
#[derive(Debug, Default)]
struct Few(AtomicBool);

/// Has trials on a device keep to few sizes.
pub(crate) fn keep_to_few(device: &Device) {
    device.cached_value::<Few>().0.store(true, Ordering::Relaxed);
}

pub(crate) fn is_few(device: &Device) -> bool {
    device.cached_value::<Few>().0.load(Ordering::Relaxed)
}

/// The lengths of these that trials on a device go through: of few, one element, one more than a workgroup has threads,
/// and the largest that sanitizers and the emulator are quick with.
pub(crate) fn lengths(device: &Device, all: &[usize]) -> Vec<usize> {
    const MOST: usize = 10_000;

    let few = is_few(device);
    let most = all.iter().copied().filter(|len| *len <= MOST).max();
    all.iter().copied().filter(|len| !few || [1, 257].contains(len) || Some(*len) == most).collect()
}
