//! Circuits that the program carries or makes.

use anyhow::Result;
use ark_bn254::{Bn254, Fr};
use ark_ff::Field;
use evariste_groth16::{Key, R1cs, Rows, Witness};

use crate::setup;

/// The key of a Merkle path of depth 2 with 212 constraints over BN254, from a set-up for tests.
pub(crate) const ZKEY: &[u8] = include_bytes!("../data/merkle/circuit.zkey");

/// A witness for it.
pub(crate) const WITNESS: &[u8] = include_bytes!("../data/merkle/witness.wtns");

/// Returns as many constraints xᵢ² = xᵢ₊₁ as fit a domain of 2^log, with the last x as the public input, and a witness.
/// The constant 1 and the public input take two rows.
fn squares(log: u32) -> Result<(R1cs<Fr>, Witness<Fr>)> {
    let count = (1_usize << log) - 2;
    // The constant 1, the public input, and then all values but the last.
    let place = |i: usize| if i == count { 1 } else { i + 2 };
    let rows = |shift: usize| -> Rows<Fr> { (0..count).map(|i| vec![(Fr::ONE, place(i + shift))]).collect() };
    let r1cs = R1cs::from_arkworks(&[rows(0), rows(0), rows(1)], count + 2, 1)?;
    let mut values = vec![Fr::ONE; count + 2];
    let mut x = Fr::from(2_u64);
    for i in 0..=count {
        values[place(i)] = x;
        x.square_in_place();
    }
    Ok((r1cs, Witness::new(values)?))
}

/// Returns an insecure key whose domain has the size 2^log, and a witness.
pub(crate) fn of_size(log: u32) -> Result<(Key<Bn254>, Witness<Fr>)> {
    let (r1cs, witness) = squares(log)?;
    Ok((Key::insecure(&r1cs, &mut setup::rng()?)?, witness))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn squares_satisfy_their_constraints() {
        for log in [2, 5] {
            let (r1cs, witness) = squares(log).unwrap();
            r1cs.check(&witness).unwrap();
            assert_eq!(of_size(log).unwrap().0.log_domain(), log);
        }
    }
}
