//! How kernels compute in a field: a prime field by its constants, an extension by its reduction on top of its base.

use super::{DeviceField, DevicePrimeField, constants::Constants};

/// Holds what kernels need to know to compute in a field, from which [`source`](crate::source) renders their
/// arithmetic.
#[derive(Clone, Debug)]
pub struct Arithmetic(pub(crate) Kind);

#[derive(Clone, Debug)]
pub(crate) enum Kind {
    Prime { limbs: usize, constants: Constants },
    Extension(Box<Extended>),
}

/// An extension of degree n over a base: the polynomials in x of degree below n over it.
#[derive(Clone, Debug)]
pub(crate) struct Extended {
    pub(crate) base: Arithmetic,
    /// x^n by its coefficients.
    pub(crate) reduction: Vec<Coefficient>,
    /// Column i has the coefficients of (x^i)^q, with q the size of the base: a ↦ a^q is linear over the base.
    pub(crate) frobenius: Vec<Vec<Coefficient>>,
}

/// A constant of the base field, in the forms that are cheap to multiply by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Coefficient {
    Zero,
    /// ± a small integer, at least 1.
    Small {
        negative: bool,
        value: u32,
    },
    /// Any other, in device form.
    General(Vec<u32>),
}

/// Largest integer that is multiplied by with additions: at most 9 of them.
const MAX_SMALL: u32 = 32;

impl Arithmetic {
    /// Describes the arithmetic of the prime field `F`.
    pub fn prime<F: DevicePrimeField>() -> Self {
        Self(Kind::Prime { limbs: F::LIMBS, constants: Constants::of::<F>() })
    }

    /// Describes the arithmetic of the extension `F` of degree `N` of the field `B`. `compose` makes an element from
    /// its coefficients, the constant one first. `split` takes it apart. The arithmetic of `F` gives everything else.
    ///
    /// # Panics
    /// If `N` is less than 2.
    pub fn extension<F: DeviceField, B: DeviceField, const N: usize>(
        compose: impl Fn([B; N]) -> F,
        split: impl Fn(F) -> [B; N],
    ) -> Self {
        assert!(N >= 2, "an extension has at least degree 2");
        let mut x = [B::ZERO; N];
        x[1] = B::ONE;
        let x = compose(x);
        let row = |x: F| split(x).iter().map(Coefficient::of).collect::<Vec<_>>();
        let mut conjugate = x;
        for _ in 0..B::extension_degree() {
            conjugate = conjugate.pow(F::characteristic());
        }
        let powers = std::iter::successors(Some(F::ONE), |power| Some(*power * conjugate));
        Self(Kind::Extension(Box::new(Extended {
            base: B::arithmetic(),
            reduction: row(x.pow([N as u64])),
            frobenius: powers.take(N).map(row).collect(),
        })))
    }

    /// Counts the fields below this one: 0 below a prime field, 1 below a quadratic extension of it.
    pub fn levels(&self) -> usize {
        match &self.0 {
            Kind::Prime { .. } => 0,
            Kind::Extension(field) => 1 + field.base.levels(),
        }
    }

    /// 32-bit limbs of an element.
    pub(crate) fn limbs(&self) -> usize {
        match &self.0 {
            Kind::Prime { limbs, .. } => *limbs,
            Kind::Extension(field) => field.reduction.len() * field.base.limbs(),
        }
    }
}

impl Coefficient {
    fn of<B: DeviceField>(x: &B) -> Self {
        if x.is_zero() {
            return Self::Zero;
        }
        for value in 1..=MAX_SMALL {
            for negative in [false, true] {
                let integer = B::from(value);
                if *x == if negative { -integer } else { integer } {
                    return Self::Small { negative, value };
                }
            }
        }
        let mut limbs = vec![0; B::LIMBS];
        x.store(&mut limbs);
        Self::General(limbs)
    }
}
