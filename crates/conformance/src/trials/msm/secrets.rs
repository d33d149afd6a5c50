//! Sums of points by secret scalars.

use ark_ec::short_weierstrass::Affine;
use evariste::{
    backend::{Buffer, Element},
    curve::AffinePoint,
    field::{Canonical, Mont},
    msm::{Accumulation, Addition, Aggregation, Msm, MsmConfig, Precompute, Tuning},
};
use libtest_mimic::Failed;

use crate::{
    harness::Outcome,
    samples::samples,
    secrecy::{Operation, POINTS, Probe},
    trials::curve::random,
};

/// The curve of sums, as in their trials.
type Sums = ark_bn254::g1::Config;

pub(super) const OPERATIONS: &[Operation] = &[
    Operation::slow("sums_of_points", 2, |p| {
        let points = bases(p, 0);
        let (bases, scalars) = (p.operand::<AffinePoint<Sums>>(&points)?, scalars::<Mont<_>>(p)?);
        let msm = Msm::<Sums>::from_buffer(&p.device, &bases, MsmConfig::default())?;
        p.watch(|| msm.msm(&scalars))
    }),
    Operation::slow("sums_that_share_digits", 2, |p| {
        let points = bases(p, 6);
        let (bases, scalars) = (p.operand::<AffinePoint<Sums>>(&points)?, scalars::<Mont<_>>(p)?);
        let msm = Msm::<Sums>::from_buffer(&p.device, &bases, MsmConfig::default())?;
        p.watch(|| {
            let digits = msm.digits(&scalars)?;
            let sums = [msm.start(&digits)?, msm.clone().start(&digits)?];
            sums.into_iter().map(|sum| sum.wait()).collect::<Result<Vec<_>, _>>()
        })
    }),
    Operation::slow("sums_of_points_in_pieces", 2, |p| {
        let points = bases(p, 1);
        let (bases, scalars) = (p.operand::<AffinePoint<Sums>>(&points)?, scalars::<Canonical<_>>(p)?);
        // Trees reduce buckets, on processors too.
        let tuning = Tuning::default().affine_levels(1).log_final_row(8);
        let tables = Precompute::Tables { budget: 4 * bases.bytes() };
        let config = MsmConfig::default().window(4).precompute(tables).tuning(tuning);
        let msm = Msm::<Sums>::from_buffer(&p.device, &bases, config)?;
        p.watch(|| msm.msm(&scalars))
    }),
    Operation::slow("sums_of_points_one_by_one", 2, |p| {
        sums_by(p, 2, Accumulation::PerBucket, Addition::Single, Precompute::OddSignedDigits { depth: 2 })
    }),
    Operation::slow("sums_of_points_by_whole_buckets", 2, |p| {
        sums_by(p, 3, Accumulation::WholeBuckets, Addition::Double, Precompute::None)
    }),
    Operation::slow("sums_of_points_two_by_two", 2, |p| {
        sums_by(p, 4, Accumulation::Balanced, Addition::Double, Precompute::None)
    }),
    Operation::slow("sums_of_points_doubled", 2, |p| {
        sums_by(p, 5, Accumulation::Balanced, Addition::Single, Precompute::Doublings { depth: 1 })
    }),
];

/// Bases that no other choice of what is secret has, nor another operation, by its number.
fn bases(p: &Probe, number: usize) -> Vec<Affine<Sums>> {
    random::<Sums>(POINTS, 1000 + 10 * number as u64 + u64::from(p.run()))
}

/// Scalars of sums of points.
fn scalars<T: Element<Host = ark_bn254::Fr>>(p: &Probe) -> Result<Buffer<T>, Failed> {
    p.operand(&samples::<ark_bn254::Fr>(POINTS + 64, 1000 * u64::from(p.run()) + 9)[64..])
}

/// Watches sums of points that are added up by running sums of buckets, over bases of this number.
fn sums_by(
    p: &Probe,
    number: usize,
    accumulation: Accumulation,
    addition: Addition,
    precompute: Precompute,
) -> Outcome {
    let points = bases(p, number);
    let (bases, scalars) = (p.operand::<AffinePoint<Sums>>(&points)?, scalars::<Mont<_>>(p)?);
    let aggregation = Aggregation::RunningSums;
    let tuning = Tuning::default().accumulation(accumulation).addition(addition).aggregation(aggregation);
    let config = MsmConfig::default().window(4).precompute(precompute).tuning(tuning);
    let msm = Msm::<Sums>::from_buffer(&p.device, &bases, config)?;
    p.watch(|| msm.msm(&scalars))
}
