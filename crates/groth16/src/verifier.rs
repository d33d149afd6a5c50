//! Verification on the host.
//!
//! A proof (A, B, C) of public inputs x holds if e(A, B) = e(α, β) · e(Σ xᵢ·ICᵢ, γ) · e(C, δ). Several proofs share the
//! right sides: their equations are multiplied, each raised to a random power of 128 bits. If one of them does not hold,
//! the product holds with a probability of 2⁻¹²⁸, since all points are in groups of prime order.

use ark_ec::{AffineRepr, CurveGroup, pairing::Pairing};
use ark_ff::{Field, PrimeField, Zero};
use ark_groth16::{Proof, VerifyingKey};
use rayon::prelude::*;

use crate::{
    check::Check,
    curve::DevicePairing,
    error::{Error, PointError, Result},
    sum::sum,
    words::check_point,
};

/// A proof and its public inputs.
pub type Claim<E> = (Proof<E>, Vec<<E as Pairing>::ScalarField>);

/// A verifying key that is ready for many proofs.
#[derive(Clone, Debug)]
pub struct Verifier<E: DevicePairing> {
    key: VerifyingKey<E>,
    /// e(α, β).
    alpha_beta: E::TargetField,
    /// −β, −γ and −δ.
    beta: E::G2Prepared,
    gamma: E::G2Prepared,
    delta: E::G2Prepared,
}

impl<E: DevicePairing> Verifier<E> {
    /// Checks and prepares a verifying key. The cost is one pairing.
    ///
    /// # Errors
    /// [`Error::Point`] if a point of the key is not in the subgroup of prime order, or is the one at infinity.
    /// [`Error::Parts`] if the key has no point for the constant 1.
    pub fn new(key: &VerifyingKey<E>) -> Result<Self> {
        if key.gamma_abc_g1.is_empty() {
            return Err(Error::Parts { part: "gamma_abc_g1", expected: 1, actual: 0 });
        }
        let point = |name: &'static str| move |kind| Error::Point { name, kind };
        finite(&key.alpha_g1).and_then(|()| check_point(&key.alpha_g1, Check::Full)).map_err(point("alpha_g1"))?;
        for (name, key) in [("beta_g2", &key.beta_g2), ("gamma_g2", &key.gamma_g2), ("delta_g2", &key.delta_g2)] {
            finite(key).and_then(|()| check_point(key, Check::Full)).map_err(point(name))?;
        }
        let public = key.gamma_abc_g1.par_iter();
        public.try_for_each(|ic| check_point(ic, Check::Full)).map_err(point("gamma_abc_g1"))?;
        let negative = |point: E::G2Affine| E::G2Prepared::from(-point.into_group());
        Ok(Self {
            alpha_beta: E::pairing(key.alpha_g1, key.beta_g2).0,
            beta: negative(key.beta_g2),
            gamma: negative(key.gamma_g2),
            delta: negative(key.delta_g2),
            key: key.clone(),
        })
    }

    /// Returns the verifying key.
    pub fn key(&self) -> &VerifyingKey<E> {
        &self.key
    }

    /// Verifies a proof. The cost is three pairings that share a final exponentiation, and the checks of its points.
    ///
    /// # Errors
    /// [`Error::Rejected`] if the proof does not hold, [`Error::PublicInputs`] if the key has another number of public
    /// inputs, [`Error::Point`] if a point of the proof is not in the subgroup of prime order.
    pub fn verify(&self, proof: &Proof<E>, public: &[E::ScalarField]) -> Result<()> {
        self.check(proof, public)?;
        let inputs = self.input_sum(public.iter().copied(), E::ScalarField::ONE);
        let left = [proof.a.into(), inputs.into(), proof.c.into()];
        let right = [proof.b.into(), self.gamma.clone(), self.delta.clone()];
        self.expect(left, right, self.alpha_beta)
    }

