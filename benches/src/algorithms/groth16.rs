//! Groth16 proofs, verified, over the constraints of a chain of squares.

#![cfg(feature = "all")]

use std::time::{Duration, Instant};

use anyhow::{Context, Error, Result, ensure};
use ark_bls12_381::Bls12_381;
use ark_bn254::Bn254;
use ark_ec::VariableBaseMSM;
use ark_ff::UniformRand;
use ark_std::rand::{SeedableRng, rngs::StdRng};
use evariste::{
    backend::Kind,
    groth16::{self, DevicePairing, Key, Prover, ProverConfig, Witness, reference},
    msm,
};

use crate::{
    coverage::Coverage,
    request::Request,
    session::{self, Algorithm, Case, Session, is_too_large_for_device},
    sizes::Sizes,
    target::Target,
    timing::Budget,
};

pub(crate) const ALGORITHM: Algorithm =
    Algorithm { name: "groth16", headlines: &[], budget: |request| Budget::of(request.coverage), run, is_too_large };

/// Proofs of a batch.
const MANY: usize = 8;

/// log₂ of the constraints of the largest circuit: its key takes the host a minute.
const MAX_LOG_N: u32 = 22;

/// log₂ of the constraints of the largest circuit that the prover on the host proves.
const MAX_HOST_LOG_N: u32 = 20;

/// Bytes for multiples of the key's points, where proofs are measured with these.
const TABLES: u64 = 64 << 30;

fn is_too_large(error: &Error) -> bool {
    match error.downcast_ref() {
        Some(groth16::Error::Device(error)) => is_too_large_for_device(error),
        Some(groth16::Error::Msm(msm::Error::Device(error))) => is_too_large_for_device(error),
        _ => session::is_too_large(error),
    }
}

fn run(session: &mut Session, targets: &[Target], request: &Request) {
    let targets: Vec<_> = targets.iter().filter(|target| !target.device.info().features.software).collect();
    let sizes: Vec<Sizes> =
        targets.iter().map(|target| request.log_n.clone().unwrap_or_else(|| usual(target, request.coverage))).collect();
    for log_n in Sizes::union(&sizes).into_iter().filter(|log_n| (2..=MAX_LOG_N).contains(log_n)) {
        let here = targets.iter().zip(&sizes).filter(|(_, sizes)| sizes.contains(log_n));
        let here: Vec<&Target> = here.map(|(target, _)| *target).collect();
        over::<Bn254>(session, "bn254", &here, log_n, request.peers);
        over::<Bls12_381>(session, "bls12-381", &here, log_n, request.peers);
    }
}

fn usual(target: &Target, coverage: Coverage) -> Sizes {
    match (target.device.info().id.kind, coverage) {
        (Kind::Cpu, _) => vec![12, 15].into(),
        (_, Coverage::Full) => vec![12, 14, 16, 18, 20, 22].into(),
        _ => vec![14, 18].into(),
    }
}

