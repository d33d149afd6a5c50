//! Files of circom's tools are read, written again as they were, and give proofs that hold.

use ark_bls12_381::Bls12_381;
use ark_bn254::{Bn254, Fr};
use ark_ff::{AdditiveGroup, Field, PrimeField, UniformRand};
use ark_std::test_rng;
use evariste_groth16::{
    Check, CircomCurve, Error, Key, Place, PointError, Problem, Quotient, R1cs, Verifier, Witness, reference, snarkjs,
};

use crate::data::Folder;

/// The circuit's proof by snarkjs holds here, and the reference prover's proof under snarkjs' key too.
fn proves<E: CircomCurve>(circuit: &str, constraints: usize) {
    let folder = Folder::new::<E>(circuit);
    let key = Key::<E>::from_zkey(folder.path("circuit.zkey")).unwrap();
    let witness = Witness::from_file(folder.path("witness.wtns")).unwrap();
    let r1cs = R1cs::<E::ScalarField>::from_file(folder.path("circuit.r1cs")).unwrap();
    assert_eq!(r1cs.constraints(), constraints);
    assert_eq!(key.quotient(), Quotient::Circom);
    assert_eq!(key.variables(), r1cs.variables());
    assert_eq!(key.variables(), witness.values().len());
    assert_eq!(key.public_inputs(), r1cs.public_inputs());
    assert_eq!(r1cs.labels().len(), r1cs.variables());
    r1cs.check(&witness).unwrap();

    let verifying_key = snarkjs::read_verifying_key::<E>(&folder.text("verification_key.json")).unwrap();
    assert_eq!(key.verifying_key(), &verifying_key);
    let public = snarkjs::read_public::<E>(&folder.text("public.json")).unwrap();
    assert_eq!(witness.public(key.public_inputs()).unwrap(), public);
    let verifier = Verifier::new(&verifying_key).unwrap();
    let theirs = snarkjs::read_proof::<E>(&folder.text("proof.json")).unwrap();
    verifier.verify(&theirs, &public).unwrap();

    let rng = &mut test_rng();
    let [r, s] = [(); 2].map(|()| E::ScalarField::rand(rng));
    let ours = reference::prove(&key, &witness, r, s).unwrap();
    verifier.verify(&ours, &public).unwrap();
    verifier.verify_batch(&[(theirs, public.clone()), (ours, public)]).unwrap();
}

pub(crate) fn snarkjs_files_prove() {
    proves::<Bn254>("multiplier", 1);
    proves::<Bn254>("chain", 61);
    proves::<Bn254>("merkle", 212);
    proves::<Bls12_381>("multiplier", 1);
    proves::<Bls12_381>("chain", 61);
}

fn written_as_read<E: CircomCurve>(circuit: &str) {
    let folder = Folder::new::<E>(circuit);
    let proof = snarkjs::read_proof::<E>(&folder.text("proof.json")).unwrap();
    let public = snarkjs::read_public::<E>(&folder.text("public.json")).unwrap();
    assert_eq!(snarkjs::write_proof::<E>(&proof), folder.text("proof.json").trim_end());
    assert_eq!(snarkjs::write_public::<E>(&public), folder.text("public.json").trim_end());
    assert_eq!(snarkjs::solidity_calldata::<E>(&proof, &public), folder.text("calldata.txt").trim_end());
    let text = folder.text("verification_key.json");
    let key = snarkjs::read_verifying_key::<E>(&text).unwrap();
    assert_eq!(snarkjs::write_verifying_key::<E>(&key), text.trim_end());

    // The sections of a written key are those of snarkjs, which has them in another order, and one more.
    let theirs = folder.bytes("circuit.zkey");
    let key = Key::<E>::from_zkey_bytes(&theirs, Check::Trusted).unwrap();
    let mut ours = Vec::new();
    key.write_zkey(&mut ours).unwrap();
    let [theirs, ours] = [theirs, ours].map(|bytes| {
        let (mut sections, mut rest) = (Vec::new(), &bytes[12..]);
        while let [a, b, c, d, tail @ ..] = rest {
            let (len, tail) = tail.split_at(8);
            let len = u64::from_le_bytes(len.try_into().unwrap()) as usize;
            sections.push((u32::from_le_bytes([*a, *b, *c, *d]), tail[..len].to_vec()));
            rest = &tail[len..];
        }
        sections.retain(|(number, _)| *number != 10);
        sections.sort();
        sections
    });
    assert_eq!(ours.len(), 9);
    assert!(ours == theirs, "{circuit} over {}", E::NAME);
    assert_eq!(Key::from_zkey_bytes(&folder.bytes("circuit.zkey"), Check::Curve).unwrap(), key);
}

pub(crate) fn files_are_written_as_snarkjs_writes_them() {
    written_as_read::<Bn254>("multiplier");
    written_as_read::<Bn254>("chain");
    written_as_read::<Bn254>("merkle");
    written_as_read::<Bls12_381>("multiplier");
    written_as_read::<Bls12_381>("chain");
}

