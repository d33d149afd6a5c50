//! Peers that transform on the same GPU.

use anyhow::{Context, Result, ensure};
use ark_ff::{AdditiveGroup, FftField};
use evariste::backend::Element;
use evariste::field::{Canonical, DeviceField, DevicePrimeField, Mont};
use evariste::ntt::reference::root_of_unity;
use evariste_gpu_peers::{ec_gpu, sppark};

use super::{Case, Problem, Session, Target, horner_in_parallel};
use crate::gpu_peers::encode;

fn case<F: DeviceField + FftField>(target: &Target, problem: &Problem<F>, peer: &'static str) -> Case {
    Case {
        name: format!("{}/forward/natural/device", problem.field),
        device: target.device.info().id.to_string(),
        peer: Some(peer),
        log_n: problem.log_n,
        elements: Some(problem.len()),
        floor: None,
    }
}

/// sppark's transform, over elements in Montgomery form.
pub(super) fn sppark<F: DeviceField + FftField>(
    session: &mut Session,
    target: &Target,
    problem: &Problem<F>,
    field: sppark::Field,
) {
    sppark_of::<F, Mont<F>>(session, target, problem, field);
}

/// sppark's transform, over elements as integers.
pub(super) fn sppark_of_integers<F: DevicePrimeField + FftField>(
    session: &mut Session,
    target: &Target,
    problem: &Problem<F>,
    field: sppark::Field,
) {
    sppark_of::<F, Canonical<F>>(session, target, problem, field);
}

fn sppark_of<F: DeviceField + FftField, E: Element<Host = F>>(
    session: &mut Session,
    target: &Target,
    problem: &Problem<F>,
    field: sppark::Field,
) {
    session.measure(case(target, problem, "sppark"), |budget| {
        let mut unit = vec![F::ZERO; problem.len()];
        unit[1] = F::ONE;
        let mut transform = sppark::Transform::new(field, &encode::<E>(&unit), problem.log_n)?;
        transform.forward()?;
        // The outputs of 0, 1, 0, … are the powers of the root, which need not be ours.
        let root = decode::<E>(&transform.read()?[E::BYTES..2 * E::BYTES])?;
        transform.write(&encode::<E>(&problem.input))?;
        transform.forward()?;
        let output = transform.read()?;
        let output = |place: usize| decode::<E>(&output[E::BYTES * place..E::BYTES * (place + 1)]);
        let checked = check(problem, root, output)?;
        let timing = budget.time_queued(|| transform.forward(), || sppark::wait(field))?;
        Ok((timing, None, checked))
    });
}

/// The kernel that Bellperson transforms with.
pub(super) fn bellperson(session: &mut Session, target: &Target, problem: &Problem<ark_bls12_381::Fr>) {
    session.measure(case(target, problem, "bellperson"), |budget| {
        let (program, root) = (ec_gpu::Program::new()?, root_of_unity(problem.log_n).context("no root")?);
        let mut transform = ec_gpu::Transform::new(&program, &problem.input, root)?;
        transform.forward()?;
        let output = transform.read()?;
        let checked = check(problem, root, |place| Ok(output[place]))?;
        let timing = budget.time_queued(|| transform.forward(), || program.wait())?;
        Ok((timing, None, checked))
    });
}

fn decode<E: Element>(bytes: &[u8]) -> Result<E::Host>
where
    E::Host: FftField,
{
    let words: Vec<u32> = bytes.chunks_exact(4).map(bytemuck::pod_read_unaligned).collect();
    let mut element = [<E::Host as AdditiveGroup>::ZERO];
    E::decode(bytemuck::cast_slice(&words), &mut element)?;
    Ok(element[0])
}

/// Compares some outputs with the polynomial's values at powers of a root by Horner's rule, and says so.
fn check<F: DeviceField + FftField>(
    problem: &Problem<F>,
    root: F,
    output: impl Fn(usize) -> Result<F>,
) -> Result<String> {
    ensure!(root.pow([1u64 << (problem.log_n - 1)]) == -F::ONE, "{root} is no root of order 2^{}", problem.log_n);
    for &place in &problem.places {
        let (actual, expected) = (output(place)?, horner_in_parallel(&problem.input, root.pow([place as u64])));
        ensure!(actual == expected, "output {place} is {actual}, Horner's rule gives {expected}");
    }
    Ok(format!("horner, {} of 2^{} outputs", problem.places.len(), problem.log_n))
}
