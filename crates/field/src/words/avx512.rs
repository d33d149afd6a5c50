//! Words in vectors of AVX-512.

use std::{
    arch::{
        asm,
        x86_64::{
            __m512i, _mm_sfence, _mm512_add_epi32, _mm512_add_epi64, _mm512_and_si512, _mm512_andnot_si512,
            _mm512_cmplt_epu64_mask, _mm512_loadu_si512, _mm512_mask_add_epi64, _mm512_mask_shuffle_epi32,
            _mm512_mask_sub_epi64, _mm512_min_epu32, _mm512_mul_epi32, _mm512_mul_epu32, _mm512_mullo_epi32,
            _mm512_permutex2var_epi32, _mm512_permutex2var_epi64, _mm512_set1_epi32, _mm512_set1_epi64,
            _mm512_shuffle_epi32, _mm512_slli_epi64, _mm512_srli_epi64, _mm512_srlv_epi32, _mm512_storeu_si512,
            _mm512_stream_si512, _mm512_sub_epi32, _mm512_sub_epi64,
        },
    },
    hint,
};

use super::{
    GOLDILOCKS, GOLDILOCKS_SHIFT_ROOT, Halving, Multiple, Shoup, Word31, Word64, WordField, WordJob, WordPart,
};

compiled_for!("avx512f,avx512bw,avx512dq,avx512vl");

/// Which lanes of two vectors, the second's behind the first's, [`WordField::exchange`] puts where.
const fn exchanged<const LANES: usize>(bit: usize) -> [[usize; LANES]; 2] {
    let mut places = [[0; LANES]; 2];
    let mut lane = 0;
    while lane < LANES {
        let has = lane >> bit & 1 == 1;
        let other = lane ^ 1 << bit;
        places[0][lane] = if has { LANES + other } else { lane };
        places[1][lane] = if has { LANES + lane } else { other };
        lane += 1;
    }
    places
}

/// Sixteen elements of a prime field below 2^31.
#[derive(Clone, Copy, Debug)]
pub(super) struct Word31x16(Word31);

impl Word31x16 {
    /// # Safety
    /// The processor has AVX-512 F.
    #[inline(always)]
    pub(super) unsafe fn new(field: Word31) -> Self {
        Self(field)
    }

    /// The high halves of a · b − q · p by lanes of 64 bits, plus p where they are negative. The lanes hold the
    /// products of even and of odd words; a · b and q · p have equal low halves. The factors q are the low halves of
    /// `quotients`, read as signed numbers. So differences of products below 2^31 · p either way lie between −p and p.
    #[inline(always)]
    fn reduced(self, products: [__m512i; 2], quotients: [__m512i; 2]) -> __m512i {
        self.corrected(self.difference(products, quotients))
    }

    /// The same, between −p and p.
    #[inline(always)]
    fn difference(self, products: [__m512i; 2], quotients: [__m512i; 2]) -> __m512i {
        // SAFETY: the processor has the instructions, or there were no `self`.
        unsafe {
            let p = _mm512_set1_epi32(self.0.modulus as i32);
            let even = _mm512_sub_epi64(products[0], _mm512_mul_epi32(opaque(quotients[0]), p));
            let odd = _mm512_sub_epi64(products[1], _mm512_mul_epi32(opaque(quotients[1]), p));
            _mm512_mask_shuffle_epi32::<0b11_11_01_01>(odd, 0x5555, even)
        }
    }

    /// x, between −p and p, or x + p, whichever is not below 0.
    #[inline(always)]
    fn corrected(self, x: __m512i) -> __m512i {
        // SAFETY: as for `difference`.
        unsafe { _mm512_min_epu32(x, _mm512_add_epi32(x, _mm512_set1_epi32(self.0.modulus as i32))) }
    }

    /// The lanes, and the odd ones at the places of even ones.
    #[inline(always)]
    fn halves(self, x: __m512i) -> [__m512i; 2] {
        // SAFETY: as for `difference`.
        [x, unsafe { _mm512_shuffle_epi32::<0b11_11_01_01>(x) }]
    }

    /// a + b, between −p and p.
    #[inline(always)]
    fn signed_sum(self, a: __m512i, b: __m512i) -> __m512i {
        // SAFETY: as for `difference`.
        unsafe { _mm512_sub_epi32(_mm512_add_epi32(a, b), self.splat(self.0.modulus)) }
    }

