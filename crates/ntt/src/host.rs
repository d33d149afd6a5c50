//! Transforms of host slices.

use std::{any::TypeId, sync::Arc};

use ark_ff::FftField;
use evariste_backend::{Buffer, Crossovers, Device, fastest};
use evariste_field::{DeviceField, Mont, source};

use crate::{Config, Error, Ntt, Result, forward_out_of_core, inverse_out_of_core};

/// Transforms a host slice on a device, natural order to natural order, in place; out of core ([`forward_out_of_core`]) where
/// the device does not hold it.
///
/// The plan is kept with the device ([`Device::cached_plan`]). A slice that the CPU transforms in less time than the way
/// to the device and back takes stays on the CPU ([`crossover`]). Device and staging memory is not zeroed afterwards: a
/// secret goes into a buffer that is ([`Secrecy::Secret`](evariste_backend::Secrecy::Secret)), for an [`Ntt`].
///
/// # Errors
/// [`Error::NotPowerOfTwo`] if the length is neither 0 nor a power of two; [`Error::TwoAdicity`] if the field has no
/// root of unity of that order; [`Error::InsufficientMemory`] if the device holds neither the slice nor the smallest pieces of a
/// transform out of core; [`Error::Device`] if the device refuses the data or fails. The slice is unchanged then.
/// [`Error::Interrupted`] if the device failed while the result came back: parts of it may be there.
pub fn forward<F: DeviceField + FftField>(device: &Device, x: &mut [F]) -> Result<()> {
    transform(device, x, |ntt, data| ntt.forward(data), forward_out_of_core)
}

/// Transforms a host slice back: the inverse of [`forward`].
///
/// # Errors
/// Returns the errors of [`forward`], for the same reasons.
pub fn inverse<F: DeviceField + FftField>(device: &Device, x: &mut [F]) -> Result<()> {
    transform(device, x, |ntt, data| ntt.inverse(data), inverse_out_of_core)
}

/// Gives log₂ of the length from which on [`forward`] and [`inverse`] work on `device` and not on the CPU: 0 for the
/// CPU itself.
///
/// Measured once for each device and field, in some milliseconds: the time of a transform of 2^10 elements on the CPU,
/// which grows with n·log n, against the time for as many bytes to the device and back, of which a part grows with n. It is
/// at most 20. [`set_crossover`] pins it.
///
/// # Errors
/// [`Error::Device`] if the device, or the CPU, fails in what is measured.
pub fn crossover<F: DeviceField + FftField>(device: &Device) -> Result<u32> {
    if device.info().is_processor() {
        return Ok(0);
    }
    device.cached_value::<Thresholds>().0.get_or_measure(TypeId::of::<F>(), || {
        let measured = measure::<F>(device)?;
        log::debug!("{}: transforms of host slices from 2^{measured} on", device.info().id);
        Ok(measured)
    })
}

/// Sets what [`crossover`] gives for a device and field: 0 for all work on the device, `u32::MAX` for all on the CPU.
pub fn set_crossover<F: DeviceField + FftField>(device: &Device, log_n: u32) {
    device.cached_value::<Thresholds>().0.set(TypeId::of::<F>(), log_n);
}

/// What is known of a device, by field.
#[derive(Debug, Default)]
struct Thresholds(Crossovers<TypeId, u32>);

/// log₂ of the length that is measured.
const MEASURED: u32 = 10;

/// The largest crossover: from there on any GPU is faster than the way to it is long.
const MAX_CROSSOVER: u32 = 20;

/// Runs of which the fastest counts.
const RUNS: u32 = 5;

fn measure<F: DeviceField + FftField>(device: &Device) -> Result<u32> {
    let log_n = MEASURED.min(F::TWO_ADICITY);
    let mut x = vec![F::ONE; 1 << log_n];
    let on_cpu = plan::<F>(&Device::cpu(), log_n)?;
    let cpu = fastest(RUNS, || {
        let mut buffer = on_cpu.device().upload::<Mont<F>>(&x)?;
        on_cpu.forward(&mut buffer)?;
        Ok::<_, Error>(buffer.as_view().read(&mut x)?)
    })?;
    let mut way = |len: usize| {
        fastest(RUNS, || Ok::<_, Error>(device.upload::<Mont<F>>(&x[..len])?.as_view().read(&mut x[..len])?))
    };
    let (short, long) = (way(1)?, way(1 << log_n)?);
    // A pass of a transform costs a device about what the way costs it at least.
    let each = (long.saturating_sub(short)).as_secs_f64() / f64::from(1u32 << log_n);
    let on_device = |log: u32| 2.0 * short.as_secs_f64() + each * f64::from(log).exp2();
    let on_cpu = |log: u32| {
        let n_log_n = f64::from(log).exp2() * f64::from(log.max(1));
        cpu.as_secs_f64() * n_log_n / (f64::from(log_n).exp2() * f64::from(log_n.max(1)))
    };
    Ok((0..MAX_CROSSOVER).find(|log| on_device(*log) < on_cpu(*log)).unwrap_or(MAX_CROSSOVER))
}

fn plan<F: DeviceField + FftField>(device: &Device, log_n: u32) -> Result<Arc<Ntt<F>>> {
    device.cached_plan(&log_n.to_string(), || Ntt::new(device, log_n))
}

fn transform<F: DeviceField + FftField>(
    device: &Device,
    x: &mut [F],
    apply: impl Fn(&Ntt<F>, &mut Buffer<Mont<F>>) -> Result<()>,
    out_of_core: impl Fn(&Device, &mut [F], u64) -> Result<()>,
) -> Result<()> {
    if x.is_empty() {
        return Ok(());
    }
    if !x.len().is_power_of_two() {
        return Err(Error::NotPowerOfTwo { actual: x.len() });
    }
    let log_n = x.len().ilog2();
    let cpu = Device::cpu();
    let device = if log_n < crossover::<F>(device)? { &cpu } else { device };
    let memory = device.info().memory_bytes.unwrap_or(u64::MAX);
    let bytes = u64::from(source::tile_bytes::<F>(1)) << log_n;
    let needed = match Ntt::<F>::required_bytes(device, log_n, 1, Config::default()) {
        // One buffer has all elements.
        Ok(_) if bytes > device.info().limits.buffer_bytes => u64::MAX,
        Ok(others) => others.saturating_add(bytes),
        Err(Error::TooLarge { .. }) => u64::MAX,
        Err(error) => return Err(error),
    };
    if needed > memory / 10 * 9 {
        return out_of_core(device, x, memory / 2);
    }
    let ntt = plan::<F>(device, log_n)?;
    let mut buffer = device.upload(x)?;
    apply(&ntt, &mut buffer)?;
    let result = device.default_queue().download(&buffer)?;
    result.wait_into(x).map_err(Error::Interrupted)
}
