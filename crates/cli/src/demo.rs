//! A circuit that the program carries.

use std::{
    fs,
    io::Write,
    path::Path,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};
use ark_bn254::Bn254;
use ark_ff::Field;
use evariste_groth16::{Check, CircomCurve, Claim, Error as Groth16Error, Key, Prover, Witness, snarkjs};
use serde_json::json;

use crate::{
    arguments::Demo,
    circuit::{WITNESS, ZKEY},
    devices,
    files::Aside,
    outcome::{Outcome, milliseconds, time},
    progress::Step,
};

/// Proves the circuit twice, and verifies the proofs.
pub(crate) fn run(arguments: &Demo) -> Result<Outcome> {
    let device = devices::open(&arguments.target)?;
    let step = Step::new("preparing the key");
    let start = Instant::now();
    let key = Key::<Bn254>::from_zkey_bytes(ZKEY, Check::Full)?;
    let witness = Witness::from_bytes(WITNESS)?;
    // Verification stands apart below.
    let prover = Prover::with_config(&device, &key, evariste_groth16::ProverConfig::default().verify(false))?;
    let preparing = start.elapsed();
    drop(step);
    let prove = || -> Result<_> {
        let start = Instant::now();
        Ok((prover.prove(&witness)?, start.elapsed()))
    };
    let ((first_proof, first), (proof, next)) = (prove()?, prove()?);
    let mut public = witness.public(prover.public_inputs())?.to_vec();
    let start = Instant::now();
    prover.verifier().verify(&first_proof, &public)?;
    let verifying = start.elapsed();
    prover.verifier().verify(&proof, &public)?;
    let claim = (proof, public.clone());
    public.iter_mut().for_each(|input| *input += ark_bn254::Fr::ONE);
    let refused = prover.verifier().verify(&claim.0, &public);
    ensure!(refused == Err(Groth16Error::Rejected), "the proof was not refused for other public inputs");

    let mut text = described(&device.to_string(), &[preparing, first, next, verifying]);
    if let Some(folder) = &arguments.out_dir {
        write(folder, &key, &claim)?;
        let at = |name: &str| folder.join(name).display().to_string();
        text.push_str(&format!(
            "\n\nTo go on:\n  evariste prove --zkey {} --wtns {} --proof {} --public {}\n  evariste verify --key {} \
             --proof {} --public {}",
            at("circuit.zkey"),
            at("witness.wtns"),
            at("proof.json"),
            at("public.json"),
            at("verification_key.json"),
            at("proof.json"),
            at("public.json"),
        ));
    }
    let json = json!({
        "curve": Bn254::NAME,
        "device": device.info().id.to_string(),
        "device_name": device.info().name,
        "prepare_ms": milliseconds(preparing),
        "first_ms": milliseconds(first),
        "next_ms": milliseconds(next),
        "verify_ms": milliseconds(verifying),
        "valid": true,
    });
    Ok(Outcome::new(text, json))
}

fn described(device: &str, times: &[Duration; 4]) -> String {
    let names = ["key on the device", "first proof", "next proof", "verification"];
    let rows = names.iter().zip(times).map(|(name, value)| format!("{name:<18} {:>12}\n", time(*value)));
    format!(
        "You know a leaf of the Merkle tree with a public root: 212 constraints of circom, BN254, on {device}.\n{}Both \
         proofs are valid, and refused for another root.",
        rows.collect::<String>()
    )
}

/// Writes what the other commands and snarkjs read.
fn write(folder: &Path, key: &Key<Bn254>, (proof, public): &Claim<Bn254>) -> Result<()> {
    fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
    let text = |text: String| (text + "\n").into_bytes();
    let aside = |name: &str, contents: &[u8]| -> Result<Aside> {
        let path = folder.join(name);
        let mut aside = Aside::new(&path)?;
        aside.file().write_all(contents).with_context(|| path.display().to_string())?;
        Ok(aside)
    };
    Aside::finish(vec![
        aside("circuit.zkey", ZKEY)?,
        aside("witness.wtns", WITNESS)?,
        aside("verification_key.json", &text(snarkjs::write_verifying_key::<Bn254>(key.verifying_key())))?,
        aside("proof.json", &text(snarkjs::write_proof::<Bn254>(proof)))?,
        aside("public.json", &text(snarkjs::write_public::<Bn254>(public)))?,
    ])
}
