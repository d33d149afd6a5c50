//! Single elements that the processor computes with by its best instructions, for CPU bodies of kernels.
//!
//! This module is for authors of kernels, and exempt from semantic versioning.

use std::ops::{Add, AddAssign, Mul, MulAssign, Neg, Sub, SubAssign};

use crate::field::DeviceField;

/// An element whose operators take the processor's instructions for long products, where it has them, and arkworks'
/// arithmetic elsewhere. The results are the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Native<F>(pub F);

impl<F: DeviceField> Native<F> {
    /// 0.
    pub const ZERO: Self = Self(F::ZERO);

    /// 1.
    pub const ONE: Self = Self(F::ONE);

    /// Reads the device form of an element.
    #[inline]
    pub fn load(limbs: &[u32]) -> Self {
        Self(F::load(limbs))
    }

    /// Writes the device form.
    #[inline]
    pub fn store(&self, limbs: &mut [u32]) {
        self.0.store(limbs);
    }

    /// Computes 2x.
    #[inline]
    pub fn double(self) -> Self {
        self + self
    }

    /// Computes x².
    #[inline]
    pub fn square(self) -> Self {
        Self(self.0.native_square())
    }

    /// Computes the power by an exponent of little-endian words. The time depends on the exponent.
    pub fn pow(self, exponent: &[u64]) -> Self {
        let bits = exponent.iter().rev().flat_map(|word| (0..u64::BITS).rev().map(move |bit| word >> bit & 1 == 1));
        bits.skip_while(|bit| !bit).fold(Self::ONE, |power, bit| {
            let square = power.square();
            if bit { square * self } else { square }
        })
    }

    /// Returns whether it is 0.
    #[inline]
    pub fn is_zero(&self) -> bool {
        self.0.is_zero()
    }
}

impl<F: DeviceField> Mul for Native<F> {
    type Output = Self;

    #[inline]
    fn mul(self, other: Self) -> Self {
        Self(self.0.native_mul(&other.0))
    }
}

impl<F: DeviceField> Add for Native<F> {
    type Output = Self;

    #[inline]
    fn add(self, other: Self) -> Self {
        Self(self.0.native_add(&other.0))
    }
}

impl<F: DeviceField> Sub for Native<F> {
    type Output = Self;

    #[inline]
    fn sub(self, other: Self) -> Self {
        Self(self.0.native_sub(&other.0))
    }
}

impl<F: DeviceField> Neg for Native<F> {
    type Output = Self;

    #[inline]
    fn neg(self) -> Self {
        Self(-self.0)
    }
}

impl<F: DeviceField> MulAssign for Native<F> {
    #[inline]
    fn mul_assign(&mut self, other: Self) {
        *self = *self * other;
    }
}

impl<F: DeviceField> AddAssign for Native<F> {
    #[inline]
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl<F: DeviceField> SubAssign for Native<F> {
    #[inline]
    fn sub_assign(&mut self, other: Self) {
        *self = *self - other;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::small::{BabyBear4, Goldilocks};

    fn check<F: DeviceField>() {
        let mut rng = ark_std::test_rng();
        let mut values = vec![F::ZERO, F::ONE, -F::ONE, F::from(2u8)];
        values.extend((0..6).map(|_| F::rand(&mut rng)));
        for a in &values {
            let x = Native(*a);
            assert_eq!((x.square().0, x.double().0, (-x).0), (a.square(), a.double(), -*a));
            assert_eq!(x.is_zero(), a.is_zero());
            for exponent in [&[][..], &[0], &[1], &[6, 0], &[u64::MAX, 5]] {
                assert_eq!(x.pow(exponent).0, a.pow(exponent), "{a}^{exponent:?}");
            }
            for b in &values {
                let y = Native(*b);
                assert_eq!(((x * y).0, (x + y).0, (x - y).0), (*a * b, *a + b, *a - b), "{a}, {b}");
                let [mut product, mut sum, mut difference] = [x; 3];
                product *= y;
                sum += y;
                difference -= y;
                assert_eq!((product, sum, difference), (x * y, x + y, x - y));
            }
        }
    }

    #[test]
    fn operators_give_what_arkworks_does() {
        check::<ark_bls12_381::Fr>();
        check::<ark_bls12_381::Fq>();
        check::<ark_bls12_381::Fq2>();
        check::<ark_bn254::Fq2>();
        check::<Goldilocks>();
        check::<BabyBear4>();
    }
}
