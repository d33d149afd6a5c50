use super::super::{Job, Lanes, MAX_LIMBS, Montgomery52};
use super::STEP;

/// x\[i\] = x\[i\]^(`times` + 1), by `times` multiplications one after the other, for `len` elements.
pub(in crate::ifma) struct Chain {
    pub(super) x: *mut u32,
    pub(super) len: usize,
    pub(super) times: u32,
}

impl Job for Chain {
    type Output = ();

    unsafe fn run<const LIMBS: usize, const L: usize>(self, field: &Montgomery52) {
        let Self { x, len, times } = self;
        let (steps, left) = (len / STEP, len % STEP);
        let mut last = [0; STEP * MAX_LIMBS];
        // SAFETY: steps cover the elements but for the last few, which are copied to and from a whole step of their
        // own.
        unsafe {
            chain::<LIMBS, L>(field, x, steps, times);
            let rest = x.add(steps * STEP * LIMBS);
            last.as_mut_ptr().copy_from_nonoverlapping(rest, left * LIMBS);
            chain::<LIMBS, L>(field, last.as_mut_ptr(), left.div_ceil(STEP), times);
            rest.copy_from_nonoverlapping(last.as_ptr(), left * LIMBS);
        }
    }
}

/// # Safety
/// As for [`Job::run`], and there are `steps` times [`STEP`] elements.
#[target_feature(enable = "avx512f,avx512dq,avx512ifma,avx512vbmi2")]
unsafe fn chain<const LIMBS: usize, const L: usize>(field: &Montgomery52, x: *mut u32, steps: usize, times: u32) {
    let lanes = Lanes::<LIMBS, L>::new(field);
    for step in 0..steps {
        let at = |vector: usize| Lanes::<LIMBS, L>::in_a_row(x.wrapping_add((STEP * step + 8 * vector) * LIMBS));
        // SAFETY: eight elements each.
        let start = unsafe { [lanes.load(&at(0)), lanes.load(&at(1))] };
        let factors = [lanes.constants(&start[0]), lanes.constants(&start[1])];
        let mut products = start;
        for _ in 0..times {
            products = lanes.mul2([&products[0], &products[1]], [&factors[0], &factors[1]]);
        }
        // SAFETY: as above.
        unsafe {
            lanes.store(&lanes.canonical(&products[0]), &at(0));
            lanes.store(&lanes.canonical(&products[1]), &at(1));
        }
    }
}
