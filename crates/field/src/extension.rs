use std::{
    cmp::Ordering,
    fmt,
    hash::{Hash, Hasher},
    iter::{Product, Sum},
    ops::{Add, AddAssign, Div, DivAssign, Mul, MulAssign, Neg, Sub, SubAssign},
};

use ark_ff::{AdditiveGroup, Field, LegendreSymbol, One, PrimeField, SqrtPrecomputation, UniformRand, Zero};
use ark_serialize::{
    CanonicalDeserialize, CanonicalDeserializeWithFlags, CanonicalSerialize, CanonicalSerializeWithFlags, Compress,
    EmptyFlags, Flags, SerializationError, Valid, Validate,
};
use ark_std::{
    io::{Read, Write},
    rand::{
        Rng,
        distributions::{Distribution, Standard},
    },
};
use zeroize::Zeroize;

use crate::field::{DeviceField, Sealed, are_stored, arithmetic::Arithmetic, store_all};

/// Defines an [`Extension`] of degree `N` by a prime field and an irreducible polynomial of degree `N` over it.
///
/// ```
/// use ark_ff::{AdditiveGroup, Field, MontFp};
/// use evariste_field::{Extension, ExtensionConfig, small::BabyBear};
///
/// /// x⁴ = 11.
/// struct Quartic;
///
/// impl ExtensionConfig<4> for Quartic {
///     type BaseField = BabyBear;
///     const REDUCTION: [BabyBear; 4] = [MontFp!("11"), BabyBear::ZERO, BabyBear::ZERO, BabyBear::ZERO];
/// }
///
/// let x = Extension::<Quartic, 4>::new([0u32, 1, 0, 0].map(BabyBear::from));
/// assert_eq!(x.pow([4]), Extension::from(11u32));
/// assert_eq!(x * x.inverse().unwrap(), Extension::ONE);
/// ```
pub trait ExtensionConfig<const N: usize>: Send + Sync + Sized + 'static {
    /// The prime field that the coefficients are of.
    type BaseField: PrimeField;

    /// The coefficients of x^`N` as a polynomial of lower degree, the constant one first: x^`N` − Σ `REDUCTION[i]` x^i
    /// must be irreducible.
    const REDUCTION: [Self::BaseField; N];

    /// The method for square roots. With `None`, [`Field::sqrt`] must not be called.
    const SQRT_PRECOMP: Option<SqrtPrecomputation<Extension<Self, N>>> = None;
}

/// The extension of degree `N` of a prime field that `P` defines, for degrees that arkworks has no type for.
///
/// The arithmetic here is plain; kernels and the CPU device use it as it is.
pub struct Extension<P: ExtensionConfig<N>, const N: usize>([P::BaseField; N]);

impl<P: ExtensionConfig<N>, const N: usize> Extension<P, N> {
    /// Makes the element Σ `coefficients[i]` x^i.
    pub const fn new(coefficients: [P::BaseField; N]) -> Self {
        Self(coefficients)
    }

    /// Returns the coefficients, the constant one first.
    pub const fn coefficients(&self) -> &[P::BaseField; N] {
        &self.0
    }

    const fn constant(x: P::BaseField) -> Self {
        let mut coefficients = [P::BaseField::ZERO; N];
        coefficients[0] = x;
        Self(coefficients)
    }

    /// x · self.
    fn shifted(&self) -> Self {
        let top = self.0[N - 1];
        let below = |i: usize| if i == 0 { P::BaseField::ZERO } else { self.0[i - 1] };
        Self(std::array::from_fn(
            |i| if P::REDUCTION[i].is_zero() { below(i) } else { below(i) + P::REDUCTION[i] * top },
        ))
    }

    /// The rows x^i · self: the matrix of multiplication by this element.
    fn rows(&self) -> [[P::BaseField; N]; N] {
        let mut row = *self;
        std::array::from_fn(|i| {
            if i > 0 {
                row = row.shifted();
            }
            row.0
        })
    }

    /// Gaussian elimination on the matrix of multiplication. It gives the determinant, which is the norm. It also gives
    /// the solution of y · self = 1, unless the determinant is zero.
    fn norm_and_inverse(&self) -> (P::BaseField, Option<Self>) {
        let zero = P::BaseField::ZERO;
        let rows = self.rows();
        // Equation k: Σ_i y_i rows[i][k] = [k = 0].
        let mut matrix: [[P::BaseField; N]; N] = std::array::from_fn(|k| std::array::from_fn(|i| rows[i][k]));
        let mut right = Self::ONE.0;
        let mut norm = P::BaseField::ONE;
        for column in 0..N {
            let Some(pivot) = (column..N).find(|row| !matrix[*row][column].is_zero()) else { return (zero, None) };
            let Some(scale) = matrix[pivot][column].inverse() else { return (zero, None) };
            if pivot != column {
                matrix.swap(pivot, column);
                right.swap(pivot, column);
                norm = -norm;
            }
            norm *= matrix[column][column];
            matrix[column].iter_mut().for_each(|x| *x *= scale);
            right[column] *= scale;
            let (line, value) = (matrix[column], right[column]);
            for row in (0..N).filter(|row| *row != column) {
                let factor = matrix[row][column];
                matrix[row].iter_mut().zip(line).for_each(|(x, y)| *x -= factor * y);
                right[row] -= factor * value;
            }
        }
        (norm, Some(Self(right)))
    }

