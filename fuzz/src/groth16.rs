use std::str;

use ark_bls12_381::Bls12_381;
use ark_bn254::Bn254;
use evariste_groth16::{Check, CircomCurve, Curve, Error, Key, R1cs, Result, Witness, snarkjs};

pub(crate) const FILES: &[&[u8]] = &[
    include_bytes!("../../crates/groth16/tests/data/multiplier-bn128/circuit.zkey"),
    include_bytes!("../../crates/groth16/tests/data/multiplier-bls12381/circuit.zkey"),
    include_bytes!("../../crates/groth16/tests/data/multiplier-bn128/circuit.r1cs"),
    include_bytes!("../../crates/groth16/tests/data/multiplier-bls12381/circuit.r1cs"),
    include_bytes!("../../crates/groth16/tests/data/multiplier-bn128/witness.wtns"),
    include_bytes!("../../crates/groth16/tests/data/multiplier-bls12381/witness.wtns"),
];

pub(crate) const TEXTS: &[&[u8]] = &[
    include_bytes!("../../crates/groth16/tests/data/multiplier-bn128/proof.json"),
    include_bytes!("../../crates/groth16/tests/data/multiplier-bls12381/proof.json"),
    include_bytes!("../../crates/groth16/tests/data/multiplier-bn128/public.json"),
    include_bytes!("../../crates/groth16/tests/data/multiplier-bn128/verification_key.json"),
    include_bytes!("../../crates/groth16/tests/data/multiplier-bls12381/verification_key.json"),
];

/// Files of circom's tools: keys, constraints and witnesses, of both curves. What is read fits together, and a key is
/// the same after it was written and read again; all else is an error about the file.
///
/// # Panics
/// If anything else happens.
pub fn circom_files(data: &[u8]) {
    files::<Bn254>(data);
    files::<Bls12_381>(data);
}

fn files<E: CircomCurve>(data: &[u8]) {
    let curve = read(Curve::of_zkey_bytes(data));
    if let Some(key) = read(Key::<E>::from_zkey_bytes(data, Check::Curve)) {
        assert_eq!(curve.map(Curve::name), Some(E::NAME));
        assert!(key.public_inputs() < key.variables());
        assert_eq!(key.h_query().len(), key.domain_size());
        for matrix in [key.a(), key.b()] {
            assert_eq!((matrix.rows(), matrix.width()), (key.domain_size(), key.variables()));
        }
        let mut bytes = Vec::new();
        assert_eq!(key.write_zkey(&mut bytes), Ok(()), "memory takes all that is written");
        assert_eq!(read(Key::from_zkey_bytes(&bytes, Check::Trusted)).as_ref(), Some(&key));
    }
    let witness = read(Witness::<E::ScalarField>::from_bytes(data));
    assert!(witness.is_none_or(|witness| witness.values()[0] == E::ScalarField::from(1_u64)));
    if let Some(r1cs) = read(R1cs::<E::ScalarField>::from_bytes(data)) {
        assert!(r1cs.public_inputs() < r1cs.variables());
        let sizes = [r1cs.a(), r1cs.b(), r1cs.c()].map(|matrix| (matrix.rows(), matrix.width()));
        assert_eq!(sizes, [(r1cs.constraints(), r1cs.variables()); 3]);
    }
}

fn read<T>(result: Result<T>) -> Option<T> {
    match result {
        Ok(value) => Some(value),
        Err(Error::File { .. }) => None,
        Err(error) => panic!("not an error about the file: {error}"),
    }
}

/// Proofs, public inputs and verifying keys as JSON, of both curves. What is read is the same after it was written and
/// read again; all else is an error about the text.
///
/// # Panics
/// If anything else happens.
pub fn snarkjs_texts(data: &[u8]) {
    if let Ok(text) = str::from_utf8(data) {
        texts::<Bn254>(text);
        texts::<Bls12_381>(text);
    }
}

fn texts<E: CircomCurve>(text: &str) {
    same(text, snarkjs::read_proof::<E>, |proof| snarkjs::write_proof::<E>(proof));
    same(text, snarkjs::read_public::<E>, |public| snarkjs::write_public::<E>(public));
    same(text, snarkjs::read_verifying_key::<E>, |key| snarkjs::write_verifying_key::<E>(key));
}

fn same<T: PartialEq>(text: &str, read: fn(&str) -> Result<T>, write: fn(&T) -> String) {
    match read(text) {
        Ok(value) => assert!(read(&write(&value)) == Ok(value), "what was written says something else"),
        Err(Error::Json { .. }) => {}
        Err(error) => panic!("not an error about the text: {error}"),
    }
}
