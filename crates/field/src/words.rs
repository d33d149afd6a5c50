//! Prime fields with elements of one word, for CPU bodies of kernels: many elements side by side in lanes of vectors.
//!
//! This module is for authors of kernels, and exempt from semantic versioning.
//!
//! Elements stay in the device's form, x · 2^32 or x · 2^64 mod p, and always below p. A job is compiled for AVX-512,
//! for AVX2 and for the target of the rest of the program. The best that the processor has is chosen at run time. The
//! code for the first two is written out. The last uses short arrays, which compilers turn into vectors where there are
//! some, as on ARM NEON.

use std::fmt;

use bytemuck::Pod;
use evariste_backend::author::{CpuVectors, cpu_vectors};

use self::portable::Portable;
use crate::field::{DeviceField, arithmetic::Kind};
#[cfg(doc)]
use crate::small::Goldilocks;

/// The functions that are compiled for the instructions of a module.
#[cfg(target_arch = "x86_64")]
macro_rules! compiled_for {
    ($features:literal) => {
        /// Does a job, compiled for these instructions.
        #[target_feature(enable = $features)]
        pub(super) fn run<J: WordJob, F: WordField>(job: J, field: F) -> J::Output {
            job.run(field)
        }

        /// Does a part of a job in a function of its own.
        #[inline(never)]
        #[target_feature(enable = $features)]
        fn call<P: WordPart>(part: P) {
            part.run();
        }
    };
}

/// [`WordField::apart`], by the function `call` of the module.
#[cfg(target_arch = "x86_64")]
macro_rules! apart {
    () => {
        #[inline(always)]
        fn apart<P: WordPart>(self, part: P) {
            if cfg!(debug_assertions) {
                // SAFETY: the processor has the instructions, or there were no `self`.
                unsafe { call(part) }
            } else {
                part.run();
            }
        }
    };
}

/// [`WordField::powers_of_sums`] by signed numbers between −p and p, whose products need no corrections.
#[cfg(target_arch = "x86_64")]
macro_rules! signed_powers {
    () => {
        #[inline(always)]
        fn powers_of_sums<const N: usize>(self, a: &mut [Self::Lanes; N], b: [Self::Lanes; N], alpha: u32) {
            let mut x = [[a[0]; 2]; N];
            for i in 0..N {
                x[i] = self.halves(self.signed_sum(a[i], b[i]));
            }
            let squares = self.signed_products(&x, &x);
            let factors = match alpha {
                3 => [squares, x],
                5 => [self.signed_products(&squares, &squares), x],
                _ => [self.signed_products(&squares, &squares), self.signed_products(&squares, &x)],
            };
            let powers = self.signed_products(&factors[0], &factors[1]);
            for i in 0..N {
                a[i] = self.corrected(powers[i][0]);
            }
        }
    };
}

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod portable;

/// Lanes at most, and elements that a radix step holds at most.
pub const MAX_LANES: usize = 16;

/// Arithmetic on elements of one word, alone and in lanes that fill a vector. A value of such a
/// type is there only where the processor has the instructions that its functions use.
pub trait WordField: Copy + fmt::Debug + Send + Sync {
    /// An element: `u32` or `u64`.
    type Word: Pod + fmt::Debug + PartialEq + Send + Sync;

    /// [`WordField::LANES`] elements.
    type Lanes: Copy + fmt::Debug;

    /// Elements in lanes, a power of two and at most [`MAX_LANES`].
    const LANES: usize;

    /// log₂ of the lanes that registers hold with what is computed from them: 4 at most.
    const LOG_RADIX: usize;

    /// a · b.
    fn mul_word(self, a: Self::Word, b: Self::Word) -> Self::Word;

    /// What [`WordField::mul_difference`] takes beside a factor.
    fn shoup(self, factor: Self::Word) -> Shoup<Self::Word>;

    /// Neighbouring elements, aligned as words are.
    ///
    /// # Safety
    /// All can be read.
    unsafe fn load(self, from: *const Self::Word) -> Self::Lanes;

    /// Stores elements to where neighbours belong, aligned as words are.
    ///
    /// # Safety
    /// All can be written.
    unsafe fn store(self, to: *mut Self::Word, x: Self::Lanes);

