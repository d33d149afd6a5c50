//! Multi-scalar multiplications, whose results are known: the bases are known multiples of the generator.

#[cfg(feature = "gpu-peers")]
mod gpu;

use std::collections::BTreeSet;

use anyhow::{Context, Error, Result, ensure};
use ark_ec::{
    AffineRepr, VariableBaseMSM,
    short_weierstrass::{Affine, Projective},
};
use ark_ff::{AdditiveGroup, PrimeField};
use evariste::backend::{Buffer, Device, Element, Error as DeviceError, Secrecy, Transfer};
use evariste::curve::{AffinePoint, FixedBase};
use evariste::field::{DeviceField, Mont};
use evariste::msm::{self as msm, Accumulation, Addition, Aggregation, Msm, MsmConfig, MsmCurve, Precompute, Tuning};
use evariste_bls24_315 as bls24_315;
use rayon::prelude::*;

use crate::{
    ALL,
    coverage::Coverage,
    input,
    limits::Work,
    request::Request,
    session::{Algorithm, Case, Headline, Session, is_too_large_for_device},
    sizes::Sizes,
    target::Target,
    timing::Budget,
};

/// Sums over random and over skewed scalars, with tables and without.
pub(crate) const ALGORITHM: Algorithm = Algorithm {
    name: "msm",
    headlines: &[
        Headline { case: "bls12-381-g1/random/device", title: "MSM, BLS12-381 G1" },
        Headline { case: "bls12-381-g1/random/tables/device", title: "MSM with tables, BLS12-381 G1" },
    ],
    budget: |request| Budget::of(request.coverage),
    run,
    is_too_large,
};

fn is_too_large(error: &Error) -> bool {
    match error.downcast_ref() {
        Some(msm::Error::Device(DeviceError::InsufficientMemory { .. })) => true,
        Some(msm::Error::Device(error)) => is_too_large_for_device(error),
        _ => crate::session::is_too_large(error),
    }
}

/// Multiples of one point that are checked.
const CHECKED: usize = 8;

/// Bytes of tables at most.
const TABLES: u64 = 64 << 30;

/// Scalars by what could favour some buckets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Random,
    Zeros,
    One,
    Equal,
    Signs,
    Bits16,
    Bits64,
}

impl Kind {
    const SKEWED: [Self; 6] = [Kind::Zeros, Kind::One, Kind::Equal, Kind::Signs, Kind::Bits16, Kind::Bits64];

    fn name(self) -> &'static str {
        match self {
            Kind::Random => "random",
            Kind::Zeros => "zeros-90-percent",
            Kind::One => "all-one",
            Kind::Equal => "all-equal",
            Kind::Signs => "plus-minus-one",
            Kind::Bits16 => "16-bits",
            Kind::Bits64 => "64-bits",
        }
    }

    fn scalars<F: PrimeField>(self, len: usize) -> Vec<F> {
        let mut scalars: Vec<F> = input::random(len);
        let same = scalars.first().copied().unwrap_or(F::ONE);
        scalars.par_iter_mut().enumerate().for_each(|(i, scalar)| {
            let low = scalar.into_bigint().as_ref()[0];
            *scalar = match self {
                Kind::Random => *scalar,
                Kind::Zeros if i % 10 == 0 => *scalar,
                Kind::Zeros => F::ZERO,
                Kind::One => F::ONE,
                Kind::Equal => same,
                Kind::Signs if i % 2 == 0 => F::ONE,
                Kind::Signs => -F::ONE,
                Kind::Bits16 => F::from(low as u16),
                Kind::Bits64 => F::from(low),
            };
        });
        scalars
    }
}

/// Where scalars are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Device,
    Host,
    /// In host memory that the device copies from without a detour.
    Pinned,
}

/// Where scalars are, and how the plan adds up.
#[derive(Clone, Copy, Debug)]
struct Way {
    name: &'static str,
    place: Place,
    precompute: Precompute,
    tuning: fn() -> Tuning,
}

const DEVICE: Way = Way { name: "device", place: Place::Device, precompute: Precompute::None, tuning: Tuning::default };
const HOST: Way = Way { name: "host", place: Place::Host, ..DEVICE };
const PINNED: Way = Way { name: "pinned", place: Place::Pinned, ..DEVICE };
const TABLES_DEVICE: Way = Way { name: "tables/device", precompute: Precompute::Tables { budget: TABLES }, ..DEVICE };

/// Doublings of each base, where digits are odd numbers.
const DEPTH: u32 = 3;

/// One point at a time in XYZZ form.
fn one_by_one() -> Tuning {
    Tuning::default().affine_levels(0)
}

fn whole_buckets() -> Tuning {
    one_by_one().accumulation(Accumulation::WholeBuckets)
}

fn per_bucket() -> Tuning {
    one_by_one().accumulation(Accumulation::PerBucket)
}

