//! Arithmetic on eight elements at once.

#![allow(clippy::missing_safety_doc, reason = "taken for unsafe since they need instructions, but they are safe")]
#![allow(clippy::needless_range_loop, reason = "limbs of several numbers go together")]

use std::arch::x86_64::{
    __m512i, __mmask8, _mm512_add_epi64, _mm512_and_si512, _mm512_madd52hi_epu64, _mm512_madd52lo_epu64,
    _mm512_mask_blend_epi64, _mm512_movepi64_mask, _mm512_mullo_epi64, _mm512_or_si512, _mm512_set1_epi64,
    _mm512_setzero_si512, _mm512_sllv_epi64, _mm512_srai_epi64, _mm512_srli_epi64, _mm512_srlv_epi64, _mm512_sub_epi64,
    _mm512_testn_epi64_mask,
};

use super::{BITS, MASK, Montgomery52};

/// The most columns that a product has, for the most limbs that a field may have.
pub const COLUMNS: usize = 32;

/// Eight elements: the word i of each lane holds a limb of 52 bits, the lowest first. Limbs are *normalised* when all
/// but the highest are below 2^52. A factor must have the highest below 2^52, too.
pub type Eight<const L: usize> = [__m512i; L];

/// The columns of a sum of products, before carries: column i has the weight of limb i.
pub type Columns = [__m512i; COLUMNS];

/// A statement for each `I` from 0 up to a constant: unrolled whatever its size, so that arrays stay in registers.
macro_rules! each {
    ($i:ident < $n:expr, $body:block) => { each!(@ $i $n, $body, 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14) };
    (@ $i:ident $n:expr, $body:block, $($k:literal)*) => { $( if $k < $n { const $i: usize = $k; $body } )* };
}
pub(super) use each;

/// Holds the constants of a prime field of `LIMBS` 32-bit limbs in memory and `L` limbs in lanes. In lanes, an element
/// is any integer below R = 2^(52 L) that is congruent to it. R is at least 16p.
///
/// Products ([`mul2`](Self::mul2)) are Montgomery's: (a·b + q·p) / R with q < R, so below p + a·b / R. If b is a factor
/// from memory, it is below p·R / 2^(32 `LIMBS`), and the product is below p + a. If b is below p, the product is below
/// p + a/16.
#[derive(Clone, Copy, Debug)]
pub struct Lanes<const LIMBS: usize, const L: usize> {
    modulus: Eight<L>,
    /// R − p.
    complement: Eight<L>,
    unit: Eight<L>,
    n0: __m512i,
    quotient: __m512i,
    window: [__m512i; 2],
    mask: __m512i,
}

impl<const LIMBS: usize, const L: usize> Lanes<LIMBS, L> {
    /// Bits by which 2^(52 L) exceeds the R of the form in memory.
    pub(super) const SHIFT: usize = BITS * L - 32 * LIMBS;

    /// Makes the constants of a field, which must have `LIMBS` limbs.
    #[inline]
    #[target_feature(enable = "avx512f,avx512dq,avx512ifma,avx512vbmi2")]
    pub fn new(field: &Montgomery52) -> Self {
        let all = |x: u64| _mm512_set1_epi64(x as i64);
        let mut modulus = [_mm512_setzero_si512(); L];
        let mut complement = modulus;
        let mut unit = modulus;
        for j in 0..L {
            modulus[j] = all(field.modulus[j]);
            complement[j] = all(field.complement[j]);
            unit[j] = all(field.unit[j]);
        }
        let window = [all(field.window), all(BITS as u64 - field.window)];
        Self { modulus, complement, unit, n0: all(field.n0), quotient: all(field.quotient), window, mask: all(MASK) }
    }

    /// Computes two products a\[k\] · b\[k\] / R mod p for normalised factors. Two at once hide each other's latency.
    /// The results are normalised.
    #[inline]
    #[target_feature(enable = "avx512f,avx512dq,avx512ifma,avx512vbmi2")]
    pub fn mul2(&self, a: [&Eight<L>; 2], b: [&Eight<L>; 2]) -> [Eight<L>; 2] {
        let zero = _mm512_setzero_si512();
        let mut columns = [[zero; COLUMNS]; 2];
        each!(I < L, {
            let mut factor = [zero; 2];
            for k in 0..2 {
                let c = &mut columns[k];
                for j in 0..L {
                    c[I + j] = _mm512_madd52lo_epu64(c[I + j], a[k][j], b[k][I]);
                }
                factor[k] = _mm512_madd52lo_epu64(zero, c[I], self.n0);
            }
            for k in 0..2 {
                let c = &mut columns[k];
                for j in 0..L {
                    c[I + j + 1] = _mm512_madd52hi_epu64(c[I + j + 1], a[k][j], b[k][I]);
                }
                for j in 0..L {
                    c[I + j] = _mm512_madd52lo_epu64(c[I + j], factor[k], self.modulus[j]);
                }
                c[I + 1] = _mm512_add_epi64(c[I + 1], _mm512_srli_epi64::<52>(c[I]));
                for j in 0..L {
                    c[I + j + 1] = _mm512_madd52hi_epu64(c[I + j + 1], factor[k], self.modulus[j]);
                }
            }
        });
        let mut products = [[zero; L]; 2];
        for k in 0..2 {
            for j in 0..L {
                products[k][j] = columns[k][L + j];
            }
            products[k] = self.normalise(&products[k]);
        }
        products
    }

