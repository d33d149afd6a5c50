use ark_ff::{
    AdditiveGroup, BigInt, CubicExtConfig, CubicExtField, Field, Fp, MontBackend, MontConfig, PrimeField,
    QuadExtConfig, QuadExtField, SmallFp, SmallFpConfig,
};

use self::arithmetic::Arithmetic;
#[cfg(all(target_arch = "x86_64", target_pointer_width = "64"))]
use crate::chains::{Chains, Modulus};

pub(crate) mod arithmetic;
pub(crate) mod constants;

/// A field whose elements live on devices: a prime field, or an extension of one.
///
/// The device form of an element x of a prime field is the integer x · R mod p with R = 2^(32 ·
/// [`LIMBS`](Self::LIMBS)). It stands as little-endian 32-bit limbs: Montgomery form with the shortest R that whole
/// words allow. The device form of an element of an extension is its coefficients one after the other, the constant one
/// first.
///
/// Every `MontConfig` and `SmallFpConfig` of arkworks has an implementation, your own too. So have quadratic and cubic
/// extensions of such fields, towers of them, and [`Extension`](crate::Extension). Kernels rely on the implementation,
/// so only this crate provides it.
///
/// `PrimeField` alone gives canonical integers. This trait converts between arkworks' own Montgomery limbs and the
/// device's. If both have the same R (every even `LIMBS` of an `Fp`), the conversion is a plain copy.
pub trait DeviceField: Field + Sealed {
    /// 32-bit limbs of an element: ⌈bits / 32⌉ of a prime field, times the degree of an extension.
    const LIMBS: usize;

    /// Whether arkworks keeps elements in the device form, so that they are copied.
    const COPIED: bool;

    /// Writes the device form into the first `LIMBS` words of `limbs`.
    fn store(&self, limbs: &mut [u32]);

    /// Reads the device form, of integers below p, from the first `LIMBS` words of `limbs`.
    fn load(limbs: &[u32]) -> Self;

    /// Returns whether the first `LIMBS` words of `limbs` are the device form of an element: of integers below p.
    fn is_stored(limbs: &[u32]) -> bool;

    /// Returns the constants and reductions by which kernels compute in this field.
    fn arithmetic() -> Arithmetic;

    /// Returns the polynomials of a tower of fields. Each field above the prime field has an entry, from the lowest on.
    /// Such a field adjoins a root X of degree n to the field below. Its entry is X^n by its coefficients over the
    /// prime field. A prime field has no entry. Two fields with the same prime and the same polynomials are one,
    /// element by element.
    fn tower() -> Vec<Vec<Self::BasePrimeField>>;

    /// Computes self · other by the processor's best instructions. [`Native`](crate::native::Native) has operators.
    #[doc(hidden)]
    #[inline]
    fn native_mul(&self, other: &Self) -> Self {
        *self * other
    }

    /// Computes self² likewise.
    #[doc(hidden)]
    #[inline]
    fn native_square(&self) -> Self {
        self.square()
    }

    /// Computes self + other likewise.
    #[doc(hidden)]
    #[inline]
    fn native_add(&self, other: &Self) -> Self {
        *self + other
    }

    /// Computes self − other likewise.
    #[doc(hidden)]
    #[inline]
    fn native_sub(&self, other: &Self) -> Self {
        *self - other
    }
}

mod sealed {
    /// Keeps others from implementing what `unsafe` code relies on.
    pub trait Sealed {}
}
pub(crate) use sealed::Sealed;

impl<P: MontConfig<N>, const N: usize> Sealed for Fp<MontBackend<P, N>, N> {}
impl<P: SmallFpConfig> Sealed for SmallFp<P> {}
impl<P: QuadExtConfig<BaseField: DeviceField>> Sealed for QuadExtField<P> {}
impl<P: CubicExtConfig<BaseField: DeviceField>> Sealed for CubicExtField<P> {}

/// A prime field whose elements live on devices. Every [`DeviceField`] that is prime is one.
pub trait DevicePrimeField: DeviceField + PrimeField {}

impl<F: DeviceField + PrimeField> DevicePrimeField for F {}