    /// Computes the norm, which is the product of all conjugates and lies in the prime field.
    pub fn norm(&self) -> P::BaseField {
        self.norm_and_inverse().0
    }
}

impl<P: ExtensionConfig<N, BaseField: DeviceField>, const N: usize> DeviceField for Extension<P, N> {
    const LIMBS: usize = N * P::BaseField::LIMBS;
    const COPIED: bool = P::BaseField::COPIED;

    #[inline]
    fn store(&self, limbs: &mut [u32]) {
        store_all(&self.0, limbs);
    }

    #[inline]
    fn load(limbs: &[u32]) -> Self {
        Self(std::array::from_fn(|i| P::BaseField::load(&limbs[i * P::BaseField::LIMBS..])))
    }

    #[inline]
    fn is_stored(limbs: &[u32]) -> bool {
        are_stored::<P::BaseField>(&limbs[..Self::LIMBS])
    }

    fn arithmetic() -> Arithmetic {
        Arithmetic::extension(Self, |x| x.0)
    }

    fn tower() -> Vec<Vec<P::BaseField>> {
        vec![P::REDUCTION.to_vec()]
    }
}

impl<P: ExtensionConfig<N, BaseField: DeviceField>, const N: usize> Sealed for Extension<P, N> {}

impl<P: ExtensionConfig<N>, const N: usize> AdditiveGroup for Extension<P, N> {
    type Scalar = Self;

    const ZERO: Self = Self([P::BaseField::ZERO; N]);
}

impl<P: ExtensionConfig<N>, const N: usize> Field for Extension<P, N> {
    type BasePrimeField = P::BaseField;

    const SQRT_PRECOMP: Option<SqrtPrecomputation<Self>> = P::SQRT_PRECOMP;
    const ONE: Self = Self::constant(P::BaseField::ONE);
    const NEG_ONE: Self = Self::constant(P::BaseField::NEG_ONE);

    fn extension_degree() -> u64 {
        N as u64
    }

    fn to_base_prime_field_elements(&self) -> impl Iterator<Item = P::BaseField> {
        self.0.into_iter()
    }

    fn from_base_prime_field_elems(elements: impl IntoIterator<Item = P::BaseField>) -> Option<Self> {
        let mut elements = elements.into_iter();
        let mut coefficients = [P::BaseField::ZERO; N];
        for coefficient in &mut coefficients {
            *coefficient = elements.next()?;
        }
        elements.next().is_none().then_some(Self(coefficients))
    }

    fn from_base_prime_field(element: P::BaseField) -> Self {
        Self::constant(element)
    }

    fn from_random_bytes_with_flags<F: Flags>(bytes: &[u8]) -> Option<(Self, F)> {
        let step = bytes.len() / N;
        let (last, flags) = P::BaseField::from_random_bytes_with_flags(&bytes[(N - 1) * step..])?;
        let mut coefficients = [last; N];
        for (coefficient, bytes) in coefficients[..N - 1].iter_mut().zip(bytes.chunks(step.max(1))) {
            *coefficient = P::BaseField::from_random_bytes(bytes)?;
        }
        Some((Self(coefficients), flags))
    }

    fn legendre(&self) -> LegendreSymbol {
        self.norm().legendre()
    }

    fn square(&self) -> Self {
        *self * self
    }

    fn square_in_place(&mut self) -> &mut Self {
        *self = self.square();
        self
    }

    fn inverse(&self) -> Option<Self> {
        self.norm_and_inverse().1
    }

    fn inverse_in_place(&mut self) -> Option<&mut Self> {
        *self = self.inverse()?;
        Some(self)
    }

    fn frobenius_map_in_place(&mut self, power: usize) {
        for _ in 0..power % N {
            *self = self.pow(P::BaseField::MODULUS);
        }
    }

    fn mul_by_base_prime_field(&self, element: &P::BaseField) -> Self {
        Self(self.0.map(|x| x * element))
    }
}

impl<P: ExtensionConfig<N>, const N: usize> AddAssign<&Self> for Extension<P, N> {
    #[inline]
    fn add_assign(&mut self, other: &Self) {
        self.0.iter_mut().zip(&other.0).for_each(|(x, y)| *x += y);
    }
}

