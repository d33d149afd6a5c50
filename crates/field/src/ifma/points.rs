//! Sums of affine points in lanes.

#[cfg(target_arch = "x86_64")]
pub(super) mod jobs;

use evariste_backend::author::Wiped;

use super::{Montgomery52, STEP};

impl Montgomery52 {
    /// Subtracts x-coordinates: `out[i]` is the x of `b[i]` less that of `a[i]`, for points of two coordinates each, a
    /// multiple of [`STEP`] of them. Gives the numbers of those where one of the three is 0.
    ///
    /// # Panics
    /// If the lengths do not fit each other.
    pub fn differences(&self, a: &[u32], b: &[u32], out: &mut [u32]) -> Wiped<usize> {
        assert_eq!((a.len(), b.len()), (2 * out.len(), 2 * out.len()));
        assert!(out.len().is_multiple_of(STEP * self.limbs));
        let (a, b, out, len) = (a.as_ptr(), b.as_ptr(), out.as_mut_ptr(), out.len() / self.limbs);
        #[cfg(target_arch = "x86_64")]
        return self.jobs.differences(self, jobs::Differences { a, b, out, len });
        #[cfg(not(target_arch = "x86_64"))]
        unreachable!("no field is made for {len} differences of {a:?} and {b:?} to {out:?}");
    }

    /// Adds points by the chord through both: `out[i] = a[i] + b[i]`. The points have two coordinates each, and their
    /// number is a multiple of [`STEP`]. You pass the inverses of their [`differences`](Self::differences). Without a
    /// true inverse the sum is wrong.
    ///
    /// # Panics
    /// If the lengths do not fit each other.
    pub fn chords(&self, a: &[u32], b: &[u32], inverses: &[u32], out: &mut [u32]) {
        assert_eq!((a.len(), b.len(), 2 * inverses.len()), (out.len(), out.len(), out.len()));
        assert!(inverses.len().is_multiple_of(STEP * self.limbs));
        let (a, b, out) = (a.as_ptr(), b.as_ptr(), out.as_mut_ptr());
        let (inverses, len) = (inverses.as_ptr(), inverses.len() / self.limbs);
        #[cfg(target_arch = "x86_64")]
        self.jobs.chords(self, jobs::Chords { a, b, inverses, out, len });
        #[cfg(not(target_arch = "x86_64"))]
        unreachable!("no field is made for {len} sums of {a:?} and {b:?} by {inverses:?} to {out:?}");
    }
}
