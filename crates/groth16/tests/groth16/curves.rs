//! Files tell their curve.

use ark_bls12_381::Bls12_381;
use ark_bn254::Bn254;
use evariste_groth16::{CircomCurve, Curve, Error, JsonProblem, Place, Problem, snarkjs};

use crate::data::Folder;

fn tells<E: CircomCurve>(expected: Curve) {
    let folder = Folder::new::<E>("chain");
    assert_eq!(expected.name(), E::NAME);
    assert_eq!(Curve::of_zkey(folder.path("circuit.zkey")), Ok(expected));
    assert_eq!(Curve::of_r1cs(folder.path("circuit.r1cs")), Ok(expected));
    assert_eq!(snarkjs::curve_of_verifying_key(&folder.text("verification_key.json")), Ok(expected));
}

pub(crate) fn files_tell_their_curve() {
    tells::<Bn254>(Curve::Bn254);
    tells::<Bls12_381>(Curve::Bls12381);
}

pub(crate) fn other_curves_are_refused() {
    let folder = Folder::new::<Bn254>("chain");
    let mut bytes = folder.bytes("circuit.zkey");
    // Section 1 has 12 bytes of a header and 4 of contents after the file's 12; 12 of section 2 follow.
    let modulus = 12 + 16 + 12 + 4;
    bytes[modulus] ^= 1;
    let error = Curve::of_zkey_bytes(&bytes).unwrap_err();
    assert!(
        matches!(
            &error,
            Error::File { path: None, place: Place::Section { number: 2, .. }, offset, problem: Problem::Curve { .. } }
                if *offset == modulus as u64
        ),
        "{error}"
    );
    // No field, and one that is longer than the section.
    let mut with_length = |length: u32| {
        bytes[modulus - 4..modulus].copy_from_slice(&length.to_le_bytes());
        Curve::of_zkey_bytes(&bytes).unwrap_err()
    };
    assert!(matches!(with_length(0), Error::File { problem: Problem::Curve { .. }, .. }));
    assert!(matches!(
        with_length(u32::MAX),
        Error::File { problem: Problem::Truncated { expected, .. }, .. } if expected == u64::from(u32::MAX)
    ));
    let truncated = &folder.bytes("circuit.zkey")[..100];
    let error = Curve::of_zkey_bytes(truncated).unwrap_err();
    assert!(matches!(error, Error::File { problem: Problem::Truncated { .. }, .. }), "{error}");
    assert!(matches!(Curve::of_r1cs(folder.path("circuit.zkey")), Err(Error::File { path: Some(_), .. })));
    assert!(matches!(Curve::of_r1cs(folder.path("none")), Err(Error::Io { .. })));

    for (text, problem) in [("{\"curve\":\"secq256r1\"}", true), ("{}", false), ("", false)] {
        let error = snarkjs::curve_of_verifying_key(text).unwrap_err();
        let is_curve = matches!(&error, Error::Json { problem: JsonProblem::Curve { .. }, .. });
        assert_eq!(is_curve, problem, "{error}");
    }
}
