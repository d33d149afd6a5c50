//! Keys for tests and benches, from secrets that the caller of the set-up could keep.
//!
//! With Lᵢ the Lagrange polynomials of the domain and aⱼ(τ) = Σᵢ Aᵢⱼ·Lᵢ(τ), likewise b and c, the queries are aⱼ(τ),
//! bⱼ(τ), (β·aⱼ(τ) + α·bⱼ(τ) + cⱼ(τ)) / δ, the same over γ for public inputs, and for H the Lagrange polynomials of the
//! domain of twice the size at its odd points, over δ. Each is a multiple of a generator, by tables of its multiples.

use ark_ec::{
    AffineRepr, CurveGroup,
    scalar_mul::{BatchMulPreprocessing, ScalarMul},
    short_weierstrass::Affine,
};
use ark_ff::{Field, UniformRand};
use ark_groth16::VerifyingKey;
use ark_poly::EvaluationDomain;
use ark_std::rand::RngCore;
use evariste_backend::Queue;
use evariste_curve::{DeviceCurve, FixedBase};
use evariste_field::{DevicePrimeField, Mont};
use rayon::prelude::*;

use crate::{
    curve::DevicePairing,
    domain,
    error::Result,
    key::{Key, Quotient},
    matrix::{Entry, Matrix},
    order::CircomOrder,
    r1cs::R1cs,
};

/// Multiples of a generator that one thread computes before it makes them affine together.
const PIECE: usize = 1 << 10;

impl<E: DevicePairing> Key<E> {
    /// Makes a key of circom's form for these constraints, for tests and benches.
    ///
    /// **Such a key is not secure.** The secrets of its set-up exist in the memory of this program, and with them anybody
    /// can prove anything. Keys for others come from a ceremony.
    ///
    /// The cost is about 25 additions of points for each of 4 points of G1 and 1 of G2 a variable.
    ///
    /// # Errors
    /// [`Error::Domain`](crate::Error::Domain) if the constraints are too many for the field.
    pub fn insecure(r1cs: &R1cs<E::ScalarField>, rng: &mut impl RngCore) -> Result<Self> {
        let size = domain::size::<E::ScalarField>(r1cs.constraints(), r1cs.public_inputs() + 1)?;
        let g1 = Multiples::<E::G1>::new(3 * r1cs.variables() + size);
        let g2 = Multiples::<E::G2>::new(r1cs.variables());
        Self::from_multiples(r1cs, rng, |scalars| Ok(g1.all(scalars)), |scalars| Ok(g2.all(scalars)))
    }

    /// Makes the key that [`Key::insecure`] makes, with its points computed on a device; `&device` stands for its
    /// default queue.
    ///
    /// **Such a key is not secure**, as those of [`Key::insecure`] are not. What the secrets become on the device is
    /// public memory, which is not zeroed.
    ///
    /// # Errors
    /// - [`Error::Domain`](crate::Error::Domain) if the constraints are too many for the field.
    /// - [`Error::Device`](crate::Error::Device) if the device has no room for the points, if a kernel does not
    ///   compile, or if the device fails.
    pub fn insecure_on(queue: impl Into<Queue>, r1cs: &R1cs<E::ScalarField>, rng: &mut impl RngCore) -> Result<Self> {
        let queue = queue.into();
        let g1 = FixedBase::<E::G1Config>::new(&queue, E::G1Affine::generator())?;
        let g2 = FixedBase::<E::G2Config>::new(&queue, E::G2Affine::generator())?;
        let (g1, g2) =
            (|scalars: &[_]| multiples(&queue, &g1, scalars), |scalars: &[_]| multiples(&queue, &g2, scalars));
        Self::from_multiples(r1cs, rng, g1, g2)
    }