/// 2^`exponent` mod p, for odd p > 1 of at most 64 · N bits.
const fn power_of_two<const N: usize>(modulus: [u64; N], exponent: usize) -> [u64; N] {
    let mut value = [0u64; N];
    value[0] = 1;
    let mut step = 0;
    while step < exponent {
        let mut carry = 0;
        let mut i = 0;
        while i < N {
            let doubled = value[i] << 1 | carry;
            carry = value[i] >> 63;
            value[i] = doubled;
            i += 1;
        }
        let mut reduced = [0u64; N];
        let mut borrow = false;
        i = 0;
        while i < N {
            let (d, b0) = value[i].overflowing_sub(modulus[i]);
            let (d, b1) = d.overflowing_sub(borrow as u64);
            reduced[i] = d;
            borrow = b0 | b1;
            i += 1;
        }
        if carry == 1 || !borrow {
            value = reduced;
        }
        step += 1;
    }
    value
}

/// Constants of the way between arkworks' R = 2^(64 N) and the device's R = 2^(32 LIMBS).
trait Conversion<const N: usize> {
    /// arkworks' form of 2^(32 LIMBS − 64 N).
    const TO_DEVICE: [u64; N];
    /// arkworks' form of 2^(64 N − 32 LIMBS).
    const FROM_DEVICE: [u64; N];
}

impl<P: MontConfig<N>, const N: usize> Conversion<N> for Fp<MontBackend<P, N>, N> {
    const TO_DEVICE: [u64; N] = power_of_two(P::MODULUS.0, 32 * Self::LIMBS);
    const FROM_DEVICE: [u64; N] = power_of_two(P::MODULUS.0, 128 * N - 32 * Self::LIMBS);
}

impl<P: MontConfig<N>, const N: usize> DeviceField for Fp<MontBackend<P, N>, N> {
    const LIMBS: usize = (P::MODULUS.const_num_bits() as usize).div_ceil(32);
    const COPIED: bool = Self::LIMBS == 2 * N;

    #[inline]
    fn store(&self, limbs: &mut [u32]) {
        let value = if Self::COPIED { self.0.0 } else { (*self * Self::new_unchecked(BigInt(Self::TO_DEVICE))).0.0 };
        let (pairs, last) = limbs[..Self::LIMBS].as_chunks_mut::<2>();
        for (pair, word) in pairs.iter_mut().zip(&value) {
            *pair = [*word as u32, (*word >> 32) as u32];
        }
        for limb in last {
            *limb = value[Self::LIMBS / 2] as u32;
        }
    }

    #[inline]
    fn load(limbs: &[u32]) -> Self {
        let value = Self::new_unchecked(BigInt(integer(&limbs[..Self::LIMBS])));
        if Self::COPIED { value } else { value * Self::new_unchecked(BigInt(Self::FROM_DEVICE)) }
    }

    #[inline]
    fn is_stored(limbs: &[u32]) -> bool {
        let value: [u64; N] = integer(&limbs[..Self::LIMBS]);
        // The highest words tell of most elements, as fast as they are copied; of others the borrow of value − p.
        value[N - 1] < P::MODULUS.0[N - 1]
            || value.iter().zip(&P::MODULUS.0).fold(false, |borrow, (x, p)| {
                let (difference, first) = x.overflowing_sub(*p);
                first | difference.overflowing_sub(borrow.into()).1
            })
    }

    fn arithmetic() -> Arithmetic {
        Arithmetic::prime::<Self>()
    }

    fn tower() -> Vec<Vec<Self>> {
        Vec::new()
    }

    #[cfg(all(target_arch = "x86_64", target_pointer_width = "64"))]
    #[inline]
    fn native_mul(&self, other: &Self) -> Self {
        match Chains::of(const { &Self::CHAINS }) {
            Some(chains) => Self::new_unchecked(BigInt(chains.mul(&self.0.0, &other.0.0))),
            None => *self * other,
        }
    }

    #[cfg(all(target_arch = "x86_64", target_pointer_width = "64"))]
    #[inline]
    fn native_square(&self) -> Self {
        match Chains::of(const { &Self::CHAINS }) {
            Some(chains) => Self::new_unchecked(BigInt(chains.square(&self.0.0))),
            None => self.square(),
        }
    }

    #[cfg(all(target_arch = "x86_64", target_pointer_width = "64"))]
    #[inline]
    fn native_add(&self, other: &Self) -> Self {
        match Chains::of(const { &Self::CHAINS }) {
            Some(chains) => Self::new_unchecked(BigInt(chains.add(&self.0.0, &other.0.0))),
            None => *self + other,
        }
    }

