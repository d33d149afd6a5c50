//! Which levels of butterflies are done at once, and their roots.

use evariste_field::words::{MAX_LANES, Shoup, WordField};

use super::super::cpu::Pass;
use crate::order::reverse_bits;

/// Levels of butterflies that are done at once.
pub(super) struct Step<W> {
    pub(super) log_radix: usize,
    /// log₂ of the rows of each transform that is left.
    pub(super) log_rows: usize,
    /// For each row among those that a level pairs, the roots of all levels, first level first. If there is
    /// [`WordField::SHIFT_ROOT`], they are the factors of all results but the first instead.
    pub(super) roots: Vec<Shoup<W>>,
    /// Which of its rows a result belongs to.
    pub(super) places: [usize; MAX_LANES],
}

impl<W> Step<W> {
    /// Whether a tile over `F` has steps of this number of levels before the last one.
    pub(super) const fn is_inner<F: WordField<Word = W>>(log_radix: usize) -> bool {
        F::LOG_RADIX.div_ceil(2) <= log_radix && log_radix <= F::LOG_RADIX
    }
}

pub(super) struct Steps<W>(pub(super) Vec<Step<W>>);

impl<W: bytemuck::Pod + PartialEq> Steps<W> {
    pub(super) fn new<F: WordField<Word = W>>(pass: &Pass<'_>, field: F) -> Self {
        let log_rows = pass.variant.log_rows as usize;
        let words: &[W] = bytemuck::cast_slice(pass.roots);
        let shift = pass.params.log_roots as usize - log_rows;
        let root = |e: usize| words[3 * (pass.params.roots as usize + (e << shift))];
        let power = |base: W, k: usize| (0..k).fold(root(0), |power, _| field.mul_word(power, base));
        assert!(log_rows > 0, "a pass has levels");
        let count = log_rows.div_ceil(F::LOG_RADIX);
        let mut left = log_rows;
        let step = |i: usize| {
            // The last step, which has the fewest products, takes what is left over.
            let log_radix = log_rows / count + usize::from(i >= count - log_rows % count);
            let (done, distance) = (log_rows - left, left - log_radix);
            let mut places = std::array::from_fn(|j| j);
            let roots = if let Some(shift) = F::SHIFT_ROOT {
                // The root of the shifts is power s of that of the step: what would be its output m is output s · m.
                let size = 1 << log_radix;
                let shift_of_step = power(shift, MAX_LANES >> log_radix);
                let is_shift =
                    |s: &usize| log_radix < 2 || power(root(1 << (log_rows - log_radix)), *s) == shift_of_step;
                let s = (1..size).step_by(2).find(is_shift);
                let s = s.unwrap_or_else(|| unreachable!("roots of one order are powers of each other"));
                let result_of = |j: usize| s * reverse_bits(j as u32, log_radix as u32) as usize % size;
                let mut results = [0; MAX_LANES];
                (0..size).for_each(|j| results[j] = result_of(j));
                (0..size).for_each(|j| places[j] = reverse_bits(results[j] as u32, log_radix as u32) as usize);
                let (half, minus_one) = ((1 << log_rows) / 2, power(shift, MAX_LANES / 2));
                let mut factors = Vec::with_capacity((size - 1) << distance);
                for row in 0..1 << distance {
                    factors.extend(results[1..size].iter().map(|result| {
                        let factor = match (row * result) << done {
                            e if e < half => root(e),
                            e => field.mul_word(minus_one, root(e - half)),
                        };
                        field.shoup(factor)
                    }));
                }
                factors
            } else {
                let groups = (0..1 << distance).flat_map(|row| {
                    let level = move |level: usize| {
                        (0..1 << (log_radix - 1 - level)).map(move |j| (row + (j << distance)) << (done + level))
                    };
                    (0..log_radix).flat_map(level)
                });
                groups.map(|e| field.shoup(root(e))).collect()
            };
            let step = Step { log_radix, log_rows: left, roots, places };
            left -= log_radix;
            step
        };
        Self((0..count).map(step).collect())
    }
}
