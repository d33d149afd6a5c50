//! Prime fields of which an element is one word, for CPU bodies of kernels: loops over many elements that compilers make
//! vector code of.
//!
//! Elements stay in the device's form, x · 2^32 or x · 2^64 mod p, and always below p. What a job does is compiled for AVX-512,
//! for AVX2 and for what the rest of the program is compiled for, and the best that the processor has is taken when it runs;
//! on ARM the last is NEON.

use std::fmt;

use bytemuck::Pod;
use evariste_backend::{CpuVectors, cpu_vectors};

#[cfg(doc)]
use crate::small::Goldilocks;
use crate::{DeviceField, arithmetic::Kind};

/// Elements of a row: a loop over so many is unrolled into whole vectors.
pub const ROW: usize = 16;

/// Elements that are computed with together.
pub type Row<W> = [W; ROW];

/// Arithmetic on elements of one word.
pub trait WordField: Copy + fmt::Debug + Send + Sync {
    /// An element: `u32` or `u64`.
    type Word: Pod + fmt::Debug + Send + Sync;

    /// a + b.
    fn add(self, a: Self::Word, b: Self::Word) -> Self::Word;

    /// a − b.
    fn sub(self, a: Self::Word, b: Self::Word) -> Self::Word;

    /// a · b.
    fn mul(self, a: Self::Word, b: Self::Word) -> Self::Word;

    /// What [`WordField::mul_known`] takes beside a factor.
    fn known(self, factor: Self::Word) -> Known<Self::Word>;

    /// a · b, for a factor b that many elements are multiplied by.
    fn mul_known(self, a: Self::Word, b: Known<Self::Word>) -> Self::Word;

    /// Each element by the factor in its place.
    #[inline(always)]
    fn mul_row(self, row: &mut Row<Self::Word>, factors: &Row<Self::Word>) {
        for i in 0..ROW {
            row[i] = self.mul(row[i], factors[i]);
        }
    }

    /// A butterfly: (u + v, u − v).
    #[inline(always)]
    fn sum_and_difference(self, u: &mut Row<Self::Word>, v: &mut Row<Self::Word>) {
        for i in 0..ROW {
            (u[i], v[i]) = (self.add(u[i], v[i]), self.sub(u[i], v[i]));
        }
    }

    /// A butterfly: (u + v, (u − v) · w).
    #[inline(always)]
    fn butterfly(self, u: &mut Row<Self::Word>, v: &mut Row<Self::Word>, w: Known<Self::Word>) {
        for i in 0..ROW {
            (u[i], v[i]) = (self.add(u[i], v[i]), self.mul_known(self.sub(u[i], v[i]), w));
        }
    }
}

/// A factor, with its product by p⁻¹ where that spares a multiplication.
#[derive(Clone, Copy, Debug)]
pub struct Known<W> {
    factor: W,
    quotient: W,
}

/// A prime below 2^31.
#[derive(Clone, Copy, Debug)]
pub struct Word31 {
    modulus: u32,
    /// p⁻¹ mod 2^32.
    inverse: u32,
}

impl Word31 {
    /// (a · b − q · p) / 2^32 for the q of which the low words agree: the difference of the high words, plus p or not.
    #[inline(always)]
    fn reduced(self, a: u32, b: u32, quotient: u32) -> u32 {
        let high = |a: u32, b: u32| ((u64::from(a) * u64::from(b)) >> 32) as u32;
        self.sub(high(a, b), high(quotient, self.modulus))
    }
}

impl WordField for Word31 {
    type Word = u32;

    #[inline(always)]
    fn add(self, a: u32, b: u32) -> u32 {
        let sum = a + b;
        // Below p, the difference wraps and is the larger one.
        sum.min(sum.wrapping_sub(self.modulus))
    }

    #[inline(always)]
    fn sub(self, a: u32, b: u32) -> u32 {
        let difference = a.wrapping_sub(b);
        difference.min(difference.wrapping_add(self.modulus))
    }

    #[inline(always)]
    fn mul(self, a: u32, b: u32) -> u32 {
        self.reduced(a, b, a.wrapping_mul(b).wrapping_mul(self.inverse))
    }