    #[cfg(all(target_arch = "x86_64", target_pointer_width = "64"))]
    #[inline]
    fn native_sub(&self, other: &Self) -> Self {
        match Chains::of(const { &Self::CHAINS }) {
            Some(chains) => Self::new_unchecked(BigInt(chains.sub(&self.0.0, &other.0.0))),
            None => *self - other,
        }
    }
}

/// What the processor's instructions for long products take of a field.
#[cfg(all(target_arch = "x86_64", target_pointer_width = "64"))]
trait LongProducts<const N: usize> {
    const CHAINS: Option<Modulus<N>>;
}

#[cfg(all(target_arch = "x86_64", target_pointer_width = "64"))]
impl<P: MontConfig<N>, const N: usize> LongProducts<N> for Fp<MontBackend<P, N>, N> {
    const CHAINS: Option<Modulus<N>> = Modulus::new(P::MODULUS.0, P::INV);
}

/// The integer of little-endian limbs, at most 2 N.
#[inline]
fn integer<const N: usize>(limbs: &[u32]) -> [u64; N] {
    let mut value = [0; N];
    // Pair by pair, which compilers make words of.
    let (pairs, last) = limbs.as_chunks::<2>();
    for (word, [low, high]) in value.iter_mut().zip(pairs) {
        *word = u64::from(*low) | u64::from(*high) << 32;
    }
    for limb in last {
        value[pairs.len()] = u64::from(*limb);
    }
    value
}

/// (p + 1) / 2 to the power `exponent` mod p, which is 2^(−`exponent`).
const fn inverse_power_of_two(modulus: u64, exponent: usize) -> u64 {
    let mut value = 1u64;
    let mut step = 0;
    while step < exponent {
        value = if value & 1 == 0 { value >> 1 } else { ((value as u128 + modulus as u128) >> 1) as u64 };
        step += 1;
    }
    value
}

trait SmallConversion {
    const TO_DEVICE: u64;
    const FROM_DEVICE: u64;
}

impl<P: SmallFpConfig> SmallConversion for SmallFp<P> {
    const TO_DEVICE: u64 = power_of_two([P::MODULUS_U128 as u64], 32 * <Self as DeviceField>::LIMBS)[0];
    const FROM_DEVICE: u64 = inverse_power_of_two(P::MODULUS_U128 as u64, 32 * <Self as DeviceField>::LIMBS);
}

impl<P: SmallFpConfig> DeviceField for SmallFp<P> {
    const LIMBS: usize = Self::MODULUS_BIT_SIZE.div_ceil(32) as usize;
    const COPIED: bool = false;

    fn store(&self, limbs: &mut [u32]) {
        let value = (*self * Self::from(Self::TO_DEVICE)).into_bigint().0[0];
        for (i, limb) in limbs[..Self::LIMBS].iter_mut().enumerate() {
            *limb = (value >> (32 * i)) as u32;
        }
    }

    fn load(limbs: &[u32]) -> Self {
        let [value] = integer(&limbs[..Self::LIMBS]);
        Self::from(value) * Self::from(Self::FROM_DEVICE)
    }

    #[inline]
    fn is_stored(limbs: &[u32]) -> bool {
        let [value] = integer(&limbs[..Self::LIMBS]);
        u128::from(value) < P::MODULUS_U128
    }

    fn arithmetic() -> Arithmetic {
        Arithmetic::prime::<Self>()
    }

    fn tower() -> Vec<Vec<Self>> {
        Vec::new()
    }
}

/// Whether all coefficients are in device form.
pub(crate) fn are_stored<B: DeviceField>(limbs: &[u32]) -> bool {
    limbs.chunks_exact(B::LIMBS).all(B::is_stored)
}

/// Writes coefficients one after the other.
pub(crate) fn store_all<B: DeviceField>(coefficients: &[B], limbs: &mut [u32]) {
    for (x, limbs) in coefficients.iter().zip(limbs.chunks_exact_mut(B::LIMBS)) {
        x.store(limbs);
    }
}

/// A tower with one more floor: the field of the root `x` of a polynomial of this degree.
pub(crate) fn floor_on<F: Field>(
    mut tower: Vec<Vec<F::BasePrimeField>>,
    x: F,
    degree: u64,
) -> Vec<Vec<F::BasePrimeField>> {
    tower.push(x.pow([degree]).to_base_prime_field_elements().collect());
    tower
}

