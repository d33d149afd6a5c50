//! The transform by its definition, to compare with.

use ark_ff::{FftField, Field};

use crate::{Order, reverse_bits};

/// Gives the primitive root of unity of order 2^`log_n` that all transforms use: arkworks' two-adic root, squared down.
/// `None` beyond the field's two-adicity.
pub fn root_of_unity<F: FftField>(log_n: u32) -> Option<F> {
    let squarings = F::TWO_ADICITY.checked_sub(log_n)?;
    Some((0..squarings).fold(F::TWO_ADIC_ROOT_OF_UNITY, |root, _| root.square()))
}

/// Computes X_k = Σ x_i (g w^k)^i for each k, in n² multiplications.
///
/// # Panics
/// If the length is no power of two, or beyond the field's two-adicity.
pub fn forward<F: FftField>(x: &[F], g: F) -> Vec<F> {
    let w: F = root_of_unity(x.len().ilog2()).expect("the field has a root of unity of this order");
    assert!(x.len().is_power_of_two());
    (0..x.len() as u64).map(|k| horner(x, g * w.pow([k]))).collect()
}

/// Evaluates Σ x_i z^i.
pub fn horner<F: Field>(x: &[F], z: F) -> F {
    x.iter().rev().fold(F::ZERO, |sum, x| sum * z + x)
}

/// Brings elements from one order to another; their number is a power of two.
pub fn reorder<T: Copy>(x: &[T], from: Order, to: Order) -> Vec<T> {
    if from == to {
        return x.to_vec();
    }
    let log_n = x.len().ilog2();
    (0..x.len() as u32).map(|i| x[reverse_bits(i, log_n) as usize]).collect()
}

/// Multiplies two polynomials, by coefficients from the constant term on; the product has none if one of them has none.
pub fn product<F: FftField>(a: &[F], b: &[F]) -> Vec<F> {
    let len = if a.is_empty() || b.is_empty() { 0 } else { a.len() + b.len() - 1 };
    let mut product = vec![F::ZERO; len];
    for (i, x) in a.iter().enumerate() {
        b.iter().enumerate().for_each(|(j, y)| product[i + j] += *x * y);
    }
    product
}
