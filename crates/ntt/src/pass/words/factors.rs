//! The factors of rows as tiles are loaded and stored.

use evariste_field::words::{Shoup, WordField};

use super::{
    super::{cpu::Pass, flags},
    lines::Places,
};

/// Factors of rows, one for all lanes of a vector whose lines are columns of one line of a matrix. The factor of row r
/// and vector v is at `starts[v] + r`.
pub(super) struct Factors<W> {
    factors: Vec<Shoup<W>>,
    starts: Vec<usize>,
    /// What the last vector's factors belong to.
    last: Option<usize>,
}

impl<W> Default for Factors<W> {
    fn default() -> Self {
        Self { factors: Vec::new(), starts: Vec::new(), last: None }
    }
}

impl<W> Factors<W> {
    /// Gives the next vector the factors of the one before, if they belong to this number: neighbours mostly do.
    pub(super) fn has(&mut self, number: usize) -> bool {
        let has = self.last == Some(number);
        if has {
            self.starts.extend(self.starts.last().copied());
        }
        has
    }

    /// Gives the next vector the factors of all rows that belong to a number.
    pub(super) fn push(&mut self, number: usize, factors: impl Iterator<Item = Shoup<W>>) {
        self.starts.push(self.factors.len());
        self.factors.extend(factors);
        self.last = Some(number);
    }

    /// Those of all rows, for a vector.
    #[inline(always)]
    pub(super) fn of(&self, vector: usize) -> &[Shoup<W>] {
        &self.factors[self.starts[vector]..]
    }
}

/// Factors by which rows are multiplied as they are stored.
pub(super) struct After<'a, W> {
    /// Those of [`LANES`]: of row r and vector v at `rows[r] + vectors[v]`.
    pub(super) words: &'a [W],
    pub(super) rows: &'a [usize],
    pub(super) vectors: &'a [usize],
    /// Those of [`VECTORS`].
    pub(super) factors: Factors<W>,
    /// That of row 0 of all lines, unless it is 1.
    pub(super) zero: Option<W>,
}

/// What [`After`] holds.
pub(super) const NOTHING: u8 = 0;
/// A factor for each lane.
pub(super) const LANES: u8 = 1;
/// A factor for all lanes of a vector.
pub(super) const VECTORS: u8 = 2;

/// The scales of all rows, for each vector of lines.
#[inline(always)]
pub(super) fn scales<F: WordField>(field: F, pass: &Pass<'_>, reversed: &[usize], places: &Places) -> Factors<F::Word> {
    let Pass { variant, params, scale, .. } = pass;
    let scale: &[F::Word] = bytemuck::cast_slice(scale);
    let rows = 1usize << variant.log_rows;
    let element_of = |row: usize| if params.has(flags::ROWS_IN_REVERSED) { reversed[row] } else { row };
    let (mut words, mut factors): (Vec<F::Word>, _) = (Vec::with_capacity(rows), Factors::default());
    for &position in places.positions.iter().step_by(F::LANES) {
        if factors.has(position) {
            continue;
        }
        let entries = |row: usize| params.scale_entries(position + element_of(row) * places.stride);
        words.clear();
        words.extend((0..rows).map(|row| scale[entries(row)[1]]));
        let low = entries(0)[0];
        let is_common = !params.has(flags::SCALE_REVERSED) && places.stride >= 1 << params.log_scales;
        if is_common && rows >= F::LANES {
            // Rows differ in the higher table only.
            for words in words.chunks_exact_mut(F::LANES) {
                // SAFETY: there is one word for each lane.
                unsafe {
                    let product = field.mul(field.load(words.as_ptr()), field.splat(scale[low]));
                    field.store(words.as_mut_ptr(), product);
                }
            }
        } else {
            for (row, word) in words.iter_mut().enumerate() {
                *word = field.mul_word(*word, scale[entries(row)[0]]);
            }
        }
        factors.push(position, words.iter().map(|word| field.shoup(*word)));
    }
    factors
}
