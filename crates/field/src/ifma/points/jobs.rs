//! Additions of points in lanes.

use evariste_backend::author::Wiped;

use super::super::{Eight, Job, Lanes, Montgomery52, Places, STEP};

/// See [`Montgomery52::differences`]. There are `len` points at `a` and `b`, and `len` elements at `out`.
pub(in crate::ifma) struct Differences {
    pub(super) a: *const u32,
    pub(super) b: *const u32,
    pub(super) out: *mut u32,
    pub(super) len: usize,
}

impl Job for Differences {
    type Output = Wiped<usize>;

    unsafe fn run<const LIMBS: usize, const L: usize>(self, field: &Montgomery52) -> Wiped<usize> {
        // SAFETY: as the caller vouches.
        unsafe { differences::<LIMBS, L>(field, &self) }
    }
}

/// Coordinate `which` of eight points from number `first` on.
fn coordinates<const LIMBS: usize>(points: *const u32, first: usize, which: usize) -> Places {
    std::array::from_fn(|lane| points.wrapping_add((2 * (first + lane) + which) * LIMBS).cast_mut())
}

/// # Safety
/// As for [`Job::run`].
#[target_feature(enable = "avx512f,avx512dq,avx512ifma,avx512vbmi2")]
unsafe fn differences<const LIMBS: usize, const L: usize>(field: &Montgomery52, job: &Differences) -> Wiped<usize> {
    let lanes = Lanes::<LIMBS, L>::new(field);
    let modulus = lanes.multiple(1);
    // All that there may be, so that none are left in memory that was too small.
    let mut special = Wiped::with_capacity(job.len);
    for first in (0..job.len).step_by(8) {
        // SAFETY: eight points at each.
        let [x, y] = unsafe {
            [lanes.load(&coordinates::<LIMBS>(job.a, first, 0)), lanes.load(&coordinates::<LIMBS>(job.b, first, 0))]
        };
        let difference = lanes.canonical(&lanes.normalise(&lanes.add(&lanes.sub(&y, &x), &modulus)));
        let is_zero = |x: &Eight<L>| lanes.or_if_zero(x, x).1;
        let mask = is_zero(&x) | is_zero(&y) | is_zero(&difference);
        special.extend((0..8).filter(|lane| mask >> lane & 1 == 1).map(|lane| first + lane));
        let out = Lanes::<LIMBS, L>::in_a_row(job.out.wrapping_add(first * LIMBS));
        // SAFETY: eight elements.
        unsafe { lanes.store(&difference, &out) };
    }
    special
}

/// See [`Montgomery52::chords`]. There are `len` points at `a`, `b` and `out`, and `len` elements at `inverses`.
pub(in crate::ifma) struct Chords {
    pub(super) a: *const u32,
    pub(super) b: *const u32,
    pub(super) inverses: *const u32,
    pub(super) out: *mut u32,
    pub(super) len: usize,
}

impl Job for Chords {
    type Output = ();

    unsafe fn run<const LIMBS: usize, const L: usize>(self, field: &Montgomery52) {
        // SAFETY: as the caller vouches.
        unsafe { chords::<LIMBS, L>(field, &self) }
    }
}

