//! Damaged files: every one gives a typed error, or a value that says what the file says. Nothing panics.

use ark_bls12_381::Bls12_381;
use ark_bn254::{Bn254, Fr};
use ark_ff::PrimeField;
use ark_std::{
    rand::{Rng, RngCore},
    test_rng,
};
use evariste_groth16::{Check, CircomCurve, Error, JsonProblem, Key, Place, Problem, R1cs, Result, Witness, snarkjs};
use rayon::prelude::*;

use crate::data::Folder;

/// A key without the list of contributions, of which proofs use nothing.
fn written_key<E: CircomCurve>(circuit: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    Folder::new::<E>(circuit).key::<E>().write_zkey(&mut bytes).unwrap();
    bytes
}

fn read_key<E: CircomCurve>(bytes: &[u8]) -> Result<Key<E>> {
    Key::from_zkey_bytes(bytes, Check::Curve)
}

fn read_witness<F: PrimeField>(bytes: &[u8]) -> Result<Vec<F>> {
    Witness::from_bytes(bytes).map(|witness| witness.values().to_vec())
}

/// Every length that is too short, some bytes too many, and every byte with one bit changed.
fn mutate<T: PartialEq + Sync>(bytes: &[u8], read: fn(&[u8]) -> Result<T>) {
    let Ok(value) = read(bytes) else { panic!("the file is valid") };
    (0..bytes.len()).into_par_iter().for_each(|len| {
        let error = read(&bytes[..len]).err();
        assert!(matches!(error, Some(Error::File { .. })), "the first {len} bytes are no file");
    });
    for more in [1, 4, 100] {
        let mut long = bytes.to_vec();
        long.resize(bytes.len() + more, 0);
        let Err(Error::File { place, problem, .. }) = read(&long) else { panic!("{more} bytes more are no file") };
        assert_eq!((place, problem), (Place::Container, Problem::Trailing { actual: more as u64 }));
    }
    (0..bytes.len()).into_par_iter().for_each(|at| {
        let mut changed = bytes.to_vec();
        changed[at] ^= 1 << (at * 5 % 8);
        match read(&changed) {
            Ok(other) => assert!(other != value, "byte {at} means nothing"),
            Err(Error::File { .. }) => {}
            Err(error) => panic!("byte {at}: {error}"),
        }
    });
}

pub(crate) fn damaged_keys_are_refused() {
    mutate(&written_key::<Bn254>("multiplier"), read_key::<Bn254>);
    mutate(&written_key::<Bls12_381>("multiplier"), read_key::<Bls12_381>);
    // A file by snarkjs, whose contributions are read over: no panic.
    let bytes = Folder::new::<Bn254>("multiplier").bytes("circuit.zkey");
    let rng = &mut test_rng();
    for _ in 0..200 {
        let mut changed = bytes.clone();
        (0..rng.gen_range(1..5)).for_each(|_| changed[rng.gen_range(0..bytes.len())] = rng.next_u32() as u8);
        let _ = read_key::<Bn254>(&changed);
    }
}

pub(crate) fn damaged_witnesses_are_refused() {
    mutate(&Folder::new::<Bn254>("chain").bytes("witness.wtns"), read_witness::<Fr>);
    mutate(&Folder::new::<Bls12_381>("chain").bytes("witness.wtns"), read_witness::<ark_bls12_381::Fr>);
}

pub(crate) fn damaged_constraints_are_refused() {
    let bytes = Folder::new::<Bn254>("multiplier").bytes("circuit.r1cs");
    let read: fn(&[u8]) -> Result<R1cs<Fr>> = R1cs::from_bytes;
    let value = read(&bytes).unwrap();
    // The numbers of secret inputs and of labels only bound others. The modulus of 32 bytes stands before them.
    let header = sections(&bytes).into_iter().find(|(number, _)| *number == 1).unwrap().1;
    let bounds = header.start + 12 + 4 + 32 + 12..header.end - 4;
    (0..bytes.len()).for_each(|len| assert!(matches!(read(&bytes[..len]), Err(Error::File { .. })), "{len} bytes"));
    for at in 0..bytes.len() {
        for bit in 0..8 {
            let mut changed = bytes.clone();
            changed[at] ^= 1 << bit;
            match read(&changed) {
                Ok(other) => assert!(other != value || bounds.contains(&at), "byte {at} means nothing"),
                Err(error) => assert!(matches!(error, Error::File { .. }), "byte {at}: {error}"),
            }
        }
    }
}