    /// [`WordField::store`] past the caches, where there is such an instruction: for what is read again after more than
    /// these hold. [`WordField::fence`] comes before other threads may read it.
    ///
    /// # Safety
    /// All can be written, and are aligned as [`WordField::Lanes`] are.
    #[inline(always)]
    unsafe fn stream(self, to: *mut Self::Word, x: Self::Lanes) {
        // SAFETY: as the caller vouches.
        unsafe { self.store(to, x) }
    }

    /// Makes what this thread has stored past the caches known before what it stores from here on.
    #[inline(always)]
    fn fence(self) {}

    /// One element in all lanes.
    fn splat(self, word: Self::Word) -> Self::Lanes;

    /// a + b.
    fn add(self, a: Self::Lanes, b: Self::Lanes) -> Self::Lanes;

    /// a − b.
    fn sub(self, a: Self::Lanes, b: Self::Lanes) -> Self::Lanes;

    /// a · b.
    fn mul(self, a: Self::Lanes, b: Self::Lanes) -> Self::Lanes;

    /// (u − v) · w, for a factor w that many elements are multiplied by.
    fn mul_difference(self, u: Self::Lanes, v: Self::Lanes, w: &Shoup<Self::Word>) -> Self::Lanes;

    /// a · w, for such a factor.
    fn mul_factor(self, a: Self::Lanes, w: &Shoup<Self::Word>) -> Self::Lanes;

    /// a + b, as it is or less p: for the first operand of [`WordField::mul`] and [`WordField::mul_factor`] alone.
    #[inline(always)]
    fn add_unreduced(self, a: Self::Lanes, b: Self::Lanes) -> Self::Lanes {
        self.add(a, b)
    }

    /// A root of unity of order 16 whose powers are much cheaper factors than others. Steps of up to four levels should
    /// have no other factors between levels: [`WordField::shift_difference`].
    const SHIFT_ROOT: Option<Self::Word> = None;

    /// (u − v) · [`WordField::SHIFT_ROOT`]^`SHIFTS`, `SHIFTS` below 8, where there is such a root.
    #[inline(always)]
    fn shift_difference<const SHIFTS: usize>(self, u: Self::Lanes, v: Self::Lanes) -> Self::Lanes {
        debug_assert!(SHIFTS == 0, "no power is cheap");
        self.sub(u, v)
    }

    /// (a + b)^`alpha` in place of each a, for an exponent of 3, 5 or 7. A few at a time keep a processor busy, which
    /// waits for one product after the other of one alone.
    #[inline(always)]
    fn powers_of_sums<const N: usize>(self, a: &mut [Self::Lanes; N], b: [Self::Lanes; N], alpha: u32) {
        for (a, b) in a.iter_mut().zip(b) {
            let x = self.add(*a, b);
            let square = self.mul(x, x);
            *a = match alpha {
                3 => self.mul(square, x),
                5 => self.mul(self.mul(square, square), x),
                _ => self.mul(self.mul(square, square), self.mul(square, x)),
            };
        }
    }

    /// Whether powers of 1/2 are cheaper factors than others.
    const HALVES: bool = false;

    /// What [`WordField::add_multiple`] takes for a factor.
    #[inline(always)]
    fn multiple(self, factor: Self::Word) -> Multiple<Self::Word> {
        Multiple::Any(self.shoup(factor))
    }

    /// a + x · w, for a factor w that many elements are multiplied by.
    #[inline(always)]
    fn add_multiple(self, a: Self::Lanes, x: Self::Lanes, w: &Multiple<Self::Word>) -> Self::Lanes {
        match w {
            Multiple::Few { count, is_negative } => {
                let multiple = match count {
                    1 => x,
                    2 => self.add(x, x),
                    3 => self.add(self.add(x, x), x),
                    _ => {
                        let twice = self.add(x, x);
                        self.add(twice, twice)
                    }
                };
                if *is_negative { self.sub(a, multiple) } else { self.add(a, multiple) }
            }
            Multiple::Halved(halving) => self.add_halved(a, x, halving),
            Multiple::Any(factor) => self.add(a, self.mul_factor(x, factor)),
        }
    }

