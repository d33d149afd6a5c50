//! Words in vectors of AVX2.

use std::arch::x86_64::{
    __m256i, _mm256_add_epi32, _mm256_andnot_si256, _mm256_blend_epi32, _mm256_loadu_si256, _mm256_min_epu32,
    _mm256_mul_epi32, _mm256_mul_epu32, _mm256_mullo_epi32, _mm256_permute2x128_si256, _mm256_set1_epi32,
    _mm256_shuffle_epi32, _mm256_slli_epi64, _mm256_srli_epi64, _mm256_srlv_epi32, _mm256_storeu_si256,
    _mm256_sub_epi32, _mm256_sub_epi64, _mm256_unpackhi_epi64, _mm256_unpacklo_epi64,
};

use super::{Halving, Multiple, Shoup, Word31, WordField, WordJob, WordPart};

compiled_for!("avx2");

/// Eight elements of a prime field below 2^31.
#[derive(Clone, Copy, Debug)]
pub(super) struct Word31x8(Word31);

impl Word31x8 {
    /// # Safety
    /// The processor has AVX2.
    #[inline(always)]
    pub(super) unsafe fn new(field: Word31) -> Self {
        Self(field)
    }

    /// The high halves of a · b − q · p by lanes of 64 bits, plus p where they are negative. The lanes hold the
    /// products of even and of odd words. The low halves are zero.
    #[inline(always)]
    fn reduced(self, products: [__m256i; 2], quotients: __m256i) -> __m256i {
        // SAFETY: the processor has the instructions, or there were no `self`.
        unsafe {
            let p = _mm256_set1_epi32(self.0.modulus as i32);
            let even = _mm256_sub_epi64(products[0], _mm256_mul_epu32(quotients, p));
            let quotients = _mm256_shuffle_epi32::<0b11_11_01_01>(quotients);
            let odd = _mm256_sub_epi64(products[1], _mm256_mul_epu32(quotients, p));
            let difference = _mm256_blend_epi32::<0b1010_1010>(_mm256_shuffle_epi32::<0b11_11_01_01>(even), odd);
            self.corrected(difference)
        }
    }

    /// x, between −p and p, or x + p, whichever is not below 0.
    #[inline(always)]
    fn corrected(self, x: __m256i) -> __m256i {
        // SAFETY: as for `reduced`.
        unsafe { _mm256_min_epu32(x, _mm256_add_epi32(x, self.splat(self.0.modulus))) }
    }

    /// The lanes, and the odd ones at the places of even ones.
    #[inline(always)]
    fn halves(self, x: __m256i) -> [__m256i; 2] {
        // SAFETY: as for `reduced`.
        [x, unsafe { _mm256_shuffle_epi32::<0b11_11_01_01>(x) }]
    }

    /// a + b, between −p and p.
    #[inline(always)]
    fn signed_sum(self, a: __m256i, b: __m256i) -> __m256i {
        // SAFETY: as for `reduced`.
        unsafe { _mm256_sub_epi32(_mm256_add_epi32(a, b), self.splat(self.0.modulus)) }
    }

    /// Products between −p and p of such signed numbers, all as [`Self::halves`].
    ///
    /// There are no closures, here and in what is called for many elements: those that are not inlined would be compiled
    /// without these instructions.
    #[inline(always)]
    fn signed_products<const N: usize>(self, a: &[[__m256i; 2]; N], b: &[[__m256i; 2]; N]) -> [[__m256i; 2]; N] {
        let mut results = *a;
        for i in 0..N {
            // SAFETY: as for `reduced`.
            results[i] = self.halves(unsafe {
                let (inverse, p) = (self.splat(self.0.inverse), self.splat(self.0.modulus));
                let (even, odd) = (_mm256_mul_epi32(a[i][0], b[i][0]), _mm256_mul_epi32(a[i][1], b[i][1]));
                let even = _mm256_sub_epi64(even, _mm256_mul_epi32(_mm256_mul_epu32(even, inverse), p));
                let odd = _mm256_sub_epi64(odd, _mm256_mul_epi32(_mm256_mul_epu32(odd, inverse), p));
                _mm256_blend_epi32::<0b1010_1010>(_mm256_shuffle_epi32::<0b11_11_01_01>(even), odd)
            });
        }
        results
    }
}

impl WordField for Word31x8 {
    type Word = u32;
    type Lanes = __m256i;

    const LANES: usize = 8;
    const LOG_RADIX: usize = 3;

    apart!();

    #[inline(always)]
    fn mul_word(self, a: u32, b: u32) -> u32 {
        self.0.mul(a, b)
    }

