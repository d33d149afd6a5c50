//! Operations on secret points.

use ark_ec::AffineRepr;
use evariste::{
    curve::{FixedBase, Jacobian, PointSum, Points, Xyzz},
    primitives::SegmentedSum,
};

use super::some_points;
use crate::secrecy::{Operation, POINTS};

type Curve = ark_bls12_381::g1::Config;

pub(super) const OPERATIONS: &[Operation] = &[
    Operation::new("segmented_sum_of_points", 3, |p| {
        let sum = SegmentedSum::<PointSum<Curve>>::new(&p.device)?;
        let (keys, values) = (p.sorted(POINTS)?, p.operand::<Xyzz<Curve>>(&some_points(POINTS))?);
        let mut out = p.output_of::<Xyzz<Curve>>(9)?;
        p.watch(|| sum.reduce(&keys, &values, &mut out))
    }),
    Operation::new("times", 3, |p| {
        let points = Points::<Curve>::new(&p.device);
        let affine: Vec<_> = some_points::<Curve>(POINTS).into_iter().map(Into::into).collect();
        let (a, k, mut out) = (p.operand(&affine)?, p.keys(POINTS)?, p.output_of(POINTS)?);
        p.watch(|| points.mul(&a, &k, &mut out))
    }),
    Operation::new("multiples_of_one_point", 2, |p| {
        let fixed = FixedBase::<Curve>::new(&p.device, ark_bls12_381::G1Affine::generator())?;
        let (scalars, mut out) = (p.first(1, POINTS)?, p.output_of(POINTS)?);
        p.watch(|| fixed.mul(&scalars, &mut out))
    }),
    Operation::new("normalise", 2, |p| {
        let points = Points::<Curve>::new(&p.device);
        let (a, mut out) = (p.operand::<Jacobian<Curve>>(&some_points(POINTS))?, p.output_of(POINTS)?);
        p.watch(|| points.normalise_jacobian(&a, &mut out))
    }),
    Operation::new("gather_points", 3, |p| {
        let points = Points::<Curve>::new(&p.device);
        let (a, indices) = (p.operand::<Xyzz<Curve>>(&some_points(POINTS))?, p.places(POINTS)?);
        let mut out = p.output_of::<Xyzz<Curve>>(POINTS)?;
        p.watch(|| points.gather(&a, &indices, &mut out))
    }),
    Operation::new("scatter_points", 3, |p| {
        let points = Points::<Curve>::new(&p.device);
        let (a, indices) = (p.operand::<Xyzz<Curve>>(&some_points(POINTS))?, p.places(POINTS)?);
        let mut out = p.output_of::<Xyzz<Curve>>(POINTS)?;
        p.watch(|| points.scatter(&a, &indices, &mut out))
    }),
    Operation::new("add_points", 3, |p| {
        let (points, host) = (Points::<Curve>::new(&p.device), some_points(POINTS));
        let (a, b, mut out) = (p.operand::<Jacobian<Curve>>(&host)?, p.operand(&host)?, p.output_of(POINTS)?);
        p.watch(|| points.add_jacobian(&a, &b, &mut out))
    }),
];
