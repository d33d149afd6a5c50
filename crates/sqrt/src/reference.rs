//! The definitions, naively, to compare with.

use ark_ff::{Field, LegendreSymbol, PrimeField};
use num_bigint::BigUint;

use crate::config::RootChoice;

/// Takes the chosen root of `x`, by arkworks; `None` if there is none. Does not end for some fields whose configured
/// generator is a square, as arkworks' roots do not.
pub fn root<F: Field>(x: F, choice: RootChoice) -> Option<F> {
    let root = x.sqrt()?;
    Some(match choice {
        RootChoice::Any => root,
        RootChoice::Even => {
            if is_odd(&root) {
                -root
            } else {
                root
            }
        }
        RootChoice::Smaller => root.min(-root),
        RootChoice::Larger => root.max(-root),
    })
}

/// Tells whether `x` has a root of an odd prime degree, by Euler's criterion.
pub fn has_root<F: PrimeField>(x: F, degree: u32) -> bool {
    let order = F::MODULUS.into() - 1u8;
    let all_have_one = (&order % degree) != BigUint::ZERO;
    x.is_zero() || all_have_one || x.pow((order / degree).to_u64_digits()) == F::ONE
}

/// Computes `sgn0` of RFC 9380: the parity of the lowest coefficient that is not zero.
pub fn is_odd<F: Field>(x: &F) -> bool {
    use ark_ff::{BigInteger, Zero};

    let mut coefficients = x.to_base_prime_field_elements();
    coefficients.find(|c| !c.is_zero()).is_some_and(|c| c.into_bigint().is_odd())
}

/// Computes the quadratic residue symbol: 1, 0, or `u32::MAX` for −1.
pub fn symbol<F: Field>(x: F) -> u32 {
    match x.legendre() {
        LegendreSymbol::Zero => 0,
        LegendreSymbol::QuadraticResidue => 1,
        LegendreSymbol::QuadraticNonResidue => u32::MAX,
    }
}