    /// a ± x / 2^k, with [`WordField::HALVES`].
    #[inline(always)]
    fn add_halved(self, a: Self::Lanes, _x: Self::Lanes, _halving: &Halving) -> Self::Lanes {
        debug_assert!(false, "no factor is such a one");
        a
    }

    /// Exchanges the lanes of `a` whose numbers have bit `BIT` with those of `b` that lack it. Such steps make up a
    /// transposition: [`transpose`].
    fn exchange<const BIT: usize>(self, a: Self::Lanes, b: Self::Lanes) -> [Self::Lanes; 2];

    /// Does a part of a job. In programs with debug assertions it is a function of its own, compiled for the same
    /// instructions: compile time grows with the square of a function's length. Elsewhere it is not, since short jobs
    /// would take up to 3% longer.
    fn apart<P: WordPart>(self, part: P);
}

/// A part of a job, for [`WordField::apart`].
pub trait WordPart {
    /// Does it. Mark it `#[inline(always)]`, as for [`WordJob::run`].
    fn run(self);
}

/// A factor for many elements, with a value that is computed from it once. That value is its product by p⁻¹ mod 2^32,
/// or over Goldilocks its quotient by 2^32 in the field.
#[derive(Clone, Copy, Debug)]
pub struct Shoup<W> {
    factor: W,
    more: W,
}

/// A factor for many elements, whose products are added to others.
#[derive(Clone, Copy, Debug)]
pub enum Multiple<W> {
    /// ±1, ±2, ±3 or ±4.
    Few {
        /// Without its sign.
        count: u8,
        /// Whether it is below 0.
        is_negative: bool,
    },
    /// ±2^−k.
    Halved(Halving),
    /// Any other.
    Any(Shoup<W>),
}

/// ±2^−k, for a prime p = c · 2^a + 1 below 2^31 and k ≤ a.
///
/// x / 2^k is (x + j · p) / 2^k for the j < 2^k that makes it whole, −x mod 2^k. That is x / 2^k rounded up, plus
/// j · c · 2^(a − k). It is below p. The low bits of x + 2^k − 1 are the complement of those of j.
#[derive(Clone, Copy, Debug, Default)]
pub struct Halving {
    /// k.
    shift: u32,
    /// 2^k − 1.
    mask: u32,
    /// c · 2^(a − k).
    part: u32,
    is_negative: bool,
}

/// Transposes a square of as many vectors as they have lanes.
#[inline(always)]
pub fn transpose<F: WordField>(field: F, x: &mut [F::Lanes; MAX_LANES]) {
    macro_rules! exchange {
        ($bit:literal: $($u:literal $v:literal),*) => { $(
            if $v < F::LANES {
                [x[$u], x[$v]] = field.exchange::<$bit>(x[$u], x[$v]);
            }
        )* };
    }
    exchange!(3: 0 8, 1 9, 2 10, 3 11, 4 12, 5 13, 6 14, 7 15);
    exchange!(2: 0 4, 1 5, 2 6, 3 7, 8 12, 9 13, 10 14, 11 15);
    exchange!(1: 0 2, 1 3, 4 6, 5 7, 8 10, 9 11, 12 14, 13 15);
    exchange!(0: 0 1, 2 3, 4 5, 6 7, 8 9, 10 11, 12 13, 14 15);
}

/// A prime below 2^31.
#[derive(Clone, Copy, Debug)]
pub struct Word31 {
    modulus: u32,
    /// p⁻¹ mod 2^32.
    inverse: u32,
}

impl Word31 {
    /// (a · b − q · p) / 2^32 for the q that makes the low words equal. It is the difference of the high words, plus p
    /// or not.
    #[inline(always)]
    fn reduced(self, a: u32, b: u32, quotient: u32) -> u32 {
        let high = |a: u32, b: u32| ((u64::from(a) * u64::from(b)) >> 32) as u32;
        self.sub(high(a, b), high(quotient, self.modulus))
    }
}

impl Word31 {
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
    fn shoup(self, factor: u32) -> Shoup<u32> {
        Shoup { factor, more: factor.wrapping_mul(self.inverse) }
    }