/// x by the square of the root that is adjoined.
#[inline]
fn by_square<P: QuadExtConfig>(mut x: P::BaseField) -> P::BaseField {
    P::mul_base_field_by_nonresidue_in_place(&mut x);
    x
}

impl<P: QuadExtConfig<BaseField: DeviceField>> DeviceField for QuadExtField<P> {
    const LIMBS: usize = 2 * P::BaseField::LIMBS;
    const COPIED: bool = P::BaseField::COPIED;

    #[inline]
    fn store(&self, limbs: &mut [u32]) {
        store_all(&[self.c0, self.c1], limbs);
    }

    #[inline]
    fn load(limbs: &[u32]) -> Self {
        let [c0, c1] = [0, 1].map(|i| P::BaseField::load(&limbs[i * P::BaseField::LIMBS..]));
        Self { c0, c1 }
    }

    #[inline]
    fn is_stored(limbs: &[u32]) -> bool {
        are_stored::<P::BaseField>(&limbs[..Self::LIMBS])
    }

    fn arithmetic() -> Arithmetic {
        Arithmetic::extension(|[c0, c1]| Self { c0, c1 }, |x| [x.c0, x.c1])
    }

    fn tower() -> Vec<Vec<Self::BasePrimeField>> {
        floor_on(P::BaseField::tower(), Self { c0: P::BaseField::ZERO, c1: P::BaseField::ONE }, 2)
    }

    /// Three products of the base (Karatsuba).
    #[inline]
    fn native_mul(&self, other: &Self) -> Self {
        let (low, high) = (self.c0.native_mul(&other.c0), self.c1.native_mul(&other.c1));
        let sums = [self, other].map(|x| x.c0.native_add(&x.c1));
        let c1 = sums[0].native_mul(&sums[1]).native_sub(&low).native_sub(&high);
        Self { c0: low.native_add(&by_square::<P>(high)), c1 }
    }

    /// Two products of the base: a0² + β a1² = (a0 + a1) (a0 + β a1) − (1 + β) a0 a1.
    #[inline]
    fn native_square(&self) -> Self {
        let product = self.c0.native_mul(&self.c1);
        let (sum, other) = (self.c0.native_add(&self.c1), self.c0.native_add(&by_square::<P>(self.c1)));
        let c0 = sum.native_mul(&other).native_sub(&product).native_sub(&by_square::<P>(product));
        Self { c0, c1: product.native_add(&product) }
    }

    #[inline]
    fn native_add(&self, other: &Self) -> Self {
        Self { c0: self.c0.native_add(&other.c0), c1: self.c1.native_add(&other.c1) }
    }

    #[inline]
    fn native_sub(&self, other: &Self) -> Self {
        Self { c0: self.c0.native_sub(&other.c0), c1: self.c1.native_sub(&other.c1) }
    }
}

impl<P: CubicExtConfig<BaseField: DeviceField>> DeviceField for CubicExtField<P> {
    const LIMBS: usize = 3 * P::BaseField::LIMBS;
    const COPIED: bool = P::BaseField::COPIED;

    #[inline]
    fn store(&self, limbs: &mut [u32]) {
        store_all(&[self.c0, self.c1, self.c2], limbs);
    }

    #[inline]
    fn load(limbs: &[u32]) -> Self {
        let [c0, c1, c2] = [0, 1, 2].map(|i| P::BaseField::load(&limbs[i * P::BaseField::LIMBS..]));
        Self { c0, c1, c2 }
    }

    #[inline]
    fn is_stored(limbs: &[u32]) -> bool {
        are_stored::<P::BaseField>(&limbs[..Self::LIMBS])
    }

    fn arithmetic() -> Arithmetic {
        Arithmetic::extension(|[c0, c1, c2]| Self { c0, c1, c2 }, |x| [x.c0, x.c1, x.c2])
    }

    fn tower() -> Vec<Vec<Self::BasePrimeField>> {
        let [zero, one] = [P::BaseField::ZERO, P::BaseField::ONE];
        floor_on(P::BaseField::tower(), Self { c0: zero, c1: one, c2: zero }, 3)
    }
}