fn running_sums() -> Tuning {
    one_by_one().aggregation(Aggregation::RunningSums)
}

const ODD: Precompute = Precompute::OddSignedDigits { depth: DEPTH };

const BALANCED: Way = Way { name: "balanced/device", tuning: one_by_one, ..DEVICE };

/// So many doublings of each base in memory, and the others on the way to buckets.
const fn doublings(name: &'static str, depth: u32, tuning: fn() -> Tuning) -> Way {
    Way { name, precompute: Precompute::Doublings { depth }, tuning, ..DEVICE }
}

/// What is compared in TCHES 2024/2: balanced accumulation, slices of whole buckets and one thread a bucket; all digits
/// and odd ones, with more doublings of the bases or fewer; points one by one and two by two, with shared inversions
/// and without; layers of sums of buckets and running sums.
const COMPARED: [Way; 14] = [
    BALANCED,
    Way { name: "whole-buckets/device", tuning: whole_buckets, ..DEVICE },
    Way { name: "per-bucket/device", tuning: per_bucket, ..DEVICE },
    Way { name: "balanced-odd-digits/device", precompute: ODD, ..BALANCED },
    Way { name: "whole-buckets-odd-digits/device", tuning: whole_buckets, precompute: ODD, ..DEVICE },
    Way { name: "per-bucket-odd-digits/device", tuning: per_bucket, precompute: ODD, ..DEVICE },
    doublings("balanced-doublings-0/device", 0, one_by_one),
    doublings("balanced-doublings-3/device", 3, one_by_one),
    doublings("balanced-doublings-7/device", 7, one_by_one),
    doublings("whole-buckets-doublings-3/device", 3, whole_buckets),
    Way { name: "balanced-two-by-two/device", tuning: || Tuning::default().affine_levels(1), ..DEVICE },
    Way { name: "balanced-double-addition/device", tuning: || one_by_one().addition(Addition::Double), ..DEVICE },
    Way { name: "balanced-running-sums/device", tuning: running_sums, ..DEVICE },
    Way {
        name: "whole-buckets-running-sums/device",
        tuning: || whole_buckets().aggregation(Aggregation::RunningSums),
        ..DEVICE
    },
];

/// log₂ of the sizes of that comparison.
const COMPARED_SIZES: [u32; 6] = [19, 20, 21, 22, 23, 24];

/// log₂ of the most points that peers on the processor add, and of the fewest.
const PEER_SIZES: std::ops::RangeInclusive<u32> = 10..=20;

fn run(session: &mut Session, targets: &[Target], request: &Request) {
    let mut all = Vec::new();
    for target in targets {
        let sizes = sizes(target, request);
        all.extend(sizes.iter().copied());
        for log_n in sizes.iter().copied() {
            let is_processor = target.device.info().limits.workgroup_threads == 1;
            for way in [DEVICE, TABLES_DEVICE, HOST, PINNED] {
                if way.place == Place::Pinned && is_processor {
                    continue;
                }
                case::<ark_bls12_381::g1::Config>(session, target, "bls12-381-g1", log_n, Kind::Random, way);
            }
            if !ALL || request.coverage == Coverage::Summary {
                continue;
            }
            for way in [DEVICE, TABLES_DEVICE] {
                case::<ark_bn254::g1::Config>(session, target, "bn254-g1", log_n, Kind::Random, way);
            }
            fixed_base::<ark_bn254::g1::Config>(session, target, "bn254-g1", log_n);
            fixed_base::<ark_bls12_381::g2::Config>(session, target, "bls12-381-g2", log_n);
            #[cfg(feature = "gpu-peers")]
            if request.peers && crate::gpu_peers::work_on(target) {
                gpu::bellperson(session, target, log_n);
            }
        }
        if !ALL || request.coverage == Coverage::Summary {
            continue;
        }
        let Some(largest) = sizes.last().copied() else { continue };
        for kind in Kind::SKEWED {
            case::<ark_bls12_381::g1::Config>(session, target, "bls12-381-g1", largest, kind, DEVICE);
        }
        let log_n = largest.min(20);
        case::<ark_bls12_381::g2::Config>(session, target, "bls12-381-g2", log_n, Kind::Random, DEVICE);
        let compared = match (&request.log_n, request.coverage) {
            (Some(_), _) => sizes,
            (None, Coverage::Full) if largest >= COMPARED_SIZES[0] => COMPARED_SIZES.to_vec(),
            (None, _) => vec![largest],
        };
        for (log_n, way) in compared.into_iter().flat_map(|log_n| COMPARED.map(|way| (log_n, way))) {
            case::<ark_bls12_381::g1::Config>(session, target, "bls12-381-g1", log_n, Kind::Random, way);
            case::<bls24_315::g1::Config>(session, target, "bls24-315-g1", log_n, Kind::Random, way);
        }
    }
    if request.peers {
        let sizes: BTreeSet<u32> = all.into_iter().filter(|log_n| PEER_SIZES.contains(log_n)).collect();
        sizes.into_iter().for_each(|log_n| peers(session, log_n));
    }
}

