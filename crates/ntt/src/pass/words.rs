//! The body of a pass over prime fields of one word, in lanes of vectors.
//!
//! A tile is some neighbouring lines. Its levels of butterflies are done in steps of up to four, for which registers hold 2^4
//! rows of as many lines as a vector has lanes. The first step loads them from the data and the last stores them there, with
//! their factors, where lines lie side by side; steps between leave them in the tile's memory, row by row. Where a line is a run
//! of its own, squares of rows and lines are transposed on their way into the tile's memory and out of it. What is rare (other
//! factors, lines that fill no vector) is done one by one, there too.

use std::{any::Any, ptr};

use evariste_backend::parallel;
use evariste_field::words::{MAX_LANES, Shoup, WordField, WordJob, Words};

use super::{End, Line, Pass, flags};
use crate::{config::Twiddles, reverse_bits};

/// Bytes of a tile, which should stay in the level 2 cache of a core with what it is made from. On Zen 4, whose cores have 1 MiB,
/// matrices of 2^18 × 64 words took 1.14 times as long with half of it, and single transforms of 2^18 words 1.2 times as long with
/// twice as much.
const TILE_BYTES: usize = 1 << 18;

/// The same on processors without vectors of 512 bits, many of which have 256 or 512 KiB.
const SMALL_TILE_BYTES: usize = 1 << 17;

/// Bytes from which on the results of a pass from one buffer to another are stored past the caches, which spares reading what is
/// overwritten.
const MIN_STREAMED_BYTES: u64 = if cfg!(test) { 1 << 12 } else { 1 << 26 };

/// Tiles that a thread should get at the least, where these would be narrow otherwise.
const TILES_PER_THREAD: usize = 4;

/// Bytes of a line of cache.
const CACHE_LINE: usize = 64;

/// Bytes of one way of a level 1 cache: lines so far apart share a set.
const CACHE_WAY: usize = 1 << 12;

impl Pass<'_> {
    /// Does it on all cores.
    pub(super) fn run_in_words(&self, words: Words) {
        words.run(Whole { pass: self, words });
    }
}

impl Pass<'_> {
    /// Whether results should go past the caches, as far as this is known before where each lies: to other memory than what they
    /// are made from, in rows of whole vectors, and more than caches hold. In place, caches have the lines.
    fn is_streamed<F: WordField>(&self) -> bool {
        let Self { shape, params, input, output, .. } = *self;
        let bytes = (u64::from(params.lines) * size_of::<F::Word>() as u64) << shape.log_rows;
        let is_aligned =
            output.cast::<F::Lanes>().is_aligned() && (params.interleaved as usize).is_multiple_of(F::LANES);
        bytes >= MIN_STREAMED_BYTES && input != output.cast_const() && is_aligned
    }
}

/// A pass, to be divided among threads.
struct Whole<'a> {
    pass: &'a Pass<'a>,
    words: Words,
}

impl WordJob for Whole<'_> {
    type Output = ();

    fn run<F: WordField>(self, field: F) {
        let Self { pass, words } = self;
        let lines = (pass.params.lines - pass.params.first) as usize;
        let tile_bytes = if size_of::<F::Lanes>() == CACHE_LINE { TILE_BYTES } else { SMALL_TILE_BYTES };
        let most = (tile_bytes / size_of::<F::Word>()) >> pass.shape.log_rows;
        let shared = lines / (TILES_PER_THREAD * rayon::current_num_threads());
        let width = 1 << shared.max(1).ilog2().clamp(F::LANES.ilog2(), most.max(F::LANES).ilog2());
        let setup = Setup::new(pass, field, width);
        parallel::ranges(lines.div_ceil(width), &|tiles| words.run(Tiles { pass, setup: &setup, tiles }));
    }
}

/// What all tiles of a pass over words `W` share.
struct Setup<W> {
    /// Lines of a tile, whole vectors.
    width: usize,
    /// The numbers of rows in the reverse order of bits.
    reversed: Vec<usize>,
    steps: Steps<W>,
    rows: Rows,
}

impl<W: bytemuck::Pod + PartialEq> Setup<W> {
    fn new<F: WordField<Word = W>>(pass: &Pass<'_>, field: F, width: usize) -> Self {
        let log_rows = pass.shape.log_rows;
        let reversed: Vec<usize> = (0..1 << log_rows).map(|row| reverse_bits(row, log_rows) as usize).collect();
        let (steps, rows) = (Steps::new(pass, field), Rows::new::<W>(pass, &reversed, width));
        Self { width, reversed, steps, rows }
    }
}