    /// Verifies proofs together, which takes about one Miller loop a proof. If they do not hold together, each is
    /// verified by itself.
    ///
    /// # Errors
    /// [`Error::Batch`] names the first proof that fails, with the reason as [`verify`](Self::verify) gives it.
    /// [`Error::Randomness`] if the system gives no random numbers.
    pub fn verify_batch(&self, proofs: &[Claim<E>]) -> Result<()> {
        first_error(proofs, |proof, public| self.check(proof, public))?;
        let weights = weights::<E::ScalarField>(proofs.len())?;
        let total: E::ScalarField = weights.iter().sum();
        let mut inputs = vec![E::ScalarField::zero(); self.key.gamma_abc_g1.len() - 1];
        for ((_, public), weight) in proofs.iter().zip(&weights) {
            inputs.iter_mut().zip(public).for_each(|(sum, input)| *sum += *input * weight);
        }
        let c: Vec<_> = proofs.iter().map(|(proof, _)| proof.c).collect();
        let a = || proofs.par_iter().zip(&weights).map(|((proof, _), weight)| proof.a.mul_bigint(weight.into_bigint()));
        let a = E::G1::normalize_batch(&a().collect::<Vec<_>>());

        let sums = [
            (self.key.alpha_g1.mul_bigint(total.into_bigint()).into(), self.beta.clone()),
            (self.input_sum(inputs.into_iter(), total).into(), self.gamma.clone()),
            (sum(&c, &weights).into(), self.delta.clone()),
        ];
        let pairs = a.into_iter().zip(proofs).map(|(a, (proof, _))| (a.into(), proof.b.into()));
        let (left, right): (Vec<E::G1Prepared>, Vec<E::G2Prepared>) = pairs.chain(sums).unzip();
        match self.expect(left, right, E::TargetField::ONE) {
            Err(_) => first_error(proofs, |proof, public| self.verify(proof, public)),
            holds => holds,
        }
    }

    /// Checks what a proof and its public inputs are made of.
    fn check(&self, proof: &Proof<E>, public: &[E::ScalarField]) -> Result<()> {
        let expected = self.key.gamma_abc_g1.len() - 1;
        if public.len() != expected {
            return Err(Error::PublicInputs { expected, actual: public.len() });
        }
        let point = |name: &'static str| move |kind| Error::Point { name, kind };
        check_point(&proof.a, Check::Full).map_err(point("A"))?;
        check_point(&proof.b, Check::Full).map_err(point("B"))?;
        check_point(&proof.c, Check::Full).map_err(point("C"))
    }

    /// Returns Σ xᵢ·ICᵢ with x₀ for the constant 1.
    fn input_sum(&self, inputs: impl Iterator<Item = E::ScalarField>, one: E::ScalarField) -> E::G1 {
        let scalars: Vec<_> = [one].into_iter().chain(inputs).collect();
        sum(&self.key.gamma_abc_g1, &scalars)
    }

    /// Checks a product of pairings.
    fn expect(
        &self,
        left: impl IntoIterator<Item = E::G1Prepared>,
        right: impl IntoIterator<Item = E::G2Prepared>,
        expected: E::TargetField,
    ) -> Result<()> {
        let product = E::final_exponentiation(E::multi_miller_loop(left, right));
        if product.is_some_and(|product| product.0 == expected) { Ok(()) } else { Err(Error::Rejected) }
    }
}

/// Checks each proof, and names the first one that fails.
fn first_error<E: Pairing>(
    proofs: &[Claim<E>],
    check: impl Fn(&Proof<E>, &[E::ScalarField]) -> Result<()> + Sync,
) -> Result<()> {
    let error = proofs.par_iter().enumerate().find_map_first(|(index, (proof, public))| {
        let reason = Box::new(check(proof, public).err()?);
        Some(Error::Batch { index, reason })
    });
    error.map_or(Ok(()), Err)
}

fn finite(point: &impl AffineRepr) -> Result<(), PointError> {
    if point.is_zero() { Err(PointError::Infinity) } else { Ok(()) }
}

/// Random numbers of 128 bits from the system.
fn weights<F: PrimeField>(count: usize) -> Result<Vec<F>> {
    let mut bytes = vec![0; count * 16];
    getrandom::fill(&mut bytes).map_err(|error| Error::Randomness { reason: error.to_string() })?;
    Ok(bytes.chunks_exact(16).map(F::from_le_bytes_mod_order).collect())
}
