//! Naive versions of this crate's operations, to compare with.

use ark_ff::Field;

use crate::vector::Prefix;

/// Applies `f` element by element: result i is `f(a[i], b[i])`.
pub fn pointwise<F: Field>(a: &[F], b: &[F], f: impl Fn(F, F) -> F) -> Vec<F> {
    a.iter().zip(b).map(|(a, b)| f(*a, *b)).collect()
}

/// Inverts each element; zero maps to zero.
pub fn inverse<F: Field>(a: &[F]) -> Vec<F> {
    a.iter().map(|a| a.inverse().unwrap_or(F::ZERO)).collect()
}

/// Computes `scale · base^i` for i below `len`.
pub fn powers<F: Field>(base: F, scale: F, len: usize) -> Vec<F> {
    std::iter::successors(Some(scale), |x| Some(*x * base)).take(len).collect()
}

/// Computes `Σ a[i]`.
pub fn sum<F: Field>(a: &[F]) -> F {
    a.iter().sum()
}

/// Computes `Π a[i]`.
pub fn product<F: Field>(a: &[F]) -> F {
    a.iter().product()
}

/// Computes `Σ a[i] · b[i]`.
pub fn inner_product<F: Field>(a: &[F], b: &[F]) -> F {
    a.iter().zip(b).map(|(a, b)| *a * b).sum()
}

/// Evaluates the polynomial `Σ a[i] · z^i`, the constant coefficient first.
pub fn evaluate<F: Field>(a: &[F], z: F) -> F {
    a.iter().rev().fold(F::ZERO, |sum, a| sum * z + a)
}

/// Returns the states of `f(state, a[i])` from `first` on: after each element, or before it.
pub fn prefix<F: Field>(a: &[F], prefix: Prefix, first: F, f: impl Fn(F, F) -> F) -> Vec<F> {
    let mut state = first;
    let step = |a: &F| {
        let before = state;
        state = f(state, *a);
        if prefix == Prefix::Exclusive { before } else { state }
    };
    a.iter().map(step).collect()
}

/// Divides the polynomial with coefficients `a` by x − `z`: returns the quotient, with a leading zero, and the
/// remainder.
pub fn divide_by_linear<F: Field>(a: &[F], z: F) -> (Vec<F>, F) {
    let mut state = F::ZERO;
    let mut quotient = vec![F::ZERO; a.len()];
    for (a, quotient) in a.iter().zip(&mut quotient).rev() {
        *quotient = state;
        state = state * z + a;
    }
    (quotient, state)
}

/// Reorders a list whose length is a power of two: result i is `a[reverse(i)]`.
pub fn bit_reverse<T: Copy>(a: &[T]) -> Vec<T> {
    let bits = a.len().checked_ilog2().unwrap_or(0);
    let reverse = |i: usize| (0..bits).fold(0, |r, bit| r << 1 | i >> bit & 1);
    (0..a.len()).map(|i| a[reverse(i)]).collect()
}

/// Exchanges rows and columns of a matrix of `rows` rows.
pub fn transpose<T: Copy>(a: &[T], rows: usize) -> Vec<T> {
    let columns = a.len().checked_div(rows).unwrap_or(0);
    (0..columns).flat_map(|c| (0..rows).map(move |r| a[r * columns + c])).collect()
}

/// Multiplies a vector by a matrix of `rows` rows, which is 0 but for entries of a row, a column and a value. Entries at
/// the same place are added.
pub fn sparse_product<F: Field>(rows: usize, entries: &[(u32, u32, F)], vector: &[F]) -> Vec<F> {
    let mut out = vec![F::ZERO; rows];
    for (row, column, value) in entries {
        out[*row as usize] += *value * vector[*column as usize];
    }
    out
}
