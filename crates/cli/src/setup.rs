//! Keys for tests and benches.

use std::{io::Write, time::Instant};

use anyhow::{Context, Result, anyhow};
use ark_std::rand::{SeedableRng, rngs::StdRng};
use evariste_groth16::{CircomCurve, Curve, Key, R1cs, snarkjs};
use serde_json::json;
use zeroize::Zeroizing;

use crate::{
    arguments::Setup,
    exit::Usage,
    files::{self, Aside},
    outcome::{Outcome, milliseconds, path, time},
    progress::Step,
};

/// Makes a key whose secrets this program knew.
pub(crate) fn run(arguments: &Setup) -> Result<Outcome> {
    if !arguments.insecure {
        let reason = "the secrets of this set-up exist in the memory of one machine, and with them anybody can prove \
                      anything. Keys for others come from a ceremony (snarkjs powersoftau, snarkjs groth16 setup). For \
                      tests and benches, add --insecure";
        return Err(Usage(reason.to_owned()).into());
    }
    files::expect_targets([&arguments.zkey, &arguments.key])?;
    match Curve::of_r1cs(&arguments.r1cs)? {
        Curve::Bn254 => setup::<ark_bn254::Bn254>(arguments),
        Curve::Bls12381 => setup::<ark_bls12_381::Bls12_381>(arguments),
    }
}

fn setup<E: CircomCurve>(arguments: &Setup) -> Result<Outcome> {
    let start = Instant::now();
    let step = Step::new("computing the key");
    let r1cs = R1cs::<E::ScalarField>::from_file(&arguments.r1cs)?;
    let key = Key::<E>::insecure(&r1cs, &mut rng()?).with_context(|| arguments.r1cs.display().to_string())?;
    let (mut zkey, mut verifying) = (Aside::new(&arguments.zkey)?, Aside::new(&arguments.key)?);
    key.write_zkey(zkey.file()).map_err(|error| error.in_file(&arguments.zkey))?;
    let text = snarkjs::write_verifying_key::<E>(key.verifying_key());
    writeln!(verifying.file(), "{text}").with_context(|| arguments.key.display().to_string())?;
    Aside::finish(vec![zkey, verifying])?;
    drop(step);
    let text = format!(
        "{} and {}: an insecure key for {} constraints, {}",
        arguments.zkey.display(),
        arguments.key.display(),
        r1cs.constraints(),
        time(start.elapsed())
    );
    let json = json!({
        "curve": E::NAME,
        "constraints": r1cs.constraints(),
        "variables": r1cs.variables(),
        "public_inputs": r1cs.public_inputs(),
        "zkey": path(&arguments.zkey),
        "key": path(&arguments.key),
        "setup_ms": milliseconds(start.elapsed()),
    });
    Ok(Outcome::new(text, json))
}

/// A generator with a seed of the system.
pub(crate) fn rng() -> Result<StdRng> {
    let mut seed = Zeroizing::new([0; 32]);
    getrandom::fill(&mut *seed).map_err(|error| anyhow!("the system gives no random numbers: {error}"))?;
    Ok(StdRng::from_seed(*seed))
}
