//! Multi-scalar multiplications, whose results are known: the bases are known multiples of the generator.

use anyhow::{Error, Result, ensure};
use ark_ec::{AffineRepr, short_weierstrass::Affine};
use ark_ff::{AdditiveGroup, PrimeField};
use evariste_backend::{Buffer, Device, Element};
use evariste_curve::{AffinePoint, Points};
use evariste_field::{DeviceField, Mont};
use evariste_msm::{self as msm, Msm, MsmConfig, MsmCurve, Precompute, Scalars};
use rayon::prelude::*;

use super::{
    depth::Depth,
    input,
    limits::Work,
    session::{Algorithm, Case, Headline, Session, is_too_large_for_device},
    sizes::Sizes,
    target::Target,
    timing::Budget,
    wanted::Wanted,
};

/// Sums over random and over skewed scalars, with tables and without.
pub(crate) static ALGORITHM: Algorithm = Algorithm {
    name: "msm",
    headlines: &[
        Headline { case: "bls12-381-g1/random/device", title: "MSM, BLS12-381 G1" },
        Headline { case: "bls12-381-g1/random/tables/device", title: "MSM with tables, BLS12-381 G1" },
    ],
    budget: |wanted| Budget::of(wanted.depth),
    run,
    is_too_large,
};

fn is_too_large(error: &Error) -> bool {
    match error.downcast_ref() {
        Some(msm::Error::TooLittle { .. }) => true,
        Some(msm::Error::Device(error)) => is_too_large_for_device(error),
        _ => super::session::is_too_large(error),
    }
}

/// Points that are made at once.
const PIECE: usize = 1 << 20;

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

/// Where scalars are, and what the plan holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Device,
    Host,
    TablesDevice,
}

impl Way {
    fn name(self) -> &'static str {
        match self {
            Way::Device => "device",
            Way::Host => "host",
            Way::TablesDevice => "tables/device",
        }
    }
}

fn run(session: &mut Session, targets: &[Target], wanted: &Wanted) {
    for target in targets {
        let sizes = sizes(target, wanted);
        for log_n in sizes.iter().copied() {
            for way in [Way::Device, Way::TablesDevice, Way::Host] {
                case::<ark_bls12_381::g1::Config>(session, target, "bls12-381-g1", log_n, Kind::Random, way);
            }
            if wanted.depth == Depth::Summary {
                continue;
            }
            for way in [Way::Device, Way::TablesDevice] {
                case::<ark_bn254::g1::Config>(session, target, "bn254-g1", log_n, Kind::Random, way);
            }
        }
        let Some(largest) = sizes.last().copied().filter(|_| wanted.depth != Depth::Summary) else { continue };
        for kind in Kind::SKEWED {
            case::<ark_bls12_381::g1::Config>(session, target, "bls12-381-g1", largest, kind, Way::Device);
        }
        let log_n = largest.min(20);
        case::<ark_bls12_381::g2::Config>(session, target, "bls12-381-g2", log_n, Kind::Random, Way::Device);
    }
}

/// The sizes asked for; else those of transforms, from 2^10 on, and on processors and emulations smaller ones.
fn sizes(target: &Target, wanted: &Wanted) -> Vec<u32> {
    if let Some(sizes) = &wanted.log_n {
        return Sizes::union([sizes]);
    }
    let info = target.device.info();
    match (wanted.depth, info.features.software || info.limits.workgroup_threads == 1) {
        (Depth::Summary, false) => vec![22],
        (_, true) => vec![10],
        (Depth::Small, false) => vec![10, 16, 20],
        (Depth::Full, false) => vec![10, 12, 14, 16, 18, 20, 22, 24],
    }
}

/// Multiples of the generator by random 32-bit integers, and these.
fn bases<C: MsmCurve>(device: &Device, len: usize) -> Result<(Buffer<AffinePoint<C>>, Vec<u32>)> {
    let (operations, piece) = (Points::<C>::new(device), len.min(PIECE));
    let multipliers: Vec<u32> = input::random(len);
    let generators = device.upload::<AffinePoint<C>>(&vec![Affine::<C>::generator(); piece])?;
    let mut bases = device.zeros(len)?;
    for (i, multipliers) in multipliers.chunks_exact(piece).enumerate() {
        let (mut multiples, mut affine) = (device.alloc(piece)?, device.alloc(piece)?);
        operations.times(&generators, &device.upload::<u32>(multipliers)?, &mut multiples)?;
        operations.normalise_xyzz(&multiples, &mut affine)?;
        bases.copy_range(None, i * piece, &affine, 0, piece)?;
    }
    Ok((bases, multipliers))
}

fn case<C: MsmCurve>(session: &mut Session, target: &Target, curve: &str, log_n: u32, kind: Kind, way: Way) {
    let elements = 1usize << log_n;
    // What cannot be spared: each base is read, and 5M + 1S for each digit of 20 bits.
    let weight = (C::BaseField::LIMBS as f64 / (<Mont<ark_bls12_381::Fr> as Element>::BYTES / 4) as f64).powi(2);
    let digits = f64::from(C::ScalarField::MODULUS_BIT_SIZE.div_ceil(20));
    let work = match kind {
        Kind::Random | Kind::Equal => Work {
            multiplications: 6.0 * weight * digits * elements as f64,
            bytes: (AffinePoint::<C>::BYTES * elements) as f64,
        },
        _ => Work { multiplications: 0.0, bytes: (AffinePoint::<C>::BYTES * elements) as f64 },
    };
    let described = Case {
        name: format!("{curve}/{}/{}", kind.name(), way.name()),
        device: target.device.info().id.to_string(),
        peer: None,
        log_n,
        elements: Some(elements),
        floor: Some(target.limits.floor(work)),
    };
    session.measure(described, |budget| {
        let device = &target.device;
        let (bases, multipliers) = bases::<C>(device, elements)?;
        let precompute = match way {
            Way::TablesDevice => Precompute::Tables { budget: TABLES },
            Way::Device | Way::Host => Precompute::None,
        };
        let plan = Msm::<C>::from_buffer(device, &bases, MsmConfig { precompute, ..MsmConfig::default() })?;
        let host = kind.scalars::<C::ScalarField>(elements);
        let products = host.par_iter().zip(&multipliers).map(|(s, k)| *s * C::ScalarField::from(*k));
        let expected = Affine::<C>::generator() * products.reduce(|| C::ScalarField::ZERO, |a, b| a + b);
        let uploaded = device.upload::<Mont<C::ScalarField>>(&host)?;
        let scalars = match way {
            Way::Host => Scalars::Host(&host),
            Way::Device | Way::TablesDevice => Scalars::Montgomery(&uploaded),
        };
        let before = device.stats().launches;
        ensure!(plan.evaluate(scalars)? == expected, "the sum is wrong");
        let launches = device.stats().launches - before;
        let timing = budget.time(|| {
            ensure!(plan.evaluate(scalars)? == expected, "a sum is wrong");
            Ok(())
        })?;
        Ok((timing, Some(launches), format!("known multiples of the generator, all of 2^{log_n}")))
    });
}
