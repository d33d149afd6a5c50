//! Constants of a prime field as 32-bit limbs, computed from the modulus.

use ark_ff::BigInteger;

use super::DevicePrimeField;

/// What the kernels of a field need to know, all of `LIMBS` limbs.
#[derive(Clone, Debug)]
pub(crate) struct Constants {
    /// p.
    pub(crate) modulus: Vec<u32>,
    /// −p⁻¹ mod 2³².
    pub(crate) n0: u32,
    /// R mod p, which is one in Montgomery form.
    pub(crate) one: Vec<u32>,
    /// 2³²·R mod p.
    pub(crate) shift: Vec<u32>,
    /// R² mod p.
    pub(crate) square: Vec<u32>,
    /// p − 2, the exponent of inversion.
    pub(crate) inversion_exponent: Vec<u32>,
    /// 2p does not fit the limbs: sums carry out of them.
    pub(crate) full: bool,
}

impl Constants {
    pub(crate) fn of<F: DevicePrimeField>() -> Self {
        let limbs = |bytes: Vec<u8>| -> Vec<u32> {
            let word = |b: &[u8]| b.iter().rev().fold(0, |word, &byte| word << 8 | u32::from(byte));
            bytes.chunks(4).map(word).chain([0; 2]).take(F::LIMBS).collect()
        };
        let stored = |x: F| {
            let mut limbs = vec![0; F::LIMBS];
            x.store(&mut limbs);
            limbs
        };
        let modulus = limbs(F::MODULUS.to_bytes_le());
        let mut exponent = F::MODULUS;
        exponent.sub_with_borrow(&F::BigInt::from(2u8));
        // Newton's iteration doubles the right bits of the inverse: 3, 6, 12, 24, 48.
        let p0 = modulus[0];
        let inverse = (0..4).fold(p0, |x, _| x.wrapping_mul(2u32.wrapping_sub(p0.wrapping_mul(x))));
        Self {
            n0: inverse.wrapping_neg(),
            one: stored(F::ONE),
            shift: stored(F::from(1u64 << 32)),
            square: stored(F::from(2u8).pow([32 * F::LIMBS as u64])),
            inversion_exponent: limbs(exponent.to_bytes_le()),
            full: modulus[F::LIMBS - 1] >> 31 == 1,
            modulus,
        }
    }

    /// 2^(32 LIMBS) − p.
    pub(crate) fn complement(&self) -> Vec<u32> {
        let negate = |carry: &mut bool, limb: &u32| {
            let (sum, overflow) = (!limb).overflowing_add(u32::from(*carry));
            *carry = overflow;
            Some(sum)
        };
        self.modulus.iter().scan(true, negate).collect()
    }
}