impl<P: ExtensionConfig<N>, const N: usize> SubAssign<&Self> for Extension<P, N> {
    #[inline]
    fn sub_assign(&mut self, other: &Self) {
        self.0.iter_mut().zip(&other.0).for_each(|(x, y)| *x -= y);
    }
}

impl<P: ExtensionConfig<N>, const N: usize> MulAssign<&Self> for Extension<P, N> {
    /// The product of polynomials, then its upper coefficients folded into the lower ones from the highest on.
    #[inline]
    fn mul_assign(&mut self, other: &Self) {
        let (mut low, mut high) = ([P::BaseField::ZERO; N], [P::BaseField::ZERO; N]);
        for i in 0..N {
            for j in 0..N {
                let product = self.0[i] * other.0[j];
                let place = if i + j < N { &mut low[i + j] } else { &mut high[i + j - N] };
                *place += product;
            }
        }
        for k in (0..N - 1).rev() {
            let top = high[k];
            for (i, r) in P::REDUCTION.iter().enumerate().filter(|(_, r)| !r.is_zero()) {
                let place = if k + i < N { &mut low[k + i] } else { &mut high[k + i - N] };
                *place += top * r;
            }
        }
        self.0 = low;
    }
}

impl<P: ExtensionConfig<N>, const N: usize> DivAssign<&Self> for Extension<P, N> {
    /// # Panics
    /// If `other` is zero, as division does in arkworks.
    fn div_assign(&mut self, other: &Self) {
        let Some(inverse) = other.inverse() else { panic!("division by zero") };
        self.mul_assign(&inverse);
    }
}

macro_rules! operators {
    ($($operator:ident $function:ident $assign:ident $assign_function:ident),*) => {$(
        impl<P: ExtensionConfig<N>, const N: usize> $operator<&Self> for Extension<P, N> {
            type Output = Self;

            #[inline]
            fn $function(mut self, other: &Self) -> Self {
                self.$assign_function(other);
                self
            }
        }

        impl<P: ExtensionConfig<N>, const N: usize> $operator for Extension<P, N> {
            type Output = Self;

            #[inline]
            fn $function(mut self, other: Self) -> Self {
                self.$assign_function(&other);
                self
            }
        }

        impl<P: ExtensionConfig<N>, const N: usize> $operator<&mut Self> for Extension<P, N> {
            type Output = Self;

            fn $function(mut self, other: &mut Self) -> Self {
                self.$assign_function(&*other);
                self
            }
        }

        impl<P: ExtensionConfig<N>, const N: usize> $assign for Extension<P, N> {
            #[inline]
            fn $assign_function(&mut self, other: Self) {
                self.$assign_function(&other);
            }
        }

        impl<P: ExtensionConfig<N>, const N: usize> $assign<&mut Self> for Extension<P, N> {
            fn $assign_function(&mut self, other: &mut Self) {
                self.$assign_function(&*other);
            }
        }
    )*};
}

operators!(
    Add add AddAssign add_assign,
    Sub sub SubAssign sub_assign,
    Mul mul MulAssign mul_assign,
    Div div DivAssign div_assign
);

impl<P: ExtensionConfig<N>, const N: usize> Neg for Extension<P, N> {
    type Output = Self;

    fn neg(self) -> Self {
        Self(self.0.map(Neg::neg))
    }
}

impl<P: ExtensionConfig<N>, const N: usize> Sum for Extension<P, N> {
    fn sum<I: Iterator<Item = Self>>(elements: I) -> Self {
        elements.fold(Self::ZERO, Add::add)
    }
}

impl<'a, P: ExtensionConfig<N>, const N: usize> Sum<&'a Self> for Extension<P, N> {
    fn sum<I: Iterator<Item = &'a Self>>(elements: I) -> Self {
        elements.fold(Self::ZERO, Add::add)
    }
}

impl<P: ExtensionConfig<N>, const N: usize> Product for Extension<P, N> {
    fn product<I: Iterator<Item = Self>>(elements: I) -> Self {
        elements.fold(Self::ONE, Mul::mul)
    }
}

impl<'a, P: ExtensionConfig<N>, const N: usize> Product<&'a Self> for Extension<P, N> {
    fn product<I: Iterator<Item = &'a Self>>(elements: I) -> Self {
        elements.fold(Self::ONE, Mul::mul)
    }
}

macro_rules! from_integers {
    ($($integer:ty),*) => {$(
        impl<P: ExtensionConfig<N>, const N: usize> From<$integer> for Extension<P, N> {
            fn from(value: $integer) -> Self {
                Self::constant(value.into())
            }
        }
    )*};
}

from_integers!(u8, u16, u32, u64, u128, i8, i16, i32, i64, i128, bool);

