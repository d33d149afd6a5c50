//! Every path at small sizes, on the CPU.

use std::sync::atomic::Ordering;

use ark_ec::{
    CurveGroup,
    short_weierstrass::{Affine, Projective, SWCurveConfig},
};
use ark_ff::{AdditiveGroup, Field, MontFp, PrimeField, UniformRand, Zero};
use ark_std::{rand::Rng, test_rng};
use evariste_backend::{Device, Element, Error as DeviceError, Secrecy, Transfer};
use evariste_curve::{AffinePoint, CurveConstant, CurveError};
use evariste_field::{Canonical, Mont};

use self::curves::{
    CountedCurve, INVERSIONS, eleven_of_257, nineteen_of_seventeen, no_curve, of_another_order, off_the_curve,
    seven_of_five, three_of_five,
};
use super::*;

mod curves;

/// Bases kᵢ·G, and the kᵢ: small ones of both signs, among them 0.
fn bases<C: MsmCurve>(len: usize) -> (Vec<Affine<C>>, Vec<C::ScalarField>) {
    let generator = Affine::<C>::generator_point();
    let multiples: Vec<Projective<C>> =
        std::iter::successors(Some(Projective::zero()), |point| Some(*point + generator)).take(40).collect();
    let multiples = CurveGroup::normalize_batch(&multiples);
    let mut rng = test_rng();
    (0..len)
        .map(|_| {
            let (k, negative) = (rng.gen_range(0..40), rng.gen_range(0..2) == 1);
            let (point, scalar) = (multiples[k], C::ScalarField::from(k as u64));
            if negative { (-point, -scalar) } else { (point, scalar) }
        })
        .unzip()
}

trait Generator {
    fn generator_point() -> Self;
}

impl<C: MsmCurve> Generator for Affine<C> {
    fn generator_point() -> Self {
        C::GENERATOR
    }
}

/// Scalars of all kinds.
fn scalars<F: Field>(kind: &str, len: usize, mut random: impl FnMut() -> F) -> Vec<F> {
    let same = random();
    let one = |i: usize| match kind {
        "zero" => F::ZERO,
        "one" => F::ONE,
        "minus one" => -F::ONE,
        "equal" => same,
        "mostly zero" if !i.is_multiple_of(10) => F::ZERO,
        "small" => F::from(i as u64 % 65536),
        "signs" if i.is_multiple_of(2) => same,
        "signs" => -same,
        _ => F::ZERO,
    };
    let is_random = |i: usize| kind == "random" || (kind == "mostly zero" && i.is_multiple_of(10));
    (0..len).map(|i| if is_random(i) { random() } else { one(i) }).collect()
}

const KINDS: [&str; 8] = ["random", "zero", "one", "minus one", "equal", "mostly zero", "small", "signs"];

fn check<C: MsmCurve>(device: &Device, len: usize, config: MsmConfig, kinds: &[&str]) {
    let (bases, multipliers) = bases::<C>(len);
    let msm = Msm::<C>::with_config(device, &bases, config).unwrap();
    let mut rng = test_rng();
    for kind in kinds {
        let scalars = scalars(kind, len, || C::ScalarField::rand(&mut rng));
        let sum: C::ScalarField = scalars.iter().zip(&multipliers).map(|(s, k)| *s * k).sum();
        let expected = C::GENERATOR * sum;
        let context = format!("{len} {kind} {config:?}");
        assert_eq!(msm.msm(&scalars).unwrap(), expected, "{context}");
        let montgomery = device.upload::<Mont<C::ScalarField>>(&scalars).unwrap();
        assert_eq!(msm.msm(&montgomery).unwrap(), expected, "{context}");
        // Behind another scalar, on a queue of its own.
        let canonical = [&[C::ScalarField::ONE], &scalars[..]].concat();
        let canonical = device.upload::<Canonical<C::ScalarField>>(&canonical).unwrap();
        let on_queue = msm.on(&device.queue().unwrap());
        assert_eq!(on_queue.msm(canonical.view(1..).unwrap()).unwrap(), expected, "{context}");
    }
}

/// The memory of sums in pieces of `len` scalars, of which two are there at a time.
fn memory<C: MsmCurve>(device: &Device, len: usize, config: MsmConfig) -> u64 {
    let bytes = Msm::<C>::with_config(device, &[], config).unwrap().scratch_bytes(len, 1).unwrap();
    bytes + 2 * (len * Mont::<C::ScalarField>::BYTES) as u64
}

