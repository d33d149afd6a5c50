//! Primes that are known at run time: the tests for them, and their constants.

use std::num::NonZeroU32;

use crypto_bigint::{
    BoxedUint, NonZero, Odd, Resize,
    modular::{BoxedMontyForm, BoxedMontyParams},
};
use crypto_primes::{
    Flavor,
    hazmat::{MillerRabin, Primality, SmallFactorsSieve},
    is_prime,
};
use rayon::prelude::*;
use zeroize::{Zeroize, Zeroizing};

use crate::{
    error::{Error, Result},
    number::{self, MAX_BITS, MIN_BITS, MIN_RANDOM_BITS},
    steps::{HEAD, section},
};

/// Rounds of Miller and Rabin's test with random bases: each lets a composite pass with a probability of at most 1/4,
/// and a Lucas test comes first, which no composite is known to pass together with base 2.
const ROUNDS: usize = 32;

/// An odd modulus, and Montgomery forms modulo it.
pub(crate) struct Modulus {
    pub(crate) bits: u32,
    pub(crate) limbs: usize,
    params: BoxedMontyParams,
    value: Zeroizing<BoxedUint>,
}

impl Modulus {
    /// Number `index` of the moduli that a caller gave.
    ///
    /// # Errors
    /// [`Error::ModulusBits`] unless it has 2 to 4096 bits, [`Error::EvenModulus`] if it is even.
    pub(crate) fn new(index: usize, value: &BoxedUint) -> Result<Self> {
        let bits = value.bits();
        if !(MIN_BITS..=MAX_BITS).contains(&bits) {
            return Err(Error::ModulusBits { index, expected: MIN_BITS..=MAX_BITS, actual: bits });
        }
        let limbs = number::limbs(bits);
        let value = Zeroizing::new(value.clone().resize_unchecked(32 * limbs as u32));
        let odd: Odd<BoxedUint> = Option::from(value.to_odd()).ok_or(Error::EvenModulus { index })?;
        Ok(Self { bits, limbs, params: BoxedMontyParams::new(odd), value })
    }

    pub(crate) fn value(&self) -> &BoxedUint {
        &self.value
    }

    fn form(&self, value: BoxedUint) -> BoxedMontyForm {
        BoxedMontyForm::new(value, &self.params)
    }

    fn small(&self, value: u32) -> BoxedUint {
        BoxedUint::from(value).resize_unchecked(self.value.bits_precision())
    }

    /// Writes −p⁻¹ modulo 2^64 and the sections that all moduli have.
    pub(crate) fn store(&self, out: &mut [u32]) {
        let limbs = self.limbs;
        let one = self.form(self.small(1));
        let square = self.form(one.as_montgomery().clone());
        let mut set = |number: u32, value: &BoxedUint| number::store(value, self::section(out, limbs, number));
        set(section::MODULUS, &self.value);
        set(section::ONE, one.as_montgomery());
        set(section::SQUARE, square.as_montgomery());
        set(section::UNIT, &self.small(1));
        let modulus = self::section(out, limbs, section::MODULUS);
        let p0 = u64::from(modulus[0]) | u64::from(modulus[1]) << 32;
        // Newton's iteration doubles the bits that are right; p itself is its inverse modulo 8.
        let inverse = (0..5).fold(p0, |x, _| x.wrapping_mul(2u64.wrapping_sub(p0.wrapping_mul(x))));
        let n0 = inverse.wrapping_neg();
        out[..2].copy_from_slice(&[n0 as u32, (n0 >> 32) as u32]);
    }
}

/// A section of a modulus' constants.
fn section(constants: &mut [u32], limbs: usize, number: u32) -> &mut [u32] {
    &mut constants[HEAD as usize + number as usize * limbs..][..limbs]
}

/// A prime p = 2^s q + 1, q odd.
pub(crate) struct Prime {
    pub(crate) modulus: Modulus,
    /// s.
    pub(crate) adicity: u32,
}

impl Prime {
    /// Number `index` of the moduli that a caller gave.
    ///
    /// # Errors
    /// - [`Error::ModulusBits`]: it has other than 2 to 4096 bits.
    /// - [`Error::EvenModulus`]: it is even.
    /// - [`Error::Composite`]: it fails the tests for primes.
    /// - [`Error::Randomness`]: the system gives no random bytes for the tests.
    pub(crate) fn new(index: usize, value: &BoxedUint) -> Result<Self> {
        let modulus = Modulus::new(index, value)?;
        if !passes(&modulus.value)? {
            return Err(Error::Composite { index });
        }
        let adicity = modulus.value.wrapping_sub(modulus.small(1)).trailing_zeros();
        Ok(Self { modulus, adicity })
    }

    /// Bits of (q − 1)/2.
    pub(crate) fn exponent_bits(&self) -> u32 {
        // q has its highest bit and its lowest one, which may be the same.
        (self.modulus.bits - self.adicity).saturating_sub(1)
    }

