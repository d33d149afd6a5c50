//! Data of a prime field from which programs are written.

use std::any::type_name;

use ark_ff::BigInteger;
use evariste_field::DevicePrimeField;

use crate::{
    error::{Error, Result},
    hash::Hash,
};

/// Widest digits of logarithms: rows of 256 elements, 8 KiB for 8 limbs.
const MAX_WIDTH: u32 = 8;

/// Attempts of a search. Each succeeds for about half of the elements, so that one search in 2^64 fails.
const ATTEMPTS: u64 = 64;

/// What the methods need to know of a prime field.
#[derive(Clone, Debug)]
pub(crate) struct Prime<B> {
    /// n.
    pub(crate) two_adicity: u32,
    /// The smallest integer that is no square.
    pub(crate) non_residue: B,
    /// non_residue^m, which generates the subgroup of order 2^n.
    pub(super) generator: B,
    /// p, the lowest digit first.
    pub(super) bits: Vec<bool>,
    /// Digits of logarithms to the base g in the table method, and their width.
    pub(super) digits: [u32; 2],
    /// Logarithms of one digit.
    pub(super) hash: Hash,
}

impl<B: DevicePrimeField> Prime<B> {
    pub(crate) fn new() -> Result<Self> {
        let bits: Vec<bool> = (0..B::MODULUS_BIT_SIZE as usize).map(|i| B::MODULUS.get_bit(i)).collect();
        let two_adicity = 1 + bits[1..].iter().take_while(|bit| !**bit).count() as u32;
        let hash = Hash::default();
        let mut prime = Self { two_adicity, non_residue: B::ONE, generator: B::ONE, bits, digits: [0; 2], hash };
        let mut candidate = B::ONE;
        while prime.symbol(candidate) == B::ONE {
            candidate += B::ONE;
        }
        if prime.symbol(candidate) != -B::ONE {
            return Err(Error::Modulus { field: type_name::<B>() });
        }
        prime.non_residue = candidate;
        prime.generator = prime.pow(candidate, two_adicity);
        // As few digits as `MAX_WIDTH` allows, as equal as can be. 1 and −1, the digits of width 1, differ in their
        // lowest bit.
        let widest = two_adicity.div_ceil(two_adicity.div_ceil(MAX_WIDTH));
        let hash = |width| Some((width, Hash::new(prime.power_of_generator(two_adicity - width), width)?));
        let Some((width, hash)) = (1..=widest).rev().find_map(hash) else { unreachable!("two elements have no hash") };
        Ok(Self { digits: [two_adicity.div_ceil(width), width], hash, ..prime })
    }

    /// p ≫ shift.
    pub(super) fn shifted(&self, shift: u32) -> &[bool] {
        &self.bits[(shift as usize).min(self.bits.len())..]
    }

    /// x^(p ≫ shift).
    pub(super) fn pow(&self, x: B, shift: u32) -> B {
        let square_and_multiply = |r: B, bit: &bool| if *bit { r.square() * x } else { r.square() };
        self.shifted(shift).iter().rev().fold(B::ONE, square_and_multiply)
    }

    /// x^((p − 1) / 2).
    pub(crate) fn symbol(&self, x: B) -> B {
        self.pow(x, 1)
    }

    /// g^(2^k).
    pub(super) fn power_of_generator(&self, k: u32) -> B {
        (0..k).fold(self.generator, |x, _| x.square())
    }

    /// A root of what is known to be a square.
    pub(super) fn root(&self, x: B) -> B {
        // Tonelli–Shanks, one binary digit of the logarithm at a time.
        let v = self.pow(x, self.two_adicity + 1);
        let (mut y, mut rest) = (x * v, x * v * v);
        for i in 1..self.two_adicity {
            let top = (0..self.two_adicity - 1 - i).fold(rest, |x, _| x.square());
            if top != B::ONE && top != B::ZERO {
                let inverse = self.power_of_generator(i - 1).inverse().unwrap_or(B::ONE);
                y *= inverse;
                rest *= inverse.square();
            }
        }
        y
    }

    /// 1 / x, for x that is not zero.
    pub(super) fn inverse(x: B) -> B {
        x.inverse().unwrap_or(B::ZERO)
    }

    /// Attempts of a search among the integers from 1 on.
    pub(super) fn attempts(&self) -> u32 {
        let below = self.bits.iter().take(16).rev().fold(0u64, |p, bit| p << 1 | u64::from(*bit));
        ATTEMPTS.min(if self.bits.len() > 16 { ATTEMPTS } else { below - 1 }) as u32
    }
}
