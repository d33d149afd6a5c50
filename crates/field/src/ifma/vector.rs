//! Operations on vectors of elements in lanes.

#[cfg(target_arch = "x86_64")]
mod products;

use rayon::prelude::*;

use super::Field;

/// Elements that a thread takes at a time.
const GRAIN: usize = 1 << 10;

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

impl<'a> Factor<'a> {
    /// Those of a run.
    fn run(self, start: usize, limbs: usize) -> Self {
        match self {
            Factor::Each(b) => Factor::Each(&b[start..start + limbs]),
            Factor::One(_) | Factor::Itself => self,
        }
    }
}

impl Field {
    /// `out[i] = a[i] · b[i]`, on all cores. All have the same length.
    pub(crate) fn mul(&self, a: &[u32], b: Factor<'_>, out: &mut [u32]) {
        let grain = GRAIN * self.limbs;
        assert_eq!(a.len(), out.len());
        out.par_chunks_mut(grain).zip(a.par_chunks(grain)).enumerate().for_each(|(i, (out, a))| {
            let b = b.run(i * grain, a.len());
            // SAFETY: both have the limbs of as many elements.
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
        self.run(products::Products { a, b, out, len });
        #[cfg(not(target_arch = "x86_64"))]
        unreachable!("no field is made for {len} products of {a:?} and {b:?} to {out:?}");
    }
}