    /// Products between −p and p of such signed numbers, all as [`Self::halves`].
    ///
    /// There are no closures, here and in what is called for many elements: those that are not inlined would be compiled
    /// without these instructions.
    #[inline(always)]
    fn signed_products<const N: usize>(self, a: &[[__m512i; 2]; N], b: &[[__m512i; 2]; N]) -> [[__m512i; 2]; N] {
        let mut results = *a;
        for i in 0..N {
            // SAFETY: as for `difference`.
            results[i] = self.halves(unsafe {
                let products = [_mm512_mul_epi32(a[i][0], b[i][0]), _mm512_mul_epi32(a[i][1], b[i][1])];
                let inverse = self.splat(self.0.inverse);
                let quotients = [_mm512_mul_epu32(products[0], inverse), _mm512_mul_epu32(products[1], inverse)];
                self.difference(products, quotients)
            });
        }
        results
    }
}

/// Hides the value from the optimizer, which would otherwise widen products although only their low halves are used.
#[inline]
#[target_feature(enable = "avx512f")]
fn opaque(mut x: __m512i) -> __m512i {
    // SAFETY: nothing is done.
    unsafe { asm!("/* {0} */", inlateout(zmm_reg) x, options(pure, nomem, nostack, preserves_flags)) }
    x
}

impl WordField for Word31x16 {
    type Word = u32;
    type Lanes = __m512i;

    const LANES: usize = 16;
    const LOG_RADIX: usize = 4;

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
    unsafe fn load(self, from: *const u32) -> __m512i {
        // SAFETY: as the caller vouches; the processor has the instructions, or there were no `self`.
        unsafe { _mm512_loadu_si512(from.cast()) }
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut u32, x: __m512i) {
        // SAFETY: as the caller vouches; and as above.
        unsafe { _mm512_storeu_si512(to.cast(), x) }
    }

    #[inline(always)]
    unsafe fn stream(self, to: *mut u32, x: __m512i) {
        // SAFETY: as the caller vouches; and as above. `fence` is there for the order of stores.
        unsafe { _mm512_stream_si512(to.cast(), x) }
    }

    #[inline(always)]
    fn fence(self) {
        // SAFETY: all processors with AVX-512 have SSE.
        unsafe { _mm_sfence() }
    }

    #[inline(always)]
    fn splat(self, word: u32) -> __m512i {
        // SAFETY: as for `difference`.
        unsafe { _mm512_set1_epi32(word as i32) }
    }

    #[inline(always)]
    fn add(self, a: __m512i, b: __m512i) -> __m512i {
        // SAFETY: as for `difference`.
        unsafe {
            let sum = _mm512_add_epi32(a, b);
            _mm512_min_epu32(sum, _mm512_sub_epi32(sum, self.splat(self.0.modulus)))
        }
    }

    #[inline(always)]
    fn sub(self, a: __m512i, b: __m512i) -> __m512i {
        // SAFETY: as for `difference`.
        unsafe {
            let difference = _mm512_sub_epi32(a, b);
            _mm512_min_epu32(difference, _mm512_add_epi32(difference, self.splat(self.0.modulus)))
        }
    }

    #[inline(always)]
    fn mul(self, a: __m512i, b: __m512i) -> __m512i {
        // SAFETY: as for `difference`.
        unsafe {
            let a_odd = _mm512_shuffle_epi32::<0b11_11_01_01>(a);
            let b_odd = _mm512_shuffle_epi32::<0b11_11_01_01>(b);
            let products = [_mm512_mul_epu32(a, b), _mm512_mul_epu32(a_odd, b_odd)];
            let inverse = self.splat(self.0.inverse);
            self.reduced(products, products.map(|product| _mm512_mul_epu32(product, inverse)))
        }
    }

    #[inline(always)]
    fn mul_difference(self, u: __m512i, v: __m512i, w: &Shoup<u32>) -> __m512i {
        // SAFETY: as for `difference`.
        unsafe {
            // Between −p and p: as a signed number it needs no more.
            self.mul_factor(_mm512_sub_epi32(u, v), w)
        }
    }

