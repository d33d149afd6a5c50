use super::super::{Eight, Job, Lanes, MAX_LIMBS, Montgomery52};
use super::Combination;

/// `out[i] = a[i] + b[i]`, or the difference. There are `len` elements at `a`, `b` and `out`; `out` is each of the
/// others, or apart from it.
pub(in crate::ifma) struct Combine {
    pub(super) how: Combination,
    pub(super) a: *const u32,
    pub(super) b: *const u32,
    pub(super) out: *mut u32,
    pub(super) len: usize,
}

impl Job for Combine {
    type Output = ();

    unsafe fn run<const LIMBS: usize, const L: usize>(self, field: &Montgomery52) {
        // SAFETY: as the caller vouches.
        unsafe { combine::<LIMBS, L>(field, &self) };
    }
}

/// # Safety
/// As for [`Job::run`].
#[target_feature(enable = "avx512f,avx512dq,avx512ifma,avx512vbmi2")]
unsafe fn combine<const LIMBS: usize, const L: usize>(field: &Montgomery52, job: &Combine) {
    let lanes = Lanes::<LIMBS, L>::new(field);
    let modulus = lanes.multiple(1);
    let subtract = job.how == Combination::Difference;
    // SAFETY: eight elements at each place.
    let eight = |a: *const u32, b: *const u32, out: *mut u32| unsafe {
        let [a, b] = [a, b].map(|first| lanes.load(&Lanes::<LIMBS, L>::in_a_row(first.cast_mut())));
        // Both are below p, and so is what is left of them or of p more.
        let sum: Eight<L> = if subtract { lanes.sub(&lanes.add(&a, &modulus), &b) } else { lanes.add(&a, &b) };
        lanes.store(&lanes.canonical(&lanes.normalise(&sum)), &Lanes::<LIMBS, L>::in_a_row(out));
    };
    let (vectors, left) = (job.len / 8, job.len % 8);
    let at = |vector: usize| 8 * LIMBS * vector;
    for vector in 0..vectors {
        eight(job.a.wrapping_add(at(vector)), job.b.wrapping_add(at(vector)), job.out.wrapping_add(at(vector)));
    }
    if left > 0 {
        let mut last = [[0; 8 * MAX_LIMBS]; 3];
        let [a, b, out] = &mut last;
        // SAFETY: the remaining elements, fewer than eight.
        unsafe {
            a.as_mut_ptr().copy_from_nonoverlapping(job.a.wrapping_add(at(vectors)), left * LIMBS);
            b.as_mut_ptr().copy_from_nonoverlapping(job.b.wrapping_add(at(vectors)), left * LIMBS);
            eight(a.as_ptr(), b.as_ptr(), out.as_mut_ptr());
            job.out.wrapping_add(at(vectors)).copy_from_nonoverlapping(out.as_ptr(), left * LIMBS);
        }
    }
}