    #[inline(always)]
    fn shoup(self, factor: u32) -> Shoup<u32> {
        self.0.shoup(factor)
    }

    #[inline(always)]
    unsafe fn load(self, from: *const u32) -> __m256i {
        // SAFETY: as the caller vouches; the processor has the instructions, or there were no `self`.
        unsafe { _mm256_loadu_si256(from.cast()) }
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut u32, x: __m256i) {
        // SAFETY: as the caller vouches; and as above.
        unsafe { _mm256_storeu_si256(to.cast(), x) }
    }

    #[inline(always)]
    fn splat(self, word: u32) -> __m256i {
        // SAFETY: as for `reduced`.
        unsafe { _mm256_set1_epi32(word as i32) }
    }

    #[inline(always)]
    fn add(self, a: __m256i, b: __m256i) -> __m256i {
        // SAFETY: as for `reduced`.
        unsafe {
            let sum = _mm256_add_epi32(a, b);
            _mm256_min_epu32(sum, _mm256_sub_epi32(sum, self.splat(self.0.modulus)))
        }
    }

    #[inline(always)]
    fn sub(self, a: __m256i, b: __m256i) -> __m256i {
        // SAFETY: as for `reduced`.
        unsafe {
            let difference = _mm256_sub_epi32(a, b);
            _mm256_min_epu32(difference, _mm256_add_epi32(difference, self.splat(self.0.modulus)))
        }
    }

    #[inline(always)]
    fn mul(self, a: __m256i, b: __m256i) -> __m256i {
        // SAFETY: as for `reduced`.
        unsafe {
            let a_odd = _mm256_shuffle_epi32::<0b11_11_01_01>(a);
            let b_odd = _mm256_shuffle_epi32::<0b11_11_01_01>(b);
            let products = [_mm256_mul_epu32(a, b), _mm256_mul_epu32(a_odd, b_odd)];
            let low = _mm256_blend_epi32::<0b1010_1010>(products[0], _mm256_slli_epi64::<32>(products[1]));
            self.reduced(products, _mm256_mullo_epi32(low, self.splat(self.0.inverse)))
        }
    }

    #[inline(always)]
    fn mul_difference(self, u: __m256i, v: __m256i, w: &Shoup<u32>) -> __m256i {
        // SAFETY: as for `reduced`.
        unsafe {
            // Below 2p, which is a word: a product with what is below p needs no more.
            self.mul_factor(_mm256_add_epi32(_mm256_sub_epi32(u, v), self.splat(self.0.modulus)), w)
        }
    }

    /// For any words.
    #[inline(always)]
    fn mul_factor(self, even: __m256i, w: &Shoup<u32>) -> __m256i {
        // SAFETY: as for `reduced`.
        unsafe {
            let odd = _mm256_shuffle_epi32::<0b11_11_01_01>(even);
            let (factor, more) = (self.splat(w.factor), self.splat(w.more));
            let products = [_mm256_mul_epu32(even, factor), _mm256_mul_epu32(odd, factor)];
            self.reduced(products, _mm256_mullo_epi32(even, more))
        }
    }

    signed_powers!();

    const HALVES: bool = true;

    #[inline(always)]
    fn multiple(self, factor: u32) -> Multiple<u32> {
        self.0.multiple(factor)
    }

    #[inline(always)]
    fn add_halved(self, a: __m256i, x: __m256i, halving: &Halving) -> __m256i {
        let Halving { shift, mask, part, is_negative } = *halving;
        // SAFETY: as for `reduced`.
        unsafe {
            let mask = self.splat(mask);
            let y = _mm256_add_epi32(x, mask);
            let high = _mm256_srlv_epi32(y, self.splat(shift));
            let quotient = _mm256_add_epi32(high, _mm256_mullo_epi32(_mm256_andnot_si256(y, mask), self.splat(part)));
            if is_negative { self.sub(a, quotient) } else { self.add(a, quotient) }
        }
    }

    #[inline(always)]
    fn exchange<const BIT: usize>(self, a: __m256i, b: __m256i) -> [__m256i; 2] {
        // SAFETY: as for `reduced`.
        unsafe {
            match BIT {
                0 => [
                    _mm256_blend_epi32::<0b1010_1010>(a, _mm256_slli_epi64::<32>(b)),
                    _mm256_blend_epi32::<0b1010_1010>(_mm256_srli_epi64::<32>(a), b),
                ],
                1 => [_mm256_unpacklo_epi64(a, b), _mm256_unpackhi_epi64(a, b)],
                2 => [_mm256_permute2x128_si256::<0x20>(a, b), _mm256_permute2x128_si256::<0x31>(a, b)],
                _ => [a, b],
            }
        }
    }
}
