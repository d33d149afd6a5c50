//! The fields that roots go over.

use evariste_field::{DeviceField, DevicePrimeField};

/// A field with square roots on devices: a prime field, or an extension of one.
pub trait RootField: DeviceField<BasePrimeField: DevicePrimeField> {}

impl<F: DeviceField<BasePrimeField: DevicePrimeField>> RootField for F {}