    /// For a signed factor too.
    #[inline(always)]
    fn mul_factor(self, even: __m512i, w: &Shoup<u32>) -> __m512i {
        // SAFETY: as for `difference`.
        unsafe {
            let odd = _mm512_shuffle_epi32::<0b11_11_01_01>(even);
            let (factor, more) = (self.splat(w.factor), self.splat(w.more));
            let products = [_mm512_mul_epi32(even, factor), _mm512_mul_epi32(odd, factor)];
            self.reduced(products, [_mm512_mul_epu32(even, more), _mm512_mul_epu32(odd, more)])
        }
    }

    signed_powers!();

    const HALVES: bool = true;

    #[inline(always)]
    fn multiple(self, factor: u32) -> Multiple<u32> {
        self.0.multiple(factor)
    }

    #[inline(always)]
    fn add_halved(self, a: __m512i, x: __m512i, halving: &Halving) -> __m512i {
        let Halving { shift, mask, part, is_negative } = *halving;
        // SAFETY: as for `difference`.
        unsafe {
            let mask = self.splat(mask);
            let y = _mm512_add_epi32(x, mask);
            let high = _mm512_srlv_epi32(y, self.splat(shift));
            let quotient = _mm512_add_epi32(high, _mm512_mullo_epi32(_mm512_andnot_si512(y, mask), self.splat(part)));
            if is_negative { self.sub(a, quotient) } else { self.add(a, quotient) }
        }
    }

    #[inline(always)]
    fn exchange<const BIT: usize>(self, a: __m512i, b: __m512i) -> [__m512i; 2] {
        const fn places(bit: usize) -> [[u32; 16]; 2] {
            let places = exchanged::<16>(bit);
            let mut words = [[0; 16]; 2];
            let mut i = 0;
            while i < 32 {
                words[i / 16][i % 16] = places[i / 16][i % 16] as u32;
                i += 1;
            }
            words
        }
        let [first, second] = const { places(BIT) };
        // SAFETY: as for `difference`; the places are sixteen words.
        unsafe {
            let [first, second] = [self.load(first.as_ptr()), self.load(second.as_ptr())];
            [_mm512_permutex2var_epi32(a, first, b), _mm512_permutex2var_epi32(a, second, b)]
        }
    }
}

/// Eight elements of the field of Goldilocks, with products of 32-bit halves.
#[derive(Clone, Copy, Debug)]
pub(super) struct Word64x8 {
    /// 1, which compilers must not know: they would make two instructions of a subtraction of 1 in some lanes.
    one: u64,
    /// 2^32 − 1, likewise: of a product by it they would make three.
    epsilon: u64,
}

impl Word64x8 {
    /// # Safety
    /// The processor has AVX-512 F.
    #[inline(always)]
    pub(super) unsafe fn new() -> Self {
        Self { one: hint::black_box(1), epsilon: hint::black_box(u32::MAX.into()) }
    }

    /// The low half of a word in all lanes, and the high one, each for the low halves of lanes. They come from memory:
    /// words in registers would take instructions of their own to shift and spread.
    #[inline(always)]
    fn halves(self, word: &u64) -> [__m512i; 2] {
        let halves: &[u32; 2] = bytemuck::cast_ref(word);
        // SAFETY: as for `add_high`.
        unsafe { [_mm512_set1_epi32(halves[0] as i32), _mm512_set1_epi32(halves[1] as i32)] }
    }

    /// a + h · (2^32 − 1) for any word a and the low half h of another.
    #[inline(always)]
    fn add_high(self, a: __m512i, half: __m512i) -> __m512i {
        // SAFETY: the processor has the instructions, or there were no `self`. What is subtracted is above 0 and at
        // most p, so that the difference is below p where a is not below it, and p more than that otherwise.
        unsafe {
            let multiple = _mm512_mul_epu32(half, self.splat(self.epsilon));
            self.sub(a, _mm512_sub_epi64(self.splat(GOLDILOCKS), multiple))
        }
    }

    /// x · 2^`UP`, below 2^32, `REST` = 64 − `UP`: 2^64 = 2^32 − 1.
    #[inline(always)]
    fn up<const UP: u32, const REST: u32>(self, x: __m512i) -> __m512i {
        // SAFETY: as for `add_high`.
        unsafe { self.add_high(_mm512_slli_epi64::<UP>(x), _mm512_srli_epi64::<REST>(x)) }
    }

