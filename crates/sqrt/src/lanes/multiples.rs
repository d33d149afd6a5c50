//! Multiples of sixteen points at once, on curves with a = 0 over a prime field or a quadratic extension of it.
//!
//! Formulas of Bernstein and Lange's Explicit-Formulas Database for Jacobian coordinates with a = 0: dbl-2009-l with 4
//! x y² in place of (x + y²)² − x² − y⁴, and the mixed addition of 8 products and 3 squares. Where an addition would be
//! a doubling, or its sum infinite, they give z = 0, which stays 0 from there on.

use std::array::from_fn;

use evariste_backend::author::Wiped;
use evariste_field::ifma::{Job, Lanes, Montgomery52, STEP};

use super::{Both, difference, load, product, store};
use crate::membership::MAX_BETA;

/// A coordinate in a prime field (D = 1) or in a quadratic extension (D = 2): by its coefficients, below 2p each.
type Coordinate<const L: usize, const D: usize> = [Both<L>; D];

/// The same multiple k P of a step of points.
pub(crate) struct Multiples<'a> {
    /// The digits of k behind the highest, which is 1, from high to low.
    pub(crate) digits: &'a [bool],
    /// Of the field of coordinates over its prime field.
    pub(crate) degree: usize,
    /// Minus the square of the extension's generator, at most [`MAX_BETA`].
    pub(crate) beta: u8,
    /// 1 of the prime field in device form.
    pub(crate) one: &'a [u32],
    /// Affine points in device form.
    pub(crate) points: &'a [u32],
    /// Jacobian ones: k P, or with z = 0.
    pub(crate) multiples: &'a mut [u32],
}

impl Multiples<'_> {
    pub(crate) fn run_usual(self, field: &Montgomery52) {
        field.run_usual(self);
    }
}

impl Job for Multiples<'_> {
    type Output = ();

    unsafe fn run<const LIMBS: usize, const L: usize>(self, field: &Montgomery52) {
        // SAFETY: as the caller vouches.
        unsafe {
            match self.degree {
                1 => run::<LIMBS, L, 1>(field, self),
                _ => run::<LIMBS, L, 2>(field, self),
            }
        }
    }
}

/// Arithmetic of coordinates. Results are below 2p.
struct Coordinates<const LIMBS: usize, const L: usize> {
    lanes: Lanes<LIMBS, L>,
    beta: u8,
}

impl<const LIMBS: usize, const L: usize> Coordinates<LIMBS, L> {
    /// a + b.
    #[inline(never)]
    #[target_feature(enable = "avx512f,avx512dq,avx512ifma,avx512vbmi2")]
    fn sum(&self, a: &Both<L>, b: &Both<L>) -> Both<L> {
        from_fn(|i| self.lanes.reduce(&self.lanes.normalise(&self.lanes.add(&a[i], &b[i]))))
    }

    /// a + `times` · b, or a − `times` · b if that is `taken` from a, for at most [`MAX_BETA`] times.
    #[inline(never)]
    #[target_feature(enable = "avx512f,avx512dq,avx512ifma,avx512vbmi2")]
    fn with_multiple(&self, a: &Both<L>, b: &Both<L>, times: u8, taken: bool) -> Both<L> {
        from_fn(|i| {
            let mut x = if taken { self.lanes.add(&a[i], &self.lanes.multiple(2 * times)) } else { a[i] };
            for _ in 0..times {
                x = if taken { self.lanes.sub(&x, &b[i]) } else { self.lanes.add(&x, &b[i]) };
            }
            self.lanes.reduce(&self.lanes.normalise(&x))
        })
    }

    /// `times` · a, for 2 to 7 times.
    #[inline(never)]
    #[target_feature(enable = "avx512f,avx512dq,avx512ifma,avx512vbmi2")]
    fn times<const D: usize>(&self, times: u8, a: &Coordinate<L, D>) -> Coordinate<L, D> {
        from_fn(|c| self.with_multiple(&a[c], &a[c], times - 1, false))
    }

    #[target_feature(enable = "avx512f,avx512dq,avx512ifma,avx512vbmi2")]
    fn sub<const D: usize>(&self, a: &Coordinate<L, D>, b: &Coordinate<L, D>) -> Coordinate<L, D> {
        from_fn(|c| difference(&self.lanes, &a[c], &b[c]))
    }

