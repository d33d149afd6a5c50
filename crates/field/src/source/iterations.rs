//! Upper bounds for the loop iterations of one thread in WGSL, for devices that limit them
//! ([`Limits::loop_iterations`](evariste_backend::Limits::loop_iterations)).

pub use evariste_backend::author::loop_iterations as repeat;

use super::inverse;
use crate::field::{
    DeviceField,
    arithmetic::{Arithmetic, Coefficient, Extended, Kind},
};

/// Counts the iterations of one `f_mul`.
pub fn mul<F: DeviceField>() -> u64 {
    mul_of(&F::arithmetic())
}

/// Counts the iterations of one `f_inverse`.
pub fn inverse<F: DeviceField>() -> u64 {
    inverse_of(&F::arithmetic())
}

/// Counts the iterations of one `group_inverse` in a workgroup of `threads` threads.
pub fn group_inverse<F: DeviceField>(threads: u32) -> u64 {
    let levels = u64::from((threads / threads.min(super::ROOTS)).max(1).ilog2());
    let mul = mul::<F>();
    repeat(levels, mul) + inverse::<F>() + repeat(levels, 2 * mul)
}

fn mul_of(field: &Arithmetic) -> u64 {
    match &field.0 {
        // Those of parts of limbs are more.
        Kind::Prime { limbs, .. } => repeat(super::limbs29::count(*limbs).unwrap_or(*limbs) as u64, 0),
        Kind::Extension(extended) => {
            let base = mul_of(&extended.base);
            let constants = general(&extended.reduction) * base;
            match extended.reduction.len() as u64 {
                2 => repeat(3, base) + constants,
                degree => repeat(degree, degree * base + constants),
            }
        }
    }
}

fn inverse_of(field: &Arithmetic) -> u64 {
    match &field.0 {
        Kind::Prime { limbs, .. } => inverse::iterations(*limbs),
        Kind::Extension(extended) => {
            let degree = extended.reduction.len() as u64;
            let (frobenius, mul) = (frobenius_of(extended), mul_of(field));
            let scale = degree * mul_of(&extended.base);
            frobenius + repeat(degree, frobenius + mul) + inverse_of(&extended.base) + scale
        }
    }
}

fn frobenius_of(extended: &Extended) -> u64 {
    let constants: u64 = extended.frobenius.iter().map(|column| general(column)).sum();
    constants * mul_of(&extended.base)
}

/// How many of these are multiplied by with a multiplication.
fn general(coefficients: &[Coefficient]) -> u64 {
    coefficients.iter().filter(|coefficient| matches!(coefficient, Coefficient::General(_))).count() as u64
}

#[cfg(test)]
mod tests {
    use ark_bls12_381::{Fq, Fq2, Fr};

    use super::*;

    #[test]
    fn turns_are_counted_through_towers() {
        // Nine parts of 29 bits, and fourteen.
        assert_eq!(mul::<Fr>(), 11);
        assert_eq!((mul::<Fq>(), mul::<Fq2>()), (16, 3 * 17 + 2));
        // Division steps for 256 bits are 590 at most.
        assert!((43 * 17..50 * 17).contains(&inverse::<Fr>()), "{}", inverse::<Fr>());
        assert!(inverse::<Fq2>() > inverse::<Fq>());
    }
}
