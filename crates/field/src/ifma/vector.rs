//! Operations on vectors of elements in lanes.

#[cfg(target_arch = "x86_64")]
pub(super) mod chain;
#[cfg(target_arch = "x86_64")]
pub(super) mod combine;
#[cfg(target_arch = "x86_64")]
pub(super) mod inner;
#[cfg(target_arch = "x86_64")]
pub(super) mod inverse;
#[cfg(target_arch = "x86_64")]
pub(super) mod products;

use evariste_backend::author::Wiped;
use rayon::prelude::*;

use super::Montgomery52;

/// Elements that a thread takes at a time.
const GRAIN: usize = 1 << 10;

/// The elements of a step, two in each of eight lanes: the length of a run is a multiple of this.
pub const STEP: usize = 16;

/// Elements whose chains of products a thread does at a time.
const CHAIN_GRAIN: usize = 4 * STEP;

/// Elements that share an inversion. Their products take longer than the inversion, and stay in a level 2 cache. A
/// thread takes at least this many of few elements.
const INVERSE_GRAIN: usize = 1 << 12;
const MIN_INVERSE_GRAIN: usize = 1 << 8;

/// The second factor of products.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Factor<'a> {
    /// One for each.
    Each(&'a [u32]),
    /// The same for all.
    One(&'a [u32]),
    /// Each one itself.
    Itself,
}

/// Says what [`Montgomery52::combine`] makes of two elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Combination {
    /// Adds them.
    Sum,
    /// Subtracts the second from the first.
    Difference,
    /// Multiplies them.
    Product,
}

impl<'a> Factor<'a> {
    /// Those of a run.
    fn run(self, start: usize, limbs: usize) -> Self {
        match self {
            Factor::Each(b) => Factor::Each(&b[start..start + limbs]),
            Factor::One(_) | Factor::Itself => self,
        }
    }
}

impl Montgomery52 {
    /// `out[i] = a[i] · b[i]`, on all cores. All have the same length.
    pub(crate) fn mul(&self, a: &[u32], b: Factor<'_>, out: &mut [u32]) {
        let grain = GRAIN * self.limbs;
        assert_eq!(a.len(), out.len());
        out.par_chunks_mut(grain).zip(a.par_chunks(grain)).enumerate().for_each(|(i, (out, a))| {
            let b = b.run(i * grain, a.len());
            // SAFETY: both have the limbs of this number of elements.
            unsafe { self.products(a.as_ptr(), b, out.as_mut_ptr(), out.len() / self.limbs) };
        });
    }

    /// `a[i] = a[i] · b[i]`, on all cores. Both have the same length.
    pub(crate) fn mul_assign(&self, a: &mut [u32], b: Factor<'_>) {
        let grain = GRAIN * self.limbs;
        a.par_chunks_mut(grain).enumerate().for_each(|(i, a)| {
            let b = b.run(i * grain, a.len());
            let (place, len) = (a.as_mut_ptr(), a.len() / self.limbs);
            // SAFETY: `a` has the limbs of `len` elements.
            unsafe { self.products(place, b, place, len) };
        });
    }

    /// # Safety
    /// `a` and `out` are the same or apart, and there are `len` elements at both.
    unsafe fn products(&self, a: *const u32, b: Factor<'_>, out: *mut u32, len: usize) {
        let b = match b {
            Factor::Each(b) => {
                assert_eq!(b.len(), len * self.limbs);
                (b.as_ptr(), false)
            }
            Factor::One(b) => {
                assert_eq!(b.len(), self.limbs);
                (b.as_ptr(), true)
            }
            Factor::Itself => (a, false),
        };
        #[cfg(target_arch = "x86_64")]
        self.jobs.products(self, products::Products { a, b, out, len });
        #[cfg(not(target_arch = "x86_64"))]
        unreachable!("no field is made for {len} products of {a:?} and {b:?} to {out:?}");
    }

    /// Raises each element to a power, `x[i] = x[i]^(times + 1)`, on all cores, by `times` multiplications one after
    /// the other.
    pub fn chain(&self, x: &mut [u32], times: u32) {
        x.par_chunks_mut(CHAIN_GRAIN * self.limbs).for_each(|x| {
            let (x, len) = (x.as_mut_ptr(), x.len() / self.limbs);
            #[cfg(target_arch = "x86_64")]
            self.jobs.chain(self, chain::Chain { x, len, times });
            #[cfg(not(target_arch = "x86_64"))]
            unreachable!("no field is made for {times} products of {len} elements at {x:?}");
        });
    }