    #[inline(always)]
    fn known(self, factor: u32) -> Known<u32> {
        Known { factor, quotient: factor.wrapping_mul(self.inverse) }
    }

    #[inline(always)]
    fn mul_known(self, a: u32, b: Known<u32>) -> u32 {
        self.reduced(a, b.factor, a.wrapping_mul(b.quotient))
    }
}

/// 2^64 − 2^32 + 1.
const GOLDILOCKS: u64 = 0xffff_ffff_0000_0001;

/// The field of [`Goldilocks`]: `BY_HALVES`, with products of 32-bit halves, as vectors have them; else with those of a
/// processor's words.
#[derive(Clone, Copy, Debug)]
pub struct Word64<const BY_HALVES: bool>;

impl<const BY_HALVES: bool> Word64<BY_HALVES> {
    /// The low and the high word of a · b.
    #[inline(always)]
    fn product(a: u64, b: u64) -> (u64, u64) {
        if !BY_HALVES {
            let product = u128::from(a) * u128::from(b);
            return (product as u64, (product >> 64) as u64);
        }
        const LOW: u64 = u32::MAX as u64;
        let ([a0, a1], [b0, b1]) = ([a & LOW, a >> 32], [b & LOW, b >> 32]);
        let low = a0 * b0;
        let first = a1 * b0 + (low >> 32);
        let second = a0 * b1 + (first & LOW);
        (low & LOW | second << 32, a1 * b1 + (first >> 32) + (second >> 32))
    }
}

impl<const BY_HALVES: bool> WordField for Word64<BY_HALVES> {
    type Word = u64;

    #[inline(always)]
    fn add(self, a: u64, b: u64) -> u64 {
        // a − (p − b): with b = 0 a itself, which is below p.
        let (difference, borrow) = a.overflowing_sub(GOLDILOCKS - b);
        if borrow { difference.wrapping_add(GOLDILOCKS) } else { difference }
    }

    #[inline(always)]
    fn sub(self, a: u64, b: u64) -> u64 {
        let (difference, borrow) = a.overflowing_sub(b);
        if borrow { difference.wrapping_add(GOLDILOCKS) } else { difference }
    }

    #[inline(always)]
    fn mul(self, a: u64, b: u64) -> u64 {
        let (low, high) = Self::product(a, b);
        // p⁻¹ = 2^32 + 1 mod 2^64, so the quotient q is low + low · 2^32, and the high word of q · p is q − ⌊q / 2^32⌋, less 1
        // where the low words of q · (1 − 2^32), which is low, need a borrow: where q is less than low.
        let quotient = low.wrapping_add(low << 32);
        let borrow = u64::from(quotient < low);
        self.sub(high, quotient.wrapping_sub(quotient >> 32).wrapping_sub(borrow))
    }

    #[inline(always)]
    fn known(self, factor: u64) -> Known<u64> {
        Known { factor, quotient: 0 }
    }

    #[inline(always)]
    fn mul_known(self, a: u64, b: Known<u64>) -> u64 {
        self.mul(a, b.factor)
    }
}

/// What is done in a field of words, whichever it is.
pub trait WordJob {
    /// What comes of it.
    type Output;

    /// Does it on one thread. Mark it, and what it calls for many elements, `#[inline(always)]`, for it to be compiled for the
    /// instructions that the processor has.
    fn run<F: WordField>(self, field: F) -> Self::Output;
}

/// A prime field of words, on this processor.
#[derive(Clone, Copy, Debug)]
pub struct Words {
    field: Kinds,
    vectors: CpuVectors,
}

#[derive(Clone, Copy, Debug)]
enum Kinds {
    Word31(Word31),
    Goldilocks,
}