    #[target_feature(enable = "avx512f,avx512dq,avx512ifma,avx512vbmi2")]
    fn mul<const D: usize>(&self, a: &Coordinate<L, D>, b: &Coordinate<L, D>) -> Coordinate<L, D> {
        let (mut r, last) = (*a, D - 1);
        r[0] = product(&self.lanes, &a[0], &b[0]);
        if last == 1 {
            let high = product(&self.lanes, &a[1], &b[1]);
            let both = product(&self.lanes, &self.sum(&a[0], &a[1]), &self.sum(&b[0], &b[1]));
            r[last] = difference(&self.lanes, &difference(&self.lanes, &both, &r[0]), &high);
            r[0] = self.with_multiple(&r[0], &high, self.beta, true);
        }
        r
    }

    #[target_feature(enable = "avx512f,avx512dq,avx512ifma,avx512vbmi2")]
    fn square<const D: usize>(&self, a: &Coordinate<L, D>) -> Coordinate<L, D> {
        let (mut r, last) = (*a, D - 1);
        if last == 0 {
            r[0] = product(&self.lanes, &a[0], &a[0]);
            return r;
        }
        // (a0 + a1)(a0 − β a1) + (β − 1) a0 a1.
        let cross = product(&self.lanes, &a[0], &a[last]);
        let factor = self.with_multiple(&a[0], &a[last], self.beta, true);
        let norm = product(&self.lanes, &self.sum(&a[0], &a[last]), &factor);
        r[0] = if self.beta > 1 { self.with_multiple(&norm, &cross, self.beta - 1, false) } else { norm };
        r[last] = self.sum(&cross, &cross);
        r
    }
}

/// # Safety
/// As for [`Job::run`].
#[target_feature(enable = "avx512f,avx512dq,avx512ifma,avx512vbmi2")]
unsafe fn run<const LIMBS: usize, const L: usize, const D: usize>(field: &Montgomery52, job: Multiples<'_>) {
    let f = &Coordinates { lanes: Lanes::<LIMBS, L>::new(field), beta: job.beta };
    let (affine, jacobian) = (2 * D * LIMBS, 3 * D * LIMBS);
    assert!(job.beta <= MAX_BETA && job.one.len() == LIMBS);
    assert!(job.points.len() == STEP * affine && job.multiples.len() == STEP * jacobian);
    // SAFETY: an element.
    let one = [unsafe { f.lanes.load(&[job.one.as_ptr().cast_mut(); 8]) }; STEP / 8];
    let at = |k: usize| -> Both<L> {
        let place = |i: usize| job.points[i * affine + k * LIMBS..][..LIMBS].as_ptr().cast_mut();
        let places = from_fn(|vector| from_fn(|lane| place(8 * vector + lane)));
        // SAFETY: an element each.
        unsafe { load(&f.lanes, &places) }
    };
    let (px, py): (Coordinate<L, D>, Coordinate<L, D>) = (from_fn(&at), from_fn(|c| at(D + c)));
    let mut unit: Coordinate<L, D> = [[f.lanes.all(&[0; L]); STEP / 8]; D];
    unit[0] = from_fn(|i| f.lanes.constants(&one[i]));
    let [mut x, mut y, mut z] = [px, py, unit];
    for digit in job.digits {
        let (a, b) = (f.square(&x), f.square(&y));
        let (s, c, e) = (f.times(4, &f.mul(&x, &b)), f.square(&b), f.times(3, &a));
        z = f.times(2, &f.mul(&y, &z));
        x = f.sub(&f.square(&e), &f.times(2, &s));
        y = f.sub(&f.mul(&e, &f.sub(&s, &x)), &f.times(2, &f.times(4, &c)));
        if *digit {
            let square = f.square(&z);
            let h = f.sub(&f.mul(&px, &square), &x);
            let r = f.sub(&f.mul(&py, &f.mul(&z, &square)), &y);
            let hh = f.square(&h);
            let (hhh, v) = (f.mul(&h, &hh), f.mul(&x, &hh));
            x = f.sub(&f.sub(&f.square(&r), &hhh), &f.times(2, &v));
            y = f.sub(&f.mul(&r, &f.sub(&v, &x)), &f.mul(&y, &hhh));
            z = f.mul(&z, &h);
        }
    }
    let mut words = Wiped::from(vec![0; STEP * LIMBS]);
    for (k, x) in x.iter().chain(&y).chain(&z).enumerate() {
        store(&f.lanes, &one, x, &mut words);
        for (to, words) in job.multiples.chunks_exact_mut(jacobian).zip(words.chunks_exact(LIMBS)) {
            to[k * LIMBS..][..LIMBS].copy_from_slice(words);
        }
    }
}
