//! The way between elements in memory and lanes: a transposition of 64-bit words, and shifts to and from limbs.

use std::{
    arch::x86_64::{
        __m128i, __m256i, __m512i, _mm_loadu_si128, _mm_storeu_si128, _mm256_loadu_si256, _mm256_storeu_si256,
        _mm512_and_si512, _mm512_castsi128_si512, _mm512_castsi256_si512, _mm512_castsi512_si256,
        _mm512_cvtepi64_epi32, _mm512_cvtepu32_epi64, _mm512_extracti64x2_epi64, _mm512_extracti64x4_epi64,
        _mm512_i64gather_epi32, _mm512_i64gather_epi64, _mm512_i64scatter_epi32, _mm512_i64scatter_epi64,
        _mm512_inserti64x2, _mm512_inserti64x4, _mm512_loadu_si512, _mm512_or_si512, _mm512_permutex2var_epi64,
        _mm512_set1_epi64, _mm512_setr_epi64, _mm512_setzero_si512, _mm512_shrdv_epi64, _mm512_shuffle_i64x2,
        _mm512_sllv_epi64, _mm512_srlv_epi64, _mm512_unpackhi_epi64, _mm512_unpacklo_epi64,
    },
    ptr,
};

use super::{
    BITS, MASK,
    lanes::{Eight, Lanes, each},
};

/// Room for the 64-bit words of an element, and for what `each` counts to.
const WORDS: usize = 15;

/// Eight elements: the word i of each.
type Words = [__m512i; WORDS];

/// Eight elements in memory, by where the first limb of each lies.
pub type Places = [*mut u32; 8];

/// The word `at` of each element.
fn words(places: &Places, at: usize) -> [*mut u64; 8] {
    places.map(|place| place.wrapping_add(2 * at).cast())
}

impl<const LIMBS: usize, const L: usize> Lanes<LIMBS, L> {
    /// Words of an element. The last may be half of one.
    const WORDS: usize = LIMBS.div_ceil(2);

    /// Gives the places of eight elements one after the other.
    #[inline]
    pub fn in_a_row(first: *mut u32) -> Places {
        std::array::from_fn(|lane| first.wrapping_add(lane * LIMBS))
    }

    /// Loads eight elements, normalised.
    ///
    /// # Safety
    /// All places can be read.
    #[inline]
    #[target_feature(enable = "avx512f,avx512dq,avx512ifma,avx512vbmi2")]
    pub unsafe fn load(&self, places: &Places) -> Eight<L> {
        // SAFETY: as the caller vouches.
        let words = unsafe { load_words::<LIMBS>(places) };
        let mut x = limbs::<LIMBS, L>(&words, 0);
        for limb in &mut x {
            *limb = _mm512_and_si512(*limb, _mm512_set1_epi64(MASK as i64));
        }
        x
    }

    /// Loads eight elements times R / 2^(32 `LIMBS`): as one factor of a product, in which the other one keeps its
    /// form. Only for multiplying, where bits above the limbs do not count.
    ///
    /// # Safety
    /// All places can be read.
    #[inline]
    #[target_feature(enable = "avx512f,avx512dq,avx512ifma,avx512vbmi2")]
    pub unsafe fn load_factor(&self, places: &Places) -> Eight<L> {
        // SAFETY: as the caller vouches.
        let words = unsafe { load_words::<LIMBS>(places) };
        limbs::<LIMBS, L>(&words, Self::SHIFT)
    }

    /// Stores eight elements, normalised and below 2^(32 `LIMBS`).
    ///
    /// # Safety
    /// All places can be written.
    #[inline]
    #[target_feature(enable = "avx512f,avx512dq,avx512ifma,avx512vbmi2")]
    pub unsafe fn store(&self, x: &Eight<L>, places: &Places) {
        let mut words = [_mm512_setzero_si512(); WORDS];
        each!(I < Self::WORDS, {
            let (limb, offset) = (64 * I / BITS, 64 * I % BITS);
            let mut word = _mm512_srlv_epi64(x[limb], _mm512_set1_epi64(offset as i64));
            let mut filled = BITS - offset;
            let mut next = limb + 1;
            while filled < 64 && next < L {
                word = _mm512_or_si512(word, _mm512_sllv_epi64(x[next], _mm512_set1_epi64(filled as i64)));
                filled += BITS;
                next += 1;
            }
            words[I] = word;
        });
        // SAFETY: as the caller vouches.
        unsafe { store_words::<LIMBS>(&words, places) }
    }
}

/// Limbs of 52 bits of the elements shifted up by `shift`, with more bits above them.
#[inline]
#[target_feature(enable = "avx512f,avx512dq,avx512ifma,avx512vbmi2")]
fn limbs<const LIMBS: usize, const L: usize>(words: &Words, shift: usize) -> Eight<L> {
    let count = LIMBS.div_ceil(2);
    let mut x = [_mm512_setzero_si512(); L];
    each!(I < L, {
        x[I] = match (BITS * I).checked_sub(shift) {
            None => _mm512_sllv_epi64(words[0], _mm512_set1_epi64((shift - BITS * I) as i64)),
            Some(bit) => {
                let (word, offset) = (bit / 64, _mm512_set1_epi64((bit % 64) as i64));
                match () {
                    () if word >= count => _mm512_setzero_si512(),
                    () if bit % 64 + BITS <= 64 || word + 1 == count => _mm512_srlv_epi64(words[word], offset),
                    () => _mm512_shrdv_epi64(words[word], words[word + 1], offset),
                }
            }
        };
    });
    x
}

