//! Points and operations on vectors of them, over every kind of curve.

mod loops;
mod queues;
mod secrets;

use ark_ec::{
    AffineRepr, CurveGroup, PrimeGroup,
    short_weierstrass::{Affine, Projective},
};
use ark_ff::{AdditiveGroup, Field, PrimeField, UniformRand, Zero};
use ark_std::rand::{Rng, SeedableRng, rngs::StdRng};
use evariste::backend::{Buffer, Device, Element, Error, Secrecy, author::KernelSpec};
use evariste::curve::{AffinePoint, DeviceCurve, FixedBase, Jacobian, PointForm, PointSum, Points, Xyzz};
use evariste::field::{DevicePrimeField, Mont};
use evariste::primitives::{SegmentedSum, reference};
use evariste_microbench::{ADDITIONS, AddChain};

use crate::{
    area::Area,
    curves,
    devices::{garbage, other_device},
    expect::{expect, expect_equal, expect_error, expect_same},
    fields::EVERY_FIELD,
    harness::{DeviceTrials, Outcome},
    launches::KernelGroup,
};

pub(crate) const AREA: Area = Area {
    kernels: KERNELS,
    operations: secrets::OPERATIONS,
    without_operation: &[("point_chain", "it is for benches")],
    ordered: queues::ORDERED,
    divided: loops::DIVIDED,
    plans: queues::PLANS,
    ..Area::new("curve", add)
};

fn add(trials: &mut DeviceTrials<'_>) {
    over::<ark_bls12_381::g1::Config>(trials, "bls12-381-g1");
    over::<ark_bn254::g2::Config>(trials, "bn254-g2");
    over::<curves::P256>(trials, "p-256");
    over::<curves::ThroughOrigin>(trials, "through-origin");
    over::<curves::EvenOrder>(trials, "even-order");
    if EVERY_FIELD {
        over::<ark_bls12_381::g2::Config>(trials, "bls12-381-g2");
        over::<ark_bn254::g1::Config>(trials, "bn254-g1");
        over::<ark_pallas::PallasConfig>(trials, "pallas");
        over::<ark_vesta::VestaConfig>(trials, "vesta");
    }
    trials.add("through-origin::every_pair", every_pair::<curves::ThroughOrigin>);
    trials.add("even-order::every_pair", every_pair::<curves::EvenOrder>);
    trials.add("bn254-g1::lengths", lengths::<ark_bn254::g1::Config>);
    trials.add("bls12-381-g1::fixed_base", fixed_base::<ark_bls12_381::g1::Config>);
    trials.add("bn254-g2::fixed_base", fixed_base::<ark_bn254::g2::Config>);
    trials.add("long_points", loops::long_points);
    trials.add("misuse", misuse);
}

const KERNELS: &[KernelGroup] = &[
    KernelGroup {
        name: "curve",
        cases: &["bls12-381-g1::", "bn254-g2::"],
        kernels: |_| {
            let curves = [
                kernels::<ark_bls12_381::g1::Config>(),
                kernels::<ark_bn254::g2::Config>(),
                FixedBase::<ark_bls12_381::g1::Config>::kernels(),
                FixedBase::<ark_bn254::g2::Config>::kernels(),
            ];
            Ok(curves.concat())
        },
    },
    // Of other formulas, and of points of order 2.
    KernelGroup {
        name: "curve-further",
        cases: &["p-256::", "even-order::"],
        kernels: |_| Ok([kernels::<curves::P256>(), kernels::<curves::EvenOrder>()].concat()),
    },
];

fn kernels<C: DeviceCurve>() -> Vec<KernelSpec> {
    [Points::<C>::kernels(), SegmentedSum::<PointSum<C>>::kernels(), vec![AddChain::<C>::kernel()]].concat()
}

fn over<C: DeviceCurve>(trials: &mut DeviceTrials<'_>, curve: &str) {
    trials.add(&format!("{curve}::elements"), elements::<C>);
    trials.add(&format!("{curve}::forms"), forms::<C>);
    trials.add(&format!("{curve}::one_operand"), one_operand::<C>);
    trials.add(&format!("{curve}::additions"), additions::<C>);
    trials.add(&format!("{curve}::divisions"), divisions::<C>);
    trials.add(&format!("{curve}::times"), times::<C>);
    trials.add(&format!("{curve}::sums"), sums::<C>);
    trials.add(&format!("{curve}::by_index"), by_index::<C>);
}

/// Points of order 2 of the curves that were made to have some.
fn of_order_two<C: DeviceCurve>() -> Vec<Affine<C>> {
    let candidates = [C::BaseField::ZERO, C::BaseField::ONE].map(|x| Affine::new_unchecked(x, C::BaseField::ZERO));
    candidates.into_iter().filter(Affine::is_on_curve).collect()
}