/// The sizes asked for; else those of transforms, from 2^10 on, and on processors and emulations smaller ones.
fn sizes(target: &Target, request: &Request) -> Vec<u32> {
    if let Some(sizes) = &request.log_n {
        return Sizes::union([sizes]);
    }
    let info = target.device.info();
    match (request.coverage, info.features.software || info.limits.workgroup_threads == 1) {
        (Coverage::Summary, false) => vec![22],
        (_, true) => vec![10],
        (Coverage::Small, false) => vec![10, 16, 20],
        (Coverage::Full, false) => vec![10, 12, 14, 16, 18, 20, 22, 24],
    }
}

/// Multiples of the generator by random 32-bit integers, and these.
fn bases<C: MsmCurve>(device: &Device, len: usize) -> Result<(Buffer<AffinePoint<C>>, Vec<u32>)> {
    let multipliers: Vec<u32> = input::random(len);
    Ok((input::multiples::<C>(device, &multipliers)?, multipliers))
}

/// Multiplications in BLS12-381 Fr that take as long as one in the coordinates' field.
fn weight<C: MsmCurve>() -> f64 {
    (C::BaseField::LIMBS as f64 / (<Mont<ark_bls12_381::Fr> as Element>::BYTES / 4) as f64).powi(2)
}

/// Multiples of the generator by random scalars.
fn fixed_base<C: MsmCurve>(session: &mut Session, target: &Target, curve: &str, log_n: u32) {
    let elements = 1usize << log_n;
    // A point has an addition of 10 products for each digit of 8 bits, and is normalised by 6 more.
    let digits = f64::from(C::ScalarField::MODULUS_BIT_SIZE.div_ceil(8));
    let work = Work {
        multiplications: (10.0 * digits + 6.0) * weight::<C>() * elements as f64,
        bytes: ((Mont::<C::ScalarField>::BYTES + AffinePoint::<C>::BYTES) * elements) as f64,
    };
    let described = Case {
        name: format!("{curve}/fixed-base/device"),
        device: target.device.info().id.to_string(),
        peer: None,
        log_n,
        elements: Some(elements),
        floor: Some(target.limits.floor(work)),
    };
    session.measure(described, |budget| {
        let device = &target.device;
        let plan = FixedBase::<C>::new(device, Affine::<C>::generator())?;
        let host: Vec<C::ScalarField> = input::random(elements);
        let scalars = device.upload::<Mont<C::ScalarField>>(&host)?;
        let mut out = device.zeros(elements)?;
        let before = device.stats().launches;
        plan.mul(&scalars, &mut out)?;
        let launches = device.stats().launches - before;
        for place in input::places(CHECKED, elements) {
            let expected: Affine<C> = (Affine::<C>::generator() * host[place]).into();
            ensure!(out.view(place..=place)?.to_vec()? == [expected], "multiple {place} is wrong");
        }
        let timing = budget.time_queued(|| Ok(plan.mul(&scalars, &mut out)?), || Ok(device.sync()?))?;
        Ok((timing, Some(launches), format!("{CHECKED} of 2^{log_n} by the host")))
    });
}

fn expected<C: MsmCurve>(scalars: &[C::ScalarField], multipliers: &[u32]) -> Projective<C> {
    let products = scalars.par_iter().zip(multipliers).map(|(s, k)| *s * C::ScalarField::from(*k));
    Affine::<C>::generator() * products.reduce(|| C::ScalarField::ZERO, |a, b| a + b)
}

