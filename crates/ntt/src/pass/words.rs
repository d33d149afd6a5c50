//! The body of a pass over prime fields of one word: a tile lies in memory row by row, in whole rows of [`ROW`] lines, and loops
//! over these are vector code.

use evariste_backend::parallel;
use evariste_field::words::{Known, ROW, Row, WordField, WordJob, Words};

use super::{End, Line, Pass, flags};
use crate::{config::Twiddles, reverse_bits};

impl Pass<'_> {
    /// Does it on all cores.
    pub(super) fn run_in_words(&self, words: Words) {
        let lines = self.params.lines - self.params.first;
        let log_columns = self.shape.log_columns;
        parallel::ranges(lines.div_ceil(1 << log_columns) as usize, &|tiles| words.run(Tiles { pass: self, tiles }));
    }
}

/// Tiles that one thread does one after the other.
struct Tiles<'a> {
    pass: &'a Pass<'a>,
    tiles: std::ops::Range<usize>,
}

impl WordJob for Tiles<'_> {
    type Output = ();

    #[inline(always)]
    fn run<F: WordField>(self, field: F) {
        let (params, shape) = (self.pass.params, self.pass.shape);
        let half = 1 << shape.log_rows >> 1;
        let step = params.log_roots - shape.log_rows;
        let roots: &[F::Word] = bytemuck::cast_slice(self.pass.roots);
        let roots: Vec<Known<F::Word>> =
            (0..half).map(|i| field.known(roots[3 * (params.roots as usize + (i << step))])).collect();
        let reversed: Vec<usize> =
            (0..1 << shape.log_rows).map(|row| reverse_bits(row, shape.log_rows) as usize).collect();
        let vectors = (1_usize << shape.log_columns).div_ceil(ROW);
        let mut memory = vec![[bytemuck::Zeroable::zeroed(); ROW]; vectors << shape.log_rows];
        for tile in self.tiles {
            let first = params.first + ((tile as u32) << shape.log_columns);
            let count = (params.lines - first).min(1 << shape.log_columns);
            let lines: Vec<Line> = (first..first + count).map(|line| params.line(line)).collect();
            let vectors = (count as usize).div_ceil(ROW);
            let memory = &mut memory[..vectors << shape.log_rows];
            let tile = Tile { pass: self.pass, field, lines: &lines, vectors, reversed: &reversed };
            tile.load(memory);
            tile.transform(memory, &roots);
            tile.store(memory);
        }
    }
}

/// Neighbouring lines of a pass.
struct Tile<'a, F> {
    pass: &'a Pass<'a>,
    field: F,
    lines: &'a [Line],
    /// Rows of [`ROW`] lines.
    vectors: usize,
    /// The numbers of rows in the reverse order of bits.
    reversed: &'a [usize],
}

/// Where the lines of a tile lie.
struct Places {
    /// The positions of their first elements in their transforms, and their addresses.
    positions: Vec<usize>,
    addresses: Vec<usize>,
    /// From an element of a line to the next: in positions, and in addresses.
    stride: usize,
    step: usize,
    /// The lines are whole rows of neighbours.
    in_rows: bool,
}

/// Whether numbers are whole rows, in each of which they follow each other.
fn are_rows(numbers: &[usize]) -> bool {
    let (rows, rest) = numbers.as_chunks::<ROW>();
    rest.is_empty() && rows.iter().all(|row| row.windows(2).all(|pair| pair[1] == pair[0] + 1))
}

/// The indices of the factors of a tile's lines.
struct Columns {
    columns: Vec<usize>,
    /// They are whole rows that follow each other.
    in_rows: bool,
}

