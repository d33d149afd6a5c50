//! Transforms of others, on all cores.

use anyhow::Context;
#[cfg(feature = "plonky3")]
use anyhow::Result;
#[cfg(feature = "winterfell")]
use anyhow::ensure;
use ark_ff::FftField;
use ark_poly::{EvaluationDomain, Radix2EvaluationDomain};
#[cfg(feature = "winterfell")]
use evariste::field::small;
use evariste::{field::DeviceField, ntt::Order};

use super::Problem;
#[cfg(feature = "plonky3")]
use super::SmallField;
#[cfg(feature = "winterfell")]
use super::{CHECKED, horner_in_parallel};
use crate::{
    limits::Limits,
    session::{Case, Session},
};

/// The transform of `ark_poly` on all cores.
pub(super) fn arkworks<F: DeviceField + FftField>(session: &mut Session, problem: &Problem<F>, limits: Option<Limits>) {
    let case = Case {
        name: format!("{}/forward/natural/host", problem.field),
        device: "cpu".into(),
        peer: Some("arkworks"),
        log_n: problem.log_n,
        elements: Some(problem.len()),
        floor: limits.map(|limits| limits.floor(problem.work())),
    };
    session.measure(case, |budget| {
        let domain = Radix2EvaluationDomain::<F>::new(problem.len()).context("no domain of this size")?;
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

/// The transform of Winterfell on all cores. Its roots of unity are others than those of the field's generator.
#[cfg(feature = "winterfell")]
pub(super) fn winterfell(session: &mut Session, problem: &Problem<small::Goldilocks>) {
    use ark_ff::{Field, PrimeField};
    use winter_math::{StarkField, fft, fields::f64::BaseElement};

    if problem.log_n > BaseElement::TWO_ADICITY {
        return;
    }
    let case = Case {
        name: format!("{}/forward/natural/host", problem.field),
        device: "cpu".into(),
        peer: Some("winterfell"),
        log_n: problem.log_n,
        elements: Some(problem.len()),
        floor: None,
    };
    session.measure(case, |budget| {
        let mut data: Vec<BaseElement> =
            problem.input.iter().map(|x| BaseElement::new(x.into_bigint().as_ref()[0])).collect();
        let twiddles = fft::get_twiddles::<BaseElement>(problem.len());
        fft::evaluate_poly(&mut data, &twiddles);
        let root = small::Goldilocks::from(BaseElement::get_root_of_unity(problem.log_n).as_int());
        for &place in &problem.places {
            let actual = small::Goldilocks::from(data[place].as_int());
            let expected = horner_in_parallel(&problem.input, root.pow([place as u64]));
            ensure!(actual == expected, "output {place} is {actual}, Horner's rule gives {expected}");
        }
        let checked = format!("horner, {CHECKED} of 2^{} outputs, at the powers of its own root", problem.log_n);
        let timing = budget.time(|| {
            fft::evaluate_poly(&mut data, &twiddles);
            Ok(())
        })?;
        Ok((timing, None, checked))
    });
}

/// The transforms of Plonky3 on all cores.
#[cfg(feature = "plonky3")]
pub(super) fn plonky3<F: SmallField>(session: &mut Session, problem: &Problem<F>) {
    use crate::plonky3::{Task, measure};

    for (name, order) in [("natural", Order::Natural), ("bit-reversed", Order::BitReversed)] {
        let case = Case {
            name: format!("{}/forward/{name}/host", problem.field),
            device: "cpu".into(),
            peer: None,
            log_n: problem.log_n,
            elements: Some(problem.len()),
            floor: None,
        };
        let check = |output: &dyn Fn(usize) -> Result<F>| problem.check(false, order, output);
        measure(session, case, Task::Forward(order), 1, &problem.input, check);
    }
}
