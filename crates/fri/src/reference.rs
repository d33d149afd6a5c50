//! Definitions, naively, to compare with.

use ark_ff::{AdditiveGroup, Field};
use evariste_field::{DevicePrimeField, two_adic_root};

use crate::{constraints::Constraints, field::FriField, points::reverse};

/// Returns the points `shift`·w^i of the coset of 2^`log_len` elements in bit-reversed order.
///
/// # Panics
/// If the field has no such subgroup.
pub fn points<B: DevicePrimeField>(log_len: u32, shift: B) -> Vec<B> {
    (0..1usize << log_len).map(|number| point(log_len, shift, number)).collect()
}

/// Returns one of the [`points`], by its number.
///
/// # Panics
/// If the field has no such subgroup.
pub fn point<B: DevicePrimeField>(log_len: u32, shift: B, number: usize) -> B {
    assert!(log_len <= B::TWO_ADICITY, "there are 2^{} points at most", B::TWO_ADICITY);
    let root = two_adic_root::<B>().map(|root| root.pow([1 << (B::TWO_ADICITY - log_len)]));
    shift * root.unwrap_or(B::ONE).pow([reverse(number, log_len) as u64])
}

/// Returns the value at `x` of the polynomial of degree below `points.len()` with these values: Lagrange's
/// interpolation.
pub fn interpolate<F: FriField>(points: &[F::BasePrimeField], values: &[F], x: F) -> F {
    let others = |i: usize| points.iter().enumerate().filter(move |(j, _)| *j != i).map(|(_, point)| *point);
    let term = |i: usize| {
        let below: F::BasePrimeField = others(i).map(|other| points[i] - other).product();
        let above: F = others(i).map(|other| x - F::from_base_prime_field(other)).product();
        (values[i] * above).mul_by_base_prime_field(&below.inverse().unwrap_or(F::BasePrimeField::ZERO))
    };
    (0..points.len()).map(term).sum()
}

/// Folds evaluations on the coset of `shift`, in bit-reversed order, by 2^`log_arity`: each element is the value at
/// `beta` of the polynomial through as many neighbours.
pub fn fold<F: FriField>(values: &[F], log_arity: u32, beta: F, shift: F::BasePrimeField) -> Vec<F> {
    let points = points(values.len().ilog2(), shift);
    let rows = values.chunks_exact(1 << log_arity).zip(points.chunks_exact(1 << log_arity));
    rows.map(|(values, points)| interpolate(points, values, beta)).collect()
}

/// Returns the coefficients of the polynomial with these values on the coset of `shift`, in bit-reversed order.
pub fn coefficients<F: FriField>(values: &[F], shift: F::BasePrimeField) -> Vec<F> {
    let n = values.len();
    let points = points(n.ilog2(), shift);
    let scale = F::from(n as u64).inverse().unwrap_or(F::ZERO);
    let coefficient = |k: usize| {
        let terms = values.iter().zip(&points);
        let inverse = |x: &F::BasePrimeField| x.pow([k as u64]).inverse().unwrap_or(F::BasePrimeField::ZERO);
        terms.map(|(value, point)| value.mul_by_base_prime_field(&inverse(point))).sum::<F>() * scale
    };
    (0..n).map(coefficient).collect()
}

/// Returns the value of a polynomial by its coefficients.
pub fn evaluate<F: Field>(coefficients: &[F], x: F) -> F {
    coefficients.iter().rev().fold(F::ZERO, |value, coefficient| value * x + coefficient)
}

/// Returns Σ α^i (p_i(z) − p_i(x)) / (z − x) over the columns p_i of a matrix, for each row, in bit-reversed order on
/// the coset of `shift`.
pub fn quotients<F: FriField>(
    matrix: &[F::BasePrimeField],
    values_at_z: &[F],
    z: F,
    alpha: F,
    shift: F::BasePrimeField,
) -> Vec<F> {
    let columns = values_at_z.len();
    let points = points((matrix.len() / columns).ilog2(), shift);
    let row = |(row, x): (&[F::BasePrimeField], &F::BasePrimeField)| {
        let terms = row.iter().zip(values_at_z).rev();
        let sum = terms.fold(F::ZERO, |sum, (p, at_z)| sum * alpha + at_z - F::from_base_prime_field(*p));
        sum / (z - F::from_base_prime_field(*x))
    };
    matrix.chunks_exact(columns).zip(&points).map(row).collect()
}

/// Returns what [`ConstraintQuotients::quotients`](crate::ConstraintQuotients::quotients) does. `codeword` has the rows of a
/// trace's columns in bit-reversed order.
///
/// # Panics
/// If a column or a public value is missing, or if `shift` is one of the rows' points.
pub fn constraint_quotients<F: FriField>(
    constraints: &Constraints<F::BasePrimeField>,
    codeword: &[F::BasePrimeField],
    [rows, log_chunks]: [usize; 2],
    public: &[F::BasePrimeField],
    alpha: F,
    shift: F::BasePrimeField,
) -> Vec<Vec<F>> {
    let (one, count) = (F::BasePrimeField::ONE, rows << log_chunks);
    let (log_points, columns) = (count.ilog2(), codeword.len() / count);
    // The last row's point is the inverse of the generator of the rows' subgroup.
    let last = point(rows.ilog2(), one, rows - 1);
    let value = |i: usize| {
        let row = |i: usize| &codeword[reverse(i % count, log_points) * columns..][..columns];
        let x: F::BasePrimeField = point(log_points, shift, reverse(i, log_points));
        let vanishing = x.pow([rows as u64]) - one;
        let selectors = [vanishing / (x - one), vanishing / (x - last), x - last];
        let values = constraints.values([row(i), row(i + (1 << log_chunks))], public, selectors);
        let sum = values.iter().fold(F::ZERO, |sum, value| sum * alpha + F::from_base_prime_field(*value));
        sum / F::from_base_prime_field(vanishing)
    };
    (0..1 << log_chunks).map(|chunk| (0..rows).map(|row| value(chunk + (row << log_chunks))).collect()).collect()
}
