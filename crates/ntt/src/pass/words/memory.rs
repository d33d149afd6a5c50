//! A tile's own memory, and the rare work that is done there one by one. Its lines fill no vectors or are runs of their
//! own, or factors are not those of whole vectors.

use std::ptr;

use evariste_field::words::{MAX_LANES, WordField, transpose};

use super::{
    super::{Line, cpu::Pass, flags},
    butterflies::each,
    lines::{Form, Places, Rows},
};
use crate::config::Twiddles;

/// Neighbouring lines of a pass, row by row.
pub(super) struct Memory<'a, F: WordField> {
    pub(super) pass: &'a Pass<'a>,
    pub(super) field: F,
    /// The numbers of rows in the reverse order of bits.
    pub(super) reversed: &'a [usize],
    pub(super) rows: &'a Rows,
    pub(super) lines: Vec<Line>,
    pub(super) words: &'a mut [F::Word],
}

impl<F: WordField> Memory<'_, F> {
    /// All lines into the tile's memory, with their scales.
    #[inline(always)]
    pub(super) fn load(&mut self, places: &Places) {
        let Pass { variant, params, input, .. } = *self.pass;
        let input = input.cast::<F::Word>();
        let rows_reversed = params.has(flags::ROWS_IN_REVERSED);
        let rows = 1 << variant.log_rows;
        let (field, reversed, Rows { inside, .. }) = (self.field, self.reversed, self.rows);
        let row_of = |m: usize| inside[if rows_reversed { reversed[m] } else { m }];
        if places.form == Form::Runs {
            let mut x = [field.splat(bytemuck::Zeroable::zeroed()); MAX_LANES];
            for (vector, lines) in places.addresses.chunks_exact(F::LANES).enumerate() {
                for m in (0..rows).step_by(F::LANES) {
                    each!(|J| if J < F::LANES {
                        // SAFETY: one element for each lane, of a line of this tile, which lies inside the data.
                        x[J] = unsafe { field.load(input.add(lines[J] + m)) };
                    });
                    transpose(field, &mut x);
                    each!(|J| if J < F::LANES {
                        let row = &mut self.words[row_of(m + J) + vector * F::LANES..][..F::LANES];
                        // SAFETY: there is one word for each lane.
                        unsafe { field.store(row.as_mut_ptr(), x[J]) };
                    });
                }
            }
        } else {
            for m in 0..rows {
                for (slot, line) in self.words[row_of(m)..].iter_mut().zip(&places.addresses) {
                    // SAFETY: elements of this tile's lines, which lie inside the data.
                    *slot = unsafe { input.add(line + m * places.step).read() };
                }
            }
        }
        if params.has(flags::SCALE_IN) {
            for m in 0..rows {
                self.scale(places, m, row_of(m));
            }
        }
    }

    /// All lines from the tile's memory, with their factors and scales.
    #[inline(always)]
    pub(super) fn store(&mut self, places: &Places, columns: &[usize]) {
        let Pass { variant, params, output, .. } = *self.pass;
        let output = output.cast::<F::Word>();
        let rows_reversed = params.has(flags::ROWS_OUT_REVERSED);
        let (field, reversed, Rows { inside, .. }) = (self.field, self.reversed, self.rows);
        let output_of = |m: usize| if rows_reversed { reversed[m] } else { m };
        let row_of = |m: usize| inside[if rows_reversed { m } else { reversed[m] }];
        let rows = 1 << variant.log_rows;
        for m in 0..rows {
            if params.has(flags::TWIDDLE_OFFSET | flags::TWIDDLE_BLOCK) {
                self.twiddle(columns, output_of(m), row_of(m));
            }
            if params.has(flags::SCALE_OUT) {
                self.scale(places, m, row_of(m));
            }
        }
        if places.form == Form::Runs {
            let mut x = [field.splat(bytemuck::Zeroable::zeroed()); MAX_LANES];
            for (vector, lines) in places.addresses.chunks_exact(F::LANES).enumerate() {
                for m in (0..rows).step_by(F::LANES) {
                    each!(|J| if J < F::LANES {
                        let row = &self.words[row_of(m + J) + vector * F::LANES..][..F::LANES];
                        // SAFETY: there is one word for each lane.
                        x[J] = unsafe { field.load(row.as_ptr()) };
                    });
                    transpose(field, &mut x);
                    each!(|J| if J < F::LANES {
                        // SAFETY: one element for each lane, of a line of this tile, which lies inside the data.
                        unsafe { field.store(output.add(lines[J] + m), x[J]) };
                    });
                }
            }
        } else {
            for m in 0..rows {
                for (x, line) in self.words[row_of(m)..].iter().zip(&places.addresses) {
                    // SAFETY: elements of this tile's lines, which lie inside the data.
                    unsafe { output.add(line + m * places.step).write(*x) };
                }
            }
        }
    }

    /// Multiplies each line of the row that starts at a place of the memory by a factor of its own.
    #[inline(always)]
    fn multiply(&mut self, row: usize, factor: impl Fn(usize) -> F::Word) {
        let mut factors: [F::Word; MAX_LANES] = bytemuck::Zeroable::zeroed();
        for first in (0..self.lines.len()).step_by(F::LANES) {
            for (lane, slot) in factors[..(self.lines.len() - first).min(F::LANES)].iter_mut().enumerate() {
                *slot = factor(first + lane);
            }
            let words = self.words[row + first..][..F::LANES].as_mut_ptr();
            // SAFETY: there is one word for each lane, in both.
            unsafe {
                let product = self.field.mul(self.field.load(words), self.field.load(ptr::from_ref(&factors).cast()));
                self.field.store(words, product);
            }
        }
    }

    /// Output `k` times the factors of lines with the indices `columns`.
    #[inline(always)]
    fn twiddle(&mut self, columns: &[usize], k: usize, row: usize) {
        let Pass { variant, params, twiddles, .. } = self.pass;
        let table: &[F::Word] = &bytemuck::cast_slice(twiddles)[params.twiddles as usize..];
        if variant.twiddles == Twiddles::TwoLevel {
            for level in [0, 1] {
                self.multiply(row, |c| table[params.two_levels(columns[c], k)[level]]);
            }
        } else if k > 0 {
            let entries = &table[1 + ((k - 1) << params.log_twiddles)..][..1 << params.log_twiddles];
            self.multiply(row, |c| entries[columns[c]]);
        } else if params.has(flags::TWIDDLE_ZERO) {
            self.multiply(row, |_| table[0]);
        }
    }

    /// Row `m` of the lines at `places` times their scales.
    #[inline(always)]
    fn scale(&mut self, places: &Places, m: usize, row: usize) {
        let Pass { params, scale, .. } = self.pass;
        let scale: &[F::Word] = bytemuck::cast_slice(scale);
        if params.has(flags::SCALE_CONSTANT) {
            return self.multiply(row, |_| scale[params.scales as usize]);
        }
        for level in [0, 1] {
            self.multiply(row, |c| scale[params.scale_entries(places.positions[c] + m * places.stride)[level]]);
        }
    }
}
