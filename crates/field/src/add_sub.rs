//! Sums and differences of vectors in device form, for CPU bodies of kernels. They take whole words, and have no
//! branches on the values of elements: processors mispredict such a branch every other time.

use evariste_backend::parallel;

use crate::field::{
    DeviceField,
    arithmetic::{Arithmetic, Kind},
};

/// Elements of the prime field that a thread takes at a time.
const GRAIN: usize = 1 << 11;

#[derive(Clone, Copy, Debug)]
pub(crate) enum Operation {
    Add,
    Sub,
}

/// One run: the modulus, the elements `a` if the output does not have them already, the elements `b`, and the output.
type Run = fn(&[u32], Option<&[u32]>, &[u32], &mut [u32]);

/// An operation in a prime field or, coefficient by coefficient, an extension of one.
#[derive(Clone, Debug)]
pub(crate) struct AddSub {
    modulus: Vec<u32>,
    run: Run,
}

impl AddSub {
    /// The operation in `F`, if its prime field has one limb or an even number up to 24.
    pub(crate) fn of<F: DeviceField>(operation: Operation) -> Option<Self> {
        let mut field = F::arithmetic();
        while let Arithmetic(Kind::Extension(extended)) = field {
            field = extended.base;
        }
        let Arithmetic(Kind::Prime { constants, .. }) = field else {
            unreachable!("every tower stands on a prime field")
        };
        let run = match constants.modulus.len() {
            1 => short(operation),
            2 => long::<1>(operation),
            4 => long::<2>(operation),
            6 => long::<3>(operation),
            8 => long::<4>(operation),
            10 => long::<5>(operation),
            12 => long::<6>(operation),
            14 => long::<7>(operation),
            16 => long::<8>(operation),
            18 => long::<9>(operation),
            20 => long::<10>(operation),
            22 => long::<11>(operation),
            24 => long::<12>(operation),
            _ => return None,
        };
        Some(Self { modulus: constants.modulus, run })
    }

    /// `out[i] = a[i] ± b[i]`, on all cores. All have the same length.
    pub(crate) fn apply(&self, a: &[u32], b: &[u32], out: &mut [u32]) {
        assert_eq!((a.len(), b.len()), (out.len(), out.len()));
        let grain = GRAIN * self.modulus.len();
        parallel::chunks(out, grain, &|i, out| {
            let part = i * grain..i * grain + out.len();
            (self.run)(&self.modulus, Some(&a[part.clone()]), &b[part], out);
        });
    }

    /// `a[i] = a[i] ± b[i]`, on all cores. Both have the same length.
    pub(crate) fn assign(&self, a: &mut [u32], b: &[u32]) {
        assert_eq!(a.len(), b.len());
        let grain = GRAIN * self.modulus.len();
        parallel::chunks(a, grain, &|i, a| (self.run)(&self.modulus, None, &b[i * grain..][..a.len()], a));
    }
}

fn each<T: Copy>(a: Option<&[T]>, b: &[T], out: &mut [T], f: impl Fn(T, T) -> T) {
    match a {
        Some(a) => out.iter_mut().zip(a).zip(b).for_each(|((out, a), b)| *out = f(*a, *b)),
        None => out.iter_mut().zip(b).for_each(|(out, b)| *out = f(*out, *b)),
    }
}

/// Over a modulus of one limb.
fn short(operation: Operation) -> Run {
    match operation {
        Operation::Add => |p, a, b, out| {
            let p = u64::from(p[0]);
            each(a, b, out, |a, b| {
                let sum = u64::from(a) + u64::from(b);
                (if sum < p { sum } else { sum - p }) as u32
            });
        },
        Operation::Sub => |p, a, b, out| {
            each(a, b, out, |a, b| {
                let difference = a.wrapping_sub(b);
                if a < b { difference.wrapping_add(p[0]) } else { difference }
            });
        },
    }
}

/// Over a modulus of 2 N limbs.
fn long<const N: usize>(operation: Operation) -> Run {
    match operation {
        Operation::Add => |p, a, b, out| {
            let p = modulus::<N>(p);
            words(a, b, out, |a: [u64; N], b| {
                let (sum, carry) = add(a, b);
                let (less, borrow) = sub(sum, p);
                select(borrow && !carry, sum, less)
            });
        },
        Operation::Sub => |p, a, b, out| {
            let p = modulus::<N>(p);
            words(a, b, out, |a: [u64; N], b| {
                let (difference, borrow) = sub(a, b);
                add(difference, select(borrow, p, [0; N])).0
            });
        },
    }
}

fn words<const N: usize>(a: Option<&[u32]>, b: &[u32], out: &mut [u32], f: impl Fn([u64; N], [u64; N]) -> [u64; N]) {
    fn elements<const N: usize>(x: &[u32]) -> &[[u64; N]] {
        bytemuck::cast_slice::<u32, u64>(x).as_chunks().0
    }
    let out = bytemuck::cast_slice_mut::<u32, u64>(out).as_chunks_mut().0;
    each(a.map(elements), elements(b), out, f);
}

fn modulus<const N: usize>(limbs: &[u32]) -> [u64; N] {
    std::array::from_fn(|i| u64::from(limbs[2 * i]) | u64::from(limbs[2 * i + 1]) << 32)
}

#[inline]
fn add<const N: usize>(a: [u64; N], b: [u64; N]) -> ([u64; N], bool) {
    chain(a, b, u64::overflowing_add)
}

#[inline]
fn sub<const N: usize>(a: [u64; N], b: [u64; N]) -> ([u64; N], bool) {
    chain(a, b, u64::overflowing_sub)
}

/// `step` on the words of `a` and `b`, and on each result and what the word below carries; and the last carry. AddSub
/// in 128 bits became code that took 1.5 times as long.
#[inline]
fn chain<const N: usize>(a: [u64; N], b: [u64; N], step: impl Fn(u64, u64) -> (u64, bool)) -> ([u64; N], bool) {
    let mut carry = false;
    let words = std::array::from_fn(|i| {
        let (word, carried) = step(a[i], b[i]);
        let (word, carried_again) = step(word, u64::from(carry));
        carry = carried | carried_again;
        word
    });
    (words, carry)
}

/// `a` if so, else `b`, by masks.
#[inline]
fn select<const N: usize>(choose_a: bool, a: [u64; N], b: [u64; N]) -> [u64; N] {
    let mask = u64::from(choose_a).wrapping_neg();
    std::array::from_fn(|i| b[i] ^ ((a[i] ^ b[i]) & mask))
}
