//! Tonelli and Shanks as the source has it between a host and a device (chapter 4, Algorithm 3): the host makes a
//! matrix B of powers of a generator, column after column, and the powers C of b; the device multiplies C by the
//! columns of B, one after the other; the host reads the products D, and goes over them for the root.
//!
//! Column j of D has all columns of B up to j in it. It is the vector that the algorithm has after j steps if each of
//! them multiplies, so the element is one whose logarithm has that: for others the host would have to choose columns.

use std::iter;

use anyhow::{Context, Result, ensure};
use ark_ff::{FftField, PrimeField};
use evariste::backend::Buffer;
use evariste::field::{DevicePrimeField, Mont, Vector};

use super::{Case, Session, Target, input};

/// The host's input for the device: vectors of n elements, for the field's two-adicity n.
struct Matrices<F> {
    n: usize,
    /// g^(2^(j + i)) in row i of columns j = 1, …, n − 1, one after the other.
    b: Vec<F>,
    /// b^(2^i) in row i.
    c: Vec<F>,
    /// A candidate y with y² = a b.
    candidate: F,
}

impl<F: PrimeField + FftField> Matrices<F> {
    fn new(a: F) -> Self {
        let n = F::TWO_ADICITY as usize;
        let squares = |first: F, count| iter::successors(Some(first), |x| Some(x.square())).take(count);
        let b = squares(F::TWO_ADIC_ROOT_OF_UNITY.square(), n - 1).flat_map(|first| squares(first, n)).collect();
        let power = a.pow(F::TRACE_MINUS_ONE_DIV_TWO);
        let candidate = a * power;
        Self { n, b, c: squares(candidate * power, n).collect(), candidate }
    }

    /// The root, if every step multiplied: D is C and n − 1 columns of products.
    fn search(&self, d: &[F]) -> Option<F> {
        let mut root = self.candidate;
        let mut factor = F::TWO_ADIC_ROOT_OF_UNITY;
        for (step, column) in d.chunks_exact(self.n).take(self.n - 1).enumerate() {
            // What has not this order is not multiplied at this step.
            if column[self.n - 2 - step] != -F::ONE {
                return None;
            }
            root *= factor;
            factor.square_in_place();
        }
        Some(root)
    }
}

/// A square that every step of the algorithm multiplies: b = a^q, for the odd part q of p − 1, is g² for the generator
/// g of order 2^n, whose logarithm lacks all of the powers 2, 4, …, 2^(n − 1) to 2^n.
fn element<F: PrimeField + FftField>() -> Result<F> {
    let q = F::TRACE.as_ref().first().copied().context("a field without limbs")?;
    // Each step doubles the bits that are right. An odd number has three at first.
    let inverse = (0..5).fold(q, |x, _| x.wrapping_mul(2u64.wrapping_sub(q.wrapping_mul(x))));
    let random = input::random::<F>(1)[0];
    Ok(random.pow([1 << F::TWO_ADICITY]) * F::TWO_ADIC_ROOT_OF_UNITY.pow([inverse.wrapping_mul(2)]))
}

/// Columns 1, …, n − 1 of D: each is the one before it by that of B.
fn multiply<F: DevicePrimeField>(
    vector: &Vector<F>,
    n: usize,
    b: &Buffer<Mont<F>>,
    d: &mut Buffer<Mont<F>>,
) -> Result<(), evariste::backend::Error> {
    (1..n).try_for_each(|column| {
        let (before, mut after) = d.view_mut(..)?.split_at(column * n)?;
        let (before, b) = (before.view((column - 1) * n..)?, b.view((column - 1) * n..column * n)?);
        vector.mul(before, b, after.view_mut(..n)?)
    })
}

/// One root, on the device alone and with all that the host does.
pub(super) fn run<F: DevicePrimeField + FftField>(session: &mut Session, target: &Target, field: &str) {
    for place in ["device", "host"] {
        let case = Case {
            name: format!("{field}/roots/host-matrices/{place}"),
            device: target.device.info().id.to_string(),
            peer: None,
            log_n: 0,
            elements: Some(1),
            floor: None,
        };
        session.measure(case, |budget| {
            let (device, vector, a) = (&target.device, Vector::<F>::new(&target.device), element::<F>()?);
            let n = F::TWO_ADICITY as usize;
            let (mut b, mut d) = (device.alloc::<Mont<F>>(n * (n - 1))?, device.alloc::<Mont<F>>(n * n)?);
            let mut read = vec![F::ZERO; n * n];
            let mut root = || {
                let matrices = Matrices::new(a);
                b.write(&matrices.b)?;
                d.view_mut(..n)?.write(&matrices.c)?;
                multiply(&vector, n, &b, &mut d)?;
                d.read(&mut read)?;
                matrices.search(&read).context("a step that does not multiply")
            };
            let before = device.stats().launches;
            let found: F = root()?;
            ensure!(found.square() == a, "a root is wrong");
            let launches = device.stats().launches - before;
            let timing = match place {
                "host" => budget.time(|| root().map(drop))?,
                _ => budget.time_queued(|| Ok(multiply(&vector, n, &b, &mut d)?), || Ok(device.sync()?))?,
            };
            Ok((timing, Some(launches), "squared".into()))
        });
    }
}

#[cfg(test)]
mod tests {
    use ark_bls12_381::Fr;
    use ark_ff::{Field, UniformRand};

    use super::*;

    fn products<F: Field>(n: usize, matrices: &Matrices<F>) -> Vec<F> {
        let mut d = matrices.c.clone();
        for column in matrices.b.chunks_exact(n) {
            let last = d[d.len() - n..].to_vec();
            d.extend(last.iter().zip(column).map(|(x, y)| *x * y));
        }
        d
    }

    #[test]
    fn products_of_all_columns_are_a_root_where_every_step_multiplies() {
        let a = element::<Fr>().unwrap();
        let matrices = Matrices::new(a);
        let d = products(matrices.n, &matrices);
        assert_eq!(d.len(), matrices.n * matrices.n);
        assert_eq!(matrices.search(&d).map(|root| root.square()), Some(a));
        // One of 2^31 others has all steps.
        let other = Matrices::new(Fr::rand(&mut ark_std::test_rng()).square());
        assert_eq!(other.search(&products(other.n, &other)), None);
    }
}
