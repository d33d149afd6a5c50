//! Other implementations, measured in the same run and checked in the same way.

use anyhow::Context;
use ark_bls12_381::Fr;
use ark_ff::AdditiveGroup;
use ark_poly::{EvaluationDomain, Radix2EvaluationDomain};
use evariste_ntt::Order;
use rayon::prelude::*;

use super::{
    Algorithm, Target,
    field::{Operation, check},
    input,
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

/// An operation on vectors by `ark_ff`, on all cores.
pub(crate) fn arkworks_vectors(session: &mut Session, target: &Target, operation: &Operation, log_n: u32) {
    let elements = 1 << log_n;
    let case = Case {
        algorithm: Algorithm::Field,
        name: format!("bls12-381-fr/{}/host", operation.name),
        device: "cpu".into(),
        peer: Some("arkworks"),
        log_n,
        elements: Some(elements),
        floor: Some(target.limits.floor(operation.work(elements))),
    };
    session.measure(case, |budget| {
        let mut a = input::random::<Fr>(2 * elements);
        let b = a.split_off(elements);
        let mut out = vec![Fr::ZERO; elements];
        let mut work = || {
            (operation.arkworks)(&a, &b, &mut out);
            Ok(())
        };
        // Batched as ours is, so that both have the same share of what a run costs.
        let timing = budget.time_queued(&mut work, || Ok(()))?;
        check(operation, &a, &b, &out)?;
        Ok((timing, None, format!("itself, all of 2^{log_n} outputs")))
    });
}

/// Elements that one thread takes at least.
const GRAIN: usize = 1 << 10;

pub(crate) fn pointwise(a: &[Fr], b: &[Fr], out: &mut [Fr], f: impl Fn(Fr, Fr) -> Fr + Sync) {
    (a, b, out).into_par_iter().with_min_len(GRAIN).for_each(|(a, b, out)| *out = f(*a, *b));
}