    /// Writes all sections, for a batch of primes of 2-adicity up to `most`: powers of an element of order 2^s are the
    /// last of those of one of order 2^most; those before are never divided by, since there is none.
    pub(crate) fn store(&self, most: u32, out: &mut [u32]) {
        let Modulus { limbs, value, .. } = &self.modulus;
        let limbs = *limbs;
        self.modulus.store(out);
        let shifted = |shift: u32| value.overflowing_shr_vartime(shift).unwrap_or_else(|| self.modulus.small(0));
        let mut exponent = shifted(self.adicity + 1);
        number::store(&exponent, section(out, limbs, section::ROOT_EXPONENT));
        let missing = most - self.adicity;
        let one = self.modulus.form(self.modulus.small(1));
        for number in 0..missing.min(most - 1) {
            number::store(one.as_montgomery(), section(out, limbs, section::POWERS + number));
        }
        if self.adicity > 1 {
            // A non-residue to the power of −q = (p − 1 − q) modulo p − 1.
            let q = shifted(self.adicity);
            let minus_q = value.wrapping_sub(self.modulus.small(1)).wrapping_sub(&q);
            let mut power = self.modulus.form(self.modulus.small(non_residue(value))).pow(&minus_q);
            for number in missing..most - 1 {
                number::store(power.as_montgomery(), section(out, limbs, section::POWERS + number));
                power = power.square();
            }
        }
        exponent.zeroize();
    }
}

/// Words of the constants of a prime in a batch of 2-adicity up to `most`.
pub(crate) fn stride(limbs: usize, most: u32) -> usize {
    HEAD as usize + (section::POWERS + most - 1) as usize * limbs
}

/// Whether an odd number above 1 passes for a prime.
fn passes(value: &BoxedUint) -> Result<bool> {
    if !is_prime(Flavor::Any, value) {
        return Ok(false);
    }
    let Some(odd) = Option::<Odd<BoxedUint>>::from(value.to_odd()) else { return Ok(false) };
    let test = MillerRabin::new(odd);
    let rounds = (0..ROUNDS).into_par_iter().map(|_| Ok(test.test(&base(value)?) != Primality::Composite));
    rounds.try_reduce(|| true, |a, b| Ok(a && b))
}

/// A random number from 2 to value − 2; any of them with the same probability, but for one in 2^64.
fn base(value: &BoxedUint) -> Result<BoxedUint> {
    let precision = value.bits_precision();
    let small = |small: u32| BoxedUint::from(small).resize_unchecked(precision);
    let range = NonZero::new(value.wrapping_sub(small(3)).resize_unchecked(precision + 64));
    let Some(range) = Option::<NonZero<BoxedUint>>::from(range) else { return Ok(small(2)) };
    let random = random_bits(precision + 64, precision + 64)?;
    Ok(random.rem(&range).resize_unchecked(precision).wrapping_add(small(2)))
}

/// The smallest number that is no square modulo a prime p with p ≡ 1 (mod 4): it is a prime c, and by the law of
/// quadratic reciprocity p is no square modulo it.
fn non_residue(p: &BoxedUint) -> u32 {
    if p.as_words()[0] % 8 == 5 {
        return 2;
    }
    let mut limbs = Zeroizing::new(vec![0; p.bits_precision().div_ceil(32) as usize]);
    number::store(p, &mut limbs);
    let is_square = |c: u32| {
        let c64 = u64::from(c);
        let p = limbs.iter().rev().fold(0, |rest, limb| (rest << 32 | u64::from(*limb)) % c64);
        (1..c64).any(|root| root * root % c64 == p)
    };
    (3..)
        .step_by(2)
        .find(|c| (2..*c).take_while(|d| d * d <= *c).all(|d| c % d != 0) && !is_square(*c))
        .unwrap_or(u32::MAX)
}

/// A random prime ≡ 3 (mod 4) of exactly `bits` bits, with the two highest set: products of two have 2 · `bits` bits.
/// It is the next one behind a random start.
pub(crate) fn random(bits: u32) -> Result<Zeroizing<BoxedUint>> {
    let precision = 32 * number::limbs(bits) as u32;
    loop {
        let start = random_bits(bits, precision)?;
        let highest = BoxedUint::from(3u32).resize_unchecked(precision).overflowing_shl_vartime(bits - 2);
        let Some(highest) = highest else {
            return Err(Error::ModulusBits { index: 0, expected: MIN_RANDOM_BITS..=MAX_BITS, actual: bits });
        };
        let start = &*start | highest;
        let candidates = NonZeroU32::new(bits).and_then(|bits| SmallFactorsSieve::new(start, bits, false).ok());
        // None only if the start was among the last numbers of that length.
        let found = candidates.into_iter().flatten().find(|n| n.as_words()[0] % 4 == 3 && is_prime(Flavor::Any, n));
        if let Some(prime) = found {
            return Ok(Zeroizing::new(prime));
        }
    }
}

/// A random number below 2^bits.
pub(crate) fn random_bits(bits: u32, precision: u32) -> Result<Zeroizing<BoxedUint>> {
    let mut bytes = Zeroizing::new(vec![0; bits.div_ceil(8) as usize]);
    getrandom::fill(&mut bytes).map_err(|error| Error::Randomness { reason: error.to_string() })?;
    if let (Some(last), 1..) = (bytes.last_mut(), bits % 8) {
        *last &= (1 << (bits % 8)) - 1;
    }
    Ok(Zeroizing::new(BoxedUint::from_le_slice_truncated(&bytes, precision)))
}