/// # Safety
/// As for [`Job::run`].
#[target_feature(enable = "avx512f,avx512dq,avx512ifma,avx512vbmi2")]
unsafe fn chords<const LIMBS: usize, const L: usize>(field: &Montgomery52, job: &Chords) {
    let lanes = Lanes::<LIMBS, L>::new(field);
    let (once, twice) = (lanes.multiple(1), lanes.multiple(2));
    // a - b + p or 2p, normalised.
    let less = |a: &Eight<L>, b: &Eight<L>, more: &Eight<L>| lanes.normalise(&lanes.add(&lanes.sub(a, b), more));
    for first in (0..job.len).step_by(STEP) {
        // SAFETY: eight points at each, and eight elements.
        let (x1, y1, x2, y2, inverse) = unsafe {
            (
                load(&lanes, job.a, first, 0),
                load(&lanes, job.a, first, 1),
                load(&lanes, job.b, first, 0),
                load(&lanes, job.b, first, 1),
                load_factors(&lanes, job.inverses, first),
            )
        };
        let rise = [less(&y2[0], &y1[0], &once), less(&y2[1], &y1[1], &once)];
        let slope = canonical(&lanes, &products(&lanes, &rise, &inverse));
        let factor = [lanes.factor(&slope[0]), lanes.factor(&slope[1])];
        let square = products(&lanes, &slope, &factor);
        let sums = [lanes.add(&x1[0], &x2[0]), lanes.add(&x1[1], &x2[1])];
        let x = canonical(&lanes, &[less(&square[0], &sums[0], &twice), less(&square[1], &sums[1], &twice)]);
        let run = [less(&x1[0], &x[0], &once), less(&x1[1], &x[1], &once)];
        let rise = products(&lanes, &run, &factor);
        let y = canonical(&lanes, &[less(&rise[0], &y1[0], &once), less(&rise[1], &y1[1], &once)]);
        // SAFETY: eight points.
        unsafe {
            store(&lanes, &x, job.out, first, 0);
            store(&lanes, &y, job.out, first, 1);
        }
    }
}

// Called and not inlined: they are long, and each is compiled for every number of limbs.

/// Coordinate `which` of 16 points from number `first` on.
///
/// # Safety
/// They can be read.
#[inline(never)]
#[target_feature(enable = "avx512f,avx512dq,avx512ifma,avx512vbmi2")]
unsafe fn load<const LIMBS: usize, const L: usize>(
    lanes: &Lanes<LIMBS, L>,
    points: *const u32,
    first: usize,
    which: usize,
) -> [Eight<L>; 2] {
    let places = |first: usize| coordinates::<LIMBS>(points, first, which);
    // SAFETY: as the caller vouches.
    unsafe { [lanes.load(&places(first)), lanes.load(&places(first + 8))] }
}

/// 16 elements from number `first` on, as factors.
///
/// # Safety
/// They can be read.
#[inline(never)]
#[target_feature(enable = "avx512f,avx512dq,avx512ifma,avx512vbmi2")]
unsafe fn load_factors<const LIMBS: usize, const L: usize>(
    lanes: &Lanes<LIMBS, L>,
    elements: *const u32,
    first: usize,
) -> [Eight<L>; 2] {
    let places = |first: usize| Lanes::<LIMBS, L>::in_a_row(elements.wrapping_add(first * LIMBS).cast_mut());
    // SAFETY: as the caller vouches.
    unsafe { [lanes.load_factor(&places(first)), lanes.load_factor(&places(first + 8))] }
}

/// Stores coordinate `which` of 16 points from number `first` on.
///
/// # Safety
/// They can be written.
#[inline(never)]
#[target_feature(enable = "avx512f,avx512dq,avx512ifma,avx512vbmi2")]
unsafe fn store<const LIMBS: usize, const L: usize>(
    lanes: &Lanes<LIMBS, L>,
    x: &[Eight<L>; 2],
    points: *mut u32,
    first: usize,
    which: usize,
) {
    for (k, x) in x.iter().enumerate() {
        // SAFETY: as the caller vouches.
        unsafe { lanes.store(x, &coordinates::<LIMBS>(points, first + 8 * k, which)) };
    }
}

#[inline(never)]
#[target_feature(enable = "avx512f,avx512dq,avx512ifma,avx512vbmi2")]
fn products<const LIMBS: usize, const L: usize>(
    lanes: &Lanes<LIMBS, L>,
    a: &[Eight<L>; 2],
    b: &[Eight<L>; 2],
) -> [Eight<L>; 2] {
    lanes.mul2([&a[0], &a[1]], [&b[0], &b[1]])
}

/// From normalised below 16p to below p.
#[inline(never)]
#[target_feature(enable = "avx512f,avx512dq,avx512ifma,avx512vbmi2")]
fn canonical<const LIMBS: usize, const L: usize>(lanes: &Lanes<LIMBS, L>, x: &[Eight<L>; 2]) -> [Eight<L>; 2] {
    [lanes.canonical(&lanes.reduce(&x[0])), lanes.canonical(&lanes.reduce(&x[1]))]
}
