//! Times of proofs.

use std::{
    path::Path,
    time::{Duration, Instant},
};

use anyhow::{Context, Result};
use evariste_backend::Device;
use evariste_groth16::{CircomCurve, Claim, Curve, Key, Prover, Witness};
use serde_json::json;

use crate::{
    arguments::Bench,
    circuit, devices,
    outcome::{Outcome, milliseconds, time},
    progress::{Items, Step},
};

/// Times proofs with a key from a file or of a size.
pub(crate) fn run(arguments: &Bench) -> Result<Outcome> {
    let device = devices::open(&arguments.target)?;
    if let Some(log) = arguments.log_size {
        let start = Instant::now();
        let (key, witness) = {
            let _step = Step::new("computing a key");
            circuit::of_size(log)?
        };
        return bench::<ark_bn254::Bn254>(arguments, &device, key, &witness, start.elapsed());
    }
    // clap asks for both without a size.
    let (zkey, wtns) = arguments.zkey.as_deref().zip(arguments.wtns.as_deref()).context("--zkey and --wtns")?;
    match Curve::of_zkey(zkey)? {
        Curve::Bn254 => from_files::<ark_bn254::Bn254>(arguments, &device, zkey, wtns),
        Curve::Bls12381 => from_files::<ark_bls12_381::Bls12_381>(arguments, &device, zkey, wtns),
    }
}

fn from_files<E: CircomCurve>(arguments: &Bench, device: &Device, zkey: &Path, wtns: &Path) -> Result<Outcome> {
    let start = Instant::now();
    let key = {
        let _step = Step::new("reading the key");
        Key::<E>::from_zkey_with(zkey, arguments.choices.check())?
    };
    let elapsed = start.elapsed();
    bench(arguments, device, key, &Witness::from_file(wtns)?, elapsed)
}

/// Times one proof after the other, and then as many side by side. All of them are verified afterwards.
fn bench<E: CircomCurve>(
    arguments: &Bench,
    device: &Device,
    key: Key<E>,
    witness: &Witness<E::ScalarField>,
    reading: Duration,
) -> Result<Outcome> {
    let (variables, domain) = (key.variables(), key.domain_size());
    let start = Instant::now();
    let prover = Prover::with_config(device, &key, arguments.choices.config().verify(false))?;
    let preparing = start.elapsed();
    drop(key);
    let public = witness.public(prover.public_inputs())?;
    let mut claims: Vec<Claim<E>> = Vec::new();
    let mut prove = || -> Result<Duration> {
        let start = Instant::now();
        let proof = prover.prove(witness)?;
        let elapsed = start.elapsed();
        claims.push((proof, public.to_vec()));
        Ok(elapsed)
    };
    let first = prove()?;
    let count = arguments.count;
    let progress = Items::new("proving", count.into());
    let mut single = Vec::new();
    for done in 1..=count {
        single.push(prove()?);
        progress.set(done.into());
    }
    drop(progress);
    single.sort_unstable();
    let start = Instant::now();
    for claim in prover.proofs((0..count).map(|_| Ok(witness)))? {
        claims.push(claim?);
    }
    let many = start.elapsed() / count;
    let start = Instant::now();
    prover.verifier().verify(&claims[0].0, public).context("a proof of the bench")?;
    let verifying = start.elapsed();
    prover.verifier().verify_batch(&claims).context("the proofs of the bench")?;

    let (median, least) = (single[single.len() / 2], single[0]);
    let row = |name: &str, value: Duration| format!("{name:<18} {:>12}\n", time(value));
    let text = format!(
        "{variables} variables, a domain of {domain}, {}, {device}\n{}{}{}{}{}{}{}{} proofs, each verified",
        E::NAME,
        row("key read or made", reading),
        row("key on the device", preparing),
        row("first proof", first),
        row("median proof", median),
        row("fastest proof", least),
        row("many, each", many),
        row("verification", verifying),
        claims.len(),
    );
    let json = json!({
        "curve": E::NAME,
        "variables": variables,
        "domain": domain,
        "device": device.info().id.to_string(),
        "device_name": device.info().name,
        "count": count,
        "key_ms": milliseconds(reading),
        "prepare_ms": milliseconds(preparing),
        "first_ms": milliseconds(first),
        "median_ms": milliseconds(median),
        "least_ms": milliseconds(least),
        "many_each_ms": milliseconds(many),
        "verify_ms": milliseconds(verifying),
    });
    Ok(Outcome::new(text, json))
}