pub(crate) fn a_wrong_witness_is_found() {
    let folder = Folder::new::<Bn254>("chain");
    let (r1cs, witness) = (folder.r1cs::<Fr>(), folder.witness::<Fr>());
    let mut values = witness.values().to_vec();
    let last = values.len() - 1;
    values[last] += Fr::ONE;
    let first = (0..r1cs.constraints()).find(|row| {
        [r1cs.a(), r1cs.b(), r1cs.c()].iter().any(|m| m.row(*row).any(|(column, _)| column as usize == last))
    });
    let wrong = Witness::new(values.clone()).unwrap();
    assert_eq!(r1cs.check(&wrong), Err(Error::Unsatisfied { constraint: first.unwrap() }));
    values.pop();
    let short = Witness::new(values).unwrap();
    assert_eq!(r1cs.check(&short), Err(Error::WitnessLength { expected: last + 1, actual: last }));
    assert_eq!(Witness::<Fr>::new(Vec::new()).unwrap_err(), Error::WitnessOne);
    assert_eq!(Witness::new(vec![Fr::from(2)]).unwrap_err(), Error::WitnessOne);
    assert_eq!(short.public(2).unwrap(), &witness.values()[1..3]);
    assert_eq!(short.public(last).unwrap_err(), Error::WitnessLength { expected: last + 1, actual: last });
    assert_eq!(short.public(usize::MAX).unwrap_err(), Error::WitnessLength { expected: usize::MAX, actual: last });
    assert_eq!(format!("{short:?}"), format!("Witness {{ len: {last}, .. }}"));

    let key = folder.key::<Bn254>();
    let verifier = Verifier::new(key.verifying_key()).unwrap();
    let proof = reference::prove(&key, &wrong, Fr::from(3), Fr::from(4)).unwrap();
    assert_eq!(verifier.verify(&proof, wrong.public(key.public_inputs()).unwrap()), Err(Error::Rejected));
    let refused = reference::prove(&key, &short, Fr::ZERO, Fr::ZERO);
    assert_eq!(refused.unwrap_err(), Error::WitnessLength { expected: last + 1, actual: last });
}

pub(crate) fn errors_name_the_file_the_section_and_the_offset() {
    let folder = Folder::new::<Bn254>("multiplier");
    let missing = folder.path("missing.zkey");
    let Err(Error::Io { path: Some(path), kind, .. }) = Key::<Bn254>::from_zkey(&missing) else {
        panic!("there is no such file");
    };
    assert_eq!((path, kind), (missing.clone(), std::io::ErrorKind::NotFound));
    // A folder, and a file of no bytes where the system has one.
    assert!(matches!(Key::<Bn254>::from_zkey(folder.path("")), Err(Error::Io { path: Some(_), .. })));
    let (place, problem) = (Place::Container, Problem::Truncated { expected: 4, actual: 0 });
    let empty = Error::File { path: None, place, offset: 0, problem };
    assert_eq!(Witness::<Fr>::from_bytes(&[]).unwrap_err(), empty);
    assert!(matches!(empty.in_file(&missing), Error::File { path: Some(path), .. } if path == missing));
    let path = folder.path("witness.wtns");
    let error = Key::<Bn254>::from_zkey(&path).unwrap_err();
    let problem = Problem::Format { expected: "zkey", actual: "wtns".to_owned() };
    assert_eq!(error, Error::File { path: Some(path.clone()), place: Place::Container, offset: 0, problem });
    assert!(error.to_string().starts_with(&path.display().to_string()), "{error}");

    // The witness' second value becomes the modulus.
    let mut bytes = folder.bytes("witness.wtns");
    let offset = bytes.len() - 3 * 32;
    let modulus: Vec<u8> = Fr::MODULUS.0.iter().flat_map(|limb| limb.to_le_bytes()).collect();
    bytes[offset..offset + 32].copy_from_slice(&modulus);
    let place = Place::Section { number: 2, name: "values" };
    let problem = Problem::NotCanonical { index: 1 };
    let expected = Error::File { path: None, place, offset: offset as u64, problem };
    assert_eq!(Witness::<Fr>::from_bytes(&bytes).unwrap_err(), expected);
    assert_eq!(expected.to_string(), format!("section 2 (values), byte {offset}: element 1 is not below the modulus"));
}

/// A point of H moves off the curve: the check says so, and trusting does not.
pub(crate) fn checks_are_made_as_chosen() {
    let folder = Folder::new::<Bls12_381>("multiplier");
    let key = folder.key::<Bls12_381>();
    let mut bytes = Vec::new();
    key.write_zkey(&mut bytes).unwrap();
    let offset = bytes.len() - 96;
    bytes[offset] ^= 1;
    let place = Place::Section { number: 9, name: "H" };
    let index = key.domain_size() as u64 - 1;
    for check in [Check::Full, Check::Curve] {
        let problem = Problem::Point { index, kind: PointError::NotOnCurve };
        let expected = Error::File { path: None, place, offset: offset as u64, problem };
        assert_eq!(Key::<Bls12_381>::from_zkey_bytes(&bytes, check).unwrap_err(), expected);
    }
    assert!(Key::<Bls12_381>::from_zkey_bytes(&bytes, Check::Trusted).is_ok());

    // x = 4 gives a point of the curve of another order.
    let x = ark_bls12_381::Fq::from(4);
    let y = (x * x * x + ark_bls12_381::Fq::from(4)).sqrt().unwrap();
    for (at, coordinate) in [(offset, x), (offset + 48, y)] {
        let limbs: Vec<u8> = coordinate.0.0.iter().flat_map(|limb| limb.to_le_bytes()).collect();
        bytes[at..at + 48].copy_from_slice(&limbs);
    }
    let problem = Problem::Point { index, kind: PointError::NotInSubgroup };
    let expected = Error::File { path: None, place, offset: offset as u64, problem };
    assert_eq!(Key::<Bls12_381>::from_zkey_bytes(&bytes, Check::Full).unwrap_err(), expected);
    assert!(Key::<Bls12_381>::from_zkey_bytes(&bytes, Check::Curve).is_ok());
}