impl Words {
    /// That of `F`, if it is [`Goldilocks`] or a prime field below 2^31.
    pub fn of<F: DeviceField>() -> Option<Self> {
        let vectors = cpu_vectors()?;
        let field = match F::arithmetic().0 {
            Kind::Prime { constants, .. } if constants.modulus[..] == [1, u32::MAX] => Kinds::Goldilocks,
            Kind::Prime { constants, .. } if constants.modulus.len() == 1 && !constants.full => {
                Kinds::Word31(Word31 { modulus: constants.modulus[0], inverse: constants.n0.wrapping_neg() })
            }
            _ => return None,
        };
        Some(Self { field, vectors })
    }

    /// Does a job on this thread.
    #[inline]
    pub fn run<J: WordJob>(self, job: J) -> J::Output {
        match (self.field, self.vectors) {
            #[cfg(target_arch = "x86_64")]
            // SAFETY: found on this processor.
            (Kinds::Word31(field), CpuVectors::Avx512) => unsafe { avx512(job, field) },
            #[cfg(target_arch = "x86_64")]
            // SAFETY: as above.
            (Kinds::Word31(field), CpuVectors::Avx2) => unsafe { avx2(job, field) },
            (Kinds::Word31(field), _) => job.run(field),
            #[cfg(target_arch = "x86_64")]
            // SAFETY: as above.
            (Kinds::Goldilocks, CpuVectors::Avx512) => unsafe { avx512(job, Word64::<true>) },
            // Halves take longer in vectors of four than words do one by one.
            (Kinds::Goldilocks, _) => job.run(Word64::<false>),
        }
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
fn avx512<J: WordJob, F: WordField>(job: J, field: F) -> J::Output {
    job.run(field)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn avx2<J: WordJob, F: WordField>(job: J, field: F) -> J::Output {
    job.run(field)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::small;

    struct Check<'a, F> {
        values: &'a [F],
    }

    impl<E: DeviceField> WordJob for Check<'_, E> {
        type Output = ();

        #[inline(always)]
        fn run<F: WordField>(self, field: F) {
            let word = |x: E| {
                let mut limbs = vec![0; E::LIMBS];
                x.store(&mut limbs);
                bytemuck::pod_read_unaligned::<F::Word>(bytemuck::cast_slice(&limbs))
            };
            let element = |word: F::Word| E::load(bytemuck::cast_slice(&[word]));
            for &a in self.values {
                for &b in self.values {
                    let [x, y] = [word(a), word(b)];
                    assert_eq!(element(field.mul(x, y)), a * b, "{a} · {b}");
                    let (mut u, mut v) = ([x; ROW], [y; ROW]);
                    field.butterfly(&mut u, &mut v, field.known(x));
                    assert!(u.iter().all(|u| element(*u) == a + b), "{a} + {b}");
                    assert!(v.iter().all(|v| element(*v) == (a - b) * a), "({a} − {b}) · {a}");
                    field.sum_and_difference(&mut u, &mut v);
                    field.mul_row(&mut u, &[y; ROW]);
                    assert!(u.iter().all(|u| element(*u) == (a + b + (a - b) * a) * b), "{a}, {b}");
                    assert!(v.iter().all(|v| element(*v) == a + b - (a - b) * a), "{a}, {b}");
                }
            }
        }
    }

    fn check<E: DeviceField>() {
        let mut values: Vec<E> = [0u64, 1, 2, u32::MAX.into(), 1 << 32, 1 << 63, u64::MAX].map(E::from).to_vec();
        values.extend(values.clone().iter().map(|x| -*x));
        values.extend((0..40).map(|i| E::from(0x9e37_79b9_7f4a_7c15_u64.wrapping_mul(i + 1))));
        let Some(best) = Words::of::<E>() else { return assert!(cpu_vectors().is_none()) };
        for vectors in [CpuVectors::Baseline, CpuVectors::Avx2, CpuVectors::Avx512] {
            if vectors <= best.vectors {
                Words { vectors, ..best }.run(Check { values: &values });
            }
        }
    }

    #[test]
    fn words_are_computed_with_as_arkworks_does() {
        check::<small::Goldilocks>();
        check::<small::BabyBear>();
        check::<small::KoalaBear>();
        assert!(Words::of::<small::BabyBear4>().is_none());
        assert!(Words::of::<ark_bls12_381::Fr>().is_none());
    }
}
