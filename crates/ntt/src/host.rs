//! Transforms of host slices.

use std::{any::TypeId, sync::Arc};

use ark_ff::FftField;
use evariste_backend::{
    Device,
    author::{CpuThresholds, fastest},
};
use evariste_field::{DeviceField, Mont, source};

use crate::{
    config::NttConfig,
    error::{Error, Result},
    layout::Direction,
    out_of_core::{forward_out_of_core, inverse_out_of_core},
    plan::Ntt,
};

/// Evaluates a host slice in place on a device, natural order to natural order. The coefficients of a polynomial become
/// its values at the roots of unity.
///
/// The plan stays with the device ([`Device::cached_plan`]). The CPU transforms slices below [`Ntt::cpu_threshold`]. A
/// slice that the device does not hold is transformed out of core ([`forward_out_of_core`]). Device and staging memory
/// is public: it is not zeroed. For secrets, use an [`Ntt`] and a buffer of
/// [`Secrecy::Secret`](evariste_backend::Secrecy::Secret).
///
/// # Errors
/// - [`Error::NotPowerOfTwo`] if the length is neither 0 nor a power of two.
/// - [`Error::TwoAdicity`] if the field has no root of unity of that order.
/// - [`Error::Device`] if the device holds neither the slice nor the smallest pieces of a transform out of core. Also
///   if it refuses the data or fails.
/// - [`Error::Interrupted`] if the device fails during the copy of the result.
///
/// After [`Error::Interrupted`] the slice may hold a part of the result. After any other error it is unchanged.
pub fn forward_host<F: DeviceField + FftField>(device: &Device, x: &mut [F]) -> Result<()> {
    transform(device, x, Direction::Forward)
}

/// Interpolates a host slice in place: the inverse of [`forward_host`].
///
/// # Errors
/// - [`Error::NotPowerOfTwo`] if the length is neither 0 nor a power of two.
/// - [`Error::TwoAdicity`] if the field has no root of unity of that order.
/// - [`Error::Device`] if memory does not suffice, or if the device refuses the data or fails.
/// - [`Error::Interrupted`] if the device fails during the copy of the result.
///
/// After [`Error::Interrupted`] the slice may hold a part of the result. After any other error it is unchanged.
pub fn inverse_host<F: DeviceField + FftField>(device: &Device, x: &mut [F]) -> Result<()> {
    transform(device, x, Direction::Inverse)
}

impl<F: DeviceField + FftField> Ntt<F> {
    /// Returns the number of elements from which on [`forward_host`] and [`inverse_host`] use `device`; the CPU
    /// transforms shorter slices. It is 0 for the CPU itself.
    ///
    /// The first call for a device and a field measures, in some milliseconds. It takes the time of a transform of 2^10
    /// elements on the CPU, which grows with n log n. It compares that with the time of a copy to the device and back.
    /// The result is a power of two, at most 2^20. [`Ntt::set_cpu_threshold`] replaces it.
    ///
    /// # Errors
    /// [`Error::Device`] if the device or the CPU fails in the measurement.
    pub fn cpu_threshold(device: &Device) -> Result<usize> {
        if device.info().is_processor() {
            return Ok(0);
        }
        device.cached_value::<Thresholds>().0.get_or_measure(TypeId::of::<F>(), || {
            let measured = measure::<F>(device)?;
            log::debug!("{}: transforms of host slices from {measured} elements on", device.info().id);
            Ok(measured)
        })
    }

    /// Sets [`Ntt::cpu_threshold`] for a device: with 0 the device transforms all host slices, with `usize::MAX` the
    /// CPU.
    pub fn set_cpu_threshold(device: &Device, len: usize) {
        device.cached_value::<Thresholds>().0.set(TypeId::of::<F>(), len);
    }

