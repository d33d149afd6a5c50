//! Proofs of circom's circuits, compared with those of the prover on the host and verified.

use std::thread;

use ark_bls12_381::Bls12_381;
use ark_bn254::Bn254;
use ark_ff::UniformRand;
use ark_std::rand::{SeedableRng, rngs::StdRng};
use evariste::backend::{self, Device, Secrecy, Transfer};
use evariste::groth16::{
    Check, CircomCurve, Error, Key, Prover, ProverConfig, R1cs, Stage, Verifier, Witness, reference,
};
use libtest_mimic::Failed;

use crate::{
    area::Area,
    devices::is_emulated,
    expect::{expect, expect_equal, expect_error},
    harness::{DeviceTrials, Outcome},
    prepared::quietly,
};

pub(crate) const AREA: Area = Area { prepared: Some(prepared), ..Area::new("groth16", add) };

/// A circuit's files, of `crates/groth16/tests/data`.
struct Circuit {
    name: &'static str,
    key: &'static [u8],
    witness: &'static [u8],
    constraints: &'static [u8],
}

macro_rules! circuit {
    ($name:literal) => {
        Circuit {
            name: $name,
            key: include_bytes!(concat!("../../../groth16/tests/data/", $name, "/circuit.zkey")),
            witness: include_bytes!(concat!("../../../groth16/tests/data/", $name, "/witness.wtns")),
            constraints: include_bytes!(concat!("../../../groth16/tests/data/", $name, "/circuit.r1cs")),
        }
    };
}

const BN254: [Circuit; 3] = [circuit!("multiplier-bn128"), circuit!("chain-bn128"), circuit!("merkle-bn128")];

const BLS12_381: [Circuit; 2] = [circuit!("multiplier-bls12381"), circuit!("chain-bls12381")];

fn add(trials: &mut DeviceTrials<'_>) {
    // Emulated GPUs take minutes to compile sums over G2. The trials of sums have short curves.
    if is_emulated(trials.device) {
        trials.skip("bn254::proofs", "emulated: kernels of sums over G2 take minutes to compile");
        return;
    }
    trials.add("bn254::proofs", |device| proofs::<Bn254>(device, &BN254));
    trials.add("bls12-381::proofs", |device| proofs::<Bls12_381>(device, &BLS12_381));
    trials.add("bn254::least_circuits", least_circuits);
    trials.add("bn254::many", many);
    trials.add("bn254::misuse", misuse);
    trials.add_alone("bn254::memory", memory);
}

impl Circuit {
    fn key<E: CircomCurve>(&self) -> Result<Key<E>, Failed> {
        Ok(Key::from_zkey_bytes(self.key, Check::Curve)?)
    }

    fn witness<E: CircomCurve>(&self) -> Result<Witness<E::ScalarField>, Failed> {
        Ok(Witness::from_bytes(self.witness)?)
    }
}

/// With the same blinding, proofs are those of the prover on the host.
fn proofs<E: CircomCurve>(device: &Device, circuits: &[Circuit]) -> Outcome {
    for circuit in circuits {
        let (key, witness) = (circuit.key::<E>()?, circuit.witness::<E>()?);
        let verifier = Verifier::new(key.verifying_key())?;
        for tables in [0, 1 << 20] {
            let prover = Prover::with_config(device, &key, ProverConfig::default().tables(tables))?;
            expect_equal("the variables", &prover.variables(), &key.variables())?;
            let what = format!("the proof of {} with tables of {tables} bytes", circuit.name);
            for seed in 0..2 {
                let proof = prover.prove_with(&witness, &mut StdRng::seed_from_u64(seed))?;
                let rng = &mut StdRng::seed_from_u64(seed);
                let (r, s) = (E::ScalarField::rand(rng), E::ScalarField::rand(rng));
                expect(&what, proof == reference::prove(&key, &witness, r, s)?)?;
            }
            let [first, second] = [prover.prove(&witness)?, prover.prove(&witness)?];
            expect("two proofs of one witness differ: that", first != second)?;
            verifier.verify(&second, witness.public(key.public_inputs())?)?;
        }
    }
    Ok(())
}

