//! Verification.

use std::time::Instant;

use anyhow::{Error, Result};
use evariste_groth16::{CircomCurve, Curve, Error as Groth16Error, JsonProblem, Verifier, snarkjs};
use serde_json::json;

use crate::{
    arguments::Verify,
    exit::InvalidProof,
    files,
    outcome::{Outcome, milliseconds},
};

/// Verifies a proof.
pub(crate) fn run(arguments: &Verify) -> Result<Outcome> {
    let key = files::text(&arguments.key)?;
    let curve = snarkjs::curve_of_verifying_key(&key).map_err(|error| error.in_file(&arguments.key))?;
    match curve {
        Curve::Bn254 => verify::<ark_bn254::Bn254>(arguments, &key),
        Curve::Bls12381 => verify::<ark_bls12_381::Bls12_381>(arguments, &key),
    }
}

fn verify<E: CircomCurve>(arguments: &Verify, key: &str) -> Result<Outcome> {
    let Verify { key: key_path, proof: proof_path, public: public_path } = arguments;
    let key = snarkjs::read_verifying_key::<E>(key).map_err(|error| error.in_file(key_path))?;
    let (proof, public) = (files::text(proof_path)?, files::text(public_path)?);
    let public = snarkjs::read_public::<E>(&public).map_err(|error| error.in_file(public_path))?;
    let verifier = Verifier::new(&key).map_err(|error| Error::from(error).context(key_path.display().to_string()))?;
    let start = Instant::now();
    let verdict = snarkjs::read_proof::<E>(&proof).and_then(|proof| verifier.verify(&proof, &public));
    let json = json!({ "curve": E::NAME, "verify_ms": milliseconds(start.elapsed()) });
    let with_verdict = |valid: bool| {
        let mut json = json.clone();
        json["valid"] = valid.into();
        json
    };
    match verdict {
        Ok(()) => Ok(Outcome::new("valid", with_verdict(true))),
        Err(error) if is_of_proof(&error) => {
            let error = Error::from(error.in_file(proof_path)).context(InvalidProof);
            Ok(Outcome::new("", with_verdict(false)).with_error(Some(error)))
        }
        Err(error) => Err(error.in_file(proof_path).into()),
    }
}

/// Whether the proof is one by its form, and not valid.
fn is_of_proof(error: &Groth16Error) -> bool {
    use JsonProblem::{NotAffine, NotCanonical, Point};

    match error {
        Groth16Error::Rejected | Groth16Error::Point { .. } => true,
        Groth16Error::Json { problem, .. } => matches!(problem, Point { .. } | NotCanonical | NotAffine),
        _ => false,
    }
}