#[cfg(test)]
mod tests {
    use ark_bls12_381::Fr;
    use ark_ff::{BigInteger, Fp64};
    use ark_std::rand::Rng;

    use super::*;

    #[derive(ark_ff::MontConfig)]
    #[modulus = "2013265921"]
    #[generator = "31"]
    struct BabyBearConfig;
    type BabyBear = Fp64<MontBackend<BabyBearConfig, 1>>;

    #[derive(ark_ff::SmallFpConfig)]
    #[modulus = "2013265921"]
    #[generator = "31"]
    struct SmallBabyBearConfig;
    type SmallBabyBear = SmallFp<SmallBabyBearConfig>;

    /// x · 2^(32 LIMBS) mod p, by doubling.
    fn shifted<F: DevicePrimeField>(x: F) -> Vec<u32> {
        let shifted = (0..32 * F::LIMBS).fold(x, |x, _| x.double());
        let bytes = shifted.into_bigint().to_bytes_le();
        bytes.chunks(4).map(|b| u32::from_le_bytes(b.try_into().unwrap())).take(F::LIMBS).collect()
    }

    fn check<F: DevicePrimeField>(limbs: usize) {
        assert_eq!(F::LIMBS, limbs);
        let mut rng = ark_std::test_rng();
        for x in [F::ZERO, F::ONE, -F::ONE, F::rand(&mut rng), F::rand(&mut rng)] {
            let mut stored = vec![u32::MAX; limbs];
            x.store(&mut stored);
            assert_eq!(stored, shifted(x));
            assert_eq!(F::load(&stored), x);
        }
    }

    // One field of three limbs, whose last one has a word for itself, and one of four full limbs.
    #[derive(ark_ff::MontConfig)]
    #[modulus = "79228162514264337593543950319"]
    #[generator = "3"]
    struct OddConfig;
    type Odd = ark_ff::Fp128<MontBackend<OddConfig, 2>>;

    #[derive(ark_ff::MontConfig)]
    #[modulus = "340282366920938463463374607431768211297"]
    #[generator = "3"]
    struct FullConfig;
    type Full = ark_ff::Fp128<MontBackend<FullConfig, 2>>;

    /// Integers around p, and integers with some limbs just below or above p's.
    fn check_limits<F: DevicePrimeField>(limbs: usize) {
        assert_eq!(F::LIMBS, limbs);
        let words = F::MODULUS;
        let p: Vec<u32> =
            words.as_ref().iter().flat_map(|word| [*word as u32, (*word >> 32) as u32]).take(limbs).collect();
        let mut seen = [0; 2];
        let mut check = |x: &[u32]| {
            let expected = x.iter().rev().lt(p.iter().rev());
            seen[usize::from(expected)] += 1;
            assert_eq!(F::is_stored(x), expected, "{x:x?}");
        };
        check(&vec![0; limbs]);
        check(&vec![u32::MAX; limbs]);
        check(&p);
        for at in 0..limbs {
            for limb in [p[at].wrapping_sub(1), p[at].wrapping_add(1), 0, u32::MAX] {
                // All else as in p, and the lower limbs of the other extreme.
                for low in [None, Some(0), Some(u32::MAX)] {
                    let mut x = p.clone();
                    low.into_iter().for_each(|low| x[..at].fill(low));
                    x[at] = limb;
                    check(&x);
                }
            }
        }
        let mut rng = ark_std::test_rng();
        for _ in 0..20_000 {
            let near = |p: &u32| [*p, *p, *p, p.wrapping_sub(1), p.wrapping_add(1), 0, u32::MAX][rng.gen_range(0..7)];
            check(&p.iter().map(near).collect::<Vec<_>>());
        }
        assert!(seen.iter().all(|count| *count > 100), "{seen:?}");
    }

    #[test]
    fn only_integers_below_the_modulus_are_stored() {
        check_limits::<BabyBear>(1);
        check_limits::<SmallBabyBear>(1);
        check_limits::<Odd>(3);
        check_limits::<Full>(4);
        check_limits::<Fr>(8);
        check_limits::<ark_bls12_381::Fq>(12);
    }

    #[test]
    fn device_form_is_montgomery_with_whole_words() {
        check::<Fr>(8);
        check::<ark_bn254::Fr>(8);
        check::<BabyBear>(1);
        check::<SmallBabyBear>(1);
    }
}