fn check_all<C: MsmCurve>(device: &Device, lengths: &[usize], kinds: &[&str]) {
    let plain = MsmConfig::default();
    for &len in lengths {
        check::<C>(device, len, plain, kinds);
    }
    let few = [KINDS[0], KINDS[1], KINDS[4]];
    let len = *lengths.last().unwrap();
    let tuning = |slices: u32, min_slice: u32, run: u32, last: u32| {
        Tuning::default().slices(slices).min_slice(min_slice).log_reduction_run(run).log_final_row(last)
    };
    let levels = |levels: u32| tuning(40, 2, 2, 3).affine_levels(levels);
    let tables = |budget| Precompute::Tables { budget };
    let bytes = (len * AffinePoint::<C>::BYTES) as u64;
    let pieces = plain.window(4).tuning(tuning(64, 1, 2, 1));
    for config in [
        plain.window(5).tuning(tuning(300, 1, 2, 1)),
        plain.window(6).tuning(tuning(7, 3, 1, 0)),
        plain.window(4).tuning(tuning(1, 1, 5, 9)),
        plain.window(8).precompute(tables(u64::MAX)),
        plain.window(9).precompute(tables(7 * bytes)),
        plain.bases(Bases::FullGroup),
        plain.window(3).tuning(levels(1)),
        plain.window(4).tuning(levels(3)).precompute(tables(3 * bytes)),
        plain.window(2).tuning(levels(8)).bases(Bases::FullGroup),
        pieces.memory(memory::<C>(device, len.div_ceil(5), pieces)),
    ] {
        check::<C>(device, len, config, &few);
    }
}

#[test]
fn sums_are_right_on_the_cpu() {
    let device = Device::cpu();
    check_all::<ark_bls12_381::g1::Config>(&device, &[0, 1, 2, 3, 150], &KINDS);
    check_all::<ark_bn254::g1::Config>(&device, &[257], &KINDS[..2]);
    check_all::<ark_bls12_381::g2::Config>(&device, &[33], &KINDS[..1]);
    check_all::<ark_pallas::PallasConfig>(&device, &[100], &KINDS[..1]);
}

#[test]
fn what_is_compared_gives_the_same() {
    let plain = MsmConfig::default();
    let odd = |depth| Precompute::OddSignedDigits { depth };
    let tuning = |accumulation, levels: u32| Tuning::default().accumulation(accumulation).affine_levels(levels);
    let (balanced, per_bucket) = (Accumulation::Balanced, Accumulation::PerBucket);
    for config in [
        plain.window(7).tuning(tuning(balanced, 1)).precompute(odd(2)),
        plain.window(2).precompute(odd(1)).bases(Bases::FullGroup),
        plain.window(5).tuning(tuning(per_bucket, 0)).precompute(odd(26)),
        plain.window(3).tuning(tuning(per_bucket, 2)),
    ] {
        check::<ark_bn254::g1::Config>(&Device::cpu(), 40, config, &[KINDS[0], KINDS[1], KINDS[2], KINDS[6]]);
    }
}

/// Every way of accumulating with every way of adding and of aggregating, in one slice and in more than there are
/// points.
#[test]
fn all_ways_of_adding_up_give_the_same() {
    let accumulations = [Accumulation::Balanced, Accumulation::WholeBuckets, Accumulation::PerBucket];
    let ways = [
        (Addition::Single, Precompute::None),
        (Addition::Double, Precompute::None),
        (Addition::Double, Precompute::OddSignedDigits { depth: 1 }),
        (Addition::Single, Precompute::Doublings { depth: 0 }),
        (Addition::Double, Precompute::Doublings { depth: 2 }),
        (Addition::Single, Precompute::Doublings { depth: 25 }),
    ];
    for (accumulation, (addition, precompute)) in accumulations.into_iter().flat_map(|a| ways.map(|way| (a, way))) {
        for (slices, layer, aggregation) in [
            (None, None, Aggregation::RunningSums),
            (Some(1), Some(1), Aggregation::RunningSums),
            (Some(200), Some(26), Aggregation::RunningSums),
            (Some(9), None, Aggregation::Layered),
        ] {
            let tuning = Tuning::default()
                .accumulation(accumulation)
                .addition(addition)
                .aggregation(aggregation)
                .slices(slices)
                .min_slice(slices.map(|_| 1))
                .log_reduction_run(layer);
            let config = MsmConfig::default().window(5).precompute(precompute).tuning(tuning);
            let kinds = if slices == Some(9) { &KINDS[..] } else { &KINDS[..1] };
            check::<ark_bn254::g1::Config>(&Device::cpu(), 57, config, kinds);
        }
    }
}