    fn multiple(self, factor: u32) -> Multiple<u32> {
        let p = u64::from(self.modulus);
        let one = (1 << 32) % p;
        // Whether the factor is this value or its negative, and which.
        let sign = |value: u64| {
            let factor = u64::from(factor);
            if factor == value { Some(false) } else { (factor + value == p).then_some(true) }
        };
        for count in 1..=4 {
            if let Some(is_negative) = sign(u64::from(count) * one % p) {
                return Multiple::Few { count, is_negative };
            }
        }
        let mut value = one;
        for shift in 1..=(p - 1).trailing_zeros() {
            value = if value % 2 == 0 { value / 2 } else { (value + p) / 2 };
            if let Some(is_negative) = sign(value) {
                let part = (self.modulus - 1) >> shift;
                return Multiple::Halved(Halving { shift, mask: (1 << shift) - 1, part, is_negative });
            }
        }
        Multiple::Any(self.shoup(factor))
    }

    /// The same as a product, for a factor b that is known, and any word a.
    #[inline(always)]
    fn mul_shoup(self, a: u32, b: Shoup<u32>) -> u32 {
        self.reduced(a, b.factor, a.wrapping_mul(b.more))
    }
}

/// 2^64 − 2^32 + 1.
const GOLDILOCKS: u64 = 0xffff_ffff_0000_0001;

/// 2^12, a root of unity of order 16, in the device's form: 2^76 = 2^44 − 2^12.
const GOLDILOCKS_SHIFT_ROOT: u64 = (1 << 44) - (1 << 12);

/// The field of [`Goldilocks`].
#[derive(Clone, Copy, Debug)]
pub struct Word64;

impl Word64 {
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
        let product = u128::from(a) * u128::from(b);
        let (low, high) = (product as u64, (product >> 64) as u64);
        // p⁻¹ = 2^32 + 1 mod 2^64, so the quotient q is low + low · 2^32, and the high word of q · p is q − ⌊q / 2^32⌋,
        // less 1 where the low words of q · (1 − 2^32), which is low, need a borrow: where q is less than low.
        let quotient = low.wrapping_add(low << 32);
        let borrow = u64::from(quotient < low);
        self.sub(high, quotient.wrapping_sub(quotient >> 32).wrapping_sub(borrow))
    }

    #[inline(always)]
    fn shoup(self, factor: u64) -> Shoup<u64> {
        // With m the low half, factor − m · p is a multiple of 2^32, and p / 2^32 = 2^32 − 1 but for the 1 that takes m
        // away.
        Shoup { factor, more: self.sub(factor >> 32, (factor & u64::from(u32::MAX)) * u64::from(u32::MAX)) }
    }

    #[inline(always)]
    fn mul_shoup(self, a: u64, b: Shoup<u64>) -> u64 {
        self.mul(a, b.factor)
    }
}

/// A computation in a field of words, written once for all fields.
pub trait WordJob {
    /// What comes of it.
    type Output;

