use std::arch::x86_64::__mmask8;

use evariste_backend::author::Wiped;

use super::super::{Eight, Job, Lanes, Montgomery52, Places};
use super::STEP;

/// Chains of products side by side.
const CHAINS: usize = STEP / 8;

/// `out[i] = 1 / a[i]`, and 0 where that is 0, by Montgomery's trick along each lane. There are `steps` times [`STEP`]
/// elements at both.
pub(in crate::ifma) struct Inverse<'a> {
    pub(super) a: *const u32,
    pub(super) out: *mut u32,
    pub(super) steps: usize,
    pub(super) one: &'a [u32],
    /// Inverts [`STEP`] elements that are not 0.
    pub(super) invert: &'a (dyn Fn(&mut [u32]) + Sync),
}

impl Job for Inverse<'_> {
    type Output = ();

    unsafe fn run<const LIMBS: usize, const L: usize>(self, field: &Montgomery52) {
        // SAFETY: as the caller vouches.
        unsafe { inverse::<LIMBS, L>(field, &self) }
    }
}

/// # Safety
/// As for [`Job::run`].
#[target_feature(enable = "avx512f,avx512dq,avx512ifma,avx512vbmi2")]
unsafe fn inverse<const LIMBS: usize, const L: usize>(field: &Montgomery52, job: &Inverse<'_>) {
    let lanes = Lanes::<LIMBS, L>::new(field);
    let zero: Eight<L> = lanes.all(&[0; L]);
    let ones = [job.one.as_ptr().cast_mut(); 8];
    // SAFETY: an element.
    let (one, one_factor) = unsafe { (lanes.load(&ones), lanes.load_factor(&ones)) };
    let place = |first: *const u32, step: usize, chain: usize| -> Places {
        Lanes::<LIMBS, L>::in_a_row(first.cast_mut().wrapping_add((STEP * step + 8 * chain) * LIMBS))
    };
    let factors = |step: usize| -> [(Eight<L>, __mmask8); CHAINS] {
        // SAFETY: eight elements of the step each.
        let x = unsafe { [lanes.load_factor(&place(job.a, step, 0)), lanes.load_factor(&place(job.a, step, 1))] };
        [lanes.or_if_zero(&x[0], &one_factor), lanes.or_if_zero(&x[1], &one_factor)]
    };

    // The products of what comes before each step. They may come of secrets.
    let mut before: Wiped<[Eight<L>; CHAINS]> = Wiped::with_capacity(job.steps);
    let mut products = [one; CHAINS];
    for step in 0..job.steps {
        before.push(products);
        let [(x, _), (y, _)] = factors(step);
        products = lanes.mul2([&products[0], &products[1]], [&x, &y]);
        if !field.has_room() {
            products = [lanes.reduce(&products[0]), lanes.reduce(&products[1])];
        }
    }

    let mut all = Wiped::from(vec![0; STEP * LIMBS]);
    // SAFETY: it has the elements of a step.
    let mut inverses = unsafe {
        lanes.store(&lanes.canonical(&products[0]), &place(all.as_ptr(), 0, 0));
        lanes.store(&lanes.canonical(&products[1]), &place(all.as_ptr(), 0, 1));
        (job.invert)(&mut all);
        [lanes.load(&place(all.as_ptr(), 0, 0)), lanes.load(&place(all.as_ptr(), 0, 1))]
    };
    // As constants, so that their products by what came before have the form in memory.
    inverses = [lanes.constants(&inverses[0]), lanes.constants(&inverses[1])];
    for step in (0..job.steps).rev() {
        let factors = factors(step);
        for chain in 0..CHAINS {
            let (x, is_zero) = factors[chain];
            let inverse = &inverses[chain];
            let [out, next] = lanes.mul2([inverse; 2], [&before[step][chain], &x]);
            let out = lanes.blend(&lanes.canonical(&out), &zero, is_zero);
            // SAFETY: eight elements of the step.
            unsafe { lanes.store(&out, &place(job.out, step, chain)) };
            inverses[chain] = if field.has_room() { next } else { lanes.reduce(&next) };
        }
    }
}
