use ark_ff::FftField;
use evariste_backend::{Buffer, Device};
use evariste_field::{DeviceField, Mont, source};

use crate::{Config, Error, Ntt, Result, forward_in_pieces, inverse_in_pieces};

/// Transforms a host slice on a device, natural order to natural order, in place; in pieces ([`forward_in_pieces`]) where
/// the device does not hold it.
///
/// For more than a few transforms of one size make an [`Ntt`] and keep the data in a `Buffer`.
///
/// # Errors
/// [`Error::NotPowerOfTwo`], [`Error::TwoAdicity`], [`Error::TooLarge`], [`Error::Device`]. The slice is unchanged then.
pub fn forward<F: DeviceField + FftField>(device: &Device, x: &mut [F]) -> Result<()> {
    transform(device, x, Ntt::forward, forward_in_pieces)
}

/// The inverse of [`forward`].
///
/// # Errors
/// As [`forward`].
pub fn inverse<F: DeviceField + FftField>(device: &Device, x: &mut [F]) -> Result<()> {
    transform(device, x, Ntt::inverse, inverse_in_pieces)
}

fn transform<F: DeviceField + FftField>(
    device: &Device,
    x: &mut [F],
    run: impl Fn(&Ntt<F>, &mut Buffer<Mont<F>>) -> Result<()>,
    in_pieces: impl Fn(&Device, &mut [F], u64) -> Result<()>,
) -> Result<()> {
    if x.is_empty() {
        return Ok(());
    }
    if !x.len().is_power_of_two() {
        return Err(Error::NotPowerOfTwo { actual: x.len() });
    }
    let log_n = x.len().ilog2();
    let memory = device.info().memory_bytes.unwrap_or(u64::MAX);
    let needed = match Ntt::<F>::required_bytes(device, log_n, 1, Config::default()) {
        Ok(bytes) => bytes + (u64::from(source::tile_bytes::<F>(1)) << log_n),
        Err(Error::TooLarge { .. }) => u64::MAX,
        Err(error) => return Err(error),
    };
    if needed > memory / 10 * 9 {
        return in_pieces(device, x, memory / 2);
    }
    let ntt = Ntt::new(device, log_n)?;
    let mut buffer = device.upload(x)?;
    run(&ntt, &mut buffer)?;
    Ok(buffer.read_at(0, x)?)
}
