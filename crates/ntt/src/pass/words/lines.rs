//! Where the rows and the lines of tiles lie.

use evariste_field::words::WordField;

use super::{
    super::{Endpoint, Line, cpu::Pass, flags},
    CACHE_LINE,
};

/// Bytes of one way of a level 1 cache: lines so far apart share a set.
const CACHE_WAY: usize = 1 << 12;

/// Where the rows of all tiles of a pass are, behind their first ones.
pub(super) struct Rows {
    /// In the data, where they are loaded and where they are stored.
    pub(super) source: Vec<usize>,
    pub(super) sink: Vec<usize>,
    /// In the tile's memory.
    pub(super) inside: Vec<usize>,
    /// Words of the tile's memory.
    pub(super) len: usize,
    /// Their factors in the table of twiddles.
    pub(super) factors: Vec<usize>,
}

impl Rows {
    /// The rows for tiles of `width` lines of `W`.
    pub(super) fn new<W>(pass: &Pass<'_>, reversed: &[usize], width: usize) -> Self {
        let params = pass.params;
        let rows = 0..1usize << pass.variant.log_rows;
        let [load, store] = params.endpoints().map(|end| end.row << end.stride);
        let row_of = |flag: u32, row: usize| if params.has(flag) { reversed[row] } else { row };
        // A result lies in the row with the number of the output reversed.
        let place_of = |row: usize| reversed[row_of(flags::ROWS_OUT_REVERSED, row)];
        let first = params.twiddles as usize + 1;
        // A line of cache is left out after each way of it, so that rows which are apart by powers of two are in
        // different sets.
        let inside =
            |row: usize| row * width + (row * width * size_of::<W>() / CACHE_WAY) * (CACHE_LINE / size_of::<W>());
        Self {
            len: inside(rows.len()),
            source: rows.clone().map(|row| row_of(flags::ROWS_IN_REVERSED, row) * load).collect(),
            sink: rows.clone().map(|row| place_of(row) * store).collect(),
            inside: rows.clone().map(inside).collect(),
            factors: rows.map(|row| first + (reversed[row].saturating_sub(1) << params.log_twiddles)).collect(),
        }
    }
}

/// How the lines of a tile lie.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// In whole vectors of neighbours.
    SideBySide,
    /// Each is a run of its own, and there are whole squares of rows and lines.
    Runs,
    Other,
}

/// Where the lines of a tile lie.
pub(super) struct Places {
    /// The positions of their first elements in their transforms, and their addresses.
    pub(super) positions: Vec<usize>,
    pub(super) addresses: Vec<usize>,
    /// From an element of a line to the next: in positions, and in addresses.
    pub(super) stride: usize,
    pub(super) step: usize,
    pub(super) form: Form,
}

impl Places {
    /// Of some lines of a pass over `F`, where they are loaded or where they are stored.
    pub(super) fn new<F: WordField>(pass: &Pass<'_>, lines: &[Line], end: Endpoint) -> Self {
        let Pass { variant, params, .. } = pass;
        let Endpoint { stride, .. } = end;
        let positions = of_indices(lines, |index| params.place(variant.log_rows, index, end));
        let addresses: Vec<usize> =
            lines.iter().zip(&positions).map(|(line, position)| end.address(*line, *position)).collect();
        let step = end.row << stride;
        let form = if are_neighbours(&addresses, F::LANES) {
            Form::SideBySide
        } else if step == 1 && addresses.len().is_multiple_of(F::LANES) && 1 << variant.log_rows >= F::LANES {
            Form::Runs
        } else {
            Form::Other
        };
        Self { positions, addresses, stride: 1 << stride, step, form }
    }
}

/// What belongs to the index of each line. Neighbours are mostly columns of one.
#[inline]
pub(super) fn of_indices(lines: &[Line], value: impl Fn(u32) -> usize) -> Vec<usize> {
    let mut last = None;
    let of_line = |line: &Line| match last {
        Some((index, value)) if index == line.index => value,
        _ => last.insert((line.index, value(line.index))).1,
    };
    lines.iter().map(of_line).collect()
}

/// Whether numbers are whole vectors of consecutive numbers.
#[inline]
pub(super) fn are_neighbours(numbers: &[usize], lanes: usize) -> bool {
    let vectors = numbers.chunks_exact(lanes);
    vectors.remainder().is_empty() && vectors.into_iter().all(|vector| vector.windows(2).all(|x| x[1] == x[0] + 1))
}

/// Whether numbers are whole vectors of equal numbers.
#[inline]
pub(super) fn are_same(numbers: &[usize], lanes: usize) -> bool {
    let vectors = numbers.chunks_exact(lanes);
    vectors.remainder().is_empty() && vectors.into_iter().all(|vector| vector.iter().all(|x| *x == vector[0]))
}