    /// Does it on one thread. Mark it, and what it calls for many elements, `#[inline(always)]`, for it to be compiled
    /// for the instructions that the processor has.
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
        let vectors = cpu_vectors()?.min(CpuVectors::Avx512);
        let field = match F::arithmetic().0 {
            Kind::Prime { constants, .. } if constants.modulus[..] == [1, u32::MAX] => Kinds::Goldilocks,
            Kind::Prime { constants, .. } if constants.modulus.len() == 1 && !constants.full => {
                Kinds::Word31(Word31 { modulus: constants.modulus[0], inverse: constants.n0.wrapping_neg() })
            }
            _ => return None,
        };
        Some(Self { field, vectors })
    }

    /// That of `F` with each kind of vectors that this processor has, the best last: for comparing what they do.
    pub fn each_of<F: DeviceField>() -> Vec<Self> {
        let Some(best) = Self::of::<F>() else { return Vec::new() };
        let kinds = [CpuVectors::Baseline, CpuVectors::Avx2, CpuVectors::Avx512];
        kinds.into_iter().filter(|vectors| *vectors <= best.vectors).map(|vectors| Self { vectors, ..best }).collect()
    }

    /// Does a job on this thread.
    #[inline]
    pub fn run<J: WordJob>(self, job: J) -> J::Output {
        match (self.field, self.vectors) {
            #[cfg(target_arch = "x86_64")]
            // SAFETY: found on this processor.
            (Kinds::Word31(field), CpuVectors::Avx512) => unsafe { avx512::run(job, avx512::Word31x16::new(field)) },
            #[cfg(target_arch = "x86_64")]
            // SAFETY: as above.
            (Kinds::Word31(field), CpuVectors::Avx2) => unsafe { avx2::run(job, avx2::Word31x8::new(field)) },
            (Kinds::Word31(field), _) => job.run(Portable(field)),
            #[cfg(target_arch = "x86_64")]
            // SAFETY: as above.
            (Kinds::Goldilocks, CpuVectors::Avx512) => unsafe { avx512::run(job, avx512::Word64x8::new()) },
            // Products of halves take longer in vectors of four than words do one by one.
            (Kinds::Goldilocks, _) => job.run(Portable(Word64)),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::iter;

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
                    assert_eq!(element(field.mul_word(x, y)), a * b, "{a} · {b}");
                    let [u, v] = [x, y].map(|word| field.splat(word));
                    let results = [
                        (field.add(u, v), a + b),
                        (field.sub(u, v), a - b),
                        (field.mul(u, v), a * b),
                        (field.mul_difference(u, v, &field.shoup(x)), (a - b) * a),
                        (field.mul_factor(u, &field.shoup(y)), a * b),
                        (field.mul_factor(field.add_unreduced(u, v), &field.shoup(y)), (a + b) * b),
                        (field.mul(field.add_unreduced(u, v), u), (a + b) * a),
                    ];
                    for alpha in [3, 5, 7] {
                        let mut powers = [u, v];
                        field.powers_of_sums(&mut powers, [v, v], alpha);
                        for (power, sum) in powers.into_iter().zip([a + b, b + b]) {
                            let expected = sum.pow([alpha.into()]);
                            assert!(words(field, power).iter().all(|word| element(*word) == expected), "{sum}^{alpha}");
                        }
                    }
                    let shifts = F::SHIFT_ROOT.map(|shift| {
                        let shift = element(shift);
                        assert!(shift.pow([8]) == -E::ONE);
                        [
                            (field.shift_difference::<0>(u, v), a - b),
                            (field.shift_difference::<1>(u, v), (a - b) * shift),
                            (field.shift_difference::<2>(u, v), (a - b) * shift.pow([2])),
                            (field.shift_difference::<3>(u, v), (a - b) * shift.pow([3])),
                            (field.shift_difference::<4>(u, v), (a - b) * shift.pow([4])),
                            (field.shift_difference::<5>(u, v), (a - b) * shift.pow([5])),
                            (field.shift_difference::<6>(u, v), (a - b) * shift.pow([6])),
                            (field.shift_difference::<7>(u, v), (a - b) * shift.pow([7])),
                        ]
                    });
                    let results = results.into_iter().chain(shifts.into_iter().flatten());
                    for (lanes, expected) in results {
                        assert!(words(field, lanes).iter().all(|word| element(*word) == expected), "{a}, {b}");
                    }
                }
            }

            // Multiples by every factor that is cheap, by its neighbours, and by the values.
            let two = E::ONE + E::ONE;
            let few = (0..6).map(|count| E::from(count as u64));
            let halved = iter::successors(Some(E::ONE), |x| Some(*x / two)).take(33);
            for w in few.chain(halved).flat_map(|w| [w, -w]).chain(self.values.iter().copied()) {
                let multiple = field.multiple(word(w));
                for &[a, x] in self.values.as_chunks::<2>().0 {
                    let lanes = field.add_multiple(field.splat(word(a)), field.splat(word(x)), &multiple);
                    assert!(words(field, lanes).iter().all(|word| element(*word) == a + x * w), "{a} + {x} · {w}");
                }
            }

            // Lanes are where they belong, and keep to themselves.
            let all: Vec<F::Word> = self.values.iter().map(|x| word(*x)).collect();
            let (a, b) = (&self.values[..F::LANES], &self.values[F::LANES..2 * F::LANES]);
            // SAFETY: there are two values for each lane.
            let [u, v] = [0, F::LANES].map(|at| unsafe { field.load(all[at..].as_ptr()) });
            let expect = |lanes: F::Lanes, expected: &dyn Fn(usize) -> E| {
                for (lane, word) in words(field, lanes).into_iter().enumerate() {
                    assert_eq!(element(word), expected(lane), "lane {lane}");
                }
            };
            expect(u, &|lane| a[lane]);
            expect(field.add(u, v), &|lane| a[lane] + b[lane]);
            expect(field.sub(u, v), &|lane| a[lane] - b[lane]);
            expect(field.mul(u, v), &|lane| a[lane] * b[lane]);
            expect(field.mul_difference(u, v, &field.shoup(all[3])), &|lane| (a[lane] - b[lane]) * a[3]);
            let exchanged = [
                field.exchange::<0>(u, v),
                field.exchange::<1>(u, v),
                field.exchange::<2>(u, v),
                field.exchange::<3>(u, v),
            ];
            for (bit, [first, second]) in exchanged.into_iter().enumerate().take(F::LANES.ilog2() as usize) {
                let has = |lane: usize| lane >> bit & 1 == 1;
                expect(first, &|lane| if has(lane) { b[lane ^ 1 << bit] } else { a[lane] });
                expect(second, &|lane| if has(lane) { b[lane] } else { a[lane ^ 1 << bit] });
            }
        }
    }

    /// A square has its rows and columns exchanged, and what lies behind it stays.
    struct Square;

    impl WordJob for Square {
        type Output = ();

        fn run<F: WordField>(self, field: F) {
            let value = |i: usize, k: usize| {
                let mut word: F::Word = bytemuck::Zeroable::zeroed();
                bytemuck::bytes_of_mut(&mut word)[..2].copy_from_slice(&[i as u8, k as u8]);
                word
            };
            let mut square = std::array::from_fn(|i| {
                let row: Vec<F::Word> = (0..F::LANES).map(|k| value(i, k)).collect();
                // SAFETY: there is a value for each lane.
                unsafe { field.load(row.as_ptr()) }
            });
            transpose(field, &mut square);
            for (i, lanes) in square.into_iter().enumerate() {
                let expected: Vec<F::Word> =
                    (0..F::LANES).map(|k| if i < F::LANES { value(k, i) } else { value(i, k) }).collect();
                assert_eq!(words(field, lanes), expected);
            }
        }
    }

    fn words<F: WordField>(field: F, lanes: F::Lanes) -> Vec<F::Word> {
        let mut words = vec![bytemuck::Zeroable::zeroed(); F::LANES];
        // SAFETY: there is one for each lane.
        unsafe { field.store(words.as_mut_ptr(), lanes) };
        words
    }

    fn check<E: DeviceField>() {
        let mut values: Vec<E> = [0u64, 1, 2, u32::MAX.into(), 1 << 32, 1 << 63, u64::MAX].map(E::from).to_vec();
        values.extend(values.clone().iter().map(|x| -*x));
        values.extend((0..40).map(|i| E::from(0x9e37_79b9_7f4a_7c15_u64.wrapping_mul(i + 1))));
        // Words at the borders of what sums and halves hold, in the device's form: 2^32 − 1 and p − 1 of Goldilocks are
        // 2^64 − 1, the most that an unreduced sum may be.
        let Kind::Prime { constants, .. } = E::arithmetic().0 else { unreachable!("fields of words are prime") };
        let modulus = constants.modulus.iter().rev().fold(0u64, |word, limb| word << 32 | u64::from(*limb));
        let top = 1 << (32 * E::LIMBS - 1);
        let borders =
            [1, u32::MAX.into(), 1 << 32, (1 << 32) + 1, top - 1, top, top + 1, modulus - (1 << 16), modulus - 1];
        let stored = borders.into_iter().filter(|word| *word < modulus);
        values.extend(stored.map(|word| E::load(&[word as u32, (word >> 32) as u32][..E::LIMBS])));
        let all = Words::each_of::<E>();
        assert_eq!(all.is_empty(), cpu_vectors().is_none());
        for words in all {
            words.run(Check { values: &values });
            words.run(Square);
        }
    }

    #[test]
    fn words_are_computed_with_as_arkworks_does() {
        check::<small::Goldilocks>();
        check::<small::BabyBear>();
        check::<small::KoalaBear>();
        check::<small::Mersenne31>();
        assert!(Words::of::<small::BabyBear4>().is_none());
        assert!(Words::of::<ark_bls12_381::Fr>().is_none());
    }
}
