//! Words in short arrays, which compilers turn into vectors.

use std::{array, fmt};

use bytemuck::Pod;

use super::{Shoup, Word31, Word64, WordField, WordPart};

/// Lanes: the words of a vector of NEON.
const LANES: usize = 4;

/// A field whose lanes are computed with one by one, as far as the program shows.
#[derive(Clone, Copy, Debug)]
pub(super) struct Portable<F>(pub(super) F);

/// Arithmetic on one element.
pub(super) trait Scalar: Copy + fmt::Debug + Send + Sync {
    type Word: Pod + fmt::Debug + PartialEq + Send + Sync;

    fn add(self, a: Self::Word, b: Self::Word) -> Self::Word;
    fn sub(self, a: Self::Word, b: Self::Word) -> Self::Word;
    fn mul(self, a: Self::Word, b: Self::Word) -> Self::Word;
    fn shoup(self, factor: Self::Word) -> Shoup<Self::Word>;
    fn mul_shoup(self, a: Self::Word, b: Shoup<Self::Word>) -> Self::Word;
}

macro_rules! scalar {
    ($field:ty, $word:ty) => {
        impl Scalar for $field {
            type Word = $word;

            #[inline(always)]
            fn add(self, a: $word, b: $word) -> $word {
                self.add(a, b)
            }

            #[inline(always)]
            fn sub(self, a: $word, b: $word) -> $word {
                self.sub(a, b)
            }

            #[inline(always)]
            fn mul(self, a: $word, b: $word) -> $word {
                self.mul(a, b)
            }

            #[inline(always)]
            fn shoup(self, factor: $word) -> Shoup<$word> {
                self.shoup(factor)
            }

            #[inline(always)]
            fn mul_shoup(self, a: $word, b: Shoup<$word>) -> $word {
                self.mul_shoup(a, b)
            }
        }
    };
}

scalar!(Word31, u32);
scalar!(Word64, u64);

impl<S: Scalar> WordField for Portable<S> {
    type Word = S::Word;
    type Lanes = [S::Word; LANES];

    const LANES: usize = LANES;
    const LOG_RADIX: usize = 2;

    #[inline(always)]
    fn mul_word(self, a: S::Word, b: S::Word) -> S::Word {
        self.0.mul(a, b)
    }

    #[inline(always)]
    fn shoup(self, factor: S::Word) -> Shoup<S::Word> {
        self.0.shoup(factor)
    }

    #[inline(always)]
    unsafe fn load(self, from: *const S::Word) -> Self::Lanes {
        // SAFETY: as the caller vouches.
        unsafe { from.cast::<Self::Lanes>().read() }
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut S::Word, x: Self::Lanes) {
        // SAFETY: as the caller vouches.
        unsafe { to.cast::<Self::Lanes>().write(x) }
    }

    #[inline(always)]
    fn splat(self, word: S::Word) -> Self::Lanes {
        [word; LANES]
    }

    #[inline(always)]
    fn add(self, mut a: Self::Lanes, b: Self::Lanes) -> Self::Lanes {
        for i in 0..LANES {
            a[i] = self.0.add(a[i], b[i]);
        }
        a
    }

    #[inline(always)]
    fn sub(self, mut a: Self::Lanes, b: Self::Lanes) -> Self::Lanes {
        for i in 0..LANES {
            a[i] = self.0.sub(a[i], b[i]);
        }
        a
    }

    #[inline(always)]
    fn mul(self, mut a: Self::Lanes, b: Self::Lanes) -> Self::Lanes {
        for i in 0..LANES {
            a[i] = self.0.mul(a[i], b[i]);
        }
        a
    }

    #[inline(always)]
    fn mul_difference(self, mut u: Self::Lanes, v: Self::Lanes, w: &Shoup<S::Word>) -> Self::Lanes {
        for i in 0..LANES {
            u[i] = self.0.mul_shoup(self.0.sub(u[i], v[i]), *w);
        }
        u
    }

    #[inline(always)]
    fn mul_factor(self, a: Self::Lanes, w: &Shoup<S::Word>) -> Self::Lanes {
        a.map(|a| self.0.mul_shoup(a, *w))
    }

    #[cfg_attr(debug_assertions, inline(never))]
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn apart<P: WordPart>(self, part: P) {
        part.run();
    }

    #[inline(always)]
    fn exchange<const BIT: usize>(self, a: Self::Lanes, b: Self::Lanes) -> [Self::Lanes; 2] {
        if 1 << BIT >= LANES {
            return [a, b];
        }
        let has = |lane: usize| lane >> BIT & 1 == 1;
        [
            array::from_fn(|lane| if has(lane) { b[lane ^ 1 << BIT] } else { a[lane] }),
            array::from_fn(|lane| if has(lane) { b[lane] } else { a[lane ^ 1 << BIT] }),
        ]
    }
}
