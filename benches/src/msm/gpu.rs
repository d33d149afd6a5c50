//! Peers that add on the same GPU.

use anyhow::ensure;
use ark_bls12_381::g1::Config as Bls12381;
use evariste_curve::AffinePoint;
use evariste_field::Mont;
use evariste_gpu_peers::{ec_gpu, sppark};
use evariste_msm::MsmCurve;

use super::{Case, Kind, Session, Target, bases, expected};
use crate::gpu_peers::encode;

/// log₂ of the fewest points that sppark adds here: with fewer it was seen to take minutes on an H100.
const SPPARK_FROM: u32 = 18;

fn case(target: &Target, curve: &str, log_n: u32, peer: &'static str) -> Case {
    Case {
        name: format!("{curve}/random/device"),
        device: target.device.info().id.to_string(),
        peer: Some(peer),
        log_n,
        elements: Some(1 << log_n),
        floor: None,
    }
}

/// How sums are checked.
fn checked(log_n: u32) -> String {
    format!("known multiples of the generator, all of 2^{log_n}")
}

/// sppark's sum, without tables.
pub(super) fn sppark<C: MsmCurve + sppark::Curve>(session: &mut Session, target: &Target, curve: &str, log_n: u32) {
    if log_n < SPPARK_FROM {
        return;
    }
    session.measure(case(target, curve, log_n, "sppark"), |budget| {
        let (points, multipliers) = bases::<C>(&target.device, 1 << log_n)?;
        let scalars = Kind::Random.scalars::<C::ScalarField>(1 << log_n);
        let points = encode::<AffinePoint<C>>(&points.to_vec()?);
        let sum = sppark::Sum::<C>::new(&points, &encode::<Mont<C::ScalarField>>(&scalars))?;
        ensure!(sum.evaluate()? == expected::<C>(&scalars, &multipliers), "the peer's sum is not ours");
        let timing = budget.time(|| sum.evaluate().map(drop))?;
        Ok((timing, None, checked(log_n)))
    });
}

/// The kernel that Bellperson adds with, and its additions on the host.
pub(super) fn bellperson(session: &mut Session, target: &Target, log_n: u32) {
    session.measure(case(target, "bls12-381-g1", log_n, "bellperson"), |budget| {
        let (points, multipliers) = bases::<Bls12381>(&target.device, 1 << log_n)?;
        let scalars = Kind::Random.scalars::<ark_bls12_381::Fr>(1 << log_n);
        let points = encode::<AffinePoint<Bls12381>>(&points.to_vec()?);
        let program = ec_gpu::Program::new()?;
        let mut sum = ec_gpu::Sum::new(&program, &points, &scalars)?;
        ensure!(sum.evaluate()? == expected::<Bls12381>(&scalars, &multipliers), "the peer's sum is not ours");
        let timing = budget.time(|| sum.evaluate().map(drop))?;
        Ok((timing, None, checked(log_n)))
    });
}