/// Infinity, points of order 2 where there are some, and others with their opposites.
fn edges<C: DeviceCurve>() -> Vec<Affine<C>> {
    let g = Affine::<C>::generator();
    let double = (g + g).into_affine();
    [vec![Affine::zero(), g, -g, double, -double], of_order_two()].concat()
}

pub(crate) fn random<C: DeviceCurve>(len: usize, seed: u64) -> Vec<Affine<C>> {
    let mut rng = StdRng::seed_from_u64(seed);
    let points: Vec<Projective<C>> =
        (0..len).map(|_| Projective::<C>::generator().mul_bigint([rng.r#gen::<u64>()])).collect();
    Projective::normalize_batch(&points)
}

/// Random points with random z.
pub(crate) fn some_points<C: DeviceCurve>(len: usize) -> Vec<Projective<C>> {
    scaled(&random::<C>(len, 43), 44)
}

/// Pairs of all edges, then of random points.
fn pairs<C: DeviceCurve>(len: usize) -> (Vec<Affine<C>>, Vec<Affine<C>>) {
    let edges = edges::<C>();
    let all = edges.iter().flat_map(|a| edges.iter().map(|b| (*a, *b)));
    let random = random(len, 31).into_iter().zip(random(len, 32));
    all.chain(random).take(len.max(edges.len() * edges.len())).unzip()
}

/// The same points with random z; infinity with other coordinates than arkworks would give it.
fn scaled<C: DeviceCurve>(points: &[Affine<C>], seed: u64) -> Vec<Projective<C>> {
    let mut rng = StdRng::seed_from_u64(seed);
    let scale = |p: &Affine<C>| {
        let z = C::BaseField::rand(&mut rng);
        let z = if z.is_zero() { C::BaseField::ONE } else { z };
        match p.xy() {
            Some((x, y)) => Projective::new_unchecked(x * z.square(), y * z.square() * z, z),
            None => Projective::new_unchecked(z.square(), z.square() * z, C::BaseField::ZERO),
        }
    };
    points.iter().map(scale).collect()
}

/// Runs `queue` with a new output and compares the output.
fn expect_output<T: Element<Host: PartialEq + std::fmt::Debug>>(
    device: &Device,
    what: &str,
    expected: &[T::Host],
    queue: impl FnOnce(&mut Buffer<T>) -> Result<(), Error>,
) -> Outcome {
    let mut out = garbage(device, expected.len())?;
    queue(&mut out)?;
    expect_same(what, &out.to_vec()?, expected)
}

fn elements<C: DeviceCurve>(device: &Device) -> Outcome {
    let (affine, _) = pairs::<C>(300);
    let projective = scaled(&affine, 33);
    expect_same("affine", &device.upload::<AffinePoint<C>>(&affine)?.to_vec()?, &affine)?;
    expect_same("XYZZ", &device.upload::<Xyzz<C>>(&projective)?.to_vec()?, &projective)?;
    expect_same("Jacobian", &device.upload::<Jacobian<C>>(&projective)?.to_vec()?, &projective)?;
    expect_same("zero bytes in XYZZ form", &device.zeros::<Xyzz<C>>(3)?.to_vec()?, &[Projective::zero(); 3])?;
    expect_same("zero bytes in Jacobian form", &device.zeros::<Jacobian<C>>(3)?.to_vec()?, &[Projective::zero(); 3])
}

/// From every form to every other.
fn forms<C: DeviceCurve>(device: &Device) -> Outcome {
    let points = Points::<C>::new(device);
    let (all, _) = pairs::<C>(300);
    for affine in [&all[..100], &all] {
        let expected = scaled(affine, 34);
        let a = device.upload::<AffinePoint<C>>(affine)?;
        let (x, j) = (device.upload::<Xyzz<C>>(&expected)?, device.upload::<Jacobian<C>>(&expected)?);
        expect_output(device, "affine to XYZZ", &expected, |out| points.affine_to_xyzz(&a, out))?;
        expect_output(device, "affine to Jacobian", &expected, |out| points.affine_to_jacobian(&a, out))?;
        expect_output(device, "XYZZ to Jacobian", &expected, |out| points.xyzz_to_jacobian(&x, out))?;
        expect_output(device, "Jacobian to XYZZ", &expected, |out| points.jacobian_to_xyzz(&j, out))?;
        expect_output(device, "XYZZ to affine", affine, |out| points.normalise_xyzz(&x, out))?;
        expect_output(device, "Jacobian to affine", affine, |out| points.normalise_jacobian(&j, out))?;
    }
    Ok(())
}

fn one_operand<C: DeviceCurve>(device: &Device) -> Outcome {
    let points = Points::<C>::new(device);
    let (all, _) = pairs::<C>(300);
    for affine in [&all[..100], &all] {
        let projective = scaled(affine, 35);
        let a = device.upload::<AffinePoint<C>>(affine)?;
        let (x, j) = (device.upload::<Xyzz<C>>(&projective)?, device.upload::<Jacobian<C>>(&projective)?);
        let negative: Vec<_> = projective.iter().map(|p| -*p).collect();
        let negative_affine: Vec<_> = affine.iter().map(|p| -*p).collect();
        expect_output(device, "negative affine", &negative_affine, |out| points.negate_affine(&a, out))?;
        expect_output(device, "negative XYZZ", &negative, |out| points.negate_xyzz(&x, out))?;
        expect_output(device, "negative Jacobian", &negative, |out| points.negate_jacobian(&j, out))?;
        let double: Vec<_> = projective.iter().map(AdditiveGroup::double).collect();
        expect_output(device, "double XYZZ", &double, |out| points.double_xyzz(&x, out))?;
        expect_output(device, "double Jacobian", &double, |out| points.double_jacobian(&j, out))?;
    }
    Ok(())
}

fn additions<C: DeviceCurve>(device: &Device) -> Outcome {
    let (a, b) = pairs::<C>(300);
    let points = Points::<C>::new(device);
    check_additions(device, &points, &a[..100], &b[..100])?;
    check_additions(device, &points, &a, &b)
}

/// Operations that divide, by several workgroups.
fn divisions<C: DeviceCurve>(device: &Device) -> Outcome {
    const LEN: usize = 4200;

    let points = Points::<C>::new(device);
    let (a, b) = pairs::<C>(300);
    let sums = Projective::normalize_batch(&a.iter().zip(&b).map(|(a, b)| *a + b).collect::<Vec<_>>());
    let scaled = scaled(&a, 42);
    let scaled: Vec<Projective<C>> = scaled.into_iter().cycle().take(LEN).collect();
    let [a, b, sums] = [a, b, sums].map(|points| points.into_iter().cycle().take(LEN).collect::<Vec<_>>());
    let (x, j) = (device.upload::<Xyzz<C>>(&scaled)?, device.upload::<Jacobian<C>>(&scaled)?);
    expect_output(device, "XYZZ to affine", &a, |out| points.normalise_xyzz(&x, out))?;
    expect_output(device, "Jacobian to affine", &a, |out| points.normalise_jacobian(&j, out))?;
    let (a, b) = (device.upload::<AffinePoint<C>>(&a)?, device.upload::<AffinePoint<C>>(&b)?);
    expect_output(device, "affine + affine", &sums, |out| points.add_affine(&a, &b, out))
}

fn check_additions<C: DeviceCurve>(device: &Device, points: &Points<C>, a: &[Affine<C>], b: &[Affine<C>]) -> Outcome {
    let sums: Vec<Projective<C>> = a.iter().zip(b).map(|(a, b)| *a + b).collect();
    let affine_sums = Projective::normalize_batch(&sums);
    let (scaled_a, scaled_b) = (scaled(a, 36), scaled(b, 37));
    let (affine_a, affine_b) = (device.upload::<AffinePoint<C>>(a)?, device.upload::<AffinePoint<C>>(b)?);
    let (x, y) = (device.upload::<Xyzz<C>>(&scaled_a)?, device.upload::<Xyzz<C>>(&scaled_b)?);
    let (j, k) = (device.upload::<Jacobian<C>>(&scaled_a)?, device.upload::<Jacobian<C>>(&scaled_b)?);
    expect_output(device, "XYZZ + XYZZ", &sums, |out| points.add_xyzz(&x, &y, out))?;
    expect_output(device, "XYZZ + affine", &sums, |out| points.add_xyzz_affine(&x, &affine_b, out))?;
    expect_output(device, "Jacobian + Jacobian", &sums, |out| points.add_jacobian(&j, &k, out))?;
    expect_output(device, "Jacobian + affine", &sums, |out| points.add_jacobian_affine(&j, &affine_b, out))?;
    expect_output(device, "affine + affine", &affine_sums, |out| points.add_affine(&affine_a, &affine_b, out))
}

/// A few thousand pairs of points of a small group, among which every relation is frequent.
fn every_pair<C: DeviceCurve>(device: &Device) -> Outcome {
    let few: Vec<Affine<C>> = edges::<C>().into_iter().chain(random(60, 38)).collect();
    let (a, b): (Vec<_>, Vec<_>) = few.iter().flat_map(|a| few.iter().map(|b| (*a, *b))).unzip();
    check_additions(device, &Points::new(device), &a, &b)
}

/// Runs of inversions of every length.
fn lengths<C: DeviceCurve>(device: &Device) -> Outcome {
    let points = Points::<C>::new(device);
    let (a, b) = pairs::<C>(20_000);
    for len in [0, 1, 2, 255, 256, 257, 1000, 20_000] {
        check_additions(device, &points, &a[..len], &b[..len])?;
        let scaled = device.upload::<Jacobian<C>>(&scaled(&a[..len], 39))?;
        expect_output(device, "Jacobian to affine", &a[..len], |out| points.normalise_jacobian(&scaled, out))?;
    }
    // Nothing but infinity.
    let scaled = device.zeros::<Xyzz<C>>(1000)?;
    expect_output(device, "infinity", &[Affine::zero(); 1000], |out| points.normalise_xyzz(&scaled, out))
}

fn times<C: DeviceCurve>(device: &Device) -> Outcome {
    let points = Points::<C>::new(device);
    let bases: Vec<Affine<C>> = edges::<C>().into_iter().chain(random(20, 40)).collect();
    let scalars = [0, 1, 2, 3, 4, 5, 255, 256, 65_521, 1 << 31, u32::MAX - 1, u32::MAX];
    let (a, k): (Vec<_>, Vec<_>) = bases.iter().flat_map(|a| scalars.map(|k| (*a, k))).unzip();
    let expected: Vec<Projective<C>> =
        a.iter().zip(&k).map(|(a, k)| a.into_group().mul_bigint([u64::from(*k)])).collect();
    for len in [100, a.len()] {
        let (a, k) = (device.upload::<AffinePoint<C>>(&a[..len])?, device.upload::<u32>(&k[..len])?);
        expect_output(device, "multiples", &expected[..len], |out| points.mul(&a, &k, out))?;
    }
    Ok(())
}

/// Multiples of a point, of its opposite's and of infinity, by scalars at their edges.
fn fixed_base<C: DeviceCurve<ScalarField: DevicePrimeField>>(device: &Device) -> Outcome {
    let minus_one = -C::ScalarField::ONE;
    let edges = [0, 1, 2, 255, 256, 257, 65_535, 1 << 63, u64::MAX].map(C::ScalarField::from);
    let rng = &mut StdRng::seed_from_u64(47);
    let random = (0..300).map(|_| C::ScalarField::rand(rng));
    let all: Vec<_> = edges.into_iter().chain([minus_one, minus_one + minus_one]).chain(random).collect();
    let generator = Affine::<C>::generator();
    for (point, len) in [(generator, all.len()), (generator, 0), (generator, 1), (-generator, 9), (Affine::zero(), 9)] {
        let fixed = FixedBase::<C>::new(device, point)?;
        let expected: Vec<_> = all[..len].iter().map(|k| point.into_group().mul_bigint(k.into_bigint())).collect();
        let scalars = device.upload::<Mont<C::ScalarField>>(&all[..len])?;
        let what = format!("{len} multiples of one point");
        expect_output(device, &what, &Projective::normalize_batch(&expected), |out| fixed.mul(&scalars, out))?;
    }
    let fixed = FixedBase::<C>::new(device, generator)?;
    let (scalars, mut out) = (device.zeros::<Mont<C::ScalarField>>(5)?, device.zeros::<AffinePoint<C>>(4)?);
    let error = expect_error("an output of another length", fixed.mul(&scalars, &mut out))?;
    expect_equal("output", &error, &Error::Length { what: "the output", expected: 5, actual: 4 })?;
    let secret = device.upload_with::<Mont<C::ScalarField>>(&all[..4], Secrecy::Secret)?;
    let error = expect_error("a public output of secret scalars", fixed.mul(&secret, &mut out))?;
    expect(&format!("{error}"), matches!(error, Error::SecretInput { .. }))
}

/// Gathered and scattered, with places that come up several times and some that are not there.
fn by_index<C: DeviceCurve>(device: &Device) -> Outcome {
    let points = Points::<C>::new(device);
    let (all, _) = pairs::<C>(100);
    let affine: Vec<Affine<C>> = all.into_iter().cycle().take(300).collect();
    let projective = scaled(&affine, 46);
    by_index_of::<AffinePoint<C>, C>(device, &points, &affine)?;
    by_index_of::<Xyzz<C>, C>(device, &points, &projective)?;
    by_index_of::<Jacobian<C>, C>(device, &points, &projective)
}

fn by_index_of<P, C>(device: &Device, points: &Points<C>, all: &[P::Host]) -> Outcome
where
    P: PointForm<C> + Element<Host: PartialEq + std::fmt::Debug>,
    C: DeviceCurve,
{
    for (len, count) in [(0, 2), (2, 0), (1, 3), (257, 300)] {
        let indices: Vec<u32> = (0..count as u32).map(|i| i * i % (len as u32 + 3)).chain([u32::MAX]).collect();
        let places = device.upload(&indices)?;
        let a = device.upload::<P>(&all[..len])?;
        let what = format!("{} of {len} gathered", indices.len());
        let gathered = reference::gather(&all[..len], &indices);
        expect_output(device, &what, &gathered, |out| points.gather(&a, &places, out))?;
        let (mut out, mut expected) = (a.duplicate()?, all[..len].to_vec());
        let source: Vec<_> = all[all.len() + 1 - indices.len()..].iter().chain(&all[..1]).copied().collect();
        points.scatter(&device.upload::<P>(&source)?, &places, &mut out)?;
        reference::scatter(&source, &indices, &mut expected);
        expect_same(&format!("{} scattered to {len}", source.len()), &out.to_vec()?, &expected)?;
    }
    Ok(())
}

/// Segmented sums, and the chain whose rate is measured.
fn sums<C: DeviceCurve>(device: &Device) -> Outcome {
    let sum = SegmentedSum::<PointSum<C>>::new(device)?;
    let (values, _) = pairs::<C>(300);
    // So many that slices of them are several workgroups.
    let values: Vec<Projective<C>> = scaled(&values, 41).into_iter().cycle().take(8500).collect();
    let uploaded = device.upload::<Xyzz<C>>(&values)?;
    for divisor in [1, 50, 1000, 10_000] {
        let keys: Vec<u32> = (0..values.len() as u32).map(|i| i / divisor).collect();
        let expected = reference::segmented_sum(&keys, &values, 200, Projective::zero(), |a, b| a + b);
        let keys = device.upload(&keys)?;
        expect_output(device, &format!("runs of {divisor}"), &expected, |out| sum.reduce(&keys, &uploaded, out))?;
    }
    let chain = AddChain::<C>::new(device)?;
    for len in [1, 2, 70, 300] {
        let a = pairs::<C>(len).0;
        let a = &a[a.len() - len..];
        let run = |i| (i..i + ADDITIONS as usize).map(|j| a[j % len]).fold(Projective::zero(), |sum, p| sum + p);
        let expected: Vec<Projective<C>> = (0..len).map(run).collect();
        let a = device.upload::<AffinePoint<C>>(a)?;
        expect_output(device, &format!("chains of {len}"), &expected, |out| chain.run(&a, out))?;
    }
    Ok(())
}

fn misuse(device: &Device) -> Outcome {
    type C = ark_bn254::g1::Config;
    let points = Points::<C>::new(device);
    let g = Affine::<C>::generator();
    let (four, five) = (device.upload::<AffinePoint<C>>(&[g; 4])?, device.upload::<AffinePoint<C>>(&[g; 5])?);
    let mut out = device.zeros::<Xyzz<C>>(4)?;
    let error = expect_error("an output of another length", points.affine_to_xyzz(&five, &mut out))?;
    expect_equal("output", &error, &Error::Length { what: "the output", expected: 5, actual: 4 })?;
    let error = expect_error("operands of two lengths", points.add_affine(&four, &five, &mut device.zeros(4)?))?;
    expect_equal("operand", &error, &Error::Length { what: "the second operand", expected: 4, actual: 5 })?;
    expect_error("multipliers of another length", points.mul(&four, &device.zeros(3)?, &mut out))?;
    let error = expect_error("four by five indices", points.scatter(&out.duplicate()?, &device.zeros(5)?, &mut out))?;
    expect_equal("indices", &error, &Error::Length { what: "the indices", expected: 4, actual: 5 })?;
    let error = expect_error("five to four places", points.gather(&out.duplicate()?, &device.zeros(5)?, &mut out))?;
    expect_equal("output", &error, &Error::Length { what: "the output", expected: 5, actual: 4 })?;
    if let Some(other) = other_device(device) {
        let error = expect_error("points elsewhere", points.affine_to_xyzz(&other.upload(&[g; 4])?, &mut out))?;
        let (expected, actual) = (device.info().id, other.info().id);
        expect_equal("device", &error, &Error::WrongDevice { what: "a kernel argument", expected, actual })?;
    }
    expect("untouched", out.to_vec()?.iter().all(Zero::is_zero))
}