    /// Adds the columns of a · b, for normalised factors. Columns take 2^12 / 2 L products.
    #[inline]
    #[target_feature(enable = "avx512f,avx512dq,avx512ifma,avx512vbmi2")]
    pub fn accumulate(&self, columns: &mut Columns, a: &Eight<L>, b: &Eight<L>) {
        each!(I < L, {
            for j in 0..L {
                columns[I + j] = _mm512_madd52lo_epu64(columns[I + j], a[j], b[I]);
                columns[I + j + 1] = _mm512_madd52hi_epu64(columns[I + j + 1], a[j], b[I]);
            }
        });
    }

    /// Divides the sum of accumulated products, S, by R mod p. The result is below p + S / R, which must be below R,
    /// and normalised.
    #[inline]
    #[target_feature(enable = "avx512f,avx512dq,avx512ifma,avx512vbmi2")]
    pub fn divided(&self, columns: &Columns) -> Eight<L> {
        let mut columns = *columns;
        each!(I < L, {
            let factor = _mm512_madd52lo_epu64(_mm512_setzero_si512(), columns[I], self.n0);
            for j in 0..L {
                columns[I + j] = _mm512_madd52lo_epu64(columns[I + j], factor, self.modulus[j]);
            }
            columns[I + 1] = _mm512_add_epi64(columns[I + 1], _mm512_srli_epi64::<52>(columns[I]));
            for j in 0..L {
                columns[I + j + 1] = _mm512_madd52hi_epu64(columns[I + j + 1], factor, self.modulus[j]);
            }
        });
        let mut quotient = [_mm512_setzero_si512(); L];
        quotient.copy_from_slice(&columns[L..2 * L]);
        self.normalise(&quotient)
    }

    /// Replaces `x` by `other` in the lanes where `x` is 0, and tells these lanes. `x` is below p, or a factor from
    /// memory.
    #[inline]
    #[target_feature(enable = "avx512f,avx512dq,avx512ifma,avx512vbmi2")]
    pub fn or_if_zero(&self, x: &Eight<L>, other: &Eight<L>) -> (Eight<L>, __mmask8) {
        let bits = x.iter().fold(_mm512_setzero_si512(), |bits, limb| _mm512_or_si512(bits, *limb));
        let zero = _mm512_testn_epi64_mask(bits, bits);
        (self.blend(x, other, zero), zero)
    }

    /// Replaces `x` by `other` in the lanes of `mask`.
    #[inline]
    #[target_feature(enable = "avx512f,avx512dq,avx512ifma,avx512vbmi2")]
    pub fn blend(&self, x: &Eight<L>, other: &Eight<L>, mask: __mmask8) -> Eight<L> {
        let mut x = *x;
        for j in 0..L {
            x[j] = _mm512_mask_blend_epi64(mask, x[j], other[j]);
        }
        x
    }

    /// Takes carries and borrows of all limbs to the next ones. The highest takes what comes.
    #[inline]
    #[target_feature(enable = "avx512f,avx512dq,avx512ifma,avx512vbmi2")]
    pub fn normalise(&self, x: &Eight<L>) -> Eight<L> {
        let mut x = *x;
        for j in 0..L - 1 {
            x[j + 1] = _mm512_add_epi64(x[j + 1], _mm512_srai_epi64::<52>(x[j]));
            x[j] = _mm512_and_si512(x[j], self.mask);
        }
        x
    }

    /// Computes a + b, not normalised.
    #[inline]
    #[target_feature(enable = "avx512f,avx512dq,avx512ifma,avx512vbmi2")]
    pub fn add(&self, a: &Eight<L>, b: &Eight<L>) -> Eight<L> {
        let mut sum = *a;
        for j in 0..L {
            sum[j] = _mm512_add_epi64(sum[j], b[j]);
        }
        sum
    }

