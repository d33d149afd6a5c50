//! Circuits that the program carries or makes.

use anyhow::Result;
use ark_bn254::{Bn254, Fr};
use evariste_groth16::{Key, Witness, reference};

use crate::setup;

/// The key of a Merkle path of depth 2 with 212 constraints over BN254, from a set-up for tests.
pub(crate) const ZKEY: &[u8] = include_bytes!("../data/merkle/circuit.zkey");

/// A witness for it.
pub(crate) const WITNESS: &[u8] = include_bytes!("../data/merkle/witness.wtns");

/// Returns an insecure key whose domain has the size 2^log, and a witness.
pub(crate) fn of_size(log: u32) -> Result<(Key<Bn254>, Witness<Fr>)> {
    let (r1cs, witness) = reference::squares(log)?;
    Ok((Key::insecure(&r1cs, &mut setup::rng()?)?, witness))
}