/// # Safety
/// All places can be read.
#[inline]
#[target_feature(enable = "avx512f,avx512dq,avx512ifma,avx512vbmi2")]
unsafe fn load_words<const LIMBS: usize>(places: &Places) -> Words {
    let mut loaded = [_mm512_setzero_si512(); WORDS];
    let mut at = 0;
    // SAFETY: reads below the `LIMBS` limbs of each place.
    unsafe {
        while at + 4 <= LIMBS / 2 {
            let place = words(places, at);
            let half = |lane: usize| _mm256_loadu_si256(place[lane].cast::<__m256i>());
            let two = |a, b| _mm512_inserti64x4::<1>(_mm512_castsi256_si512(half(a)), half(b));
            let [x, y, z, t] = [two(0, 2), two(1, 3), two(4, 6), two(5, 7)];
            // Words 0 and 2, and 1 and 3, of neighbouring elements; then of all.
            let (even, odd) = (_mm512_unpacklo_epi64(x, y), _mm512_unpackhi_epi64(x, y));
            let (even_high, odd_high) = (_mm512_unpacklo_epi64(z, t), _mm512_unpackhi_epi64(z, t));
            loaded[at] = _mm512_shuffle_i64x2::<0b10_00_10_00>(even, even_high);
            loaded[at + 1] = _mm512_shuffle_i64x2::<0b10_00_10_00>(odd, odd_high);
            loaded[at + 2] = _mm512_shuffle_i64x2::<0b11_01_11_01>(even, even_high);
            loaded[at + 3] = _mm512_shuffle_i64x2::<0b11_01_11_01>(odd, odd_high);
            at += 4;
        }
        while at + 2 <= LIMBS / 2 {
            let place = words(places, at);
            let quarter = |lane: usize| _mm_loadu_si128(place[lane].cast::<__m128i>());
            let four = |first: usize| {
                let x = _mm512_castsi128_si512(quarter(first));
                let x = _mm512_inserti64x2::<1>(x, quarter(first + 2));
                let x = _mm512_inserti64x2::<2>(x, quarter(first + 4));
                _mm512_inserti64x2::<3>(x, quarter(first + 6))
            };
            let (even, odd) = (four(0), four(1));
            loaded[at] = _mm512_unpacklo_epi64(even, odd);
            loaded[at + 1] = _mm512_unpackhi_epi64(even, odd);
            at += 2;
        }
        if at < LIMBS / 2 {
            loaded[at] = _mm512_i64gather_epi64::<1>(addresses(&words(places, at)), ptr::null());
            at += 1;
        }
        if LIMBS % 2 == 1 {
            let low = _mm512_i64gather_epi32::<1>(addresses(&words(places, at)), ptr::null());
            loaded[at] = _mm512_cvtepu32_epi64(low);
        }
    }
    loaded
}

/// # Safety
/// All places can be written.
#[inline]
#[target_feature(enable = "avx512f,avx512dq,avx512ifma,avx512vbmi2")]
unsafe fn store_words<const LIMBS: usize>(x: &Words, places: &Places) {
    let mut at = 0;
    // SAFETY: writes below the `LIMBS` limbs of each place.
    unsafe {
        while at + 4 <= LIMBS / 2 {
            let place = words(places, at);
            let low = _mm512_setr_epi64(0, 1, 8, 9, 2, 3, 10, 11);
            let high = _mm512_setr_epi64(4, 5, 12, 13, 6, 7, 14, 15);
            let two = |first: usize, a, b, order| {
                let both = _mm512_permutex2var_epi64(a, order, b);
                _mm256_storeu_si256(place[first].cast(), _mm512_castsi512_si256(both));
                _mm256_storeu_si256(place[first + 2].cast(), _mm512_extracti64x4_epi64::<1>(both));
            };
            let (a, b) = (_mm512_unpacklo_epi64(x[at], x[at + 1]), _mm512_unpacklo_epi64(x[at + 2], x[at + 3]));
            two(0, a, b, low);
            two(4, a, b, high);
            let (a, b) = (_mm512_unpackhi_epi64(x[at], x[at + 1]), _mm512_unpackhi_epi64(x[at + 2], x[at + 3]));
            two(1, a, b, low);
            two(5, a, b, high);
            at += 4;
        }
        while at + 2 <= LIMBS / 2 {
            let place = words(places, at);
            let four = |first: usize, x| {
                _mm_storeu_si128(place[first].cast(), _mm512_extracti64x2_epi64::<0>(x));
                _mm_storeu_si128(place[first + 2].cast(), _mm512_extracti64x2_epi64::<1>(x));
                _mm_storeu_si128(place[first + 4].cast(), _mm512_extracti64x2_epi64::<2>(x));
                _mm_storeu_si128(place[first + 6].cast(), _mm512_extracti64x2_epi64::<3>(x));
            };
            four(0, _mm512_unpacklo_epi64(x[at], x[at + 1]));
            four(1, _mm512_unpackhi_epi64(x[at], x[at + 1]));
            at += 2;
        }
        if at < LIMBS / 2 {
            _mm512_i64scatter_epi64::<1>(ptr::null_mut(), addresses(&words(places, at)), x[at]);
            at += 1;
        }
        if LIMBS % 2 == 1 {
            let low = _mm512_cvtepi64_epi32(x[at]);
            _mm512_i64scatter_epi32::<1>(ptr::null_mut(), addresses(&words(places, at)), low);
        }
    }
}

#[inline]
#[target_feature(enable = "avx512f,avx512dq,avx512ifma,avx512vbmi2")]
fn addresses(places: &[*mut u64; 8]) -> __m512i {
    // SAFETY: eight pointers are 64 bytes.
    unsafe { _mm512_loadu_si512(places.as_ptr().cast()) }
}
