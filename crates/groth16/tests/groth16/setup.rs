//! Keys of the insecure set-up.

use ark_bls12_381::Bls12_381;
use ark_bn254::{Bn254, Fr};
use ark_ec::AffineRepr;
use ark_ff::UniformRand;
use ark_std::test_rng;
use evariste_groth16::{Check, CircomCurve, Error, Key, R1cs, Verifier, Witness, reference};

use crate::data::Folder;

/// Proofs under a key of our own hold, also after it was written and read.
fn proves<E: CircomCurve>(circuit: &str) {
    let folder = Folder::new::<E>(circuit);
    let rng = &mut test_rng();
    let (r1cs, witness) = (folder.r1cs(), folder.witness());
    let key = Key::<E>::insecure(&r1cs, rng).unwrap();
    let theirs = folder.key::<E>();
    assert_eq!((key.a(), key.b()), (theirs.a(), theirs.b()), "the matrices depend on the circuit alone");
    let zeros = |key: &Key<E>| key.a_query().iter().map(AffineRepr::is_zero).collect::<Vec<_>>();
    assert_eq!(zeros(&key), zeros(&theirs));
    let mut bytes = Vec::new();
    key.write_zkey(&mut bytes).unwrap();
    assert_eq!(Key::from_zkey_bytes(&bytes, Check::Full).unwrap(), key);

    let verifier = Verifier::new(key.verifying_key()).unwrap();
    let [r, s] = [(); 2].map(|()| E::ScalarField::rand(rng));
    let proof = reference::prove(&key, &witness, r, s).unwrap();
    let public = witness.public(key.public_inputs()).unwrap();
    verifier.verify(&proof, public).unwrap();
    let other = Verifier::new(theirs.verifying_key()).unwrap();
    assert_eq!(other.verify(&proof, public), Err(Error::Rejected));
}

pub(crate) fn keys_of_our_own_prove() {
    proves::<Bn254>("multiplier");
    proves::<Bn254>("chain");
    proves::<Bn254>("merkle");
    proves::<Bls12_381>("multiplier");
    proves::<Bls12_381>("chain");
}

/// No constraint but that of the constant 1, and public inputs that nothing constrains.
pub(crate) fn the_least_circuits_prove() {
    let rng = &mut test_rng();
    for (constraints, public) in [(0, 0), (1, 0), (0, 1), (1, 2)] {
        let rows = vec![Vec::new(); constraints];
        let matrices = [rows.clone(), rows.clone(), rows];
        let r1cs = R1cs::<Fr>::from_arkworks(&matrices, public + 1, public).unwrap();
        let key = Key::<Bn254>::insecure(&r1cs, rng).unwrap();
        let witness = Witness::new((1..=public as u64 + 1).map(Fr::from).collect()).unwrap();
        r1cs.check(&witness).unwrap();
        let mut bytes = Vec::new();
        key.write_zkey(&mut bytes).unwrap();
        assert_eq!(Key::from_zkey_bytes(&bytes, Check::Full).unwrap(), key);
        let proof = reference::prove(&key, &witness, Fr::rand(rng), Fr::rand(rng)).unwrap();
        let verifier = Verifier::new(key.verifying_key()).unwrap();
        verifier.verify(&proof, witness.public(public).unwrap()).unwrap();
        verifier.verify_batch(&vec![(proof, witness.public(public).unwrap().to_vec()); 3]).unwrap();
    }
}

pub(crate) fn squares_satisfy_their_constraints() {
    for log in [2, 5] {
        let (r1cs, witness) = reference::squares::<Fr>(log).unwrap();
        r1cs.check(&witness).unwrap();
        assert_eq!(Key::<Bn254>::insecure(&r1cs, &mut test_rng()).unwrap().log_domain(), log);
    }
    for log in [0, 1, 28, 64, u32::MAX] {
        let refused = reference::squares::<Fr>(log).unwrap_err();
        assert!(matches!(refused, Error::Domain { largest, .. } if largest == 1 << 27), "{refused}");
    }
}

/// The set-up draws its secrets from the generator that it is given.
pub(crate) fn keys_differ_by_their_secrets() {
    let r1cs = Folder::new::<Bn254>("multiplier").r1cs::<Fr>();
    let rng = &mut test_rng();
    let [first, second] = [(); 2].map(|()| Key::<Bn254>::insecure(&r1cs, rng).unwrap());
    let again = Key::<Bn254>::insecure(&r1cs, &mut test_rng()).unwrap();
    assert_eq!(first, again);
    assert_ne!(first.verifying_key(), second.verifying_key());
    assert!(first.h_query().iter().zip(second.h_query()).all(|(a, b)| a != b));
}
