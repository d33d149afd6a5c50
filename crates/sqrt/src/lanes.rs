//! Programs on sixteen elements at once, by the 52-bit multiplications of AVX-512. They serve CPUs with these, and
//! programs whose steps are the same for all elements.
//!
//! Values stay in the form x · 2^(52 L), below 2p and normalised. A product with 2^(32 `LIMBS`), the device's form of
//! 1, brings a value to the device's form. Stored values need it, and so do steps that look at bits, for a digit or a
//! sign.

use std::arch::x86_64::__mmask8;

use evariste_backend::author::Wiped;
use evariste_field::ifma::{Eight, Job, Lanes, Montgomery52, Places, STEP};

use crate::hash::{Hash, logarithm};

pub(crate) mod multiples;

/// Vectors of eight side by side.
const VECTORS: usize = STEP / 8;

/// One element in each lane of these.
type Both<const L: usize> = [Eight<L>; VECTORS];

/// A program and what it is run on: a step of elements, one after the other.
pub(crate) struct Run<'a> {
    /// Steps as kernels read them.
    pub(crate) program: &'a [u32],
    /// Constants in device form.
    pub(crate) constants: &'a [u32],
    pub(crate) entries: &'a [u32],
    pub(crate) hash: &'a Hash,
    pub(crate) table: u32,
    pub(crate) width: u32,
    pub(crate) pad: u32,
    pub(crate) slots: usize,
    pub(crate) digits: usize,
    /// Of the root that is chosen, for each element.
    pub(crate) want: [u32; STEP],
    /// 1 in device form.
    pub(crate) one: &'a [u32],
    /// The elements of the first slots, in device form: slot by slot, `STEP` elements each; what is left in these.
    pub(crate) data: &'a mut [u32],
    pub(crate) verdicts: &'a mut [u32; STEP],
}

impl Run<'_> {
    pub(crate) fn run_usual(self, field: &Montgomery52) {
        field.run_usual(self);
    }
}

impl Job for Run<'_> {
    type Output = ();

    unsafe fn run<const LIMBS: usize, const L: usize>(self, field: &Montgomery52) {
        // SAFETY: as the caller vouches.
        unsafe { run::<LIMBS, L>(field, self) }
    }
}

/// a · b, for any factors below 2p or factors from memory: below 2p.
#[inline(never)]
#[target_feature(enable = "avx512f,avx512dq,avx512ifma,avx512vbmi2")]
fn product<const LIMBS: usize, const L: usize>(lanes: &Lanes<LIMBS, L>, a: &Both<L>, b: &Both<L>) -> Both<L> {
    let [x, y] = lanes.mul2([&a[0], &a[1]], [&b[0], &b[1]]);
    [lanes.reduce(&x), lanes.reduce(&y)]
}

/// a^(2^times), below 2p.
#[inline(never)]
#[target_feature(enable = "avx512f,avx512dq,avx512ifma,avx512vbmi2")]
fn squares<const LIMBS: usize, const L: usize>(lanes: &Lanes<LIMBS, L>, a: &Both<L>, times: u32) -> Both<L> {
    let mut x = *a;
    for _ in 0..times {
        // Below p + 4p² / R, which is below 2p since R is at least 16p.
        x = lanes.mul2([&x[0], &x[1]], [&x[0], &x[1]]);
    }
    x
}

/// a − b below 2p, for a and b below 2p.
#[inline(never)]
#[target_feature(enable = "avx512f,avx512dq,avx512ifma,avx512vbmi2")]
fn difference<const LIMBS: usize, const L: usize>(lanes: &Lanes<LIMBS, L>, a: &Both<L>, b: &Both<L>) -> Both<L> {
    let mut result = *a;
    for (x, y) in result.iter_mut().zip(b) {
        *x = lanes.reduce(&lanes.normalise(&lanes.sub(&lanes.add(x, &lanes.multiple(2)), y)));
    }
    result
}