/// The places and lengths of sections.
fn sections(bytes: &[u8]) -> Vec<(u32, std::ops::Range<usize>)> {
    let (mut found, mut at) = (Vec::new(), 12);
    while at < bytes.len() {
        let number = u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
        let len = u64::from_le_bytes(bytes[at + 4..at + 12].try_into().unwrap()) as usize;
        found.push((number, at..at + 12 + len));
        at += 12 + len;
    }
    found
}

/// Sections twice, missing, of unknown numbers and of absurd lengths, and counts of elements that are not there.
fn damage_sections<T>(bytes: &[u8], read: fn(&[u8]) -> Result<T>) {
    let problem = |bytes: &[u8]| match read(bytes) {
        Err(Error::File { problem, place, .. }) => (problem, place),
        Err(error) => panic!("{error}"),
        Ok(_) => panic!("the file is damaged"),
    };
    let count = u32::from_le_bytes(bytes[8..12].try_into().unwrap());
    let with_count = |mut bytes: Vec<u8>, count: u32| {
        bytes[8..12].copy_from_slice(&count.to_le_bytes());
        bytes
    };
    for (number, range) in sections(bytes) {
        let is_it = |place| matches!(place, Place::Section { number: found, .. } if found == number);
        let mut twice = bytes.to_vec();
        twice.extend_from_slice(&bytes[range.clone()]);
        let (found, place) = problem(&with_count(twice, count + 1));
        assert!(found == Problem::Twice && is_it(place), "section {number} twice: {found}");

        let mut missing = bytes.to_vec();
        missing.drain(range.clone());
        let (found, place) = problem(&with_count(missing, count - 1));
        assert!(found == Problem::Missing && is_it(place), "no section {number}: {found}");

        let mut unknown = bytes.to_vec();
        unknown[range.start..range.start + 4].copy_from_slice(&77_u32.to_le_bytes());
        assert_eq!(problem(&unknown), (Problem::Unknown { number: 77 }, Place::Container));

        let mut endless = bytes.to_vec();
        endless[range.start + 4..range.start + 12].fill(0xff);
        let (found, place) = problem(&endless);
        assert!(matches!(found, Problem::Truncated { expected: u64::MAX, .. }) && is_it(place), "{found}");
        // Each word of the section is a number of elements that the file has not.
        for at in (range.start + 12..range.end).step_by(4).take(64) {
            let mut many = bytes.to_vec();
            many[at..(at + 4).min(range.end)].fill(0xff);
            let _ = read(&many);
        }
    }
    for sections in [0, count - 1, u32::MAX] {
        problem(&with_count(bytes.to_vec(), sections));
    }
    let mut version = bytes.to_vec();
    version[4] = 9;
    assert!(matches!(problem(&version).0, Problem::Version { actual: 9, .. }));
}

pub(crate) fn sections_are_there_once() {
    damage_sections(&written_key::<Bn254>("multiplier"), read_key::<Bn254>);
    damage_sections(&Folder::new::<Bn254>("chain").bytes("witness.wtns"), read_witness::<Fr>);
    damage_sections::<R1cs<Fr>>(&Folder::new::<Bn254>("multiplier").bytes("circuit.r1cs"), R1cs::from_bytes);
}

/// The proof system is told before what its keys have.
pub(crate) fn keys_of_other_proof_systems_are_refused() {
    let mut bytes = written_key::<Bn254>("multiplier");
    bytes[8] += 1;
    bytes.extend(12_u32.to_le_bytes());
    bytes.extend([4, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4]);
    let problem = |bytes: &[u8]| match read_key::<Bn254>(bytes) {
        Err(Error::File { problem, .. }) => problem,
        other => panic!("{other:?}"),
    };
    assert_eq!(problem(&bytes), Problem::Unknown { number: 12 });
    let protocol = sections(&bytes)[0].1.start + 12;
    bytes[protocol] = 2;
    assert_eq!(problem(&bytes), Problem::Protocol { expected: 1, actual: 2 });
}

