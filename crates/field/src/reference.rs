//! Naive versions of this crate's operations, to compare with.

use ark_ff::Field;

/// Element by element: `f(a[i], b[i])`.
pub fn pointwise<F: Field>(a: &[F], b: &[F], f: impl Fn(F, F) -> F) -> Vec<F> {
    a.iter().zip(b).map(|(a, b)| f(*a, *b)).collect()
}

/// The inverse of each element, and zero of zero.
pub fn inverse<F: Field>(a: &[F]) -> Vec<F> {
    a.iter().map(|a| a.inverse().unwrap_or(F::ZERO)).collect()
}

/// `scale · base^i` for i below `len`.
pub fn powers<F: Field>(base: F, scale: F, len: usize) -> Vec<F> {
    std::iter::successors(Some(scale), |x| Some(*x * base)).take(len).collect()
}
