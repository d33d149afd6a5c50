//! What trials ask about a device.

use evariste::backend::{Buffer, Device, Element, Error, Kind, Secrecy, Transfer};

/// A buffer of elements that no operation gives: a kernel that does nothing must not leave what an earlier one wrote.
pub(crate) fn garbage<T: Element>(device: &Device, len: usize) -> Result<Buffer<T>, Error> {
    let mut buffer = device.alloc::<T>(len)?;
    let mut host = device.host_buffer(len * T::BYTES, Transfer::Upload, Secrecy::Public)?;
    host.fill(0x5a);
    buffer.write_pinned(host)?.wait()?;
    Ok(buffer)
}

/// Whether the processor emulates a GPU, whose compiler takes seconds for a kernel over several limbs.
pub(crate) fn is_emulated(device: &Device) -> bool {
    let info = device.info();
    info.id.kind == Kind::Wgpu && info.features.software
}

/// Whether the processor runs kernels of a program that looks for overflow and broken assumptions, several times as
/// long as others: long inputs are shorter then.
pub(crate) fn is_checked_cpu(device: &Device) -> bool {
    cfg!(debug_assertions) && device.info().id.kind == Kind::Cpu
}

/// Another device than this one, where there is one.
pub(crate) fn other_device(device: &Device) -> Option<Device> {
    match device.info().id.kind {
        Kind::Cpu => Device::all().into_iter().find(|other| !other.is_same(device)),
        _ => Some(Device::cpu()),
    }
}
