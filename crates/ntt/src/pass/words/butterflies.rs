//! Butterflies of rows in registers.

use evariste_field::words::{MAX_LANES, Shoup, WordField};

/// For j from 0 to 15.
macro_rules! each {
    (|$j:ident| $body:expr) => { each!(|$j| $body; 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15) };
    (|$j:ident| $body:expr; $($number:literal)*) => { $({ const $j: usize = $number; $body })* };
}
pub(super) use each;

/// For each pair of a level among 16 rows, with the number of the root among those of steps of four levels. The pairs
/// are written out, so that lanes stay in registers.
macro_rules! pairs {
    (8, $body:ident) => { $body!(0 8 0, 1 9 1, 2 10 2, 3 11 3, 4 12 4, 5 13 5, 6 14 6, 7 15 7) };
    (4, $body:ident) => { $body!(0 4 8, 1 5 9, 2 6 10, 3 7 11, 8 12 8, 9 13 9, 10 14 10, 11 15 11) };
    (2, $body:ident) => { $body!(0 2 12, 1 3 13, 4 6 12, 5 7 13, 8 10 12, 9 11 13, 12 14 12, 13 15 13) };
    (1, $body:ident) => { $body!(0 1 14, 2 3 14, 4 5 14, 6 7 14, 8 9 14, 10 11 14, 12 13 14, 14 15 14) };
}

/// The power of a root of unity of order 16 that each root of [`pairs`] is in a transform of its own.
const SHIFTS: [usize; 15] = [0, 1, 2, 3, 4, 5, 6, 7, 0, 2, 4, 6, 0, 4, 0];

/// Transforms of 2^`LOG_RADIX` rows, with the roots given: in the last step, where the first root of each level is 1,
/// with that in mind. With [`WordField::SHIFT_ROOT`] and no others, where there is such a root. All results but the
/// first may be unreduced where they are `MULTIPLIED`.
#[inline(always)]
pub(super) fn butterflies<F: WordField, const LOG_RADIX: usize, const LAST: bool, const MULTIPLIED: bool>(
    field: F,
    x: &mut [F::Lanes; MAX_LANES],
    roots: &[Shoup<F::Word>],
) {
    let roots = &roots[..(1 << LOG_RADIX) - 1];
    macro_rules! level {
        ($($u:literal $v:literal $root:literal),*) => { $(
            if $v < 1 << LOG_RADIX {
                let (u, v) = (x[$u], x[$v]);
                x[$u] = if MULTIPLIED && $u != 0 && $v - $u == 1 { field.add_unreduced(u, v) } else { field.add(u, v) };
                x[$v] = if F::SHIFT_ROOT.is_some() {
                    field.shift_difference::<{ SHIFTS[$root] }>(u, v)
                } else if LAST && [0, 8, 12, 14].contains(&$root) {
                    field.sub(u, v)
                } else {
                    field.mul_difference(u, v, &roots[($root + (1 << LOG_RADIX)) - 16])
                };
            }
        )* };
    }
    if LOG_RADIX > 3 {
        pairs!(8, level);
    }
    if LOG_RADIX > 2 {
        pairs!(4, level);
    }
    if LOG_RADIX > 1 {
        pairs!(2, level);
    }
    pairs!(1, level);
}
