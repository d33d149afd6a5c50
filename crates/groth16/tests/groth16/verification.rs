//! The verifier takes proofs that hold, and nothing else.

use ark_bls12_381::Bls12_381;
use ark_bn254::{Bn254, Fq, Fq2, Fr, G1Affine, G2Affine};
use ark_ec::{AffineRepr, CurveGroup, pairing::Pairing};
use ark_ff::{AdditiveGroup, Field, UniformRand};
use ark_std::test_rng;
use evariste_groth16::{
    CircomCurve, Error, JsonProblem, PointError, Proof, Verifier, VerifyingKey, reference, snarkjs,
};

use crate::data::Folder;

type Batch<E> = Vec<(Proof<E>, Vec<<E as Pairing>::ScalarField>)>;

/// Some proofs of one statement.
fn proofs<E: CircomCurve>(count: usize) -> (Verifier<E>, Batch<E>) {
    let folder = Folder::new::<E>("chain");
    let (key, witness) = (folder.key::<E>(), folder.witness());
    let rng = &mut test_rng();
    let public = witness.public(key.public_inputs()).unwrap();
    let prove = |_| {
        let [r, s] = [(); 2].map(|()| E::ScalarField::rand(rng));
        (reference::prove(&key, &witness, r, s).unwrap(), public.to_vec())
    };
    (Verifier::new(key.verifying_key()).unwrap(), (0..count).map(prove).collect())
}

fn refuses<E: CircomCurve>() {
    let (verifier, good) = proofs::<E>(4);
    verifier.verify_batch(&[]).unwrap();
    verifier.verify_batch(&good[..1]).unwrap();
    verifier.verify_batch(&good).unwrap();
    let (proof, public) = &good[0];
    let one = E::ScalarField::ONE;
    let changes: [fn(&mut Proof<E>); 5] = [
        |proof| proof.a = (proof.a.into_group() + E::G1Affine::generator()).into_affine(),
        |proof| proof.b = (proof.b.into_group() + E::G2Affine::generator()).into_affine(),
        |proof| proof.c = (-proof.c.into_group()).into_affine(),
        |proof| std::mem::swap(&mut proof.a, &mut proof.c),
        |proof| *proof = Proof::default(),
    ];
    for change in changes {
        let mut bad = good.clone();
        change(&mut bad[2].0);
        assert_eq!(verifier.verify(&bad[2].0, public), Err(Error::Rejected));
        let batch = Error::Batch { index: 2, reason: Box::new(Error::Rejected) };
        assert_eq!(verifier.verify_batch(&bad), Err(batch));
    }
    for i in 0..public.len() {
        let mut bad = good.clone();
        bad[1].1[i] += one;
        assert_eq!(verifier.verify(proof, &bad[1].1), Err(Error::Rejected));
        let batch = Error::Batch { index: 1, reason: Box::new(Error::Rejected) };
        assert_eq!(verifier.verify_batch(&bad), Err(batch));
    }
    // Two errors that cancel out in the plain product of both equations.
    let mut bad = good.clone();
    bad[0].0.c = (bad[0].0.c.into_group() + E::G1Affine::generator()).into_affine();
    bad[1].0.c = (bad[1].0.c.into_group() - E::G1Affine::generator()).into_affine();
    assert!(matches!(verifier.verify_batch(&bad), Err(Error::Batch { index: 0, .. })));
    for wrong in [vec![], vec![one; public.len() - 1], vec![one; public.len() + 1]] {
        let expected = Error::PublicInputs { expected: public.len(), actual: wrong.len() };
        assert_eq!(verifier.verify(proof, &wrong), Err(expected.clone()));
        let mut bad = good.clone();
        bad[3].1 = wrong;
        assert_eq!(verifier.verify_batch(&bad), Err(Error::Batch { index: 3, reason: Box::new(expected) }));
    }
}

pub(crate) fn what_does_not_hold_is_refused() {
    refuses::<Bn254>();
    refuses::<Bls12_381>();
}

/// A point of the curve of G2 that is not in the subgroup.
fn outside() -> G2Affine {
    let points = (1_u64..).filter_map(|x| G2Affine::get_point_from_x_unchecked(Fq2::from(x), false));
    points.into_iter().find(|point| !point.is_in_correct_subgroup_assuming_on_curve()).unwrap()
}

