//! The rates of field arithmetic in registers: multiplications, squarings, sums of products, and products with a constant.

use anyhow::{Result, ensure};
use ark_bls12_381::{Fq, Fr};
use ark_ff::Field;
use evariste_backend::Kind;
use evariste_field::{
    DeviceField, Mont,
    rate::{CHAIN_LENGTH, MulChain, Step},
};

use super::{
    Algorithm, Profile, Target, input,
    limits::Work,
    report::{Case, Session},
};

/// Chains that are checked.
const CHECKED: usize = 8;

pub(crate) fn run(session: &mut Session, targets: &[Target], profile: Profile) {
    for target in targets {
        let info = target.device.info();
        let log_n = match (info.id.kind, profile) {
            _ if info.features.software => 8,
            (Kind::Cpu, _) => 10,
            (_, Profile::Quick) => 18,
            (_, Profile::Full) => 20,
        };
        for step in Step::ALL {
            chain::<Fr>(session, target, "bls12-381-fr", step, log_n);
            chain::<Fq>(session, target, "bls12-381-fq", step, log_n);
        }
    }
}

fn chain<F: DeviceField>(session: &mut Session, target: &Target, field: &str, step: Step, log_n: u32) {
    let elements = (CHAIN_LENGTH as usize) << log_n;
    // Multiplications of the limits' field, as both grow with the square of the limbs.
    let weight = (F::LIMBS as f64 / Fr::LIMBS as f64).powi(2);
    let work = Work { multiplications: weight * elements as f64, bytes: 0.0 };
    let case = Case {
        algorithm: Algorithm::Field,
        name: format!("{field}/{}/chain", format!("{step:?}").to_lowercase()),
        device: target.device.info().id.to_string(),
        peer: None,
        log_n,
        elements: Some(elements),
        floor: Some(target.limits.floor(work)),
    };
    session.measure(case, |budget| {
        let (device, len) = (&target.device, 1usize << log_n);
        let w = F::from(3u8).pow([1 << 40]);
        let x = input::random::<F>(len);
        let chain = MulChain::<F>::new(device, step, w)?;
        let (uploaded, mut out) = (device.upload::<Mont<F>>(&x)?, device.alloc(len)?);
        chain.run(&uploaded, &mut out)?;
        check(step, &x, w, &out.to_vec()?)?;
        let timing = budget.time_queued(|| Ok(chain.run(&uploaded, &mut out)?), || Ok(device.sync()?))?;
        Ok((timing, Some(1), format!("arkworks, {CHECKED} of 2^{log_n} chains")))
    });
}

fn check<F: Field>(step: Step, x: &[F], w: F, out: &[F]) -> Result<()> {
    for i in input::places(CHECKED, x.len()) {
        let expected = match step {
            Step::Mul => x[i].pow([u64::from(CHAIN_LENGTH) + 1]),
            Step::Square => (0..CHAIN_LENGTH).fold(x[i], |x, _| x.square()),
            Step::Mac => (i..i + CHAIN_LENGTH as usize).map(|j| x[i] * x[j % x.len()]).sum(),
            Step::Known => x[i] * w.pow([CHAIN_LENGTH.into()]),
        };
        ensure!(out[i] == expected, "chain {i} is wrong");
    }
    Ok(())
}
