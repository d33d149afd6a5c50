//! Proofs of many witnesses by the prover on the CPU.

use ark_bn254::{Bn254, Fr};
use ark_ff::Field;
use evariste_backend::Device;
use evariste_groth16::{Error, Prover, Witness};

use crate::data::Folder;

fn prover() -> (Prover<Bn254>, Witness<Fr>) {
    let folder = Folder::new::<Bn254>("chain");
    (Prover::new(&Device::cpu(), &folder.key()).unwrap(), folder.witness())
}

/// The errors stand where the witnesses do, and the proofs between them hold.
pub(crate) fn errors_take_the_place_of_proofs() {
    let (prover, good) = prover();
    let mut values = good.values().to_vec();
    let last = values.len() - 1;
    values[last] += Fr::ONE;
    let (wrong, short) = (Witness::new(values.clone()).unwrap(), Witness::new(values[..last].to_vec()).unwrap());
    let unread = Error::WitnessOne;
    let witnesses = [Ok(&good), Ok(&wrong), Err(unread.clone()), Ok(&short), Ok(&good)];
    let mut read = 0;
    let mut proofs = prover.proofs(witnesses.into_iter().inspect(|_| read += 1)).unwrap();
    let mut made = Vec::new();
    let mut expect_good = |claim: Option<Result<_, Error>>| made.push(claim.unwrap().unwrap());
    expect_good(proofs.next());
    assert_eq!(proofs.next().unwrap(), Err(Error::Rejected));
    assert_eq!(proofs.next().unwrap(), Err(unread));
    assert_eq!(proofs.next().unwrap(), Err(Error::WitnessLength { expected: last + 1, actual: last }));
    expect_good(proofs.next());
    assert!(proofs.next().is_none() && proofs.next().is_none());
    drop(proofs);
    assert_eq!(read, 5);
    prover.verifier().verify_batch(&made).unwrap();
    assert_eq!(made[0].1, good.public(prover.public_inputs()).unwrap());
    assert_ne!(made[0].0, made[1].0, "each proof has its own blinding");
}

/// The iterator reads one witness ahead, however many there are.
pub(crate) fn witnesses_are_read_when_they_are_due() {
    let (prover, witness) = prover();
    let read = std::cell::Cell::new(0);
    let endless = std::iter::repeat_with(|| {
        read.set(read.get() + 1);
        Ok(witness.clone())
    });
    let mut proofs = prover.proofs(endless).unwrap();
    for done in 1..=4 {
        proofs.next().unwrap().unwrap();
        assert_eq!(read.get(), done + 1);
    }
}

pub(crate) fn many_proofs_hold() {
    let (prover, witness) = prover();
    let public = witness.public(prover.public_inputs()).unwrap();
    for count in [0, 1, 2, 5] {
        let proofs = prover.prove_many(vec![&witness; count]).unwrap();
        assert_eq!(proofs.len(), count);
        let claims: Vec<_> = proofs.into_iter().map(|proof| (proof, public.to_vec())).collect();
        prover.verifier().verify_batch(&claims).unwrap();
    }
    let short = Witness::new(vec![Fr::ONE]).unwrap();
    assert!(matches!(prover.prove_many([&witness, &short, &witness]), Err(Error::WitnessLength { actual: 1, .. })));
}