/// Tiles that one thread does one after the other.
struct Tiles<'a> {
    pass: &'a Pass<'a>,
    /// A [`Setup`] for the words of the field that it is run in.
    setup: &'a (dyn Any + Send + Sync),
    tiles: std::ops::Range<usize>,
}

impl WordJob for Tiles<'_> {
    type Output = ();

    #[inline(always)]
    fn run<F: WordField>(self, field: F) {
        let Self { pass, setup, tiles } = self;
        let Some(setup) = setup.downcast_ref::<Setup<F::Word>>() else { unreachable!("one field does all of a pass") };
        let Setup { width, reversed, steps, rows } = setup;
        let spare = CACHE_LINE / size_of::<F::Word>();
        let mut memory: Vec<F::Word> = vec![bytemuck::Zeroable::zeroed(); rows.len + spare];
        let aligned = memory.as_ptr().align_offset(CACHE_LINE).min(spare);
        let mut tile = Tile {
            pass,
            field,
            steps,
            reversed,
            rows,
            vectors: (0..width / F::LANES).map(|vector| vector * F::LANES).collect(),
            lines: Vec::new(),
            streamed: pass.is_streamed::<F>(),
            memory: &mut memory[aligned..],
        };
        for i in tiles {
            let first = pass.params.first + (i * width) as u32;
            tile.lines.clear();
            tile.lines.extend(pass.params.lines_from(first).take(((pass.params.lines - first) as usize).min(*width)));
            tile.run();
        }
        field.fence();
    }
}

/// Levels of butterflies that are done at once.
struct Step<W> {
    log_radix: usize,
    /// log₂ of the rows of each transform that is left.
    log_rows: usize,
    /// For each row among those that a level pairs, the roots of all levels, first level first; where there is
    /// [`WordField::TURN`], the factors of all results but the first instead.
    roots: Vec<Shoup<W>>,
    /// Which of its rows a result belongs to.
    places: [usize; MAX_LANES],
}

struct Steps<W>(Vec<Step<W>>);