    /// Computes a − b, not normalised: limbs may be negative.
    #[inline]
    #[target_feature(enable = "avx512f,avx512dq,avx512ifma,avx512vbmi2")]
    pub fn sub(&self, a: &Eight<L>, b: &Eight<L>) -> Eight<L> {
        let mut difference = *a;
        for j in 0..L {
            difference[j] = _mm512_sub_epi64(difference[j], b[j]);
        }
        difference
    }

    /// Computes `times` · p, not normalised, for a few times.
    #[inline]
    #[target_feature(enable = "avx512f,avx512dq,avx512ifma,avx512vbmi2")]
    pub fn multiple(&self, times: u8) -> Eight<L> {
        let mut multiple = self.modulus;
        for limb in &mut multiple {
            *limb = _mm512_mullo_epi64(*limb, _mm512_set1_epi64(times.into()));
        }
        multiple
    }

    /// Computes x mod p below 2p, for a normalised x below 16p. The result is normalised.
    ///
    /// The quotient x / p is estimated by the 52 highest bits that x may have. They are multiplied by ⌊2^52 · u / p⌋, u
    /// their unit, which is at least 16. The estimate is not above x / p, and below it by less than 1 + x / 16p.
    #[inline]
    #[target_feature(enable = "avx512f,avx512dq,avx512ifma,avx512vbmi2")]
    pub fn reduce(&self, x: &Eight<L>) -> Eight<L> {
        let zero = _mm512_setzero_si512();
        let high =
            _mm512_or_si512(_mm512_srlv_epi64(x[L - 2], self.window[0]), _mm512_sllv_epi64(x[L - 1], self.window[1]));
        let q = _mm512_madd52hi_epu64(zero, high, self.quotient);
        let mut rest = *x;
        for j in 0..L {
            rest[j] = _mm512_madd52lo_epu64(rest[j], q, self.complement[j]);
        }
        for j in 1..L {
            rest[j] = _mm512_madd52hi_epu64(rest[j], q, self.complement[j - 1]);
        }
        let mut rest = self.normalise(&rest);
        rest[L - 1] = _mm512_and_si512(rest[L - 1], self.mask);
        rest
    }

    /// Computes x mod p below p, for a normalised x below 2p. The result is normalised.
    #[inline]
    #[target_feature(enable = "avx512f,avx512dq,avx512ifma,avx512vbmi2")]
    pub fn canonical(&self, x: &Eight<L>) -> Eight<L> {
        let less = self.normalise(&self.sub(x, &self.modulus));
        self.blend(&less, x, _mm512_movepi64_mask(less[L - 1]))
    }

    /// Turns eight elements of the form in memory into constants that multiply: x · R mod p. A product by one keeps the
    /// form of the other factor. The elements are normalised and below p, and so are the constants.
    #[inline]
    #[target_feature(enable = "avx512f,avx512dq,avx512ifma,avx512vbmi2")]
    pub fn constants(&self, x: &Eight<L>) -> Eight<L> {
        let [x, _] = self.mul2([x; 2], [&self.unit; 2]);
        self.canonical(&x)
    }

    /// Turns x into a factor, for a normalised x below 2^(32 `LIMBS`). The result is that of
    /// [`load_factor`](Self::load_factor) on x in memory.
    #[inline]
    #[target_feature(enable = "avx512f,avx512dq,avx512ifma,avx512vbmi2")]
    pub fn factor(&self, x: &Eight<L>) -> Eight<L> {
        let (words, bits) = (Self::SHIFT / BITS, (Self::SHIFT % BITS) as u64);
        let (up, down) = (_mm512_set1_epi64(bits as i64), _mm512_set1_epi64((BITS as u64 - bits) as i64));
        let mut shifted = [_mm512_setzero_si512(); L];
        for j in words..L {
            let high = _mm512_sllv_epi64(x[j - words], up);
            let low = if j > words { _mm512_srlv_epi64(x[j - words - 1], down) } else { _mm512_setzero_si512() };
            shifted[j] = _mm512_and_si512(_mm512_or_si512(high, low), self.mask);
        }
        shifted
    }

    /// Puts the same element, given by its limbs, into all lanes.
    #[inline]
    #[target_feature(enable = "avx512f,avx512dq,avx512ifma,avx512vbmi2")]
    pub fn all(&self, limbs: &[u64; L]) -> Eight<L> {
        let mut x = [_mm512_setzero_si512(); L];
        for j in 0..L {
            x[j] = _mm512_set1_epi64(limbs[j] as i64);
        }
        x
    }
}