    /// x · 2^`UP`, between 2^32 and 2^64, `REST` = 64 − `UP` and `TOP` = 96 − `UP`: 2^96 = −1.
    #[inline(always)]
    fn up_far<const UP: u32, const REST: u32, const TOP: u32>(self, x: __m512i) -> __m512i {
        // SAFETY: as for `add_high`.
        unsafe { self.sub(self.up::<UP, REST>(x), _mm512_srli_epi64::<TOP>(x)) }
    }

    /// x / 2^`DOWN`, for x at most 2^32 and `REST` = 64 − `DOWN`. With m the `DOWN` low bits of x, it is (x − m · p) /
    /// 2^`DOWN`.
    #[inline(always)]
    fn down<const DOWN: u32, const REST: u32>(self, x: __m512i) -> __m512i {
        // SAFETY: as for `add_high`.
        unsafe {
            let low = _mm512_slli_epi64::<REST>(x);
            self.sub(_mm512_srli_epi64::<DOWN>(x), _mm512_sub_epi64(low, _mm512_srli_epi64::<32>(low)))
        }
    }
}

impl WordField for Word64x8 {
    type Word = u64;
    type Lanes = __m512i;

    const LANES: usize = 8;
    const LOG_RADIX: usize = 4;

    apart!();

    #[inline(always)]
    fn mul_word(self, a: u64, b: u64) -> u64 {
        Word64.mul(a, b)
    }

    #[inline(always)]
    fn shoup(self, factor: u64) -> Shoup<u64> {
        Word64.shoup(factor)
    }

    #[inline(always)]
    unsafe fn load(self, from: *const u64) -> __m512i {
        // SAFETY: as the caller vouches; the processor has the instructions, or there were no `self`.
        unsafe { _mm512_loadu_si512(from.cast()) }
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut u64, x: __m512i) {
        // SAFETY: as the caller vouches; and as above.
        unsafe { _mm512_storeu_si512(to.cast(), x) }
    }

    #[inline(always)]
    unsafe fn stream(self, to: *mut u64, x: __m512i) {
        // SAFETY: as the caller vouches; and as above. `fence` is there for the order of stores.
        unsafe { _mm512_stream_si512(to.cast(), x) }
    }

    #[inline(always)]
    fn fence(self) {
        // SAFETY: all processors with AVX-512 have SSE.
        unsafe { _mm_sfence() }
    }

    #[inline(always)]
    fn splat(self, word: u64) -> __m512i {
        // SAFETY: as for `add_high`.
        unsafe { _mm512_set1_epi64(word as i64) }
    }

    #[inline(always)]
    fn add(self, a: __m512i, b: __m512i) -> __m512i {
        // SAFETY: as for `add_high`.
        unsafe { self.sub(a, _mm512_sub_epi64(self.splat(GOLDILOCKS), b)) }
    }

    #[inline(always)]
    fn sub(self, a: __m512i, b: __m512i) -> __m512i {
        // SAFETY: as for `add_high`.
        unsafe {
            let difference = _mm512_sub_epi64(a, b);
            let borrow = _mm512_cmplt_epu64_mask(a, b);
            _mm512_mask_add_epi64(difference, borrow, difference, self.splat(GOLDILOCKS))
        }
    }

    #[inline(always)]
    fn add_unreduced(self, a: __m512i, b: __m512i) -> __m512i {
        // SAFETY: as for `add_high`.
        unsafe {
            let sum = _mm512_add_epi64(a, b);
            let carry = _mm512_cmplt_epu64_mask(sum, a);
            _mm512_mask_add_epi64(sum, carry, sum, self.splat(self.epsilon))
        }
    }