impl<W: bytemuck::Pod + PartialEq> Steps<W> {
    fn new<F: WordField<Word = W>>(pass: &Pass<'_>, field: F) -> Self {
        let log_rows = pass.shape.log_rows as usize;
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
            let roots = if let Some(turn) = F::TURN {
                // The root of the turns is power s of that of the step: what would be its output m is output s · m.
                let size = 1 << log_radix;
                let turn_of_step = power(turn, MAX_LANES >> log_radix);
                let is_turn = |s: &usize| log_radix < 2 || power(root(1 << (log_rows - log_radix)), *s) == turn_of_step;
                let s = (1..size).step_by(2).find(is_turn);
                let s = s.unwrap_or_else(|| unreachable!("roots of one order are powers of each other"));
                let result_of = |j: usize| s * reverse_bits(j as u32, log_radix as u32) as usize % size;
                let mut results = [0; MAX_LANES];
                (0..size).for_each(|j| results[j] = result_of(j));
                (0..size).for_each(|j| places[j] = reverse_bits(results[j] as u32, log_radix as u32) as usize);
                let (half, minus_one) = ((1 << log_rows) / 2, power(turn, MAX_LANES / 2));
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

/// Where the rows of all tiles of a pass are, behind their first ones.
struct Rows {
    /// In the data, where they are loaded and where they are stored.
    source: Vec<usize>,
    sink: Vec<usize>,
    /// In the tile's memory.
    inside: Vec<usize>,
    /// Words of the tile's memory.
    len: usize,
    /// Their factors in the table of twiddles.
    factors: Vec<usize>,
}

impl Rows {
    /// For tiles of so many lines of `W`.
    fn new<W>(pass: &Pass<'_>, reversed: &[usize], width: usize) -> Self {
        let params = pass.params;
        let rows = 0..1usize << pass.shape.log_rows;
        let [load, store] = params.ends().map(|end| (params.interleaved as usize) << end.stride);
        let row_of = |flag: u32, row: usize| if params.has(flag) { reversed[row] } else { row };
        // A result lies in the row with the number of the output reversed.
        let place_of = |row: usize| reversed[row_of(flags::ROWS_OUT_REVERSED, row)];
        let first = params.twiddles as usize + 1;
        // A line of cache is left out after each way of it, so that rows which are apart by powers of two are in different sets.
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

/// Neighbouring lines of a pass.
struct Tile<'a, F: WordField> {
    pass: &'a Pass<'a>,
    field: F,
    steps: &'a Steps<F::Word>,
    /// The numbers of rows in the reverse order of bits.
    reversed: &'a [usize],
    rows: &'a Rows,
    /// Where the vectors of a row start in the memory.
    vectors: Vec<usize>,
    lines: Vec<Line>,
    /// Results go past the caches where they are aligned.
    streamed: bool,
    memory: &'a mut [F::Word],
}

/// How the lines of a tile lie.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    /// In whole vectors of neighbours.
    SideBySide,
    /// Each is a run of its own, and there are whole squares of rows and lines.
    Runs,
    Other,
}

/// Where the lines of a tile lie.
struct Places {
    /// The positions of their first elements in their transforms, and their addresses.
    positions: Vec<usize>,
    addresses: Vec<usize>,
    /// From an element of a line to the next: in positions, and in addresses.
    stride: usize,
    step: usize,
    form: Form,
}

/// Words of a tile, in the data or in its own memory: of row r and vector v at `rows[r] + vectors[v]`.
#[derive(Clone, Copy)]
struct Side<'a, W> {
    words: *mut W,
    rows: &'a [usize],
    vectors: &'a [usize],
    /// All are aligned as vectors are, and stored past the caches.
    streamed: bool,
}

/// Factors of rows, one for all lanes of a vector, of which the lines are columns of one line of a matrix: of row r and vector v
/// at `starts[v] + r`.
struct Factors<W> {
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
    fn has(&mut self, number: usize) -> bool {
        let has = self.last == Some(number);
        if has {
            self.starts.extend(self.starts.last().copied());
        }
        has
    }

    /// Gives the next vector the factors of all rows that belong to a number.
    fn push(&mut self, number: usize, factors: impl Iterator<Item = Shoup<W>>) {
        self.starts.push(self.factors.len());
        self.factors.extend(factors);
        self.last = Some(number);
    }

    /// Those of all rows, for a vector.
    #[inline(always)]
    fn of(&self, vector: usize) -> &[Shoup<W>] {
        &self.factors[self.starts[vector]..]
    }
}

/// Factors by which rows are multiplied as they are stored.
struct After<'a, W> {
    /// Those of [`LANES`]: of row r and vector v at `rows[r] + vectors[v]`.
    words: &'a [W],
    rows: &'a [usize],
    vectors: &'a [usize],
    /// Those of [`VECTORS`].
    factors: Factors<W>,
    /// That of row 0 of all lines, unless it is 1.
    zero: Option<W>,
}

/// What [`After`] holds.
const NOTHING: u8 = 0;
/// A factor for each lane.
const LANES: u8 = 1;
/// A factor for all lanes of a vector.
const VECTORS: u8 = 2;

/// Whether numbers are whole vectors, in each of which they follow each other.
fn are_neighbours(numbers: &[usize], lanes: usize) -> bool {
    let vectors = numbers.chunks_exact(lanes);
    vectors.remainder().is_empty() && vectors.into_iter().all(|vector| vector.windows(2).all(|x| x[1] == x[0] + 1))
}

/// Whether numbers are whole vectors, in each of which they are the same.
fn are_same(numbers: &[usize], lanes: usize) -> bool {
    let vectors = numbers.chunks_exact(lanes);
    vectors.remainder().is_empty() && vectors.into_iter().all(|vector| vector.iter().all(|x| *x == vector[0]))
}

/// For j from 0 to 15.
macro_rules! each {
    (|$j:ident| $body:expr) => { each!(|$j| $body; 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15) };
    (|$j:ident| $body:expr; $($number:literal)*) => { $({ const $j: usize = $number; $body })* };
}

/// For each pair of a level among 16 rows, with the number of the root among those of steps of four levels: written out, for
/// lanes to stay in registers.
macro_rules! pairs {
    (8, $body:ident) => { $body!(0 8 0, 1 9 1, 2 10 2, 3 11 3, 4 12 4, 5 13 5, 6 14 6, 7 15 7) };
    (4, $body:ident) => { $body!(0 4 8, 1 5 9, 2 6 10, 3 7 11, 8 12 8, 9 13 9, 10 14 10, 11 15 11) };
    (2, $body:ident) => { $body!(0 2 12, 1 3 13, 4 6 12, 5 7 13, 8 10 12, 9 11 13, 12 14 12, 13 15 13) };
    (1, $body:ident) => { $body!(0 1 14, 2 3 14, 4 5 14, 6 7 14, 8 9 14, 10 11 14, 12 13 14, 14 15 14) };
}

/// The power of a root of unity of order 16 that each root of [`pairs`] is in a transform of its own.
const TURNS: [usize; 15] = [0, 1, 2, 3, 4, 5, 6, 7, 0, 2, 4, 6, 0, 4, 0];

/// Transforms of 2^`LOG_RADIX` rows, with the roots given: in the last step, where the first root of each level is 1, with that in
/// mind. With [`WordField::TURN`] and no others, where there is such a root. All results but the first may be unreduced where
/// they are `MULTIPLIED`.
#[inline(always)]
fn butterflies<F: WordField, const LOG_RADIX: usize, const LAST: bool, const MULTIPLIED: bool>(
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
                x[$v] = if F::TURN.is_some() {
                    field.turn_difference::<{ TURNS[$root] }>(u, v)
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

/// Transposes a square.
#[inline(always)]
fn transpose<F: WordField>(field: F, x: &mut [F::Lanes; MAX_LANES]) {
    macro_rules! exchange {
        ($bit:literal: $($u:literal $v:literal $root:literal),*) => { $(
            if $v < F::LANES {
                [x[$u], x[$v]] = field.exchange::<$bit>(x[$u], x[$v]);
            }
        )* };
    }
    macro_rules! bit3 { ($($pairs:tt)*) => { exchange!(3: $($pairs)*) } }
    macro_rules! bit2 { ($($pairs:tt)*) => { exchange!(2: $($pairs)*) } }
    macro_rules! bit1 { ($($pairs:tt)*) => { exchange!(1: $($pairs)*) } }
    macro_rules! bit0 { ($($pairs:tt)*) => { exchange!(0: $($pairs)*) } }
    pairs!(8, bit3);
    pairs!(4, bit2);
    pairs!(2, bit1);
    pairs!(1, bit0);
}

impl<F: WordField> Tile<'_, F> {
    #[inline(always)]
    fn run(&mut self) {
        let Pass { shape, params, input, output, .. } = *self.pass;
        let [load, store] = params.ends().map(|end| self.places(end));
        let vectors = self.lines.len().div_ceil(F::LANES);

        let scaled = params.has(flags::SCALE_IN);
        let are_scaled = scaled && load.form == Form::SideBySide && are_same(&load.positions, F::LANES);
        let before = if are_scaled && self.steps.0.len() > 1 { Some(self.before(&load)) } else { None };
        let loads = load.form == Form::SideBySide && (!scaled || before.is_some());
        let vectors_in: Vec<usize> = load.addresses.iter().copied().step_by(F::LANES).collect();
        if !loads {
            self.load(&load);
        }

        let table: &[F::Word] = bytemuck::cast_slice(self.pass.twiddles);
        let twiddled = params.has(flags::TWIDDLE_OFFSET | flags::TWIDDLE_BLOCK);
        let columns =
            if twiddled { self.of_indices(|index| params.twiddle_index(shape.log_rows, index)) } else { Vec::new() };
        let kind = match twiddled {
            false => Some(NOTHING),
            true if shape.twiddles != Twiddles::Stored => None,
            true if are_same(&columns, F::LANES) => Some(VECTORS),
            true if are_neighbours(&columns, F::LANES) => Some(LANES),
            true => None,
        };
        let stores = store.form == Form::SideBySide && kind.is_some() && !params.has(flags::SCALE_OUT);
        let vectors_out: Vec<usize> = store.addresses.iter().copied().step_by(F::LANES).collect();
        let columns_of_vectors: Vec<usize> = columns.iter().copied().step_by(F::LANES).collect();
        let field = self.field;
        let mut factors = Factors::default();
        if stores && kind == Some(VECTORS) {
            for &column in &columns_of_vectors {
                if !factors.has(column) {
                    factors.push(column, self.rows.factors.iter().map(|row| field.shoup(table[row + column])));
                }
            }
        }
        let after = After {
            words: table,
            rows: &self.rows.factors,
            vectors: &columns_of_vectors,
            factors,
            zero: (twiddled && params.has(flags::TWIDDLE_ZERO)).then(|| table[params.twiddles as usize]),
        };

        let vectors = &self.vectors[..vectors];
        let streamed = self.streamed && vectors_out.iter().all(|address| address.is_multiple_of(F::LANES));
        let inside = Side { words: self.memory.as_mut_ptr(), rows: &self.rows.inside, vectors, streamed: false };
        let source = Side {
            words: input.cast::<F::Word>().cast_mut(),
            rows: &self.rows.source,
            vectors: &vectors_in,
            streamed: false,
        };
        let sink = Side { words: output.cast::<F::Word>(), rows: &self.rows.sink, vectors: &vectors_out, streamed };
        let last = self.steps.0.len() - 1;
        for (i, step) in self.steps.0.iter().enumerate() {
            let from = if i == 0 && loads { source } else { inside };
            let before = before.as_ref().filter(|_| i == 0);
            let (to, kind) = if i == last && stores { (sink, kind) } else { (inside, Some(NOTHING)) };
            macro_rules! radix {
                ($($log:literal)*) => {
                    match (step.log_radix, kind) {
                        $(
                            ($log, _) if $log > F::LOG_RADIX => unreachable!("registers hold no such step"),
                            // SAFETY: both sides hold the rows and vectors of this tile: `inside` in the tile's memory,
                            // the others in the data, as `places` gives them, where no other tile has them.
                            ($log, _) if i < last && before.is_none() => unsafe {
                                self.step::<$log, false, false, NOTHING>(step, from, to, before, &after)
                            },
                            // SAFETY: as above.
                            ($log, _) if i < last => unsafe {
                                self.step::<$log, false, true, NOTHING>(step, from, to, before, &after)
                            },
                            // SAFETY: as above.
                            ($log, Some(LANES)) => unsafe {
                                self.step::<$log, true, false, LANES>(step, from, to, before, &after)
                            },
                            // SAFETY: as above.
                            ($log, Some(VECTORS)) => unsafe {
                                self.step::<$log, true, false, VECTORS>(step, from, to, before, &after)
                            },
                            // SAFETY: as above.
                            ($log, _) => unsafe {
                                self.step::<$log, true, false, NOTHING>(step, from, to, before, &after)
                            },
                        )*
                        _ => unreachable!("steps have one to four levels"),
                    }
                };
            }
            radix!(1 2 3 4);
        }
        if !stores {
            self.store(&store, &columns);
        }
    }

    /// # Safety
    /// `from` can be read and `to` written, in all rows and vectors, and those of `to` are aligned where they are streamed.
    #[inline(always)]
    unsafe fn step<const LOG_RADIX: usize, const LAST: bool, const SCALED: bool, const FACTORS: u8>(
        &self,
        step: &Step<F::Word>,
        from: Side<'_, F::Word>,
        to: Side<'_, F::Word>,
        before: Option<&Factors<F::Word>>,
        after: &After<'_, F::Word>,
    ) {
        let field = self.field;
        let distance = (1usize << step.log_rows) >> LOG_RADIX;
        let places: [usize; MAX_LANES] =
            std::array::from_fn(|j| if F::TURN.is_some() { step.places[j] } else { j } * distance);
        let mut x = [field.splat(bytemuck::Zeroable::zeroed()); MAX_LANES];
        for block in (0..from.rows.len()).step_by(1 << step.log_rows) {
            for (row, roots) in (block..block + distance).zip(step.roots.chunks_exact((1 << LOG_RADIX) - 1)) {
                let mut sources = [from.words; MAX_LANES];
                let mut sinks = [to.words; MAX_LANES];
                each!(|J| if J < 1 << LOG_RADIX {
                    sources[J] = from.words.wrapping_add(from.rows[row + J * distance]);
                    sinks[J] = to.words.wrapping_add(to.rows[row + places[J]]);
                });
                for (vector, (&source, &sink)) in from.vectors.iter().zip(to.vectors).enumerate() {
                    let before = before.filter(|_| SCALED).map(|before| before.of(vector));
                    each!(|J| if J < 1 << LOG_RADIX {
                        // SAFETY: as the caller vouches.
                        x[J] = unsafe { field.load(sources[J].wrapping_add(source)) };
                        if let Some(before) = before {
                            x[J] = field.mul_factor(x[J], &before[row + J * distance]);
                        }
                    });
                    if F::TURN.is_some() && !LAST || FACTORS != NOTHING {
                        butterflies::<F, LOG_RADIX, LAST, true>(field, &mut x, roots);
                    } else {
                        butterflies::<F, LOG_RADIX, LAST, false>(field, &mut x, roots);
                    }
                    let shared = if FACTORS == VECTORS { after.factors.of(vector) } else { &[] };
                    each!(|J| if J < 1 << LOG_RADIX {
                        if F::TURN.is_some() && !LAST && J != 0 {
                            x[J] = field.mul_factor(x[J], &roots[J - 1]);
                        }
                        let row = row + places[J];
                        if FACTORS == VECTORS && (J != 0 || row > 0) {
                            x[J] = field.mul_factor(x[J], &shared[row]);
                        } else if FACTORS == LANES && (J != 0 || row > 0) {
                            let factors = &after.words[after.rows[row] + after.vectors[vector]..];
                            // SAFETY: as many as there are lanes.
                            x[J] = field.mul(x[J], unsafe { field.load(factors[..F::LANES].as_ptr()) });
                        } else if FACTORS != NOTHING
                            && let Some(zero) = after.zero
                        {
                            x[J] = field.mul(x[J], field.splat(zero));
                        }
                    });
                    if to.streamed {
                        each!(|J| if J < 1 << LOG_RADIX {
                            // SAFETY: as the caller vouches.
                            unsafe { field.stream(sinks[J].wrapping_add(sink), x[J]) }
                        });
                    } else {
                        each!(|J| if J < 1 << LOG_RADIX {
                            // SAFETY: as the caller vouches.
                            unsafe { field.store(sinks[J].wrapping_add(sink), x[J]) }
                        });
                    }
                }
            }
        }
    }

    /// What belongs to the index of each line. Neighbours are mostly columns of one.
    fn of_indices(&self, value: impl Fn(u32) -> usize) -> Vec<usize> {
        let mut last = None;
        let of_line = |line: &Line| match last {
            Some((index, value)) if index == line.index => value,
            _ => last.insert((line.index, value(line.index))).1,
        };
        self.lines.iter().map(of_line).collect()
    }

    /// The scales of all rows, for each vector of lines.
    #[inline(always)]
    fn before(&self, places: &Places) -> Factors<F::Word> {
        let Pass { shape, params, scale, .. } = self.pass;
        let scale: &[F::Word] = bytemuck::cast_slice(scale);
        let rows = 1usize << shape.log_rows;
        let element_of = |row: usize| if params.has(flags::ROWS_IN_REVERSED) { self.reversed[row] } else { row };
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
                    // SAFETY: as many words as there are lanes.
                    unsafe {
                        let product = self.field.mul(self.field.load(words.as_ptr()), self.field.splat(scale[low]));
                        self.field.store(words.as_mut_ptr(), product);
                    }
                }
            } else {
                for (row, word) in words.iter_mut().enumerate() {
                    *word = self.field.mul_word(*word, scale[entries(row)[0]]);
                }
            }
            factors.push(position, words.iter().map(|word| self.field.shoup(*word)));
        }
        factors
    }

    fn places(&self, end: End) -> Places {
        let Pass { shape, params, .. } = self.pass;
        let End { stride, .. } = end;
        let positions = self.of_indices(|index| params.place(shape.log_rows, index, end));
        let addresses: Vec<usize> =
            self.lines.iter().zip(&positions).map(|(line, position)| params.address(*line, *position)).collect();
        let step = (params.interleaved as usize) << stride;
        let form = if are_neighbours(&addresses, F::LANES) {
            Form::SideBySide
        } else if step == 1 && addresses.len().is_multiple_of(F::LANES) && 1 << shape.log_rows >= F::LANES {
            Form::Runs
        } else {
            Form::Other
        };
        Places { positions, addresses, stride: 1 << stride, step, form }
    }

    /// All lines into the tile's memory, with their scales.
    #[inline(always)]
    fn load(&mut self, places: &Places) {
        let Pass { shape, params, input, .. } = *self.pass;
        let input = input.cast::<F::Word>();
        let rows_reversed = params.has(flags::ROWS_IN_REVERSED);
        let rows = 1 << shape.log_rows;
        let (field, reversed, Rows { inside, .. }) = (self.field, self.reversed, self.rows);
        let row_of = |m: usize| inside[if rows_reversed { reversed[m] } else { m }];
        if places.form == Form::Runs {
            let mut x = [field.splat(bytemuck::Zeroable::zeroed()); MAX_LANES];
            for (vector, lines) in places.addresses.chunks_exact(F::LANES).enumerate() {
                for m in (0..rows).step_by(F::LANES) {
                    each!(|J| if J < F::LANES {
                        // SAFETY: as many elements of a line of this tile, which lies inside the data.
                        x[J] = unsafe { field.load(input.add(lines[J] + m)) };
                    });
                    transpose(field, &mut x);
                    each!(|J| if J < F::LANES {
                        let row = &mut self.memory[row_of(m + J) + vector * F::LANES..][..F::LANES];
                        // SAFETY: as many words as there are lanes.
                        unsafe { field.store(row.as_mut_ptr(), x[J]) };
                    });
                }
            }
        } else {
            for m in 0..rows {
                for (slot, line) in self.memory[row_of(m)..].iter_mut().zip(&places.addresses) {
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
    fn store(&mut self, places: &Places, columns: &[usize]) {
        let Pass { shape, params, output, .. } = *self.pass;
        let output = output.cast::<F::Word>();
        let rows_reversed = params.has(flags::ROWS_OUT_REVERSED);
        let (field, reversed, Rows { inside, .. }) = (self.field, self.reversed, self.rows);
        let output_of = |m: usize| if rows_reversed { reversed[m] } else { m };
        let row_of = |m: usize| inside[if rows_reversed { m } else { reversed[m] }];
        let rows = 1 << shape.log_rows;
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
                        let row = &self.memory[row_of(m + J) + vector * F::LANES..][..F::LANES];
                        // SAFETY: as many words as there are lanes.
                        x[J] = unsafe { field.load(row.as_ptr()) };
                    });
                    transpose(field, &mut x);
                    each!(|J| if J < F::LANES {
                        // SAFETY: as many elements of a line of this tile, which lies inside the data.
                        unsafe { field.store(output.add(lines[J] + m), x[J]) };
                    });
                }
            }
        } else {
            for m in 0..rows {
                for (x, line) in self.memory[row_of(m)..].iter().zip(&places.addresses) {
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
            let words = self.memory[row + first..][..F::LANES].as_mut_ptr();
            // SAFETY: as many words as there are lanes, of both.
            unsafe {
                let product = self.field.mul(self.field.load(words), self.field.load(ptr::from_ref(&factors).cast()));
                self.field.store(words, product);
            }
        }
    }

    /// Output `k` times the factors of lines with the indices `columns`.
    #[inline(always)]
    fn twiddle(&mut self, columns: &[usize], k: usize, row: usize) {
        let Pass { shape, params, twiddles, .. } = self.pass;
        let table: &[F::Word] = &bytemuck::cast_slice(twiddles)[params.twiddles as usize..];
        if shape.twiddles == Twiddles::TwoLevel {
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

#[cfg(test)]
mod tests {
    use std::ops::Range;

    use ark_ff::{FftField, UniformRand};
    use evariste_field::{
        DeviceField,
        small::{BabyBear, Goldilocks, KoalaBear},
    };

    use super::*;
    use crate::{
        Order, Split,
        layout::{Batch, Direction, Domain, Layout, Place, Tiling},
        pass::{Data, Params, Shape, Table, Tile as Reference},
        tables,
    };

    fn random<F: DeviceField + UniformRand>(len: usize) -> Vec<u32> {
        let mut rng = ark_std::test_rng();
        let mut limbs = vec![0; len * F::LIMBS];
        limbs.chunks_exact_mut(F::LIMBS).for_each(|limbs| F::rand(&mut rng).store(limbs));
        limbs
    }

    /// Passes of every kind, of `batch` transforms or matrices of columns, with tables of anything, by all that this processor
    /// has, compared with the body over arkworks' arithmetic.
    fn check<F: DeviceField + FftField>(log_n: u32, log_tile: u32, batch: usize, columns: usize) {
        let (log_balanced, log_run, log_radix, log_tiles) = (log_tile, 0, 2, 2);
        let tiling = Tiling {
            log_tile,
            log_balanced,
            log_run,
            log_radix,
            threads: 1,
            log_tiles,
            specialised: false,
            direct: false,
        };
        let len = (batch * columns) << log_n;
        let source = random::<F>(len);
        let all: Vec<Words> = Words::each_of::<F>();
        for case in 0..1 << 5 {
            let is = |bit: u32| case >> bit & 1 == 1;
            let order = |bit| if is(bit) { Order::BitReversed } else { Order::Natural };
            let (orders, inverse, coset) = ((order(0), order(1)), is(2), is(3));
            let twiddles = if is(4) { Twiddles::TwoLevel } else { Twiddles::Stored };
            let layout = Layout::tiled(log_n, Split::Balanced, twiddles, tiling);
            let roots = tables::roots::<F>(&layout).unwrap();
            let mut factors = random::<F>(layout.twiddles().1.max(1));
            if twiddles == Twiddles::TwoLevel {
                // The first power of each level, by which only some bodies multiply.
                for (start, _) in &layout.twiddles().0[..layout.log_rows.len() - 1] {
                    for entry in [*start, start + (1 << layout.log_split())] {
                        F::ONE.store(&mut factors[entry * F::LIMBS..][..F::LIMBS]);
                    }
                }
            }
            let scale = random::<F>(3 * (2 * layout.roots() + 1) + layout.powers());
            let mut passes = layout.passes(orders, Batch::of(columns), Place::Source);
            let direction = if inverse { Direction::Inverse } else { Direction::Forward };
            let domain = if coset { Domain::Coset } else { Domain::Subgroup };
            layout.scale(&mut passes, orders, direction, domain);
            for (i, pass) in passes.iter().enumerate() {
                let shape = Shape { in_place: false, ..layout.shape_of(&passes, i) };
                let params = Params {
                    first: 0,
                    lines: (len >> pass.log_rows) as u32,
                    log_n,
                    stride_in: pass.stride_in,
                    stride_out: pass.stride_out,
                    flags: pass.flags,
                    roots: if inverse { layout.roots() as u32 } else { 0 },
                    log_roots: layout.log_roots(),
                    twiddles: pass.twiddles as u32,
                    log_twiddles: pass.log_twiddles,
                    shift: pass.shift,
                    split: layout.log_split(),
                    scales: 0,
                    log_scales: layout.log_split(),
                    interleaved: columns as u32,
                    pitch_in: log_n,
                    pitch_out: log_n,
                };
                let step = params.log_roots - shape.log_rows;
                let root = |i: usize| Table::<F>::new(&roots).at(3 * (params.roots as usize + (i << step)));
                let within: Vec<F> = (0..1 << shape.log_rows >> 1).map(root).collect();
                let [twiddles, scales] = [&factors, &scale].map(|table| Table::<F>::new(table));
                // Results beside each other, and with room between.
                for apart in 0..2 {
                    let params = Params { pitch_out: log_n + apart, ..params };
                    let mut expected = vec![0; source.len() << apart];
                    let data = Data::<F>::new(source.as_ptr(), expected.as_mut_ptr(), source.len(), expected.len());
                    let tile = Reference {
                        shape,
                        params: &params,
                        data,
                        twiddles,
                        scale: scales,
                        roots: &within,
                        radix: F::ONE,
                    };
                    let mut memory = vec![F::ZERO; 1 << (shape.log_rows + shape.log_columns)];
                    (0..params.lines).step_by(1 << shape.log_columns).for_each(|first| tile.run(first, &mut memory));
                    let run = |words: Words, lines: Range<u32>, input: *const u32, output: *mut u32| {
                        let params = &Params { first: lines.start, lines: lines.end, ..params };
                        let (roots, twiddles, scale) = (&roots[..], &factors[..], &scale[..]);
                        Pass { shape, params, input, output, roots, twiddles, scale }.run_in_words(words);
                    };
                    for words in &all {
                        let what = format!("{words:?}: 2^{log_n} × {columns}, {batch} times, {params:?}");
                        let mut memory = vec![0; expected.len() + CACHE_LINE];
                        let aligned = memory.as_ptr().align_offset(CACHE_LINE);
                        let output = &mut memory[aligned..][..expected.len()];
                        run(*words, 0..params.lines, source.as_ptr(), output.as_mut_ptr());
                        assert!(output == expected, "{what}");
                        output.fill(0);
                        for lines in [0..params.lines / 3, params.lines / 3..params.lines] {
                            run(*words, lines, source.as_ptr(), output.as_mut_ptr());
                        }
                        assert!(output == expected, "in two parts, {what}");
                        if pass.from == pass.to && apart == 0 {
                            output.copy_from_slice(&source);
                            let start = output.as_mut_ptr();
                            run(*words, 0..params.lines, start, start);
                            assert!(output == expected, "in place, {what}");
                        }
                    }
                }
            }
        }
    }

    fn check_all<F: DeviceField + FftField>() {
        // A single pass of each number of rows, on lines that fill vectors or do not.
        for log_n in 1..=9 {
            check::<F>(log_n, 12, 1, 1);
            check::<F>(log_n, 12, 5, 3);
            check::<F>(log_n, 12, 32, 1);
            check::<F>(log_n, 12, 1, 16);
        }
        // Two and three passes.
        for (log_n, log_tile) in [(5, 3), (7, 4), (8, 4), (9, 5), (10, 5), (11, 4), (13, 7)] {
            check::<F>(log_n, log_tile, 1, 1);
        }
        for (batch, columns) in [(2, 1), (1, 9), (2, 16), (1, 40), (1, 64)] {
            check::<F>(8, 4, batch, columns);
            check::<F>(9, 3, batch, columns);
        }
    }

    #[test]
    fn passes_are_those_of_arkworks_in_all_vectors() {
        check_all::<Goldilocks>();
        check_all::<BabyBear>();
        check_all::<KoalaBear>();
    }
}