/// The narrowest digits, one point, and sums in pieces and in groups.
#[test]
fn doublings_on_the_way_to_buckets_are_right_in_every_shape() {
    type C = ark_bls12_381::g1::Config;
    let device = Device::cpu();
    let precompute = Precompute::Doublings { depth: 1 };
    let (bases, multipliers) = bases::<C>(30);
    let sum = |range: std::ops::Range<usize>| {
        C::GENERATOR * multipliers[range].iter().map(|k| *k * *k).sum::<ark_bls12_381::Fr>()
    };
    for (window, aggregation) in
        [2, 3, 11].into_iter().flat_map(|w| [(w, Aggregation::Layered), (w, Aggregation::RunningSums)])
    {
        let tuning = Tuning::default().aggregation(aggregation);
        let config = MsmConfig::default().window(window).precompute(precompute).tuning(tuning);
        check::<C>(&device, 1, config, &KINDS);
        let pieces = config.memory(memory::<C>(&device, 7, config));
        check::<C>(&device, 30, pieces, &KINDS[..1]);
        let msm = Msm::<C>::with_config(&device, &bases, config).unwrap();
        assert_eq!(msm.bytes(), 2 * (30 * AffinePoint::<C>::BYTES) as u64);
        let sums = msm.msm_segmented(3, &multipliers).unwrap();
        assert_eq!(sums, [sum(0..10), sum(10..20), sum(20..30)], "{config:?}");
    }
}

#[test]
fn short_scalars_from_the_host_cost_few_digits() {
    type C = ark_bn254::g1::Config;
    type Fr = ark_bn254::Fr;
    let device = Device::cpu();
    let (bases, multipliers) = bases::<C>(50);
    let tables = Precompute::Tables { budget: 8 * 50 * 64 };
    for precompute in [Precompute::None, tables, Precompute::OddSignedDigits { depth: 1 }] {
        let config = MsmConfig::default().window(5).precompute(precompute);
        let msm = Msm::<C>::with_config(&device, &bases, config).unwrap();
        for long in [false, true] {
            let mut scalars: Vec<Fr> = (0..50).map(|i| Fr::from(1400 * i)).collect();
            scalars[7] = -Fr::from(65535);
            scalars[49] = if long { -Fr::from(2).inverse().unwrap() } else { Fr::from(1) };
            let sum = scalars.iter().zip(&multipliers).map(|(s, k)| *s * k).sum::<Fr>();
            assert_eq!(msm.msm(&scalars).unwrap(), C::GENERATOR * sum, "{precompute:?} {long}");
        }
        assert_eq!(msm.msm(&[Fr::ZERO; 50]).unwrap(), Projective::zero());
    }
}

#[test]
fn many_and_batches() {
    type C = ark_bn254::g1::Config;
    let device = Device::cpu();
    let (bases, multipliers) = bases::<C>(120);
    let mut rng = test_rng();
    let scalars: Vec<ark_bn254::Fr> = (0..120).map(|_| UniformRand::rand(&mut rng)).collect();
    let tuning = Tuning::default().slices(16);
    let plain = MsmConfig::default().window(4).tuning(tuning);
    for memory in [None, Some(memory::<C>(&device, 40, plain))] {
        let msm = Msm::<C>::with_config(&device, &bases, plain.memory(memory)).unwrap();
        for count in [1, 2, 3, 24, 120] {
            let len = 120 / count;
            let sum = |i: usize, first: usize| {
                let scalars = scalars[i * len..].iter().take(len);
                let sum = scalars.zip(&multipliers[first..]).map(|(s, k)| *s * k).sum::<ark_bn254::Fr>();
                Affine::<C>::generator_point() * sum
            };
            let expected: Vec<_> = (0..count).map(|i| sum(i, 0)).collect();
            assert_eq!(msm.msm_batch(count, &scalars).unwrap(), expected, "{count}");
            let expected: Vec<_> = (0..count).map(|i| sum(i, i * len)).collect();
            assert_eq!(msm.msm_segmented(count, &scalars).unwrap(), expected, "{count}");
        }
    }
}