    /// Evaluates each run of [`Ntt::size`] elements of a host slice in place, on the plan's device whatever the length
    /// is. The copy on the device is public.
    ///
    /// # Errors
    /// - [`Error::Device`] if the length is no multiple of [`Ntt::size`], if memory is exhausted, or if the device
    ///   fails.
    /// - [`Error::TooLarge`] for 2^32 elements or more.
    /// - [`Error::Interrupted`] if the device fails during the copy of the result.
    ///
    /// After [`Error::Interrupted`] the slice may hold a part of the result. After any other error it is unchanged.
    pub fn forward_host(&self, x: &mut [F]) -> Result<()> {
        self.run_host(x, Direction::Forward)
    }

    /// Interpolates each run of [`Ntt::size`] elements of a host slice in place: the inverse of [`Ntt::forward_host`].
    ///
    /// # Errors
    /// - [`Error::Device`] if the length is no multiple of [`Ntt::size`], if memory is exhausted, or if the device
    ///   fails.
    /// - [`Error::TooLarge`] for 2^32 elements or more.
    /// - [`Error::Interrupted`] if the device fails during the copy of the result.
    ///
    /// After [`Error::Interrupted`] the slice may hold a part of the result. After any other error it is unchanged.
    pub fn inverse_host(&self, x: &mut [F]) -> Result<()> {
        self.run_host(x, Direction::Inverse)
    }

    fn run_host(&self, x: &mut [F], direction: Direction) -> Result<()> {
        let queue = self.queue().expect_device(self.device())?;
        self.transform().expect_len(x.len())?;
        let mut data = queue.upload::<Mont<F>>(x)?;
        self.transform().run(data.as_view_mut(), direction)?;
        queue.download(&data)?.wait_into(x).map_err(Error::Interrupted)
    }
}

/// The thresholds of a device, by field.
#[derive(Debug, Default)]
struct Thresholds(CpuThresholds<TypeId>);

/// log₂ of the length that is measured.
const MEASURED: u32 = 10;

/// log₂ of the largest threshold: any GPU is faster than the CPU from there on.
const MAX_LOG_THRESHOLD: u32 = 20;

/// Timed runs; the fastest is used.
const RUNS: u32 = 5;

fn measure<F: DeviceField + FftField>(device: &Device) -> Result<usize> {
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
    let log_threshold = (0..MAX_LOG_THRESHOLD).find(|log| on_device(*log) < on_cpu(*log)).unwrap_or(MAX_LOG_THRESHOLD);
    Ok(1 << log_threshold)
}

fn plan<F: DeviceField + FftField>(device: &Device, log_n: u32) -> Result<Arc<Ntt<F>>> {
    device.cached_plan(&log_n.to_string(), || Ntt::new(device, log_n))
}

fn transform<F: DeviceField + FftField>(device: &Device, x: &mut [F], direction: Direction) -> Result<()> {
    if x.is_empty() {
        return Ok(());
    }
    if !x.len().is_power_of_two() {
        return Err(Error::NotPowerOfTwo { actual: x.len() });
    }
    let log_n = x.len().ilog2();
    let cpu = Device::cpu();
    let device = if x.len() < Ntt::<F>::cpu_threshold(device)? { &cpu } else { device };
    let memory = device.info().memory_bytes.unwrap_or(u64::MAX);
    let bytes = u64::from(source::tile_bytes::<F>(1)) << log_n;
    let needed = match Ntt::<F>::required_bytes(device, log_n, 1, NttConfig::default()) {
        // One buffer has all elements.
        Ok(_) if bytes > device.info().limits.buffer_bytes => u64::MAX,
        Ok(others) => others.saturating_add(bytes),
        Err(Error::TooLarge { .. }) => u64::MAX,
        Err(error) => return Err(error),
    };
    if needed > memory / 10 * 9 {
        return match direction {
            Direction::Forward => forward_out_of_core(device, x, memory / 2),
            Direction::Inverse => inverse_out_of_core(device, x, memory / 2),
        };
    }
    plan::<F>(device, log_n)?.run_host(x, direction)
}
