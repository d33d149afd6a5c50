//! Points where a device ends loops early.

use ark_bls12_381::g1;
use ark_ec::{
    AffineRepr, CurveGroup, PrimeGroup,
    short_weierstrass::{Affine, Projective},
};
use ark_ff::Zero;
use evariste::{
    backend::Device,
    curve::{AffinePoint, DeviceCurve, FixedBase, PointSum, Points, Xyzz},
    field::{DevicePrimeField, Mont},
    primitives::{SegmentedSum, reference},
};

use super::some_points;
use crate::{curves, devices::garbage, expect::expect_same, harness::Outcome, loops::Divided};

pub(super) const DIVIDED: &[Divided] = &[
    ("times", 2000, |device| check_times::<g1::Config>(device, 20)),
    ("fixed_base", 2000, |device| check_fixed_base::<g1::Config>(device, 20)),
    ("normalise", 2000, |device| check_normalise::<g1::Config>(device, 600)),
    ("sums_of_points", 2000, |device| check_sums::<g1::Config>(device, 600)),
];

fn check_times<C: DeviceCurve>(device: &Device, len: usize) -> Outcome {
    let points: Vec<Affine<C>> = some_points::<C>(len).into_iter().map(Into::into).collect();
    let k: Vec<u32> = (0..len as u32).map(|i| if i < 4 { i } else { i.wrapping_mul(0x9e37_79b9) }).collect();
    let expected: Vec<Projective<C>> =
        points.iter().zip(&k).map(|(p, k)| p.into_group().mul_bigint([u64::from(*k)])).collect();
    let mut out = garbage::<Xyzz<C>>(device, len)?;
    let (a, k) = (device.upload::<AffinePoint<C>>(&points)?, device.upload::<u32>(&k)?);
    Points::<C>::new(device).mul(&a, &k, &mut out)?;
    expect_same("multiples", &out.to_vec()?, &expected)
}

fn check_fixed_base<C: DeviceCurve<ScalarField: DevicePrimeField>>(device: &Device, len: usize) -> Outcome {
    let scalars: Vec<C::ScalarField> = (1..=len as u64).map(|i| -C::ScalarField::from(i * i)).collect();
    let expected: Vec<Projective<C>> = scalars.iter().map(|k| Affine::<C>::generator() * k).collect();
    let mut out = garbage::<AffinePoint<C>>(device, len)?;
    let fixed = FixedBase::<C>::new(device, Affine::generator())?;
    fixed.mul(&device.upload::<Mont<C::ScalarField>>(&scalars)?, &mut out)?;
    expect_same("multiples of one point", &out.to_vec()?, &Projective::normalize_batch(&expected))
}

fn check_normalise<C: DeviceCurve>(device: &Device, len: usize) -> Outcome {
    let points: Vec<Projective<C>> = some_points::<C>(20).into_iter().cycle().take(len).collect();
    let mut out = garbage::<AffinePoint<C>>(device, len)?;
    Points::<C>::new(device).normalise_xyzz(&device.upload(&points)?, &mut out)?;
    let expected: Vec<Affine<C>> = points[..20.min(len)].iter().map(|p| (*p).into()).collect();
    let expected: Vec<Affine<C>> = expected.into_iter().cycle().take(len).collect();
    expect_same("affine points", &out.to_vec()?, &expected)
}

fn check_sums<C: DeviceCurve>(device: &Device, len: usize) -> Outcome {
    let values: Vec<Projective<C>> = some_points::<C>(20).into_iter().cycle().take(len).collect();
    let keys: Vec<u32> = (0..len as u32).map(|i| i / 1000).collect();
    let expected = reference::segmented_sum(&keys, &values, 9, Projective::zero(), |a, b| a + b);
    let mut out = garbage::<Xyzz<C>>(device, 9)?;
    let sum = SegmentedSum::<PointSum<C>>::new(device)?;
    sum.reduce(&device.upload(&keys)?, &device.upload(&values)?, &mut out)?;
    expect_same("sums of points", &out.to_vec()?, &expected)
}

/// Over a base field of 48 limbs, where one addition of points takes a thousand iterations.
pub(super) fn long_points(device: &Device) -> Outcome {
    check_times::<curves::Long>(device, 20)?;
    check_normalise::<curves::Long>(device, 600)?;
    check_sums::<curves::Long>(device, 600)
}
