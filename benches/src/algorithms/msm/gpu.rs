//! A peer that adds on the same GPU.

use anyhow::ensure;
use ark_bls12_381::g1::Config as Bls12381;
use evariste::curve::AffinePoint;
use evariste_gpu_peers::ec_gpu;

use super::{Case, Kind, Session, Target, bases, expected};
use crate::gpu_peers::encode;

/// The kernel that Bellperson adds with, and its additions on the host.
pub(super) fn bellperson(session: &mut Session, target: &Target, log_n: u32) {
    let case = Case {
        name: "bls12-381-g1/random/device".into(),
        device: target.device.info().id.to_string(),
        peer: Some("bellperson"),
        log_n,
        elements: Some(1 << log_n),
        floor: None,
    };
    session.measure(case, |budget| {
        let (points, multipliers) = bases::<Bls12381>(&target.device, 1 << log_n)?;
        let scalars = Kind::Random.scalars::<ark_bls12_381::Fr>(1 << log_n);
        let points = encode::<AffinePoint<Bls12381>>(&points.to_vec()?);
        let program = ec_gpu::Program::new()?;
        let mut sum = ec_gpu::Sum::new(&program, &points, &scalars)?;
        ensure!(sum.evaluate()? == expected::<Bls12381>(&scalars, &multipliers), "the peer's sum is not ours");
        let timing = budget.time(|| sum.evaluate().map(drop))?;
        Ok((timing, None, format!("known multiples of the generator, all of 2^{log_n}")))
    });
}