/// The lanes where a, below 2p, is 0.
#[target_feature(enable = "avx512f,avx512dq,avx512ifma,avx512vbmi2")]
fn zeros<const LIMBS: usize, const L: usize>(lanes: &Lanes<LIMBS, L>, a: &Both<L>) -> [__mmask8; VECTORS] {
    a.each_ref().map(|x| {
        let x = lanes.canonical(x);
        lanes.or_if_zero(&x, &x).1
    })
}

/// Elements in device form, as values.
///
/// # Safety
/// All places can be read.
#[inline(never)]
#[target_feature(enable = "avx512f,avx512dq,avx512ifma,avx512vbmi2")]
unsafe fn load<const LIMBS: usize, const L: usize>(lanes: &Lanes<LIMBS, L>, places: &[Places; VECTORS]) -> Both<L> {
    // SAFETY: as the caller vouches.
    places.each_ref().map(|places| lanes.constants(&unsafe { lanes.load(places) }))
}

/// Writes values in device form, one element after the other.
#[target_feature(enable = "avx512f,avx512dq,avx512ifma,avx512vbmi2")]
fn store<const LIMBS: usize, const L: usize>(lanes: &Lanes<LIMBS, L>, one: &Both<L>, x: &Both<L>, to: &mut [u32]) {
    assert_eq!(to.len(), STEP * LIMBS);
    let plain = product(lanes, x, one);
    for (x, to) in plain.iter().zip(to.chunks_exact_mut(8 * LIMBS)) {
        // SAFETY: eight elements.
        unsafe { lanes.store(&lanes.canonical(x), &Lanes::<LIMBS, L>::in_a_row(to.as_mut_ptr())) };
    }
}