    /// The key, with functions that multiply the generators of both groups.
    fn from_multiples(
        r1cs: &R1cs<E::ScalarField>,
        rng: &mut impl RngCore,
        g1: impl Fn(&[E::ScalarField]) -> Result<Vec<E::G1Affine>>,
        g2: impl Fn(&[E::ScalarField]) -> Result<Vec<E::G2Affine>>,
    ) -> Result<Self> {
        let inputs = r1cs.public_inputs() + 1;
        let size = domain::size::<E::ScalarField>(r1cs.constraints(), inputs)?;
        let log_domain = size.ilog2();
        let order = CircomOrder::new::<E::ScalarField>(log_domain);
        let width = r1cs.variables();
        let rows = |matrix: &Matrix<E::ScalarField>, constants: usize| {
            let entries = matrix.entries().map(|entry| Entry { row: order.row(entry.row), ..entry });
            let bindings = (0..constants).map(|i| {
                let row = order.row((r1cs.constraints() + i) as u32);
                Entry { row, column: i as u32, value: E::ScalarField::ONE }
            });
            Matrix::new(size, width, entries.chain(bindings))
        };
        let (a, b, c) = (rows(&r1cs.a, inputs), rows(&r1cs.b, 0), rows(&r1cs.c, 0));

        let (once, twice) = (domain::of_size::<E::ScalarField>(size), domain::of_size::<E::ScalarField>(2 * size));
        let [alpha, beta] = [(); 2].map(|()| E::ScalarField::rand(rng));
        let (gamma, delta) = (Unit::random(rng), Unit::<E::ScalarField>::random(rng));
        let tau = twice.sample_element_outside_domain(rng);
        let lagrange = once.evaluate_all_lagrange_coefficients(tau);
        let [a_tau, b_tau, c_tau] = [&a, &b, &c].map(|matrix| columns(matrix, &lagrange));
        let scalar = |j: usize| beta * a_tau[j] + alpha * b_tau[j] + c_tau[j];
        let public: Vec<_> = (0..inputs).map(|j| scalar(j) * gamma.inverse).collect();
        let l: Vec<_> = (inputs..width).map(|j| scalar(j) * delta.inverse).collect();
        let h: Vec<_> = twice.evaluate_all_lagrange_coefficients(tau);
        let h: Vec<_> = h.into_iter().skip(1).step_by(2).map(|value| value * delta.inverse).collect();

        let in_g1 = |scalar| (E::G1Affine::generator() * scalar).into_affine();
        let in_g2 = |scalar| (E::G2Affine::generator() * scalar).into_affine();
        Ok(Self {
            verifying_key: VerifyingKey {
                alpha_g1: in_g1(alpha),
                beta_g2: in_g2(beta),
                gamma_g2: in_g2(gamma.value),
                delta_g2: in_g2(delta.value),
                gamma_abc_g1: g1(&public)?,
            },
            beta_g1: in_g1(beta),
            delta_g1: in_g1(delta.value),
            a_query: g1(&a_tau)?,
            b_g1_query: g1(&b_tau)?,
            b_g2_query: g2(&b_tau)?,
            h_query: g1(&h)?,
            l_query: g1(&l)?,
            a,
            b,
            log_domain,
            quotient: Quotient::Circom,
        })
    }
}

/// Multiples of a point on a device.
fn multiples<C: DeviceCurve<ScalarField: DevicePrimeField>>(
    queue: &Queue,
    point: &FixedBase<C>,
    scalars: &[C::ScalarField],
) -> Result<Vec<Affine<C>>> {
    let mut out = queue.device().alloc(scalars.len())?;
    point.mul(&queue.upload::<Mont<C::ScalarField>>(scalars)?, &mut out)?;
    Ok(queue.read(&out)?)
}

/// A random number that is not 0.
struct Unit<F> {
    value: F,
    inverse: F,
}

impl<F: Field> Unit<F> {
    fn random(rng: &mut impl RngCore) -> Self {
        loop {
            let value = F::rand(rng);
            if let Some(inverse) = value.inverse() {
                return Self { value, inverse };
            }
        }
    }
}

/// Returns the product of a vector with a matrix: for each column, the sum of its entries times those of the vector.
fn columns<F: Field>(matrix: &Matrix<F>, vector: &[F]) -> Vec<F> {
    let mut sums = vec![F::ZERO; matrix.width()];
    for entry in matrix.entries() {
        sums[entry.column as usize] += entry.value * vector[entry.row as usize];
    }
    sums
}

/// Tables of multiples of a group's generator.
struct Multiples<G: ScalarMul>(BatchMulPreprocessing<G>);

impl<G: CurveGroup> Multiples<G> {
    /// Makes tables for about so many multiples.
    fn new(count: usize) -> Self {
        Self(BatchMulPreprocessing::new(G::generator(), count))
    }

    fn all(&self, scalars: &[G::ScalarField]) -> Vec<G::Affine> {
        scalars.par_chunks(PIECE).flat_map_iter(|scalars| self.0.batch_mul(scalars)).collect()
    }
}
