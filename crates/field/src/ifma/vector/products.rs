use super::super::{Eight, Job, Lanes, MAX_LIMBS, Montgomery52, Places};
use super::STEP;

/// `out[i] = a[i] · b[i]`, or with one b for all. There are `len` elements at `a`, `b` and `out`; `out` is each of the
/// others, or apart from it.
pub(in crate::ifma) struct Products {
    pub(super) a: *const u32,
    pub(super) b: (*const u32, bool),
    pub(super) out: *mut u32,
    pub(super) len: usize,
}

impl Job for Products {
    type Output = ();

    unsafe fn run<const LIMBS: usize, const L: usize>(self, field: &Montgomery52) {
        let Self { a, b: (b, same), out, len } = self;
        let steps = len / STEP;
        let (done, left) = (steps * STEP * LIMBS, len % STEP);
        // SAFETY: steps cover the elements but for the last few, which are copied to and from whole steps of their own.
        unsafe {
            products::<LIMBS, L>(field, a, (b, same), out, steps);
            if left > 0 {
                let mut last = [[0; STEP * MAX_LIMBS]; 2];
                last[0].as_mut_ptr().copy_from_nonoverlapping(a.add(done), left * LIMBS);
                let b = match same {
                    true => b,
                    false => {
                        last[1].as_mut_ptr().copy_from_nonoverlapping(b.add(done), left * LIMBS);
                        last[1].as_ptr()
                    }
                };
                let a = last[0].as_mut_ptr();
                products::<LIMBS, L>(field, a, (b, same), a, 1);
                out.add(done).copy_from_nonoverlapping(a, left * LIMBS);
            }
        }
    }
}

/// # Safety
/// The processor has the instructions, and the field has these limbs. There are `steps` times [`STEP`] elements at `a`
/// and at `out`. So there are at `b`, unless it is one factor for all.
#[target_feature(enable = "avx512f,avx512dq,avx512ifma,avx512vbmi2")]
unsafe fn products<const LIMBS: usize, const L: usize>(
    field: &Montgomery52,
    a: *const u32,
    (b, same): (*const u32, bool),
    out: *mut u32,
    steps: usize,
) {
    let lanes = Lanes::<LIMBS, L>::new(field);
    let at = |start: *const u32, element: usize| -> Places {
        Lanes::<LIMBS, L>::in_a_row(start.wrapping_add(element * LIMBS).cast_mut())
    };
    let store = |products: &[Eight<L>; 2], step: usize| {
        for (k, product) in products.iter().enumerate() {
            // SAFETY: eight elements of this step.
            unsafe { lanes.store(&lanes.canonical(product), &at(out, STEP * step + 8 * k)) };
        }
    };
    // SAFETY: the elements of this step, or the one for all.
    unsafe {
        if same {
            let factor = lanes.load_factor(&[b.cast_mut(); 8]);
            for step in 0..steps {
                let [x, y] = [lanes.load(&at(a, STEP * step)), lanes.load(&at(a, STEP * step + 8))];
                store(&lanes.mul2([&x, &y], [&factor; 2]), step);
            }
        } else {
            for step in 0..steps {
                let (first, second) = (STEP * step, STEP * step + 8);
                let [x, y] = [lanes.load(&at(a, first)), lanes.load(&at(a, second))];
                let [u, v] = [lanes.load_factor(&at(b, first)), lanes.load_factor(&at(b, second))];
                store(&lanes.mul2([&x, &y], [&u, &v]), step);
            }
        }
    }
}
