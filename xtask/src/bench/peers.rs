//! Other implementations, measured in the same run and checked in the same way.

use anyhow::Context;
use ark_bls12_381::Fr;
use ark_poly::{EvaluationDomain, Radix2EvaluationDomain};
use evariste_ntt::Order;

use super::{
    Algorithm,
    limits::Limits,
    ntt::Problem,
    report::{Case, Session},
};

/// The transform of `ark_poly` on all cores.
pub(crate) fn arkworks(session: &mut Session, problem: &Problem<Fr>, limits: Option<Limits>) {
    let case = Case {
        algorithm: Algorithm::Ntt,
        name: format!("{}/forward/natural/host", problem.field),
        device: "cpu".into(),
        peer: Some("arkworks"),
        log_n: problem.log_n,
        elements: Some(problem.input.len()),
        floor: limits.map(|limits| limits.floor(problem.work())),
    };
    session.measure(case, |budget| {
        let domain = Radix2EvaluationDomain::<Fr>::new(problem.input.len()).context("no domain of this size")?;
        let mut data = problem.input.clone();
        domain.fft_in_place(&mut data);
        let checked = problem.check(false, Order::Natural, |place| Ok(data[place]))?;
        let timing = budget.time(|| {
            domain.fft_in_place(&mut data);
            Ok(())
        })?;
        Ok((timing, None, checked))
    });
}
