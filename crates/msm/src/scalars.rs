use evariste_backend::Buffer;
use evariste_field::{Canonical, DevicePrimeField, Mont};

/// Scalars on the host or on the device.
#[derive(Debug)]
pub enum Scalars<'a, F: DevicePrimeField> {
    /// On the host.
    Host(&'a [F]),
    /// On the device, in Montgomery form.
    Montgomery(&'a Buffer<Mont<F>>),
    /// On the device, as integers, which need not be below the modulus.
    Canonical(&'a Buffer<Canonical<F>>),
}

impl<F: DevicePrimeField> Clone for Scalars<'_, F> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<F: DevicePrimeField> Copy for Scalars<'_, F> {}

impl<F: DevicePrimeField> Scalars<'_, F> {
    /// How many there are.
    pub fn len(&self) -> usize {
        match self {
            Scalars::Host(scalars) => scalars.len(),
            Scalars::Montgomery(scalars) => scalars.len(),
            Scalars::Canonical(scalars) => scalars.len(),
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl<'a, F: DevicePrimeField> From<&'a [F]> for Scalars<'a, F> {
    fn from(scalars: &'a [F]) -> Self {
        Scalars::Host(scalars)
    }
}

impl<'a, F: DevicePrimeField, const N: usize> From<&'a [F; N]> for Scalars<'a, F> {
    fn from(scalars: &'a [F; N]) -> Self {
        Scalars::Host(scalars)
    }
}

impl<'a, F: DevicePrimeField> From<&'a Vec<F>> for Scalars<'a, F> {
    fn from(scalars: &'a Vec<F>) -> Self {
        Scalars::Host(scalars)
    }
}

impl<'a, F: DevicePrimeField> From<&'a Buffer<Mont<F>>> for Scalars<'a, F> {
    fn from(scalars: &'a Buffer<Mont<F>>) -> Self {
        Scalars::Montgomery(scalars)
    }
}

impl<'a, F: DevicePrimeField> From<&'a Buffer<Canonical<F>>> for Scalars<'a, F> {
    fn from(scalars: &'a Buffer<Canonical<F>>) -> Self {
        Scalars::Canonical(scalars)
    }
}