impl<F: WordField> Tile<'_, F> {
    fn places(&self, end: End) -> Places {
        let Pass { shape, params, .. } = self.pass;
        let End { stride, .. } = end;
        let positions: Vec<usize> =
            self.lines.iter().map(|line| params.place(shape.log_rows, line.index, end)).collect();
        let addresses: Vec<usize> =
            self.lines.iter().zip(&positions).map(|(line, position)| params.address(*line, *position)).collect();
        let step = (params.interleaved as usize) << stride;
        Places { in_rows: are_rows(&addresses), positions, addresses, stride: 1 << stride, step }
    }

    #[inline(always)]
    fn load(&self, memory: &mut [Row<F::Word>]) {
        let Pass { shape, params, input, .. } = *self.pass;
        let input = input.cast::<F::Word>();
        let [end, _] = params.ends();
        let places = self.places(end);
        let rows_reversed = params.has(flags::ROWS_IN_REVERSED);
        let row_of = |m: usize| if rows_reversed { self.reversed[m] } else { m } * self.vectors;
        let rows = 1 << shape.log_rows;
        if places.in_rows {
            for m in 0..rows {
                for (row, lines) in memory[row_of(m)..].iter_mut().zip(places.addresses.as_chunks::<ROW>().0) {
                    // SAFETY: elements of this tile's lines, which lie inside the data.
                    *row = unsafe { input.add(lines[0] + m * places.step).cast::<Row<F::Word>>().read_unaligned() };
                }
            }
        } else {
            for (vector, lines) in places.addresses.chunks(ROW).enumerate() {
                for m in 0..rows {
                    let row = &mut memory[row_of(m) + vector];
                    for (slot, line) in row.iter_mut().zip(lines) {
                        // SAFETY: as above.
                        *slot = unsafe { input.add(line + m * places.step).read_unaligned() };
                    }
                }
            }
        }
        if params.has(flags::SCALE_IN) {
            for m in 0..rows {
                self.scale(&places, m, &mut memory[row_of(m)..][..self.vectors]);
            }
        }
    }

    /// All levels of butterflies.
    #[inline(always)]
    fn transform(&self, memory: &mut [Row<F::Word>], roots: &[Known<F::Word>]) {
        let rows = 1usize << self.pass.shape.log_rows;
        for step in 0..self.pass.shape.log_rows {
            let half = rows >> (step + 1);
            for block in memory.chunks_exact_mut(2 * half * self.vectors) {
                let (top, bottom) = block.split_at_mut(half * self.vectors);
                for (u, v) in top[..self.vectors].iter_mut().zip(&mut bottom[..self.vectors]) {
                    self.field.sum_and_difference(u, v);
                }
                for i in 1..half {
                    let w = roots[i << step];
                    let range = i * self.vectors..(i + 1) * self.vectors;
                    for (u, v) in top[range.clone()].iter_mut().zip(&mut bottom[range]) {
                        self.field.butterfly(u, v, w);
                    }
                }
            }
        }
    }

    #[inline(always)]
    fn store(&self, memory: &mut [Row<F::Word>]) {
        let Pass { shape, params, output, .. } = *self.pass;
        let output = output.cast::<F::Word>();
        let [_, end] = params.ends();
        let places = self.places(end);
        let rows_reversed = params.has(flags::ROWS_OUT_REVERSED);
        let output_of = |m: usize| if rows_reversed { self.reversed[m] } else { m };
        let row_of = |m: usize| if rows_reversed { m } else { self.reversed[m] } * self.vectors;
        let twiddled = params.has(flags::TWIDDLE_OFFSET | flags::TWIDDLE_BLOCK);
        let columns: Vec<usize> =
            self.lines.iter().map(|line| params.twiddle_index(shape.log_rows, line.index)).collect();
        let columns = Columns { in_rows: are_rows(&columns), columns };
        let rows = 1 << shape.log_rows;
        for m in 0..rows {
            let row = &mut memory[row_of(m)..][..self.vectors];
            if twiddled {
                self.twiddle(&columns, output_of(m), row);
            }
            if params.has(flags::SCALE_OUT) {
                self.scale(&places, m, row);
            }
            if places.in_rows {
                for (row, lines) in row.iter().zip(places.addresses.as_chunks::<ROW>().0) {
                    // SAFETY: elements of this tile's lines, which lie inside the data.
                    unsafe { output.add(lines[0] + m * places.step).cast::<Row<F::Word>>().write_unaligned(*row) };
                }
            }
        }
        if !places.in_rows {
            for (vector, lines) in places.addresses.chunks(ROW).enumerate() {
                for m in 0..rows {
                    for (x, line) in memory[row_of(m) + vector].iter().zip(lines) {
                        // SAFETY: as above.
                        unsafe { output.add(line + m * places.step).write_unaligned(*x) };
                    }
                }
            }
        }
    }

    /// Multiplies each line of a row by a factor of its own.
    #[inline(always)]
    fn multiply(&self, row: &mut [Row<F::Word>], factor: impl Fn(usize) -> F::Word) {
        for (vector, row) in row.iter_mut().enumerate() {
            let mut factors = *row;
            let lines = self.lines.len().min((vector + 1) * ROW) - vector * ROW;
            for (lane, slot) in factors[..lines].iter_mut().enumerate() {
                *slot = factor(vector * ROW + lane);
            }
            self.field.mul_row(row, &factors);
        }
    }

    /// Output `k` times the factors of lines with the indices `columns`.
    #[inline(always)]
    fn twiddle(&self, Columns { columns, in_rows }: &Columns, k: usize, row: &mut [Row<F::Word>]) {
        let Pass { shape, params, twiddles, .. } = self.pass;
        let table: &[F::Word] = &bytemuck::cast_slice(twiddles)[params.twiddles as usize..];
        let zero = params.has(flags::TWIDDLE_ZERO);
        if shape.twiddles == Twiddles::TwoLevel {
            for level in [0, 1] {
                self.multiply(row, |c| table[params.two_levels(columns[c], k)[level]]);
            }
        } else if k > 0 {
            let entries = &table[1 + ((k - 1) << params.log_twiddles)..][..1 << params.log_twiddles];
            if *in_rows {
                for (row, columns) in row.iter_mut().zip(columns.as_chunks::<ROW>().0) {
                    self.field.mul_row(row, &entries[columns[0]..].as_chunks().0[0]);
                }
            } else {
                self.multiply(row, |c| entries[columns[c]]);
            }
        } else if zero {
            self.multiply(row, |_| table[0]);
        }
    }

    /// Row `m` of the lines at `places` times their scales.
    #[inline(always)]
    fn scale(&self, places: &Places, m: usize, row: &mut [Row<F::Word>]) {
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