#[test]
fn slices_on_the_host_and_misuse() {
    type C = ark_bn254::g1::Config;
    let device = Device::cpu();
    let (bases, multipliers) = bases::<C>(9);
    let sum = multipliers.iter().map(|k| *k * k).sum::<ark_bn254::Fr>();
    assert_eq!(msm_host(&device, &bases, &multipliers).unwrap(), Affine::<C>::generator_point() * sum);
    let length = |what, expected, actual| Err(Error::Device(DeviceError::length(what, expected, actual)));
    assert_eq!(msm_host(&device, &bases, &multipliers[1..]), length("the scalars, one for each base", 9, 8));

    let msm = Msm::<C>::new(&device, &bases[..8]).unwrap();
    let what = "the scalars, at most one for each base";
    assert_eq!(msm.msm(&multipliers), length(what, 8, 9));
    assert!(matches!(
        msm.msm_batch(2, &multipliers),
        Err(Error::Device(DeviceError::Length { expected: 8, actual: 9, .. }))
    ));
    assert!(matches!(
        msm.msm_segmented(3, &multipliers[..8]),
        Err(Error::Device(DeviceError::Length { expected: 6, actual: 8, .. }))
    ));
    assert!(matches!(
        msm.msm_segmented(2, &multipliers),
        Err(Error::Device(DeviceError::Length { expected: 8, actual: 9, .. }))
    ));

    let refused = |config| Msm::<C>::with_config(&device, &bases, config).unwrap_err();
    let plain = MsmConfig::default();
    assert!(matches!(refused(plain.bits(0)), Error::Config { expected, actual: 0, .. } if *expected.start() == 1));
    assert!(matches!(refused(plain.window(27)), Error::Config { expected, actual: 27, .. } if *expected.end() == 26));
    let odd = plain.precompute(Precompute::OddSignedDigits { depth: 0 });
    assert!(matches!(refused(odd), Error::Config { expected, actual: 0, .. } if *expected.start() == 1));
    let tables = Precompute::Tables { budget: 575 };
    let expected = Error::Device(DeviceError::InsufficientMemory { needed: 576, available: 575 });
    assert_eq!(refused(plain.precompute(tables)), expected);
    let mut wrong = bases.clone();
    wrong[4] = Affine::new_unchecked(ark_bn254::Fq::ONE, ark_bn254::Fq::ONE);
    let check = plain.check(true);
    assert_eq!(Msm::<C>::with_config(&device, &wrong, check).unwrap_err(), Error::NotOnCurve { index: 4 });

    let msm = Msm::<C>::with_config(&device, &bases, plain.memory(1)).unwrap();
    let Err(Error::Device(DeviceError::InsufficientMemory { needed, available: 1 })) = msm.msm(&multipliers) else {
        panic!("one byte is enough")
    };
    let msm = Msm::<C>::with_config(&device, &bases, plain.memory(needed)).unwrap();
    assert_eq!(msm.msm(&multipliers).unwrap(), Affine::<C>::generator_point() * sum);
}

#[test]
fn scalars_that_are_no_residues_and_few_bits() {
    // 2^256 - 1 for each scalar: with any points an integer, with points of order r a residue.
    type C = ark_bls12_381::g1::Config;
    type Fr = ark_bls12_381::Fr;
    let device = Device::cpu();
    let (bases, multipliers) = bases::<C>(3);
    let mut scalars = device.alloc::<Canonical<Fr>>(3).unwrap();
    let mut words = device.host_buffer(3 * 32, Transfer::Upload, Secrecy::Public).unwrap();
    words.fill(u8::MAX);
    scalars.as_view_mut().write_pinned(words).unwrap().wait().unwrap();
    let expected = reference::msm::<C, _>(&bases, &[[u64::MAX; 4]; 3]);
    for kind in [Bases::FullGroup, Bases::Subgroup] {
        let msm = Msm::<C>::with_config(&device, &bases, MsmConfig::default().bases(kind)).unwrap();
        assert_eq!(msm.msm(&scalars).unwrap(), expected, "{kind:?}");
    }
    for bits in [1, 16, 17, 254, 255, 256] {
        let msm = Msm::<C>::with_config(&device, &bases, MsmConfig::default().bits(bits)).unwrap();
        let largest = Fr::from(2u8).pow([u64::from(bits.min(254))]) - Fr::ONE;
        let sum = multipliers.iter().map(|k| *k * largest).sum::<Fr>();
        assert_eq!(msm.msm(&[largest; 3]).unwrap(), Affine::<C>::generator_point() * sum, "{bits}");
    }
}

