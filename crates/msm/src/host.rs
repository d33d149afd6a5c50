//! Sums over host slices.

use std::any::TypeId;

use ark_ec::short_weierstrass::{Affine, Projective};
use ark_ff::Field;
use evariste_backend::{Crossovers, Device, fastest};

use crate::{Error, Msm, MsmConfig, MsmCurve, Result, plan::Kernels};

/// Computes Σ `scalars[i]` · `bases[i]` on a device, for points of order r on the host. Kernels are compiled once and
/// kept with the device, until [`Device::trim`]; the bases go to it each time. A sum that the CPU does in less time
/// than any takes on the device stays on the CPU ([`crossover`]).
///
/// Who uses the same bases again makes an [`Msm`], which keeps them there.
///
/// ```
/// # fn main() -> Result<(), evariste_msm::Error> {
/// use ark_bls12_381::{Fr, G1Affine};
/// use ark_ec::AffineRepr;
/// use evariste_backend::Device;
///
/// let g = G1Affine::generator();
/// let sum = evariste_msm::msm(&Device::best()?, &[g, g], &[Fr::from(5), -Fr::from(2)])?;
/// assert_eq!(sum, g * Fr::from(3));
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// [`Error::Length`] unless there are as many scalars as bases; [`Error::Curve`] if a constant of the curve's configuration does
/// not hold; [`Error::InsufficientMemory`] if beside the bases the device's
/// memory does not hold what a sum of one scalar takes; [`Error::Device`] for more than 2^31 bases, if the device has
/// no room for them, if a kernel does not compile, or if the device fails.
pub fn msm<C: MsmCurve>(device: &Device, bases: &[Affine<C>], scalars: &[C::ScalarField]) -> Result<Projective<C>> {
    if scalars.len() != bases.len() {
        let (expected, actual) = (bases.len(), scalars.len());
        return Err(Error::Length { what: "scalars, as many as bases", expected, actual });
    }
    let cpu = Device::cpu();
    let device = if bases.len() < crossover::<C>(device)? { &cpu } else { device };
    on(device, bases, scalars)
}

/// The sum on this device, whatever its length.
fn on<C: MsmCurve>(device: &Device, bases: &[Affine<C>], scalars: &[C::ScalarField]) -> Result<Projective<C>> {
    let kernels = device.cached_plan("", || Kernels::new(device, Vec::new()))?;
    Msm::with_kernels(&device.into(), kernels, bases, MsmConfig::default())?.msm(scalars)
}

/// Gives the number of points from which on [`msm`] works on `device` and not on the CPU: 0 for the CPU itself.
///
/// Measured once for each device and curve, in some milliseconds: the time of a sum of 128 points on the CPU, which grows with
/// their number, against thirty times the way of one scalar to the device and back. So long takes the shortest sum on a GPU, whose
/// stages wait for each other. It is at most 2^14. [`set_crossover`] pins it.
///
/// # Errors
/// [`Error::Device`] if the device, or the CPU, fails in what is measured.
pub fn crossover<C: MsmCurve>(device: &Device) -> Result<usize> {
    if device.info().is_processor() {
        return Ok(0);
    }
    device.cached_value::<Thresholds>().0.get_or_measure(TypeId::of::<C>(), || {
        let measured = measure::<C>(device)?;
        log::debug!("{}: sums over host slices from {measured} points on", device.info().id);
        Ok(measured)
    })
}

/// Sets what [`crossover`] gives for a device and curve: 0 for all work on the device, `usize::MAX` for all on the CPU.
pub fn set_crossover<C: MsmCurve>(device: &Device, points: usize) {
    device.cached_value::<Thresholds>().0.set(TypeId::of::<C>(), points);
}

/// What is known of a device, by curve.
#[derive(Debug, Default)]
struct Thresholds(Crossovers<TypeId, usize>);

/// Points of the sum that is measured.
const MEASURED: usize = 128;

/// Ways to the device and back that the shortest sum takes there: 0.4 to 0.75 ms on an H200, where one takes 15 to 25 µs.
const WAYS: u32 = 30;

/// The largest crossover: from there on any GPU is faster than its stages wait.
const MAX_CROSSOVER: usize = 1 << 14;

/// Runs of which the fastest counts.
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
    Ok((points as usize).min(MAX_CROSSOVER))
}