/// # Safety
/// As for [`Job::run`].
#[target_feature(enable = "avx512f,avx512dq,avx512ifma,avx512vbmi2")]
unsafe fn run<const LIMBS: usize, const L: usize>(field: &Montgomery52, job: Run<'_>) {
    let lanes = &Lanes::<LIMBS, L>::new(field);
    let Run { program, constants, entries, hash, table, width, pad, mut want, data, verdicts, .. } = job;
    assert!(job.one.len() == LIMBS && constants.len().is_multiple_of(LIMBS));
    let count = constants.len() / LIMBS;
    // Where a constant lies for each lane.
    let places = |at: &dyn Fn(usize) -> u32| -> [Places; VECTORS] {
        std::array::from_fn(|vector| {
            std::array::from_fn(|lane| {
                let at = at(8 * vector + lane) as usize;
                assert!(at < count, "a program refers to its own constants");
                constants[at * LIMBS..].as_ptr().cast_mut()
            })
        })
    };
    // SAFETY: an element.
    let one = [unsafe { lanes.load(&[job.one.as_ptr().cast_mut(); 8]) }; VECTORS];
    let zero: Both<L> = [lanes.all(&[0; L]); VECTORS];

    let mut slots = Wiped::from(vec![zero; job.slots]);
    for (slot, data) in slots.iter_mut().zip(data.chunks_exact_mut(STEP * LIMBS)) {
        let rows = std::array::from_fn(|vector| Lanes::<LIMBS, L>::in_a_row(data[8 * vector * LIMBS..].as_mut_ptr()));
        // SAFETY: eight elements each.
        *slot = unsafe { load(lanes, &rows) };
    }
    let mut digits = Wiped::from(vec![[0u32; STEP]; job.digits]);
    let mut plain = Wiped::from(vec![0u32; STEP * LIMBS]);
    let (mut flag, mut decided, mut good) = ([false; STEP], [false; STEP], [true; STEP]);
    let bit = |masks: [__mmask8; VECTORS], lane: usize| masks[lane / 8] >> (lane % 8) & 1 == 1;
    let mask = |flags: &[bool; STEP]| -> [__mmask8; VECTORS] {
        std::array::from_fn(|vector| (0..8).fold(0, |mask, lane| mask | u8::from(flags[8 * vector + lane]) << lane))
    };
    let mut symbols = None;
    let mut r = zero;
    for step in program.chunks_exact(2) {
        let (code, kind, times, index) = (step[0] & 15, step[0] >> 4 & 15, step[0] >> 8, step[1]);
        if code <= 1 && times > 0 {
            r = squares(lanes, &r, times);
        }
        match code {
            0 => {}
            3 => slots[index as usize] = r,
            1..8 => {
                let x = match kind {
                    0 => slots[index as usize],
                    2 => {
                        let (unset, set, mask) = (&slots[index as usize], &slots[index as usize + 1], mask(&flag));
                        std::array::from_fn(|i| lanes.blend(&unset[i], &set[i], mask[i]))
                    }
                    _ => {
                        let places = match kind {
                            1 => places(&|_| index),
                            3 => places(&|lane| index + u32::from(flag[lane])),
                            9 => places(&|lane| {
                                table + ((index & 0xffff) << width) + digits[(index >> 16) as usize][lane]
                            }),
                            _ => unreachable!("programs that search are not run in lanes"),
                        };
                        if code == 1 {
                            // SAFETY: elements of the constants.
                            places.each_ref().map(|places| unsafe { lanes.load_factor(places) })
                        } else {
                            // SAFETY: as above.
                            unsafe { load(lanes, &places) }
                        }
                    }
                };
                match code {
                    1 => r = product(lanes, &r, &x),
                    2 => r = x,
                    4 => r = std::array::from_fn(|i| lanes.reduce(&lanes.normalise(&lanes.add(&r[i], &x[i])))),
                    5 => r = difference(lanes, &r, &x),
                    _ => {
                        let equal = zeros(lanes, &difference(lanes, &r, &x));
                        for lane in 0..STEP {
                            match code {
                                6 => flag[lane] = bit(equal, lane),
                                _ => good[lane] &= bit(equal, lane),
                            }
                        }
                    }
                }
            }
            8 => {
                store(lanes, &one, &r, &mut plain);
                for (digit, limbs) in digits[index as usize].iter_mut().zip(plain.chunks_exact(LIMBS)) {
                    *digit = logarithm(hash, entries, limbs);
                }
            }
            9 => {
                for lane in 0..STEP {
                    flag[lane] = digits[0][lane] >> pad & 1 == 1;
                    digits[0][lane] &= !(1 << pad);
                    for i in 0..digits.len() {
                        let above = digits.get(i + 1).map_or(0, |digit| digit[lane] & 1);
                        digits[i][lane] = digits[i][lane] >> 1 | above << (width - 1);
                    }
                }
            }
            10 => {
                store(lanes, &one, &r, &mut plain);
                for (lane, limbs) in plain.chunks_exact(LIMBS).enumerate() {
                    if !decided[lane] {
                        flag[lane] = limbs[0] & 1 != want[lane];
                        decided[lane] = limbs.iter().any(|limb| *limb != 0);
                    }
                }
            }
            11 => {
                let (negative, mask) = (difference(lanes, &zero, &r), mask(&flag));
                r = std::array::from_fn(|i| lanes.blend(&r[i], &negative[i], mask[i]));
            }
            12 => {
                // SAFETY: an element.
                let unit = [lanes.constants(&one[0]); VECTORS];
                symbols = Some((zeros(lanes, &r), zeros(lanes, &difference(lanes, &r, &unit))));
            }
            15 => (want, decided) = (flag.map(u32::from), [false; STEP]),
            _ => unreachable!("programs that search are not run in lanes"),
        }
    }
    for (lane, verdict) in verdicts.iter_mut().enumerate() {
        *verdict = match symbols {
            None => u32::from(good[lane]),
            Some((zero, _)) if bit(zero, lane) => 0,
            Some((_, one)) => {
                if bit(one, lane) {
                    1
                } else {
                    u32::MAX
                }
            }
        };
    }
    for (slot, data) in slots.iter().zip(data.chunks_exact_mut(STEP * LIMBS)) {
        store(lanes, &one, slot, data);
    }
}