#[test]
fn boundaries_of_arguments_are_errors() {
    type C = ark_bn254::g1::Config;
    type Fr = ark_bn254::Fr;
    let device = Device::cpu();
    let (bases, _) = bases::<C>(4);
    let plain = MsmConfig::default();
    let msm = Msm::<C>::with_config(&device, &[], plain).unwrap();
    // More sums than a vector holds, of no scalars.
    let none: [Fr; 0] = [];
    assert!(matches!(msm.msm_batch(usize::MAX, &none), Err(Error::Device(_))));
    assert!(matches!(msm.msm_segmented(usize::MAX, &none), Err(Error::Device(_))));
    // Shapes that nobody has.
    for (len, count) in [(usize::MAX, 1), (1, usize::MAX), (usize::MAX, usize::MAX)] {
        assert!(msm.scratch_bytes(len, count).is_ok(), "pieces or groups fit");
        assert!((2..=26).contains(&msm.window(len, count)));
    }
    // Ten digits of 26 bits have more buckets than there are numbers for, whatever the memory is.
    let wide = plain.window(26).memory(u64::MAX);
    let refused = Msm::<C>::with_config(&device, &bases, wide).unwrap().msm(&[Fr::ONE, -Fr::ONE / Fr::from(2)]);
    assert!(matches!(refused, Err(Error::Config { actual: 26, .. })), "{refused:?}");
    // Exponents are below the bits of a digit, and points that are doubled on the way have no levels.
    let doublings = |depth| plain.precompute(Precompute::Doublings { depth });
    let levels = doublings(0).tuning(Tuning::default().affine_levels(1));
    for (config, expected) in [(doublings(26), 26), (levels, 1)] {
        let refused = Msm::<C>::with_config(&device, &bases, config);
        assert!(matches!(refused, Err(Error::Config { actual, .. }) if actual == expected), "{refused:?}");
    }
}

#[test]
fn what_comes_of_secret_bases_is_secret() {
    type C = ark_bn254::g1::Config;
    let device = Device::cpu();
    let (bases, _) = bases::<C>(4);
    for check in [false, true] {
        let secret = device.upload_with::<AffinePoint<C>>(&bases, Secrecy::Secret).unwrap();
        let tables = Precompute::Tables { budget: u64::MAX };
        let config = MsmConfig::default().check(check).precompute(tables);
        let msm = Msm::<C>::from_buffer(&device, &secret, config).unwrap();
        assert_eq!(msm.bases.secrecy(), Secrecy::Secret);
    }
}

/// All functions that work on host slices, and plans of every kind, over a field of few elements.
fn tiny<C: MsmCurve>(order: u64) {
    let device = Device::cpu();
    assert!(host::measure::<C>(&device).unwrap() <= 1 << 14);
    let (bases, multipliers) = bases::<C>(40);
    let scalars: Vec<C::ScalarField> = (0..40).map(|i| C::ScalarField::from(i * i % order)).collect();
    let sum: C::ScalarField = multipliers.iter().zip(&scalars).map(|(k, s)| *k * s).sum();
    let expected = Affine::<C>::generator_point() * sum;
    assert_eq!(msm_host(&device, &bases, &scalars).unwrap(), expected);
    assert_eq!(reference::msm::<C, _>(&bases, &scalars.iter().map(|s| s.into_bigint()).collect::<Vec<_>>()), expected);
    let tables = Precompute::Tables { budget: u64::MAX };
    let odd = Precompute::OddSignedDigits { depth: 2 };
    let doublings = Precompute::Doublings { depth: 2 };
    let precomputes = [Precompute::None, tables, odd, doublings];
    let tuning = |levels: Option<u32>| Tuning::default().affine_levels(levels);
    let all = precomputes.into_iter().flat_map(|precompute| [(precompute, None), (precompute, Some(1))]);
    for (precompute, levels) in all.filter(|all| *all != (doublings, Some(1))) {
        for kind in [Bases::Subgroup, Bases::FullGroup] {
            let config = MsmConfig::default().precompute(precompute).bases(kind).tuning(tuning(levels));
            let msm = Msm::<C>::with_config(&device, &bases, config).unwrap();
            assert_eq!(msm.msm(&scalars).unwrap(), expected, "{config:?}");
            let buffer = device.upload::<Canonical<C::ScalarField>>(&scalars).unwrap();
            assert_eq!(msm.msm(&buffer).unwrap(), expected, "{config:?}");
        }
    }
}