pub(crate) fn files_of_another_curve_are_refused() {
    let folder = Folder::new::<Bls12_381>("multiplier");
    let problem = |error| match error {
        Error::File { problem, .. } => problem,
        error => panic!("{error}"),
    };
    let expected = Problem::ElementBytes { expected: 32, actual: 48 };
    assert_eq!(problem(read_key::<Bn254>(&folder.bytes("circuit.zkey")).unwrap_err()), expected);
    let witness = problem(read_witness::<Fr>(&folder.bytes("witness.wtns")).unwrap_err());
    let Problem::Modulus { expected, actual } = witness else { panic!("{witness}") };
    assert_eq!(expected, "0x30644e72e131a029b85045b68181585d2833e84879b9709143e1f593f0000001");
    assert_eq!(actual, "0x73eda753299d7d483339d80809a1d80553bda402fffe5bfeffffffff00000001");
    let r1cs = R1cs::<Fr>::from_bytes(&folder.bytes("circuit.r1cs"));
    assert!(matches!(problem(r1cs.unwrap_err()), Problem::Modulus { .. }));
    let expected = |found: Error| matches!(found, Error::Json { field, .. } if field == "curve");
    assert!(expected(snarkjs::read_proof::<Bn254>(&folder.text("proof.json")).unwrap_err()));
    assert!(expected(snarkjs::read_verifying_key::<Bn254>(&folder.text("verification_key.json")).unwrap_err()));
}

/// Every character but white space is left out, doubled, or becomes another one.
fn mutate_text<T: PartialEq + Sync>(text: &str, read: fn(&str) -> Result<T>) {
    let Ok(value) = read(text) else { panic!("the text is valid") };
    let places: Vec<_> = text.char_indices().filter(|(_, c)| !c.is_whitespace()).map(|(at, _)| at).collect();
    places.par_iter().for_each(|at| {
        let (before, after) = text.split_at(*at);
        let (one, rest) = after.split_at(1);
        let another = if one == "7" { "8" } else { "7" };
        for changed in ["", &one.repeat(2), another, "\"", "-", "٣", "\0"] {
            if changed == one {
                continue;
            }
            match read(&format!("{before}{changed}{rest}")) {
                Ok(other) => assert!(other != value, "{one:?} at {at} means nothing"),
                Err(Error::Json { .. }) => {}
                Err(error) => panic!("{one:?} at {at}: {error}"),
            }
        }
    });
    let shortened = (0..text.trim_end().len()).filter(|len| text.is_char_boundary(*len));
    shortened.for_each(|len| assert!(matches!(read(&text[..len]), Err(Error::Json { .. })), "the first {len} bytes"));
}

pub(crate) fn damaged_texts_are_refused() {
    let folder = Folder::new::<Bn254>("multiplier");
    mutate_text(&folder.text("proof.json"), snarkjs::read_proof::<Bn254>);
    mutate_text(&folder.text("public.json"), snarkjs::read_public::<Bn254>);
    let key = folder.text("verification_key.json");
    let Ok(value) = snarkjs::read_verifying_key::<Bn254>(&key) else { panic!("the text is valid") };
    for (name, rest) in [("IC", "[]"), ("nPublic", "7"), ("vk_beta_2", "0"), ("protocol", "\"plonk\"")] {
        // The field becomes another one, stands twice, or has another value.
        assert!(snarkjs::read_verifying_key::<Bn254>(&key.replacen(name, "other", 1)).is_err());
        let twice = key.replacen('{', &format!("{{ \"{name}\": {rest}, "), 1);
        assert!(matches!(snarkjs::read_verifying_key::<Bn254>(&twice), Err(Error::Json { .. })), "{name}");
    }
    let extra = key.replacen('{', "{ \"extra\": 1, ", 1);
    assert!(matches!(snarkjs::read_verifying_key::<Bn254>(&extra), Err(Error::Json { .. })));
    let digit = key.find("vk_alphabeta_12").unwrap() + 40;
    let pairing = format!("{}{}{}", &key[..digit], if &key[digit..=digit] == "7" { 8 } else { 7 }, &key[digit + 1..]);
    let refused = snarkjs::read_verifying_key::<Bn254>(&pairing).unwrap_err();
    assert!(matches!(refused, Error::Json { problem: JsonProblem::Pairing, .. }), "{refused}");
    let one_less = key.replace("\"nPublic\": 1", "\"nPublic\": 0");
    assert!(one_less != key && snarkjs::read_verifying_key::<Bn254>(&one_less).is_err());
    assert_eq!(snarkjs::read_verifying_key::<Bn254>(&key).as_ref(), Ok(&value));
}