impl<P: ExtensionConfig<N>, const N: usize> Zero for Extension<P, N> {
    fn zero() -> Self {
        Self::ZERO
    }

    fn is_zero(&self) -> bool {
        self.0.iter().all(Zero::is_zero)
    }
}

impl<P: ExtensionConfig<N>, const N: usize> One for Extension<P, N> {
    fn one() -> Self {
        Self::ONE
    }
}

impl<P: ExtensionConfig<N>, const N: usize> Clone for Extension<P, N> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<P: ExtensionConfig<N>, const N: usize> Copy for Extension<P, N> {}

impl<P: ExtensionConfig<N>, const N: usize> Default for Extension<P, N> {
    fn default() -> Self {
        Self::ZERO
    }
}

impl<P: ExtensionConfig<N>, const N: usize> PartialEq for Extension<P, N> {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}

impl<P: ExtensionConfig<N>, const N: usize> Eq for Extension<P, N> {}

/// Lexicographic from the highest coefficient down, as arkworks' extensions are.
impl<P: ExtensionConfig<N>, const N: usize> Ord for Extension<P, N> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.iter().rev().cmp(other.0.iter().rev())
    }
}

impl<P: ExtensionConfig<N>, const N: usize> PartialOrd for Extension<P, N> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<P: ExtensionConfig<N>, const N: usize> Hash for Extension<P, N> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.hash(state);
    }
}

impl<P: ExtensionConfig<N>, const N: usize> Zeroize for Extension<P, N> {
    fn zeroize(&mut self) {
        self.0.iter_mut().for_each(Zeroize::zeroize);
    }
}

impl<P: ExtensionConfig<N>, const N: usize> fmt::Debug for Extension<P, N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl<P: ExtensionConfig<N>, const N: usize> fmt::Display for Extension<P, N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Extension(")?;
        for (i, coefficient) in self.0.iter().enumerate() {
            write!(f, "{}{coefficient}", if i == 0 { "" } else { ", " })?;
        }
        f.write_str(")")
    }
}

impl<P: ExtensionConfig<N>, const N: usize> Distribution<Extension<P, N>> for Standard {
    fn sample<R: Rng + ?Sized>(&self, rng: &mut R) -> Extension<P, N> {
        Extension(std::array::from_fn(|_| P::BaseField::rand(rng)))
    }
}

impl<P: ExtensionConfig<N>, const N: usize> CanonicalSerializeWithFlags for Extension<P, N> {
    fn serialize_with_flags<W: Write, F: Flags>(&self, mut writer: W, flags: F) -> Result<(), SerializationError> {
        for coefficient in &self.0[..N - 1] {
            coefficient.serialize_compressed(&mut writer)?;
        }
        self.0[N - 1].serialize_with_flags(&mut writer, flags)
    }

    fn serialized_size_with_flags<F: Flags>(&self) -> usize {
        let lower: usize = self.0[..N - 1].iter().map(CanonicalSerialize::compressed_size).sum();
        lower + self.0[N - 1].serialized_size_with_flags::<F>()
    }
}

impl<P: ExtensionConfig<N>, const N: usize> CanonicalSerialize for Extension<P, N> {
    fn serialize_with_mode<W: Write>(&self, writer: W, _: Compress) -> Result<(), SerializationError> {
        self.serialize_with_flags(writer, EmptyFlags)
    }

    fn serialized_size(&self, _: Compress) -> usize {
        self.serialized_size_with_flags::<EmptyFlags>()
    }
}

impl<P: ExtensionConfig<N>, const N: usize> CanonicalDeserializeWithFlags for Extension<P, N> {
    fn deserialize_with_flags<R: Read, F: Flags>(mut reader: R) -> Result<(Self, F), SerializationError> {
        let mut coefficients = [P::BaseField::ZERO; N];
        for coefficient in &mut coefficients[..N - 1] {
            *coefficient = CanonicalDeserialize::deserialize_compressed(&mut reader)?;
        }
        let (last, flags) = CanonicalDeserializeWithFlags::deserialize_with_flags(&mut reader)?;
        coefficients[N - 1] = last;
        Ok((Self(coefficients), flags))
    }
}

impl<P: ExtensionConfig<N>, const N: usize> Valid for Extension<P, N> {
    fn check(&self) -> Result<(), SerializationError> {
        self.0.iter().try_for_each(Valid::check)
    }
}

impl<P: ExtensionConfig<N>, const N: usize> CanonicalDeserialize for Extension<P, N> {
    fn deserialize_with_mode<R: Read>(reader: R, _: Compress, _: Validate) -> Result<Self, SerializationError> {
        Ok(Self::deserialize_with_flags::<R, EmptyFlags>(reader)?.0)
    }
}
