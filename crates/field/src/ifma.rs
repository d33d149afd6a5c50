//! Prime fields eight elements at a time, by the 52-bit multiplications of AVX-512 (IFMA), for CPU bodies of kernels.
//!
//! This module is for authors of kernels, and exempt from semantic versioning.
//!
//! A vector register holds one limb of 52 bits of eight elements. A product of eight elements of L limbs is 4 L² + L
//! multiply-add instructions, without carries between the elements. The code is compiled for these instructions
//! whatever the target of the program is. [`Montgomery52::of`] looks for them at run time.
//!
//! In memory elements keep the device's form, x · 2^(32 `LIMBS`) mod p. A product in lanes is divided by R = 2^(52 L).
//! One factor of a product is loaded shifted up by 52 L − 32 `LIMBS` bits ([`Lanes::load_factor`]). Or it is a constant
//! brought to the form x · R beforehand ([`Lanes::constants`]). The stored product then needs no correction.
//!
//! The code is generic in the number of limbs. Compiled for each number, it would be a third of the time that builds of
//! transforms take. So a job is compiled for the usual 8 and 12 limbs in its own crate, once for all its users. That
//! crate's optimisations apply. Crates that use fields of other sizes compile it for those.

use ark_ff::PrimeField;
use evariste_backend::author::{CpuVectors, cpu_vectors};

use crate::field::{
    DeviceField,
    arithmetic::{Arithmetic, Kind},
};

#[cfg(target_arch = "x86_64")]
mod jobs;
#[cfg(target_arch = "x86_64")]
mod lanes;
mod points;
mod vector;
#[cfg(target_arch = "x86_64")]
mod words;

#[cfg(target_arch = "x86_64")]
use jobs::{Jobs, Limbs};
#[cfg(target_arch = "x86_64")]
pub use lanes::{COLUMNS, Columns, Eight, Lanes};
pub(crate) use vector::Factor;
pub use vector::{Combination, STEP};
#[cfg(target_arch = "x86_64")]
pub use words::Places;

/// Bits of a limb in lanes.
const BITS: usize = 52;

/// The bits of a word that a limb has.
const MASK: u64 = (1 << BITS) - 1;

/// Bits above the modulus' highest that a value may have whose quotient by the modulus is estimated: see
/// `Lanes::reduce`.
const QUOTIENT_BITS: usize = 5;

/// Fewest limbs of 32 bits: below, what it takes to load and store elements outweighs their multiplication.
const MIN_LIMBS: usize = 2;

/// Most limbs of 32 bits.
const MAX_LIMBS: usize = 24;

/// What is compiled for the limbs of a field.
#[cfg(target_arch = "x86_64")]
type Compiled = &'static dyn Jobs;
#[cfg(not(target_arch = "x86_64"))]
type Compiled = ();

/// Holds the constants of a prime field for computing in lanes, on a processor that can. It is of the field that it was
/// made from alone.
#[derive(Clone, Debug)]
pub struct Montgomery52 {
    limbs: usize,
    /// p in limbs of 52 bits, L in all.
    modulus: Vec<u64>,
    /// 2^(52 L) − p.
    complement: Vec<u64>,
    /// −p⁻¹ mod 2^52.
    n0: u64,
    /// 2^(104 L − 32 `limbs`) mod p: what to multiply by to get the form x · 2^(52 L).
    unit: Vec<u64>,
    /// How far the 52 bits from which a quotient by p is estimated lie above the start of the last limb but one.
    window: u64,
    /// 2^52 times the weight of the lowest of these bits, divided by p and rounded down.
    quotient: u64,
    jobs: Compiled,
}

/// A computation in lanes of a field, written once for all numbers of limbs.
#[cfg(target_arch = "x86_64")]
pub trait Job {
    /// The result.
    type Output;

    /// Does the work, for fields of `LIMBS` 32-bit limbs in memory and `L` limbs in lanes: by calling a function that
    /// is compiled for `avx512f,avx512dq,avx512ifma,avx512vbmi2`.
    ///
    /// # Safety
    /// The processor has these instructions, and `field` has these numbers of limbs.
    unsafe fn run<const LIMBS: usize, const L: usize>(self, field: &Montgomery52) -> Self::Output;
}

impl Montgomery52 {
    /// Computes the constants of `F`, if it is a prime field of 2 to 24 limbs and the processor has the instructions.
    pub fn of<F: DeviceField>() -> Option<Self> {
        if const { limbs_of::<F>() } == 0 || cpu_vectors() < Some(CpuVectors::Avx512Ifma) {
            return None;
        }
        match F::arithmetic() {
            Arithmetic(Kind::Prime { constants, .. }) => Some(Self::new(&constants.modulus, jobs_of::<F>())),
            Arithmetic(Kind::Extension(_)) => None,
        }
    }