#[test]
fn fields_of_few_elements_have_sums() {
    tiny::<three_of_five::Curve>(3);
    tiny::<seven_of_five::Curve>(7);
    tiny::<nineteen_of_seventeen::Curve>(19);
    tiny::<eleven_of_257::Curve>(11);
}

#[test]
fn constants_of_curves_that_do_not_hold_are_errors() {
    fn refused<C: MsmCurve>(kind: Bases) -> Option<CurveError> {
        let config = MsmConfig::default().bases(kind);
        match Msm::<C>::with_config(&Device::cpu(), &[], config) {
            Err(Error::Curve(error)) => Some(error),
            other => other.map(|_| None).unwrap(),
        }
    }
    fn expect<C: MsmCurve>(constant: CurveConstant) {
        // Once found out and once known.
        for _ in 0..2 {
            let error = refused::<C>(Bases::Subgroup).unwrap();
            assert_eq!((error.curve, error.constant), (std::any::type_name::<C>(), constant));
        }
        assert_eq!(refused::<C>(Bases::FullGroup), None, "the order is not relied on");
    }
    expect::<off_the_curve::Curve>(CurveConstant::Generator);
    expect::<of_another_order::Curve>(CurveConstant::Order);
    expect::<no_curve::Curve>(CurveConstant::Coefficients);
    assert_eq!(refused::<nineteen_of_seventeen::Curve>(Bases::Subgroup), None);
    assert_eq!(refused::<ark_bls12_381::g2::Config>(Bases::Subgroup), None);
}

#[test]
fn bases_at_infinity_are_refused_if_asked_for() {
    type C = nineteen_of_seventeen::Curve;
    let device = Device::cpu();
    let (mut bases, _) = bases::<C>(9);
    bases.iter_mut().for_each(|base| *base = Affine::<C>::generator_point());
    let refuse = MsmConfig::default().infinity(Infinity::Refused);
    let check = MsmConfig::default().check(true);
    assert!(Msm::<C>::with_config(&device, &bases, refuse).is_ok());
    let zero = MontFp!("0");
    for (at, infinity) in [(7, Affine::identity()), (4, Affine::new_unchecked(zero, zero))] {
        bases[at] = infinity;
        assert_eq!(Msm::<C>::with_config(&device, &bases, refuse).unwrap_err(), Error::AtInfinity { index: at });
        // As a program that reads a foreign encoding writes them.
        let buffer = device.upload::<AffinePoint<C>>(&bases).unwrap();
        assert_eq!(Msm::<C>::from_buffer(&device, &buffer, refuse).unwrap_err(), Error::AtInfinity { index: at });
        assert!(Msm::<C>::from_buffer(&device, &buffer, check).is_ok(), "infinity is on the curve");
    }
    assert_eq!(Msm::<C>::with_config(&device, &bases, check).unwrap_err(), Error::NotOnCurve { index: 4 });
}

/// Each inversion costs as much as tens of additions, so that many must share one.
#[test]
fn pairs_share_inversions_on_the_cpu() {
    type C = CountedCurve;
    const LEN: usize = 1 << 13;
    let device = Device::cpu();
    let (bases, multipliers) = bases::<C>(LEN);
    let mut rng = test_rng();
    let scalars: Vec<_> = (0..LEN).map(|_| ark_bn254::Fr::rand(&mut rng)).collect();
    let sum = multipliers.iter().zip(&scalars).map(|(k, s)| *k * s).sum::<ark_bn254::Fr>();
    for levels in 0..=3 {
        let tuning = Tuning::default().affine_levels(levels);
        let config = MsmConfig::default().window(8).tuning(tuning);
        let msm = Msm::<C>::with_config(&device, &bases, config).unwrap();
        let before = INVERSIONS.load(Ordering::Relaxed);
        let result = msm.msm(&scalars).unwrap();
        let inversions = INVERSIONS.load(Ordering::Relaxed) - before;
        assert_eq!(result, Affine::<C>::generator_point() * sum, "{levels}");
        // Each scalar has 32 digits, so the first level has 16 pairs for each.
        assert!((1..LEN * 32 / 100).contains(&inversions), "{levels} levels: {inversions} inversions");
    }
}