    /// Combines two runs on one core. For each i below `len`, `values[out + i]` becomes the sum, the difference or the
    /// product of `values[a + i]` and `values[b + i]`. Indices count elements. Runs may be the same, but overlap in no
    /// other way.
    ///
    /// # Panics
    /// If a run is not within the values, or overlaps another one in part.
    pub fn combine(&self, how: Combination, values: &mut [u32], [out, a, b]: [usize; 3], len: usize) {
        let count = values.len() / self.limbs;
        let within = |start: usize| start.checked_add(len).is_some_and(|end| end <= count);
        let apart = |x: usize, y: usize| x == y || x.abs_diff(y) >= len;
        assert!(within(out) && within(a) && within(b) && apart(out, a) && apart(out, b), "runs of the values");
        let start = values.as_mut_ptr();
        let [out, a, b] = [out, a, b].map(|run| start.wrapping_add(run * self.limbs));
        #[cfg(target_arch = "x86_64")]
        match how {
            Combination::Product => self.jobs.products(self, products::Products { a, b: (b, false), out, len }),
            Combination::Sum | Combination::Difference => {
                self.jobs.combine(self, combine::Combine { how, a, b, out, len })
            }
        }
        #[cfg(not(target_arch = "x86_64"))]
        unreachable!("no field is made for {how:?} of {len} elements at {a:?} and {b:?} to {out:?}");
    }

    /// Elements whose sum is that of `a[i] · b[i]`, on one core. Both have the same length.
    pub(crate) fn inner_product(&self, a: &[u32], b: &[u32]) -> Wiped<u32> {
        assert_eq!(a.len(), b.len());
        let (a, b, len) = (a.as_ptr(), b.as_ptr(), a.len() / self.limbs);
        #[cfg(target_arch = "x86_64")]
        return self.jobs.inner_product(self, inner::InnerProduct { a, b, len });
        #[cfg(not(target_arch = "x86_64"))]
        unreachable!("no field is made for {len} products of {a:?} and {b:?}");
    }

    /// `out[i] = 1 / a[i]`, and 0 where that is 0, on all cores. Both have the same length. `one` is the element, and
    /// `invert` inverts elements that are not 0.
    pub(crate) fn inverse(&self, a: &[u32], out: &mut [u32], one: &[u32], invert: &(dyn Fn(&mut [u32]) + Sync)) {
        assert_eq!(a.len(), out.len());
        let each = (a.len() / self.limbs).div_ceil(rayon::current_num_threads());
        let grain = each.next_multiple_of(STEP).clamp(MIN_INVERSE_GRAIN, INVERSE_GRAIN) * self.limbs;
        out.par_chunks_mut(grain).zip(a.par_chunks(grain)).for_each(|(out, a)| {
            let step = STEP * self.limbs;
            if a.len().is_multiple_of(step) {
                self.inverse_run(a, out, one, invert);
            } else {
                let mut whole = Wiped::from(vec![0; a.len().next_multiple_of(step)]);
                whole[..a.len()].copy_from_slice(a);
                let mut inverses = Wiped::from(vec![0; whole.len()]);
                self.inverse_run(&whole, &mut inverses, one, invert);
                out.copy_from_slice(&inverses[..out.len()]);
            }
        });
    }

    /// Inverts a multiple of [`STEP`] elements, on one core; zero maps to zero. `one` is 1 in device form, and `invert`
    /// inverts elements in place.
    ///
    /// # Panics
    /// If the lengths do not fit each other.
    pub fn inverse_run(&self, a: &[u32], out: &mut [u32], one: &[u32], invert: &(dyn Fn(&mut [u32]) + Sync)) {
        assert_eq!((a.len(), one.len()), (out.len(), self.limbs));
        let (a, out, steps) = (a.as_ptr(), out.as_mut_ptr(), a.len() / (STEP * self.limbs));
        #[cfg(target_arch = "x86_64")]
        self.jobs.inverse(self, inverse::Inverse { a, out, steps, one, invert });
        #[cfg(not(target_arch = "x86_64"))]
        unreachable!("no field is made for {steps} steps from {a:?} to {out:?} by {:?}", std::ptr::from_ref(invert));
    }
}
