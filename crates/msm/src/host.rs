//! Sums over host slices.

use std::any::TypeId;

use ark_ec::short_weierstrass::{Affine, Projective};
use ark_ff::Field;
use evariste_backend::{
    Device, Error as DeviceError,
    author::{CpuThresholds, fastest},
};

use crate::{
    config::MsmConfig,
    error::{Error, Result},
    kernels::Kernels,
    msm_curve::MsmCurve,
    plan::Msm,
};

/// Computes Σ `scalars[i]` · `bases[i]` on a device, for points of order r on the host. The compiled kernels stay with
/// the device until [`Device::trim`]; each call copies the bases to it. The CPU computes sums below
/// [`Msm::cpu_threshold`].
///
/// If you use the same bases again, make an [`Msm`], which keeps them on the device.
///
/// ```
/// # fn main() -> Result<(), evariste_msm::Error> {
/// use ark_bls12_381::{Fr, G1Affine};
/// use ark_ec::AffineRepr;
/// use evariste_backend::Device;
///
/// let g = G1Affine::generator();
/// let sum = evariste_msm::msm_host(&Device::best()?, &[g, g], &[Fr::from(5), -Fr::from(2)])?;
/// assert_eq!(sum, g * Fr::from(3));
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// - [`Error::Curve`] if a constant of the curve's configuration is wrong.
/// - [`Error::Device`] unless scalars and bases have the same length, or for more than 2^31 bases.
/// - [`Error::Device`] if the device's memory does not hold the bases and a sum of one scalar.
/// - [`Error::Device`] if a kernel does not compile, or if the device fails.
pub fn msm_host<C: MsmCurve>(
    device: &Device,
    bases: &[Affine<C>],
    scalars: &[C::ScalarField],
) -> Result<Projective<C>> {
    if scalars.len() != bases.len() {
        return Err(DeviceError::length("the scalars, one for each base", bases.len(), scalars.len()).into());
    }
    let cpu = Device::cpu();
    let device = if bases.len() < Msm::<C>::cpu_threshold(device)? { &cpu } else { device };
    on(device, bases, scalars)
}

/// The sum on this device, whatever its length.
fn on<C: MsmCurve>(device: &Device, bases: &[Affine<C>], scalars: &[C::ScalarField]) -> Result<Projective<C>> {
    let kernels = device.cached_plan("", || Kernels::new(device, Vec::new()))?;
    Msm::with_kernels(&device.into(), kernels, bases, MsmConfig::default())?.msm(scalars)
}

impl<C: MsmCurve> Msm<C> {
    /// Returns the number of points from which on [`msm_host`] uses `device`; the CPU computes shorter sums. It is 0
    /// for the CPU itself.
    ///
    /// The first call for a device and a curve measures, in some milliseconds. It takes the time of a sum of 128 points
    /// on the CPU, which grows with their number. It compares that with thirty times the time of a copy of one scalar
    /// to the device and back. This is the time of the shortest sum on a GPU, whose stages wait for each other. The
    /// result is at most 2^14. [`Msm::set_cpu_threshold`] replaces it.
    ///
    /// # Errors
    /// [`Error::Device`] if the device or the CPU fails in the measurement.
    pub fn cpu_threshold(device: &Device) -> Result<usize> {
        if device.info().is_processor() {
            return Ok(0);
        }
        device.cached_value::<Thresholds>().0.get_or_measure(TypeId::of::<C>(), || {
            let measured = measure::<C>(device)?;
            log::debug!("{}: sums over host slices from {measured} points on", device.info().id);
            Ok(measured)
        })
    }

    /// Sets [`Msm::cpu_threshold`] for a device: with 0 the device computes all sums of host slices, with `usize::MAX`
    /// the CPU.
    pub fn set_cpu_threshold(device: &Device, points: usize) {
        device.cached_value::<Thresholds>().0.set(TypeId::of::<C>(), points);
    }
}

/// The thresholds of a device, by curve.
#[derive(Debug, Default)]
struct Thresholds(CpuThresholds<TypeId>);

/// Points of the sum that is measured.
const MEASURED: usize = 128;

/// Ways to the device and back that the shortest sum takes there. On an H200 it takes 0.4 to 0.75 ms, and one way 15 to
/// 25 µs.
const WAYS: u32 = 30;

/// The largest threshold: any GPU is faster than the CPU from there on.
const MAX_THRESHOLD: usize = 1 << 14;

/// Timed runs; the fastest is used.
const RUNS: u32 = 3;

pub(crate) fn measure<C: MsmCurve>(device: &Device) -> Result<usize> {
    let (cpu, bases) = (Device::cpu(), vec![C::GENERATOR; MEASURED]);
    let largest = -C::ScalarField::from(1u8);
    // Small orders divide some of the integers.
    let long = |i| C::ScalarField::from(2 * i + 1).inverse().map_or(largest, |inverse| largest * inverse);
    let scalars: Vec<C::ScalarField> = (0..MEASURED as u64).map(long).collect();
    let sum = fastest(RUNS, || on::<C>(&cpu, &bases, &scalars).map(drop))?;
    let way = fastest(RUNS, || Ok::<_, Error>(device.upload::<u64>(&[0; 4])?.to_vec().map(drop)?))?;
    let points = (WAYS * way).as_secs_f64() / sum.as_secs_f64().max(f64::MIN_POSITIVE) * MEASURED as f64;
    Ok((points as usize).min(MAX_THRESHOLD))
}
