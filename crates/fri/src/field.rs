use evariste_field::{DeviceField, DevicePrimeField};

/// A field of evaluations: an extension whose prime field has the points, or a prime field. Every
/// [`DeviceField`] over a prime field of devices is one.
pub trait FriField: DeviceField<BasePrimeField: DevicePrimeField> {}

impl<F: DeviceField<BasePrimeField: DevicePrimeField>> FriField for F {}
