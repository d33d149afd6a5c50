use ark_ff::FftField;
use evariste_backend::Device;
use evariste_field::{DeviceField, Mont};

use crate::{Error, Ntt, Result};

/// Transforms a host slice on a device, natural order to natural order, in place.
///
/// For more than a few transforms of one size make an [`Ntt`] and keep the data in a `Buffer`.
///
/// # Errors
/// [`Error::NotPowerOfTwo`], [`Error::TwoAdicity`], [`Error::TooLarge`], [`Error::Device`]. The slice is unchanged then.
pub fn forward<F: DeviceField + FftField>(device: &Device, x: &mut [F]) -> Result<()> {
    transform(device, x, Ntt::forward)
}

/// The inverse of [`forward`].
///
/// # Errors
/// As [`forward`].
pub fn inverse<F: DeviceField + FftField>(device: &Device, x: &mut [F]) -> Result<()> {
    transform(device, x, Ntt::inverse)
}

fn transform<F: DeviceField + FftField>(
    device: &Device,
    x: &mut [F],
    run: impl Fn(&Ntt<F>, &mut evariste_backend::Buffer<Mont<F>>) -> Result<()>,
) -> Result<()> {
    if x.is_empty() {
        return Ok(());
    }
    if !x.len().is_power_of_two() {
        return Err(Error::NotPowerOfTwo { actual: x.len() });
    }
    let ntt = Ntt::new(device, x.len().ilog2())?;
    let mut buffer = device.upload(x)?;
    run(&ntt, &mut buffer)?;
    Ok(buffer.read_at(0, x)?)
}