    /// As [`Word64::mul`].
    #[inline(always)]
    fn mul(self, a: __m512i, b: __m512i) -> __m512i {
        // SAFETY: as for `add_high`.
        unsafe {
            let mask = _mm512_set1_epi64(i64::from(u32::MAX));
            let [a_high, b_high] = [a, b].map(|x| _mm512_srli_epi64::<32>(x));
            let low = _mm512_mul_epu32(a, b);
            let first = _mm512_add_epi64(_mm512_mul_epu32(a_high, b), _mm512_srli_epi64::<32>(low));
            let second = _mm512_add_epi64(_mm512_mul_epu32(a, b_high), _mm512_and_si512(first, mask));
            let high = _mm512_add_epi64(_mm512_mul_epu32(a_high, b_high), _mm512_srli_epi64::<32>(first));
            let high = _mm512_add_epi64(high, _mm512_srli_epi64::<32>(second));
            // The low half of `second` behind that of `low`.
            let low = _mm512_mask_shuffle_epi32::<0b10_10_00_00>(low, 0xaaaa, second);

            let quotient = _mm512_add_epi64(low, _mm512_slli_epi64::<32>(low));
            let borrow = _mm512_cmplt_epu64_mask(quotient, low);
            let multiple = _mm512_sub_epi64(quotient, _mm512_srli_epi64::<32>(quotient));
            let multiple = _mm512_mask_sub_epi64(multiple, borrow, multiple, self.splat(self.one));
            self.sub(high, multiple)
        }
    }

    const SHIFT_ROOT: Option<u64> = Some(GOLDILOCKS_SHIFT_ROOT);

    #[inline(always)]
    fn shift_difference<const SHIFTS: usize>(self, u: __m512i, v: __m512i) -> __m512i {
        match SHIFTS {
            0 => self.sub(u, v),
            1 => self.up::<12, 52>(self.sub(u, v)),
            2 => self.up::<24, 40>(self.sub(u, v)),
            3 => self.up_far::<36, 28, 60>(self.sub(u, v)),
            4 => self.up_far::<48, 16, 48>(self.sub(u, v)),
            5 => self.up_far::<60, 4, 36>(self.sub(u, v)),
            // 2^96 = −1.
            6 => self.down::<24, 40>(self.sub(v, u)),
            _ => self.down::<12, 52>(self.sub(v, u)),
        }
    }

    /// With a = a0 + a1 · 2^32, a0 · w / 2^32 + a1 · w is 2^32 times the product. That is one step of Montgomery's
    /// reduction, by 32 bits, in place of two.
    #[inline(always)]
    fn mul_factor(self, a: __m512i, w: &Shoup<u64>) -> __m512i {
        // SAFETY: as for `add_high`.
        unsafe {
            let epsilon = self.splat(self.epsilon);
            let ([w_low, w_high], [more_low, more_high]) = (self.halves(&w.factor), self.halves(&w.more));
            let a_high = _mm512_srli_epi64::<32>(a);
            let low = _mm512_mul_epu32(a, more_low);
            let sum = _mm512_add_epi64(_mm512_mul_epu32(a_high, w_low), _mm512_and_si512(low, epsilon));
            // At most (2^32 − 1)(2^32 − 2) + 2^33 − 4, since `more` with a high half of 2^32 − 1 has a low half of 0:
            // below p.
            let high = _mm512_add_epi64(_mm512_srli_epi64::<32>(low), _mm512_srli_epi64::<32>(sum));
            let high = _mm512_add_epi64(_mm512_mul_epu32(a, more_high), high);
            // The multiple of p that takes the low half of the sum away, less the other high product, both below p.
            let multiple = _mm512_mul_epu32(sum, epsilon);
            self.sub(high, self.sub(multiple, _mm512_mul_epu32(a_high, w_high)))
        }
    }

    #[inline(always)]
    fn mul_difference(self, u: __m512i, v: __m512i, w: &Shoup<u64>) -> __m512i {
        self.mul_factor(self.sub(u, v), w)
    }

    #[inline(always)]
    fn exchange<const BIT: usize>(self, a: __m512i, b: __m512i) -> [__m512i; 2] {
        const fn places(bit: usize) -> [[u64; 8]; 2] {
            let places = exchanged::<8>(bit % 3);
            let mut words = [[0; 8]; 2];
            let mut i = 0;
            while i < 16 {
                words[i / 8][i % 8] = places[i / 8][i % 8] as u64;
                i += 1;
            }
            words
        }
        let [first, second] = const { places(BIT) };
        // SAFETY: as for `add_high`; the places are eight words.
        unsafe {
            let [first, second] = [self.load(first.as_ptr()), self.load(second.as_ptr())];
            [_mm512_permutex2var_epi64(a, first, b), _mm512_permutex2var_epi64(a, second, b)]
        }
    }
}
