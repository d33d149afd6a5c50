//! Roots of secrets, and secret points.

use ark_bls12_381::Fr;
use evariste::{
    curve::{AffinePoint, Jacobian},
    field::Mont,
    sqrt::{Check, Decompress, Encoding, MapToCurve, Method, NthRoot, PointCheck, Sqrt, SqrtConfig},
};

use crate::{
    samples::samples,
    secrecy::{Operation, POINTS},
    trials::curve::random,
};

type Curve = ark_bls12_381::g1::Config;

pub(super) const OPERATIONS: &[Operation] = &[
    Operation::slow("roots", 3, |p| {
        let (sqrt, a) = (Sqrt::<Fr>::new(&p.device)?, p.first(1, POINTS)?);
        let (mut out, mut mask) = (p.output(POINTS)?, p.output_keys(POINTS)?);
        p.watch(|| sqrt.sqrt(&a, &mut out, &mut mask))
    }),
    Operation::new("roots_by_warps", 3, |p| {
        let config = SqrtConfig::default().method(Method::Warp);
        let (sqrt, a) = (Sqrt::<Fr>::with_config(&p.device, config)?, p.first(1, POINTS)?);
        let (mut out, mut mask) = (p.output(POINTS)?, p.output_keys(POINTS)?);
        p.watch(|| sqrt.sqrt(&a, &mut out, &mut mask))
    }),
    Operation::new("cube_roots", 3, |p| {
        let (cubes, a) = (NthRoot::<Fr>::new(&p.device, 3)?, p.first(1, POINTS)?);
        let (mut out, mut mask) = (p.output(POINTS)?, p.output_keys(POINTS)?);
        p.watch(|| cubes.nth_root(&a, &mut out, &mut mask))
    }),
    Operation::slow("symbols", 2, |p| {
        let (sqrt, a, mut out) = (Sqrt::<Fr>::new(&p.device)?, p.first(1, POINTS)?, p.output_keys(POINTS)?);
        p.watch(|| sqrt.legendre(&a, &mut out))
    }),
    Operation::slow("decompressed_points", 3, |p| {
        let decompress = Decompress::<Curve>::new(&p.device, Encoding::Zcash)?;
        let bytes: Vec<u8> = (0..48 * 30u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
        let (bytes, mut out, mut status) = (p.operand::<u8>(&bytes)?, p.output_of(30)?, p.output_keys(30)?);
        p.watch(|| decompress.decompress(&bytes, &mut out, &mut status))
    }),
    Operation::slow("checked_points", 2, |p| {
        let check = PointCheck::<Curve>::new(&p.device, Check::Subgroup)?;
        let host = random::<Curve>(30, u64::from(p.run()));
        let mut points = p.in_place(|p| p.operand::<AffinePoint<Curve>>(&host))?;
        let mut status = p.output_keys(30)?;
        p.watch(|| check.check(&mut points, &mut status))
    }),
    Operation::slow("mapped_points", 2, |p| {
        type Twist = ark_bls12_381::g2::Config;

        let map = MapToCurve::<Twist>::new(&p.device)?;
        let host = samples::<ark_bls12_381::Fq2>(94, 1000 * u64::from(p.run()) + 5);
        let (u, mut out) = (p.operand::<Mont<_>>(&host[64..])?, p.output_of::<Jacobian<Twist>>(30)?);
        p.watch(|| map.map(&u, &mut out))
    }),
];
