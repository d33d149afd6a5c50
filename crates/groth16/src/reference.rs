//! The prover on the host, by arkworks' transforms: what other provers are compared with. A circuit of any size to compare
//! them with.

use ark_ec::{AffineRepr, CurveGroup, pairing::Pairing};
use ark_ff::{FftField, Field, PrimeField};
use ark_groth16::Proof;
use ark_poly::EvaluationDomain;
use evariste_backend::author::Wiped;

use crate::{
    curve::DevicePairing,
    domain,
    error::{Error, Result},
    key::{Key, Quotient},
    matrix::Rows,
    r1cs::R1cs,
    sum::sum,
    witness::Witness,
};

/// Proves that a witness satisfies the constraints of a key, with r and s as the blinding of A and B. The proof of a
/// witness that does not satisfy them does not hold.
///
/// # Errors
/// [`Error::WitnessLength`] if the key has another number of variables.
pub fn prove<E: DevicePairing>(
    key: &Key<E>,
    witness: &Witness<E::ScalarField>,
    r: E::ScalarField,
    s: E::ScalarField,
) -> Result<Proof<E>> {
    prove_by(key, witness, r, s, sum::<E::G1Config>, sum::<E::G2Config>)
}

/// Proves as [`prove`] does, with Σ xᵢ·Pᵢ in both groups as given.
///
/// # Errors
/// [`Error::WitnessLength`] if the key has another number of variables.
pub fn prove_by<E: Pairing>(
    key: &Key<E>,
    witness: &Witness<E::ScalarField>,
    r: E::ScalarField,
    s: E::ScalarField,
    g1: impl Fn(&[E::G1Affine], &[E::ScalarField]) -> E::G1,
    g2: impl Fn(&[E::G2Affine], &[E::ScalarField]) -> E::G2,
) -> Result<Proof<E>> {
    let w = witness.values();
    if w.len() != key.variables() {
        return Err(Error::WitnessLength { expected: key.variables(), actual: w.len() });
    }
    let h = quotient(key, w);
    let (delta_g1, vk) = (key.delta_g1.into_group(), &key.verifying_key);
    let a = g1(&key.a_query, w) + vk.alpha_g1 + delta_g1 * r;
    let b_g1 = g1(&key.b_g1_query, w) + key.beta_g1 + delta_g1 * s;
    let b_g2 = g2(&key.b_g2_query, w) + vk.beta_g2 + vk.delta_g2.into_group() * s;
    let c = g1(&key.l_query, &w[key.public_inputs() + 1..])
        + g1(&key.h_query, &h)
        + (a * s + b_g1 * r - delta_g1 * (r * s));
    Ok(Proof { a: a.into_affine(), b: b_g2.into_affine(), c: c.into_affine() })
}

/// Returns as many constraints xᵢ² = xᵢ₊₁ as fit a domain of 2^`log` points, with the last x as the public input, and a
/// witness. The constant 1 and the public input take two rows. Every variable is in A, and all but two are in B.
///
/// # Errors
/// [`Error::Domain`] if `log` is below 2, or if the field has no such domain.
pub fn squares<F: PrimeField>(log: u32) -> Result<(R1cs<F>, Witness<F>)> {
    let largest = domain::largest_log::<F>();
    if !(2..=largest).contains(&log) {
        let actual = 1u64.checked_shl(log).unwrap_or(u64::MAX);
        return Err(Error::Domain { largest: 1 << largest, actual });
    }
    let count = (1usize << log) - 2;
    // The constant 1, the public input, and then all values but the last.
    let place = |i: usize| if i == count { 1 } else { i + 2 };
    let rows = |shift: usize| -> Rows<F> { (0..count).map(|i| vec![(F::ONE, place(i + shift))]).collect() };
    let r1cs = R1cs::from_arkworks(&[rows(0), rows(0), rows(1)], count + 2, 1)?;
    let mut values = vec![F::ONE; count + 2];
    let mut x = F::from(2_u64);
    for i in 0..=count {
        values[place(i)] = x;
        x.square_in_place();
    }
    Ok((r1cs, Witness::new(values)?))
}

/// Returns the scalars of the query H.
fn quotient<E: Pairing>(key: &Key<E>, w: &[E::ScalarField]) -> Wiped<E::ScalarField> {
    let domain = domain::of_size::<E::ScalarField>(key.domain_size());
    let shift = match key.quotient {
        Quotient::Circom => domain::of_size::<E::ScalarField>(2 * key.domain_size()).group_gen,
        Quotient::Arkworks => E::ScalarField::GENERATOR,
    };
    let coset = domain.get_coset(shift).expect("the shift is not 0");
    let on_coset = |mut values: Wiped<E::ScalarField>| {
        domain.ifft_in_place(&mut values);
        coset.fft_in_place(&mut values);
        values
    };
    let (a, b) = (Wiped::from(key.a.multiply(w)), Wiped::from(key.b.multiply(w)));
    let product = |a: &[E::ScalarField], b: &[E::ScalarField]| a.iter().zip(b).map(|(a, b)| *a * b).collect::<Vec<_>>();
    let c = on_coset(product(&a, &b).into());
    let (a, b) = (on_coset(a), on_coset(b));
    let mut h = Wiped::from(product(&a, &b));
    h.iter_mut().zip(c.iter()).for_each(|(h, c)| *h -= c);
    if key.quotient == Quotient::Arkworks {
        let vanishing = domain.evaluate_vanishing_polynomial(shift).inverse().unwrap_or_default();
        h.iter_mut().for_each(|h| *h *= vanishing);
        coset.ifft_in_place(&mut h);
        // The degree of the quotient is at most n − 2.
        h.truncate(key.h_query.len());
    }
    h
}
