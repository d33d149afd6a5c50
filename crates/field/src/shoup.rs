use crate::field::{
    DeviceField,
    arithmetic::{Arithmetic, Kind},
    constants::Constants,
};

/// Computes for each known constant the three forms in which kernels multiply by it, each of `LIMBS` limbs. They are
/// its Montgomery form, the integer w, and the quotient ⌊2^(32 LIMBS) · w / p⌋. With the quotient a product by w needs
/// no reduction (V. Shoup, NTL; D. Harvey, "Faster arithmetic for number-theoretic transforms", 2014). In an extension
/// the last two are zero.
pub fn shoup_constants<F: DeviceField>(values: impl IntoIterator<Item = F>) -> Vec<u32> {
    let Arithmetic(kind) = F::arithmetic();
    let mut limbs = Vec::new();
    for value in values {
        let at = limbs.len();
        limbs.resize(at + 3 * F::LIMBS, 0);
        let (montgomery, rest) = limbs[at..].split_at_mut(F::LIMBS);
        value.store(montgomery);
        if let Kind::Prime { constants, .. } = &kind {
            let (integer, quotient) = rest.split_at_mut(F::LIMBS);
            constants.divide(montgomery, integer, quotient);
        }
    }
    limbs
}

impl Constants {
    /// w and ⌊B · w / p⌋ for B = 2^(32 LIMBS), from w's Montgomery form t = B · w mod p. Since B · w − t is a multiple
    /// of p, the quotient is −t / p mod B. Its limbs are those by which Montgomery's reduction of t to w multiplies p.
    fn divide(&self, montgomery: &[u32], integer: &mut [u32], quotient: &mut [u32]) {
        integer.copy_from_slice(montgomery);
        for quotient in quotient {
            let factor = integer[0].wrapping_mul(self.n0);
            let mut carry = 0;
            for (limb, p) in integer.iter_mut().zip(&self.modulus) {
                let sum = u64::from(*limb) + u64::from(factor) * u64::from(*p) + carry;
                (*limb, carry) = (sum as u32, sum >> 32);
            }
            integer.rotate_left(1);
            if let Some(top) = integer.last_mut() {
                *top = carry as u32;
            }
            *quotient = factor;
        }
    }
}

#[cfg(test)]
mod tests {
    use ark_bls12_381::Fr;
    use ark_ff::{AdditiveGroup, BigInteger, Field, PrimeField, UniformRand};

    use super::*;

    /// As a sum of limbs times powers of 2^32, in the field.
    fn value(limbs: &[u32]) -> Fr {
        limbs.iter().rev().fold(Fr::ZERO, |sum, limb| sum * Fr::from(1u64 << 32) + Fr::from(*limb))
    }

    #[test]
    fn quotients_are_those_of_division() {
        let mut rng = ark_std::test_rng();
        for w in [Fr::ZERO, Fr::ONE, -Fr::ONE, Fr::rand(&mut rng), Fr::rand(&mut rng)] {
            let limbs = shoup_constants([w]);
            let [montgomery, integer, quotient] = [0, 8, 16].map(|at| &limbs[at..at + 8]);
            let beta = Fr::from(2u8).pow([256]);
            assert_eq!(value(integer), w);
            assert_eq!(value(montgomery), w * beta);
            // B w = quotient p + t with t < p: equal modulo the odd B − 1, where limbs just add up.
            let fold = |limbs: &[u32]| limbs.iter().fold(0u64, |sum, limb| (sum + u64::from(*limb)) % 0xffff_ffff);
            let p: Vec<u32> =
                Fr::MODULUS.to_bytes_le().chunks(4).map(|b| u32::from_le_bytes(b.try_into().unwrap())).collect();
            assert_eq!(fold(integer), (fold(quotient) * fold(&p) + fold(montgomery)) % 0xffff_ffff);
        }
    }
}