pub(crate) fn points_off_the_curve_and_the_subgroup_are_refused() {
    let (verifier, good) = proofs::<Bn254>(2);
    let off = G1Affine::new_unchecked(Fq::from(3), Fq::from(3));
    type Change = fn(&mut Proof<Bn254>, G1Affine);
    let changes: [(&str, PointError, Change); 3] = [
        ("A", PointError::NotOnCurve, |proof, off| proof.a = off),
        ("C", PointError::NotOnCurve, |proof, off| proof.c = off),
        ("B", PointError::NotInSubgroup, |proof, _| proof.b = outside()),
    ];
    for (name, kind, change) in changes {
        let mut bad = good.clone();
        change(&mut bad[1].0, off);
        let expected = Error::Point { name, kind };
        assert_eq!(verifier.verify(&bad[1].0, &bad[1].1), Err(expected.clone()));
        assert_eq!(verifier.verify_batch(&bad), Err(Error::Batch { index: 1, reason: Box::new(expected) }));
        let text = snarkjs::write_proof::<Bn254>(&bad[1].0);
        let field = ["pi_a", "pi_b", "pi_c"][["A", "B", "C"].iter().position(|known| *known == name).unwrap()];
        let expected = Error::Json { path: None, field: field.to_owned(), problem: JsonProblem::Point { kind } };
        assert_eq!(snarkjs::read_proof::<Bn254>(&text), Err(expected));
    }
}

pub(crate) fn verifying_keys_are_checked() {
    let good = Folder::new::<Bn254>("chain").key::<Bn254>().verifying_key().clone();
    let refused = |change: fn(&mut VerifyingKey<Bn254>)| {
        let mut key = good.clone();
        change(&mut key);
        Verifier::new(&key).unwrap_err()
    };
    let infinity = |name| Error::Point { name, kind: PointError::Infinity };
    assert_eq!(refused(|key| key.alpha_g1 = G1Affine::zero()), infinity("alpha_g1"));
    assert_eq!(refused(|key| key.gamma_g2 = G2Affine::zero()), infinity("gamma_g2"));
    assert_eq!(refused(|key| key.delta_g2 = G2Affine::zero()), infinity("delta_g2"));
    let outside_group = Error::Point { name: "beta_g2", kind: PointError::NotInSubgroup };
    assert_eq!(refused(|key| key.beta_g2 = outside()), outside_group);
    let off = Error::Point { name: "gamma_abc_g1", kind: PointError::NotOnCurve };
    assert_eq!(refused(|key| key.gamma_abc_g1[1] = G1Affine::new_unchecked(Fq::from(1), Fq::from(1))), off);
    assert_eq!(refused(|key| key.gamma_abc_g1.clear()), Error::Parts { part: "gamma_abc_g1", expected: 1, actual: 0 });
}

pub(crate) fn numbers_of_texts_are_below_the_modulus() {
    let read = snarkjs::read_public::<Bn254>;
    let r = "21888242871839275222246405745257275088548364400416034343698204186575808495617";
    assert_eq!(read(&format!("[\"{}6\", \"0\"]", &r[..r.len() - 1])), Ok(vec![-Fr::ONE, Fr::ZERO]));
    let problem = |number: &str| match read(&format!("[\"1\", \"{number}\"]")) {
        Err(Error::Json { field, problem, .. }) if field == "[1]" => problem,
        other => panic!("{number}: {other:?}"),
    };
    assert_eq!(problem(r), JsonProblem::NotCanonical);
    assert_eq!(problem(&"9".repeat(78)), JsonProblem::NotCanonical);
    assert_eq!(problem(&"9".repeat(1 << 20)), JsonProblem::NotCanonical);
    for number in ["", "00", "01", "+1", "-1", " 1", "1 ", "0x1", "1.0", "1e3", "١"] {
        assert_eq!(problem(number), JsonProblem::NotDecimal, "{number:?}");
    }
    for text in ["", "[1]", "{}", "[[\"1\"]]", "[\"1\"] []", "null"] {
        assert!(matches!(read(text), Err(Error::Json { .. })), "{text:?}");
    }
    assert_eq!(read("[]"), Ok(Vec::new()));
}
