use evariste_backend::author::Wiped;

use super::super::{COLUMNS, Eight, Job, Lanes, MAX_LIMBS, Montgomery52};

/// Products that are summed before the sum is reduced: the sum, divided by R, stays below 13p, and with what was summed
/// before below 15p.
const RUN: usize = 12;

/// Σ a\[i\] · b\[i\] over `len` elements at each.
pub(in crate::ifma) struct InnerProduct {
    pub(super) a: *const u32,
    pub(super) b: *const u32,
    pub(super) len: usize,
}

impl Job for InnerProduct {
    /// Eight sums, one after the other, which the whole is the sum of.
    type Output = Wiped<u32>;

    unsafe fn run<const LIMBS: usize, const L: usize>(self, field: &Montgomery52) -> Wiped<u32> {
        // SAFETY: as the caller vouches.
        unsafe { inner_product::<LIMBS, L>(field, &self) }
    }
}

/// # Safety
/// As for [`Job::run`].
#[target_feature(enable = "avx512f,avx512dq,avx512ifma,avx512vbmi2")]
unsafe fn inner_product<const LIMBS: usize, const L: usize>(field: &Montgomery52, job: &InnerProduct) -> Wiped<u32> {
    let lanes = Lanes::<LIMBS, L>::new(field);
    let zero: Eight<L> = lanes.all(&[0; L]);
    let mut sum = zero;
    let mut columns = [zero[0]; COLUMNS];
    let mut waiting = 0;
    let vectors = job.len / 8;
    let mut last = [[0; 8 * MAX_LIMBS]; 2];
    for vector in 0..job.len.div_ceil(8) {
        let (mut a, mut b) = (job.a.wrapping_add(8 * LIMBS * vector), job.b.wrapping_add(8 * LIMBS * vector));
        if vector == vectors {
            let left = job.len % 8 * LIMBS;
            // SAFETY: the remaining elements, fewer than eight.
            unsafe {
                last[0].as_mut_ptr().copy_from_nonoverlapping(a, left);
                last[1].as_mut_ptr().copy_from_nonoverlapping(b, left);
            }
            (a, b) = (last[0].as_ptr(), last[1].as_ptr());
        }
        let places = [a, b].map(|first| Lanes::<LIMBS, L>::in_a_row(first.cast_mut()));
        // SAFETY: eight elements.
        let (a, b) = unsafe { (lanes.load(&places[0]), lanes.load_factor(&places[1])) };
        lanes.accumulate(&mut columns, &a, &b);
        waiting += 1;
        if waiting == RUN {
            sum = lanes.reduce(&lanes.normalise(&lanes.add(&sum, &lanes.divided(&columns))));
            (columns, waiting) = ([zero[0]; COLUMNS], 0);
        }
    }
    sum = lanes.reduce(&lanes.normalise(&lanes.add(&sum, &lanes.divided(&columns))));
    let mut out = Wiped::from(vec![0; 8 * LIMBS]);
    // SAFETY: it has eight elements.
    unsafe { lanes.store(&lanes.canonical(&sum), &Lanes::<LIMBS, L>::in_a_row(out.as_mut_ptr())) };
    out
}
