//! The curves that sums go over.

use evariste_curve::DeviceCurve;
use evariste_field::DevicePrimeField;

/// A curve with device forms of its points and scalars.
pub trait MsmCurve: DeviceCurve<ScalarField: DevicePrimeField> {}

impl<C: DeviceCurve<ScalarField: DevicePrimeField>> MsmCurve for C {}