fn over<E: DevicePairing>(session: &mut Session, curve: &str, targets: &[&Target], log_n: u32, peers: bool) {
    // One key for all devices, made by the first: on a host it takes longer than the rest.
    let mut made = None;
    let mut key = || -> Result<(Key<E>, Witness<E::ScalarField>)> {
        if let Some(made) = &made {
            return Ok(Clone::clone(made));
        }
        let (constraints, witness) = reference::squares(log_n)?;
        let rng = &mut StdRng::seed_from_u64(1);
        let key = match targets.first() {
            Some(target) => Key::insecure_on(&target.device, &constraints, rng)?,
            None => Key::insecure(&constraints, rng)?,
        };
        Ok(made.insert((key, witness)).clone())
    };
    let case = |name: &str, device: String, peer, count: usize| Case {
        name: format!("{curve}/{name}"),
        device,
        peer,
        log_n,
        elements: Some(count << log_n),
        floor: None,
    };
    for target in targets {
        let device = &target.device;
        let id = device.info().id.to_string();
        let plain = ProverConfig::default().verify(false);
        let all =
            [("prove", plain), ("prove/tables", plain.tables(TABLES)), ("prove/verified", ProverConfig::default())];
        for (name, config) in
            all.into_iter().filter(|(name, _)| device.info().id.kind != Kind::Cpu || *name != "prove/tables")
        {
            session.measure(case(&format!("{name}/device"), id.clone(), None, 1), |budget| {
                let (key, witness) = key()?;
                let prover = Prover::with_config(device, &key, config)?;
                let before = device.stats().launches;
                let proof = prover.prove(&witness)?;
                let launches = device.stats().launches - before;
                prover.verifier().verify(&proof, witness.public(key.public_inputs())?)?;
                let timing = budget.time(|| Ok(prover.prove(&witness).map(drop)?))?;
                Ok((timing, Some(launches), "the first proof verified".into()))
            });
        }
        if device.info().id.kind != Kind::Cpu {
            session.measure(case("prove/tables/pinned", id.clone(), None, 1), |budget| {
                let (key, witness) = key()?;
                let prover = Prover::with_config(device, &key, plain.tables(TABLES))?;
                let mut pinned = Some(prover.pin(&witness, prover.pinned_memory()?)?);
                let mut prove = || -> Result<Duration> {
                    let given = pinned.take().context("the witness of the run before")?;
                    let start = Instant::now();
                    let (proof, memory) = prover.prove_pinned(given)?;
                    let time = start.elapsed();
                    prover.verifier().verify(&proof, witness.public(key.public_inputs())?)?;
                    pinned = Some(prover.pin(&witness, memory)?);
                    Ok(time)
                };
                Ok((budget.time_parts(&mut prove)?, None, "all proofs verified".into()))
            });
        }
        session.measure(case("prove/staged/device", id.clone(), None, 1), |budget| {
            let (key, witness) = key()?;
            let prover = Prover::with_config(device, &key, plain)?;
            prover.verifier().verify(&prover.prove_profiled(&witness)?.0, witness.public(key.public_inputs())?)?;
            let mut all: Vec<(groth16::Stage, Vec<Duration>)> = Vec::new();
            let timing = budget.time(|| {
                for (at, (stage, time)) in prover.prove_profiled(&witness)?.1.into_iter().enumerate() {
                    match all.get_mut(at) {
                        Some((_, times)) => times.push(time),
                        None => all.push((stage, vec![time])),
                    }
                }
                Ok(())
            })?;
            let median = |times: &mut Vec<Duration>| {
                times.sort();
                times[times.len() / 2].as_secs_f64() * 1e3
            };
            let stages = all.iter_mut().map(|(stage, times)| format!("{stage:?} {:.3}", median(times)));
            Ok((timing, None, format!("stages in ms: {}", stages.collect::<Vec<_>>().join(", "))))
        });
        let verified = ProverConfig::default();
        let many = [("prove-many/device", verified), ("prove-many/tables/device", verified.tables(TABLES))];
        for (name, config) in many.into_iter().take(if device.info().id.kind == Kind::Cpu { 1 } else { 2 }) {
            session.measure(case(name, id.clone(), None, MANY), |budget| {
                let (key, witness) = key()?;
                let prover = Prover::with_config(device, &key, config)?;
                let timing = budget.time(|| {
                    let proofs = prover.prove_many(vec![&witness; MANY])?;
                    ensure!(proofs.len() == MANY, "{} proofs of {MANY}", proofs.len());
                    Ok(())
                })?;
                Ok((timing, None, format!("all of {MANY} proofs verified")))
            });
        }
    }
    if peers && log_n <= MAX_HOST_LOG_N {
        session.measure(case("prove/host", "cpu".into(), Some("arkworks"), 1), |budget| {
            let (key, witness) = key()?;
            let rng = &mut StdRng::seed_from_u64(2);
            let (r, s) = (E::ScalarField::rand(rng), E::ScalarField::rand(rng));
            let sums = (E::G1::msm_unchecked, E::G2::msm_unchecked);
            let timing = budget.time(|| Ok(reference::prove_by(&key, &witness, r, s, sums.0, sums.1).map(drop)?))?;
            Ok((timing, None, "compared with ark-groth16 in tests".into()))
        });
    }
}