/// Circuits without constraints, without variables but the constant, and with an empty B; and a few squares.
fn least_circuits(device: &Device) -> Outcome {
    type F = ark_bn254::Fr;
    let mut circuits = vec![reference::squares::<F>(2)?, reference::squares::<F>(5)?];
    for (constraints, public) in [(0, 0), (1, 0), (0, 1), (1, 2)] {
        let rows = vec![Vec::new(); constraints];
        let r1cs = R1cs::from_arkworks(&[rows.clone(), rows.clone(), rows], public + 1, public)?;
        circuits.push((r1cs, Witness::new((1..=public as u64 + 1).map(F::from).collect())?));
    }
    for (r1cs, witness) in circuits {
        let key = Key::<Bn254>::insecure(&r1cs, &mut StdRng::seed_from_u64(3))?;
        let mut files = [Vec::new(), Vec::new()];
        key.write_zkey(&mut files[0])?;
        Key::<Bn254>::insecure_on(device, &r1cs, &mut StdRng::seed_from_u64(3))?.write_zkey(&mut files[1])?;
        expect("the key whose points a device computed is that of the host", files[0] == files[1])?;
        let proof = Prover::new(device, &key)?.prove_with(&witness, &mut StdRng::seed_from_u64(4))?;
        let rng = &mut StdRng::seed_from_u64(4);
        let (r, s) = (F::rand(rng), F::rand(rng));
        let what = format!("the proof of {} constraints, {} public", r1cs.constraints(), r1cs.public_inputs());
        expect(&what, proof == reference::prove(&key, &witness, r, s)?)?;
    }
    Ok(())
}

/// A new prover has compiled what proofs launch. Devices that the processor emulates take minutes for that.
fn prepared(device: &Device) -> Outcome {
    if device.info().features.software {
        return Ok(());
    }
    let circuit = &BN254[1];
    let (key, witness) = (circuit.key::<Bn254>()?, circuit.witness::<Bn254>()?);
    let prover = Prover::new(device, &key)?;
    quietly(device, "a proof", || Ok(prover.prove(&witness).map(drop)?))
}

/// Many proofs at once, in several threads, on one prover.
fn many(device: &Device) -> Outcome {
    let circuit = &BN254[1];
    let (key, witness) = (circuit.key::<Bn254>()?, circuit.witness::<Bn254>()?);
    let prover = Prover::new(device, &key)?;
    let public = witness.public(key.public_inputs())?.to_vec();
    for count in [0, 1, 2, 5] {
        let proofs = prover.prove_many(vec![&witness; count])?;
        expect_equal("the proofs", &proofs.len(), &count)?;
        let claims: Vec<_> = proofs.into_iter().map(|proof| (proof, public.clone())).collect();
        prover.verifier().verify_batch(&claims)?;
    }
    let mut memory = prover.pinned_memory()?;
    for _ in 0..3 {
        let (proof, given) = prover.prove_pinned(prover.pin(&witness, memory)?)?;
        prover.verifier().verify(&proof, &public)?;
        memory = given;
    }
    let (proof, stages) = prover.prove_profiled(&witness)?;
    prover.verifier().verify(&proof, &public)?;
    expect_equal(
        "the stages, of which the last one verifies",
        &stages.last().map(|(stage, _)| *stage),
        &Some(Stage::Finish),
    )?;
    expect_equal("the stages", &stages.len(), &10)?;
    // A thousand where that takes seconds.
    let each = if device.info().is_processor() { 2 } else { 125 };
    thread::scope(|scope| {
        let work = || prover.clone().prove_many(vec![&witness; each]);
        let threads: Vec<_> = (0..8).map(|_| scope.spawn(work)).collect();
        for thread in threads {
            let proofs = thread.join().map_err(|_| "a thread panicked")??;
            expect_equal("the proofs of a thread", &proofs.len(), &each)?;
            let claims: Vec<_> = proofs.into_iter().map(|proof| (proof, public.clone())).collect();
            prover.verifier().verify_batch(&claims)?;
        }
        Ok(())
    })
}

