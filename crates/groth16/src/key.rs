//! The proving key.

use ark_ec::pairing::Pairing;
use ark_ff::Field;
use ark_groth16::{ProvingKey, VerifyingKey};

use crate::{
    domain,
    error::{Error, Result},
    matrix::{Entry, Matrix, Rows, entries},
};

/// The form of the query H, by which the prover commits to the quotient (A·w ∘ B·w − C·w) / Z. Let n be the size of the
/// domain, ω its generator and ζ with ζ² = ω.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Quotient {
    /// circom's form. H has n points. Its scalars are the values of A·w ∘ B·w − C·w, not divided, at ζ·ω^i.
    Circom,
    /// The form of libsnark and arkworks. H has n − 1 points. Its scalars are the coefficients of the quotient.
    Arkworks,
}

/// A proving key: the verifying key, the queries, and the matrices A and B of the constraints.
///
/// Row i of a matrix belongs to ω^i, with ω the root of unity of arkworks. Readers reorder rows and H of files that have
/// another root.
///
/// Proofs need no matrix C: a valid witness w has C·w = A·w ∘ B·w.
#[derive(Clone, Debug, PartialEq)]
pub struct Key<E: Pairing> {
    pub(crate) verifying_key: VerifyingKey<E>,
    pub(crate) beta_g1: E::G1Affine,
    pub(crate) delta_g1: E::G1Affine,
    pub(crate) a_query: Vec<E::G1Affine>,
    pub(crate) b_g1_query: Vec<E::G1Affine>,
    pub(crate) b_g2_query: Vec<E::G2Affine>,
    pub(crate) h_query: Vec<E::G1Affine>,
    pub(crate) l_query: Vec<E::G1Affine>,
    pub(crate) a: Matrix<E::ScalarField>,
    pub(crate) b: Matrix<E::ScalarField>,
    pub(crate) log_domain: u32,
    pub(crate) quotient: Quotient,
}

impl<E: Pairing> Key<E> {
    /// Makes a key of arkworks' proving key and the matrices that its constraint system gives
    /// (`ConstraintSystem::to_matrices`): A, B and perhaps more.
    ///
    /// The points are not checked. arkworks checks what it reads unless told otherwise.
    ///
    /// # Errors
    /// [`Error::Parts`] if the sizes of the key and the matrices do not fit together, [`Error::Domain`] if the
    /// constraints are too many.
    pub fn from_arkworks(key: ProvingKey<E>, matrices: &[Rows<E::ScalarField>]) -> Result<Self> {
        let [a, b, ..] = matrices else { return Err(parts("matrices", 2, matrices.len())) };
        let (constraints, variables, inputs) = (a.len(), key.a_query.len(), key.vk.gamma_abc_g1.len());
        expect("the rows of B", constraints, b.len())?;
        if !(1..=variables).contains(&inputs) {
            return Err(parts("gamma_abc_g1", variables, inputs));
        }
        let size = domain::size::<E::ScalarField>(constraints, inputs)?;
        expect("b_g1_query", variables, key.b_g1_query.len())?;
        expect("b_g2_query", variables, key.b_g2_query.len())?;
        expect("l_query", variables - inputs, key.l_query.len())?;
        expect("h_query", size - 1, key.h_query.len())?;
        let columns = a.iter().chain(b).flatten().map(|(_, column)| *column);
        if let Some(column) = columns.filter(|column| *column >= variables || u32::try_from(*column).is_err()).max() {
            return Err(parts("a column of the matrices", variables, column));
        }
        let public =
            (0..inputs as u32).map(|i| Entry { row: constraints as u32 + i, column: i, value: E::ScalarField::ONE });
        Ok(Self {
            a: Matrix::new(size, variables, entries(a).chain(public)),
            b: Matrix::new(size, variables, entries(b)),
            verifying_key: key.vk,
            beta_g1: key.beta_g1,
            delta_g1: key.delta_g1,
            a_query: key.a_query,
            b_g1_query: key.b_g1_query,
            b_g2_query: key.b_g2_query,
            h_query: key.h_query,
            l_query: key.l_query,
            log_domain: size.ilog2(),
            quotient: Quotient::Arkworks,
        })
    }

    /// Returns the verifying key.
    pub fn verifying_key(&self) -> &VerifyingKey<E> {
        &self.verifying_key
    }

    /// Returns β·G₁.
    pub fn beta_g1(&self) -> E::G1Affine {
        self.beta_g1
    }

    /// Returns δ·G₁.
    pub fn delta_g1(&self) -> E::G1Affine {
        self.delta_g1
    }

    /// Returns the query A: a point for each variable.
    pub fn a_query(&self) -> &[E::G1Affine] {
        &self.a_query
    }

    /// Returns the query B in G1: a point for each variable.
    pub fn b_g1_query(&self) -> &[E::G1Affine] {
        &self.b_g1_query
    }

    /// Returns the query B in G2: a point for each variable.
    pub fn b_g2_query(&self) -> &[E::G2Affine] {
        &self.b_g2_query
    }

    /// Returns the query H, of the form that [`quotient`](Self::quotient) says.
    pub fn h_query(&self) -> &[E::G1Affine] {
        &self.h_query
    }

    /// Returns the query L (circom calls it C): a point for each variable that is not public.
    pub fn l_query(&self) -> &[E::G1Affine] {
        &self.l_query
    }

    /// Returns the matrix A. It has a row for each point of the domain, rows that bind the public inputs among them.
    pub fn a(&self) -> &Matrix<E::ScalarField> {
        &self.a
    }

    /// Returns the matrix B. It has a row for each point of the domain.
    pub fn b(&self) -> &Matrix<E::ScalarField> {
        &self.b
    }

    /// Returns the number of variables, the constant 1 among them: the length of a witness.
    pub fn variables(&self) -> usize {
        self.a_query.len()
    }

    /// Returns the number of public inputs, without the constant 1.
    pub fn public_inputs(&self) -> usize {
        self.verifying_key.gamma_abc_g1.len() - 1
    }

    /// Returns the size of the domain, a power of two.
    pub fn domain_size(&self) -> usize {
        1 << self.log_domain
    }

    /// Returns log₂ of the size of the domain.
    pub fn log_domain(&self) -> u32 {
        self.log_domain
    }

    /// Returns the form of the query H.
    pub fn quotient(&self) -> Quotient {
        self.quotient
    }
}

fn parts(part: &'static str, expected: usize, actual: usize) -> Error {
    Error::Parts { part, expected: expected as u64, actual: actual as u64 }
}

fn expect(part: &'static str, expected: usize, actual: usize) -> Result<()> {
    if expected == actual { Ok(()) } else { Err(parts(part, expected, actual)) }
}
