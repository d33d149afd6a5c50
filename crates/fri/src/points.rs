//! Points of subgroups in bit-reversed order.
//!
//! The point number i of the subgroup of 2^n elements in bit-reversed order is the product, over the bits b of i, of
//! roots of unity of order 2^(b + 1). It does not depend on n. So one table serves all rounds, and two tables of √N
//! elements give any of N points by one multiplication.

use std::{iter, ops::Range};

use ark_ff::{FftField, Field};
use evariste_backend::{Buffer, Queue, Secrecy};
use evariste_field::{DevicePrimeField, Mont, two_adic_root};

use crate::{
    error::{Error, Result},
    field::FriField,
};

/// Powers of 1/2 before the points.
pub(crate) const HALVES: usize = 8;

/// log₂ of the points of a domain at most: kernels count by 32 bits.
const MAX_LOG_LEN: u32 = 31;

/// log₂ of the first table's points at least: folds by 16 take factors there.
const LEAST_LOW_BITS: u32 = 3;

/// The points of one domain and all smaller ones, or their inverses, on a device.
pub(crate) struct Points<B: DevicePrimeField> {
    pub(crate) table: Buffer<Mont<B>>,
    pub(crate) low_bits: u32,
    pub(crate) log_len: u32,
}

impl<B: DevicePrimeField> Points<B> {
    pub(crate) fn new(queue: &Queue, log_len: u32, inverse: bool) -> Result<Self> {
        let expected = <B as FftField>::TWO_ADICITY.min(MAX_LOG_LEN);
        if log_len > expected {
            return Err(Error::Domain { expected, actual: log_len });
        }
        let (table, low_bits) = table::<B>(log_len, inverse);
        Ok(Self { table: queue.upload_with(&table, Secrecy::Public)?, low_bits, log_len })
    }

    /// Refuses evaluations on a larger domain, or on none. Returns log₂ of their number.
    pub(crate) fn expect(&self, what: &'static str, len: usize) -> Result<u32> {
        if !len.is_power_of_two() {
            return Err(Error::Height { what, actual: len });
        }
        match len.ilog2() {
            log_len if log_len <= self.log_len => Ok(log_len),
            _ => Err(Error::TooLong { what, expected: 1 << self.log_len, actual: len }),
        }
    }

    /// Bytes of device memory.
    pub(crate) fn bytes(log_len: u32) -> u64 {
        let [low, high] = split(log_len);
        (HALVES as u64 + (1 << low) + (1 << high)) * 4 * B::LIMBS as u64
    }
}

/// Bits of a number that the first table takes, and those that the second one does.
fn split(log_len: u32) -> [u32; 2] {
    let bits = log_len.saturating_sub(1);
    let low = bits.div_ceil(2).max(LEAST_LOW_BITS);
    [low, bits.saturating_sub(low)]
}

/// Powers of 1/2, t(j) for j < 2^low, and t(j·2^low), where t(j) is the point number 2j, or its inverse.
fn table<B: DevicePrimeField>(log_len: u32, inverse: bool) -> (Vec<B>, u32) {
    let [low, high] = split(log_len);
    let half = B::from(2u64).inverse().unwrap_or(B::ONE);
    let halves = iter::successors(Some(B::ONE), |power| Some(*power * half)).take(HALVES);
    (halves.chain(products(0..low, inverse)).chain(products(low..low + high, inverse)).collect(), low)
}

/// t(j·2^`bits.start`) for j below 2^(the number of bits).
fn products<B: DevicePrimeField>(bits: Range<u32>, inverse: bool) -> Vec<B> {
    let adicity = <B as FftField>::TWO_ADICITY;
    let root = two_adic_root::<B>().unwrap_or(B::ONE);
    let root = if inverse { root.inverse().unwrap_or(B::ONE) } else { root };
    // Roots of order 2^s, 2^(s − 1), …, 1: the one of order 2^m is number s − m.
    let roots: Vec<B> = iter::successors(Some(root), |root| Some(root.square())).take(adicity as usize + 1).collect();
    // Of orders that the field has not, where no fold is that needs them.
    let factor = |bit: u32| adicity.checked_sub(bit + 2).map_or(B::ONE, |number| roots[number as usize]);
    bits.fold(vec![B::ONE], |mut products, bit| {
        products.extend_from_within(..);
        let half = products.len() / 2;
        products[half..].iter_mut().for_each(|x| *x *= factor(bit));
        products
    })
}

/// The coefficients of the polynomial with these values on the coset of 1 / `unshift`, in bit-reversed order: those at
/// even and at odd places are the polynomials (f(x) + f(−x)) / 2 and (f(x) − f(−x)) / 2x of x².
pub(crate) fn coefficients<F: FriField>(values: Vec<F>, unshift: F::BasePrimeField) -> Vec<F> {
    fn halves<F: FriField>(values: Vec<F>, inverses: &[F::BasePrimeField], unshift: F::BasePrimeField) -> Vec<F> {
        if values.len() <= 1 {
            return values;
        }
        let half = F::BasePrimeField::from(2u64).inverse().unwrap_or(F::BasePrimeField::ONE);
        let even = values.chunks_exact(2).map(|pair| (pair[0] + pair[1]).mul_by_base_prime_field(&half)).collect();
        let odd = values.chunks_exact(2).zip(inverses);
        let odd = odd.map(|(pair, x)| (pair[0] - pair[1]).mul_by_base_prime_field(&(half * unshift * x))).collect();
        let [even, odd] = [even, odd].map(|values| halves(values, inverses, unshift.square()));
        even.into_iter().zip(odd).flat_map(|(even, odd)| [even, odd]).collect()
    }
    let inverses = products(0..values.len().max(1).ilog2().saturating_sub(1), true);
    halves(values, &inverses, unshift)
}

/// Returns `i` with its lowest `bits` bits in reverse order.
pub(crate) fn reverse(i: usize, bits: u32) -> usize {
    (0..bits).fold(0, |reversed, bit| reversed << 1 | i >> bit & 1)
}

#[cfg(test)]
mod tests {
    use ark_ff::UniformRand;
    use ark_std::test_rng;
    use evariste_field::small::{BabyBear, BabyBear4};

    use super::*;
    use crate::reference;

    #[test]
    fn tables_give_the_points_of_every_domain() {
        for (log_len, inverse) in [(1, true), (5, false), (9, true)] {
            let (table, low) = table::<BabyBear>(log_len, inverse);
            for log_n in 1..=log_len {
                let points: Vec<BabyBear> = reference::points(log_n, BabyBear::ONE);
                for (i, point) in points.iter().enumerate() {
                    let j = i / 2;
                    let t = table[HALVES + (j & ((1 << low) - 1))] * table[HALVES + (1 << low) + (j >> low)];
                    let t = if i % 2 == 1 { -t } else { t };
                    let point = if inverse { point.inverse().unwrap() } else { *point };
                    assert_eq!(t, point, "point {i} of 2^{log_n}");
                }
            }
        }
    }

    #[test]
    fn coefficients_are_those_of_the_definition() {
        for log_len in 0..6 {
            let values: Vec<BabyBear4> = (0..1 << log_len).map(|_| UniformRand::rand(&mut test_rng())).collect();
            let shift = BabyBear::from(12345);
            let found = coefficients(values.clone(), shift.inverse().unwrap());
            assert_eq!(found, reference::coefficients(&values, shift), "2^{log_len}");
        }
    }
}