fn misuse(device: &Device) -> Outcome {
    let circuit = &BN254[1];
    let (key, witness) = (circuit.key::<Bn254>()?, circuit.witness::<Bn254>()?);
    let prover = Prover::new(device, &key)?;
    let expected = key.variables();
    for len in [1, expected - 1, expected + 1] {
        let values = witness.values().iter().copied().cycle().take(len).collect();
        let error = expect_error("a witness of another length", prover.prove(&Witness::new(values)?))?;
        expect_equal("the error", &error, &Error::WitnessLength { expected, actual: len })?;
        let values = witness.values().iter().copied().cycle().take(len).collect();
        let error = expect_error("its pinned memory", prover.pin(&Witness::new(values)?, prover.pinned_memory()?))?;
        expect_equal("the error", &error, &Error::WitnessLength { expected, actual: len })?;
    }
    let (other, others) = (BN254[0].key::<Bn254>()?, BN254[0].witness::<Bn254>()?);
    let other = Prover::new(device, &other)?;
    let refused = prover.prove_pinned(other.pin(&others, other.pinned_memory()?)?).map(drop);
    let error = expect_error("a witness that another prover has pinned", refused)?;
    expect_equal("the error", &error, &Error::WitnessLength { expected, actual: other.variables() })?;
    let bytes = other.pin(&others, other.pinned_memory()?)?.into_memory().len();
    expect_equal("bytes of memory that comes back", &bytes, &other.pinned_memory()?.len())?;
    let bytes = prover.pinned_memory()?.len();
    let unaligned = device.host_buffer(bytes + 4, Transfer::Upload, Secrecy::Secret)?.split_off(4);
    let error = expect_error("a part of memory", prover.pin(&witness, unaligned))?;
    expect(&format!("{error}"), matches!(error, Error::Device(backend::Error::Unaligned { .. })))?;
    for (bytes, secrecy) in [(bytes - 4, Secrecy::Secret), (0, Secrecy::Secret), (bytes, Secrecy::Public)] {
        let memory = device.host_buffer(bytes, Transfer::Upload, secrecy)?;
        let error = expect_error("memory that does not suit", prover.pin(&witness, memory))?;
        let suits = match secrecy {
            Secrecy::Secret => matches!(error, Error::Device(backend::Error::Length { .. })),
            Secrecy::Public => matches!(error, Error::Device(backend::Error::SecretInput { .. })),
        };
        expect(&format!("{error}"), suits)?;
    }
    let mut values = witness.values().to_vec();
    if let Some(last) = values.last_mut() {
        *last += ark_bn254::Fr::from(1u8);
    }
    let wrong = Witness::new(values)?;
    let constraints = R1cs::from_bytes(circuit.constraints)?;
    let unsatisfied = expect_error("the constraints", constraints.check(&wrong))?;
    expect(&format!("{unsatisfied}"), matches!(unsatisfied, Error::Unsatisfied { .. }))?;
    expect_equal("the error", &expect_error("a wrong witness", prover.prove(&wrong))?, &Error::Rejected)?;
    let pinned = prover.pin(&wrong, prover.pinned_memory()?)?;
    let refused = prover.prove_pinned(pinned).map(drop);
    expect_equal("the error", &expect_error("a wrong pinned witness", refused)?, &Error::Rejected)?;
    let error = expect_error("a wrong witness among others", prover.prove_many([&witness, &wrong, &witness]))?;
    expect_equal("the error", &error, &Error::Rejected)?;

    let trusting = Prover::with_config(device, &key, ProverConfig::default().verify(false))?;
    let proof = trusting.prove(&wrong)?;
    let public = wrong.public(key.public_inputs())?;
    expect_equal("the error", &expect_error("its proof", prover.verifier().verify(&proof, public))?, &Error::Rejected)?;
    prover.verifier().verify(&prover.prove(&witness)?, witness.public(key.public_inputs())?)?;
    Ok(())
}

/// Proofs leave no memory behind.
fn memory(device: &Device) -> Outcome {
    let circuit = &BN254[1];
    let (key, witness) = (circuit.key::<Bn254>()?, circuit.witness::<Bn254>()?);
    let before = device.stats().bytes_live;
    let prover = Prover::new(device, &key)?;
    prover.prove(&witness)?;
    device.sync()?;
    let held = device.stats().bytes_live;
    let required = Prover::required_bytes(device, &key, ProverConfig::default(), 0)?;
    expect(&format!("{} bytes of {required} are held: no more", held - before), held - before <= required)?;
    prover.prove_many(vec![&witness; 8])?;
    device.sync()?;
    expect_equal("the bytes that are held after proofs", &device.stats().bytes_live, &held)?;
    drop(prover);
    device.sync()?;
    expect(
        "no bytes stay behind a prover but those of the device's caches",
        device.stats().bytes_live <= before + (1 << 20),
    )
}
