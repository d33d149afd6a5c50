//! What peers on a GPU share.

use evariste::backend::{DeviceId, Element, Kind};

use crate::target::Target;

/// Whether peers work on this device: on the first one of CUDA.
pub(crate) fn work_on(target: &Target) -> bool {
    target.device.info().id == DeviceId { kind: Kind::Cuda, index: 0 }
}

/// Elements as devices have them.
pub(crate) fn encode<E: Element>(elements: &[E::Host]) -> Vec<u8> {
    // Of whole words, which elements are made of.
    let mut words = vec![0u32; elements.len() * E::BYTES / 4];
    E::encode(elements, bytemuck::cast_slice_mut(&mut words));
    bytemuck::cast_slice(&words).to_vec()
}