    /// For an odd modulus of 32-bit limbs, with a highest limb that is not zero.
    fn new(words: &[u32], jobs: Compiled) -> Self {
        let (limbs, len) = (words.len(), lane_limbs(words.len()));
        let mut modulus = vec![0; len];
        for (i, word) in words.iter().enumerate() {
            let (limb, offset) = (32 * i / BITS, 32 * i % BITS);
            let shifted = u128::from(*word) << offset;
            modulus[limb] |= shifted as u64 & MASK;
            if shifted >> BITS != 0 {
                modulus[limb + 1] |= (shifted >> BITS) as u64;
            }
        }
        let highest = modulus.iter().rposition(|limb| *limb != 0).unwrap_or(0);
        let bits = BITS * highest + 64 - modulus[highest].leading_zeros() as usize;

        // x ↦ 2x mod p, and whether p was subtracted.
        let double = |x: &mut Vec<u64>| {
            let mut carry = 0;
            for limb in x.iter_mut() {
                let doubled = *limb << 1 | carry;
                (*limb, carry) = (doubled & MASK, doubled >> BITS);
            }
            let below = carry == 0 && x.iter().rev().lt(modulus.iter().rev());
            if !below {
                let mut borrow = 0;
                for (limb, p) in x.iter_mut().zip(&modulus) {
                    let difference = limb.wrapping_sub(*p).wrapping_sub(borrow);
                    (*limb, borrow) = (difference & MASK, difference >> 63);
                }
            }
            !below
        };
        let mut power = vec![0; len];
        power[(bits - 1) / BITS] = 1 << ((bits - 1) % BITS);
        let mut unit = power.clone();
        for _ in bits - 1..2 * BITS * len - 32 * limbs {
            double(&mut unit);
        }

        let window = (bits + QUOTIENT_BITS).saturating_sub(BITS * (len - 1)).min(BITS);
        let weight = BITS * (len - 2) + window;
        let digit = |quotient: u64, _| quotient << 1 | u64::from(double(&mut power));
        let quotient = (bits - 1..weight + BITS).fold(0, digit);

        // Newton's iteration doubles the right bits of the inverse: 3, 6, 12, 24, 48, 96.
        let p0 = modulus[0];
        let inverse = (0..5).fold(p0, |x, _| x.wrapping_mul(2u64.wrapping_sub(p0.wrapping_mul(x))));
        let mut carry = 1;
        let negate = |limb: &u64| {
            let sum = (!limb & MASK) + carry;
            carry = sum >> BITS;
            sum & MASK
        };
        let complement = modulus.iter().map(negate).collect();
        let n0 = inverse.wrapping_neg() & MASK;
        Self { limbs, complement, n0, unit, window: window as u64, quotient, modulus, jobs }
    }
}

impl Montgomery52 {
    /// Tells whether integers below 2p fit the form in memory.
    pub fn has_room(&self) -> bool {
        let bits = 32 * self.limbs - 1;
        self.modulus[bits / BITS] >> (bits % BITS) == 0
    }
}

/// Limbs of 52 bits for `limbs` of 32: the least L with 2^(52 L) ≥ 2^(32 `limbs` + 4).
const fn lane_limbs(limbs: usize) -> usize {
    (32 * limbs + 4).div_ceil(BITS)
}

/// The limbs of `F` if it is a prime field that may be computed with in lanes, else 0.
const fn limbs_of<F: DeviceField>() -> usize {
    let is_prime = F::LIMBS == (F::BasePrimeField::MODULUS_BIT_SIZE as usize).div_ceil(32);
    if is_prime && MIN_LIMBS <= F::LIMBS && F::LIMBS <= MAX_LIMBS { F::LIMBS } else { 0 }
}

/// An expression with `$n` for the number of limbs: that of a constant is compiled for no other.
#[cfg(target_arch = "x86_64")]
macro_rules! by_limbs {
    ($limbs:expr, |$n:ident| $result:expr) => {
        by_limbs!($limbs, |$n| $result, 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24)
    };
    ($limbs:expr, |$n:ident| $result:expr, $($k:literal)*) => {
        match $limbs {
            $($k => {
                const $n: usize = $k;
                $result
            })*
            limbs => unreachable!("no field of {limbs} limbs is made for this"),
        }
    };
}

/// The same for the usual numbers of limbs. Most base and scalar fields of curves have them, those of BN254, BLS12-381
/// and Pallas among others.
#[cfg(target_arch = "x86_64")]
macro_rules! by_usual_limbs {
    ($limbs:expr, |$n:ident| $result:expr) => { by_limbs!($limbs, |$n| $result, 8 12) };
}

#[cfg(target_arch = "x86_64")]
const fn is_usual(limbs: usize) -> bool {
    matches!(limbs, 8 | 12)
}

#[cfg(not(target_arch = "x86_64"))]
fn jobs_of<F: DeviceField>() -> Compiled {}

#[cfg(target_arch = "x86_64")]
fn jobs_of<F: DeviceField>() -> Compiled {
    if const { is_usual(F::LIMBS) } {
        return usual_jobs(F::LIMBS);
    }
    by_limbs!(const { limbs_of::<F>() }, |N| &Limbs::<N, { lane_limbs(N) }>)
}

#[cfg(target_arch = "x86_64")]
fn usual_jobs(limbs: usize) -> Compiled {
    by_usual_limbs!(limbs, |N| &Limbs::<N, { lane_limbs(N) }>)
}

#[cfg(target_arch = "x86_64")]
impl Montgomery52 {
    /// Runs a job with the limbs of `F`, the field that this was made from. For the usual numbers of limbs it calls
    /// `usual`, a function whose type names no field. `usual` calls [`run_usual`](Self::run_usual), so the job is
    /// compiled in its own crate.
    ///
    /// # Panics
    /// If it was made from a field of other limbs.
    pub fn run<F: DeviceField, J: Job>(&self, job: J, usual: fn(J, &Self) -> J::Output) -> J::Output {
        assert_eq!(self.limbs, F::LIMBS);
        if const { is_usual(F::LIMBS) } {
            return usual(job, self);
        }
        // SAFETY: a field is made only where the processor has the instructions, and has these limbs.
        by_limbs!(const { limbs_of::<F>() }, |N| unsafe { job.run::<N, { lane_limbs(N) }>(self) })
    }

    /// Runs a job with the limbs of this field.
    ///
    /// # Panics
    /// If it does not have a usual number of limbs.
    pub fn run_usual<J: Job>(&self, job: J) -> J::Output {
        // SAFETY: as above.
        by_usual_limbs!(self.limbs, |N| unsafe { job.run::<N, { lane_limbs(N) }>(self) })
    }
}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests;