fn case<C: MsmCurve>(session: &mut Session, target: &Target, curve: &str, log_n: u32, kind: Kind, way: Way) {
    let elements = 1usize << log_n;
    // What cannot be spared: each base is read, and 5M + 1S for each digit of 20 bits.
    let digits = f64::from(C::ScalarField::MODULUS_BIT_SIZE.div_ceil(20));
    let work = match kind {
        Kind::Random | Kind::Equal => Work {
            multiplications: 6.0 * weight::<C>() * digits * elements as f64,
            bytes: (AffinePoint::<C>::BYTES * elements) as f64,
        },
        _ => Work { multiplications: 0.0, bytes: (AffinePoint::<C>::BYTES * elements) as f64 },
    };
    let described = Case {
        name: format!("{curve}/{}/{}", kind.name(), way.name),
        device: target.device.info().id.to_string(),
        peer: None,
        log_n,
        elements: Some(elements),
        floor: Some(target.limits.floor(work)),
    };
    session.measure(described, |budget| {
        let device = &target.device;
        let (bases, multipliers) = bases::<C>(device, elements)?;
        let config = MsmConfig::default().precompute(way.precompute).tuning((way.tuning)());
        let plan = Msm::<C>::from_buffer(device, &bases, config)?;
        let host = kind.scalars::<C::ScalarField>(elements);
        let expected = expected::<C>(&host, &multipliers);
        let uploaded = device.upload::<Mont<C::ScalarField>>(&host)?;
        let mut pinned = match way.place {
            Place::Pinned => {
                let bytes = elements * Mont::<C::ScalarField>::BYTES;
                let mut pinned = device.host_buffer(bytes, Transfer::Upload, Secrecy::Public)?;
                Mont::<C::ScalarField>::encode(&host, &mut pinned);
                Some(pinned)
            }
            Place::Device | Place::Host => None,
        };
        let mut evaluate = || {
            let sum = match (way.place, pinned.take()) {
                (Place::Pinned, Some(scalars)) => {
                    let (sum, scalars) = plan.msm_pinned(scalars)?;
                    pinned = Some(scalars);
                    sum
                }
                (Place::Host, _) => plan.msm(&host)?,
                _ => plan.msm(&uploaded)?,
            };
            ensure!(sum == expected, "a sum is wrong");
            Ok(())
        };
        let before = device.stats().launches;
        evaluate()?;
        let launches = device.stats().launches - before;
        let timing = budget.time(evaluate)?;
        Ok((timing, Some(launches), format!("known multiples of the generator, all of 2^{log_n}")))
    });
}

/// What others take on the processor, on all its cores.
fn peers(session: &mut Session, log_n: u32) {
    arkworks::<ark_bls12_381::g1::Config>(session, "bls12-381-g1", log_n);
    if ALL {
        arkworks::<ark_bn254::g1::Config>(session, "bn254-g1", log_n);
    }
    #[cfg(feature = "blst")]
    blst::measure(session, log_n);
}

fn arkworks<C: MsmCurve>(session: &mut Session, curve: &str, log_n: u32) {
    session.measure(peer(curve, "arkworks", log_n), |budget| {
        let (bases, multipliers) = bases::<C>(&Device::cpu(), 1 << log_n)?;
        let (bases, scalars) = (bases.to_vec()?, Kind::Random.scalars::<C::ScalarField>(1 << log_n));
        let sum = || Projective::<C>::msm(&bases, &scalars).ok().context("lengths");
        ensure!(sum()? == expected::<C>(&scalars, &multipliers), "the peer's sum is not ours");
        let timing = budget.time(|| sum().map(drop))?;
        Ok((timing, None, format!("known multiples of the generator, all of 2^{log_n}")))
    });
}

fn peer(curve: &str, name: &'static str, log_n: u32) -> Case {
    Case {
        name: format!("{curve}/random/host"),
        device: "cpu".into(),
        peer: Some(name),
        log_n,
        elements: Some(1 << log_n),
        floor: None,
    }
}

/// blst, by its own points and bytes of scalars, made beforehand.
#[cfg(feature = "blst")]
mod blst {
    use ::blst::{MultiPoint, blst_fp, blst_p1_affine};
    use std::hint::black_box;

    use ark_bls12_381::{Fq, Fr, G1Affine, G1Projective, g1::Config};
    use ark_ff::{BigInt, BigInteger, PrimeField};

    use super::{Device, Kind, Session, bases, ensure, expected, peer};

    /// Bits of a scalar.
    const BITS: usize = Fr::MODULUS_BIT_SIZE as usize;

    pub(super) fn measure(session: &mut Session, log_n: u32) {
        session.measure(peer("bls12-381-g1", "blst", log_n), |budget| {
            let (bases, multipliers) = bases::<Config>(&Device::cpu(), 1 << log_n)?;
            let scalars = Kind::Random.scalars::<Fr>(1 << log_n);
            let points: Vec<blst_p1_affine> = bases.to_vec()?.iter().map(point).collect();
            let bytes: Vec<u8> = scalars.iter().flat_map(|scalar| scalar.into_bigint().to_bytes_le()).collect();
            let sum = || {
                let sum = points.mult(&bytes, BITS);
                let [x, y, z] = [sum.x, sum.y, sum.z].map(|x| Fq::new_unchecked(BigInt(x.l)));
                G1Projective::new_unchecked(x, y, z)
            };
            ensure!(sum() == expected::<Config>(&scalars, &multipliers), "the peer's sum is not ours");
            let timing = budget.time(|| {
                let _ = black_box(sum());
                Ok(())
            })?;
            Ok((timing, None, format!("known multiples of the generator, all of 2^{log_n}")))
        });
    }

    fn point(point: &G1Affine) -> blst_p1_affine {
        let [x, y] = [point.x, point.y].map(|x| blst_fp { l: x.0.0 });
        blst_p1_affine { x, y }
    }
}
