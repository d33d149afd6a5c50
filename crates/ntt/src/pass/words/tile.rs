//! The steps of a tile, from the data and to it.

use evariste_field::words::{MAX_LANES, WordField, WordPart};

use super::{
    super::{cpu::Pass, flags},
    butterflies::{butterflies, each},
    factors::{After, Factors, LANES, NOTHING, VECTORS, scales},
    lines::{Form, Places, are_neighbours, are_same, of_indices},
    memory::Memory,
    steps::{Step, Steps},
};
use crate::config::Twiddles;

/// Neighbouring lines of a pass.
pub(super) struct Tile<'a, F: WordField> {
    pub(super) memory: Memory<'a, F>,
    pub(super) steps: &'a Steps<F::Word>,
    /// Where the vectors of a row start in the memory.
    pub(super) vectors: Vec<usize>,
    /// Results go past the caches where they are aligned.
    pub(super) streamed: bool,
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

impl<F: WordField> Tile<'_, F> {
    #[inline(always)]
    pub(super) fn run(&mut self) {
        let Memory { pass, field, reversed, rows, .. } = self.memory;
        let Pass { variant, params, input, output, .. } = *pass;
        let lines = &self.memory.lines;
        let [load, store] = params.endpoints().map(|end| Places::new::<F>(pass, lines, end));
        let vectors = lines.len().div_ceil(F::LANES);

        let scaled = params.has(flags::SCALE_IN);
        let are_scaled = scaled && load.form == Form::SideBySide && are_same(&load.positions, F::LANES);
        let before = (are_scaled && self.steps.0.len() > 1).then(|| scales(field, pass, reversed, &load));
        let loads = load.form == Form::SideBySide && (!scaled || before.is_some());
        let vectors_in: Vec<usize> = load.addresses.iter().copied().step_by(F::LANES).collect();

        let table: &[F::Word] = bytemuck::cast_slice(pass.twiddles);
        let twiddled = params.has(flags::TWIDDLE_OFFSET | flags::TWIDDLE_BLOCK);
        let columns = match twiddled {
            true => of_indices(lines, |index| params.twiddle_index(variant.log_rows, index)),
            false => Vec::new(),
        };
        let kind = match twiddled {
            false => Some(NOTHING),
            true if variant.twiddles != Twiddles::Stored => None,
            true if are_same(&columns, F::LANES) => Some(VECTORS),
            true if are_neighbours(&columns, F::LANES) => Some(LANES),
            true => None,
        };
        let stores = store.form == Form::SideBySide && kind.is_some() && !params.has(flags::SCALE_OUT);
        let vectors_out: Vec<usize> = store.addresses.iter().copied().step_by(F::LANES).collect();
        let columns_of_vectors: Vec<usize> = columns.iter().copied().step_by(F::LANES).collect();
        let mut factors = Factors::default();
        if stores && kind == Some(VECTORS) {
            for &column in &columns_of_vectors {
                if !factors.has(column) {
                    factors.push(column, rows.factors.iter().map(|row| field.shoup(table[row + column])));
                }
            }
        }
        let after = After {
            words: table,
            rows: &rows.factors,
            vectors: &columns_of_vectors,
            factors,
            zero: (twiddled && params.has(flags::TWIDDLE_ZERO)).then(|| table[params.twiddles as usize]),
        };

        if !loads {
            self.memory.load(&load);
        }
        let vectors = &self.vectors[..vectors];
        let streamed = self.streamed && vectors_out.iter().all(|address| address.is_multiple_of(F::LANES));
        let inside = Side { words: self.memory.words.as_mut_ptr(), rows: &rows.inside, vectors, streamed: false };
        let source = Side {
            words: input.cast::<F::Word>().cast_mut(),
            rows: &rows.source,
            vectors: &vectors_in,
            streamed: false,
        };
        let sink = Side { words: output.cast::<F::Word>(), rows: &rows.sink, vectors: &vectors_out, streamed };
        let last = self.steps.0.len() - 1;
        for (i, step) in self.steps.0.iter().enumerate() {
            let from = if i == 0 && loads { source } else { inside };
            let before = before.as_ref().filter(|_| i == 0);
            let (to, kind) = if i == last && stores { (sink, kind) } else { (inside, Some(NOTHING)) };
            // What a field has no steps of is not compiled for it.
            macro_rules! radix {
                ($($log:literal)*) => {
                    match (step.log_radix, i == last) {
                        $(
                            ($log, false) if const { Step::<F::Word>::is_inner::<F>($log) } => match before {
                                // SAFETY: both sides hold the rows and vectors of this tile: `inside` in the tile's
                                // memory, the others in the data, as `Places` gives them, where no other tile has them.
                                None => unsafe { self.step::<$log, false, false, NOTHING>(step, from, to, before, &after) },
                                // SAFETY: as above.
                                Some(_) => unsafe {
                                    self.step::<$log, false, true, NOTHING>(step, from, to, before, &after)
                                },
                            },
                            ($log, true) if const { $log <= F::LOG_RADIX } => match kind {
                                // SAFETY: as above.
                                Some(LANES) => unsafe {
                                    self.step::<$log, true, false, LANES>(step, from, to, before, &after)
                                },
                                // SAFETY: as above.
                                Some(VECTORS) => unsafe {
                                    self.step::<$log, true, false, VECTORS>(step, from, to, before, &after)
                                },
                                // SAFETY: as above.
                                _ => unsafe { self.step::<$log, true, false, NOTHING>(step, from, to, before, &after) },
                            },
                        )*
                        _ => unreachable!("no such steps are made"),
                    }
                };
            }
            radix!(1 2 3 4);
        }
        if !stores {
            self.memory.store(&store, &columns);
        }
    }

    /// # Safety
    /// `from` can be read and `to` written, in all rows and vectors, and those of `to` are aligned where they are
    /// streamed.
    #[inline(always)]
    unsafe fn step<const LOG_RADIX: usize, const LAST: bool, const SCALED: bool, const FACTORS: u8>(
        &self,
        step: &Step<F::Word>,
        from: Side<'_, F::Word>,
        to: Side<'_, F::Word>,
        before: Option<&Factors<F::Word>>,
        after: &After<'_, F::Word>,
    ) {
        let field = self.memory.field;
        field.apart(Work::<F, LOG_RADIX, LAST, SCALED, FACTORS> { field, step, from, to, before, after });
    }
}

/// A step, whose sides are as [`Tile::step`] asks for.
struct Work<'a, F: WordField, const LOG_RADIX: usize, const LAST: bool, const SCALED: bool, const FACTORS: u8> {
    field: F,
    step: &'a Step<F::Word>,
    from: Side<'a, F::Word>,
    to: Side<'a, F::Word>,
    before: Option<&'a Factors<F::Word>>,
    after: &'a After<'a, F::Word>,
}

impl<F: WordField, const LOG_RADIX: usize, const LAST: bool, const SCALED: bool, const FACTORS: u8> WordPart
    for Work<'_, F, LOG_RADIX, LAST, SCALED, FACTORS>
{
    #[inline(always)]
    fn run(self) {
        let Self { field, step, from, to, before, after } = self;
        let distance = (1usize << step.log_rows) >> LOG_RADIX;
        let places: [usize; MAX_LANES] =
            std::array::from_fn(|j| if F::SHIFT_ROOT.is_some() { step.places[j] } else { j } * distance);
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
                        // SAFETY: as whoever made it vouches.
                        x[J] = unsafe { field.load(sources[J].wrapping_add(source)) };
                        if let Some(before) = before {
                            x[J] = field.mul_factor(x[J], &before[row + J * distance]);
                        }
                    });
                    if F::SHIFT_ROOT.is_some() && !LAST || FACTORS != NOTHING {
                        butterflies::<F, LOG_RADIX, LAST, true>(field, &mut x, roots);
                    } else {
                        butterflies::<F, LOG_RADIX, LAST, false>(field, &mut x, roots);
                    }
                    let shared = if FACTORS == VECTORS { after.factors.of(vector) } else { &[] };
                    each!(|J| if J < 1 << LOG_RADIX {
                        if F::SHIFT_ROOT.is_some() && !LAST && J != 0 {
                            x[J] = field.mul_factor(x[J], &roots[J - 1]);
                        }
                        let row = row + places[J];
                        if FACTORS == VECTORS && (J != 0 || row > 0) {
                            x[J] = field.mul_factor(x[J], &shared[row]);
                        } else if FACTORS == LANES && (J != 0 || row > 0) {
                            let factors = &after.words[after.rows[row] + after.vectors[vector]..];
                            // SAFETY: there is one factor for each lane.
                            x[J] = field.mul(x[J], unsafe { field.load(factors[..F::LANES].as_ptr()) });
                        } else if FACTORS != NOTHING
                            && let Some(zero) = after.zero
                        {
                            x[J] = field.mul(x[J], field.splat(zero));
                        }
                    });
                    if to.streamed {
                        each!(|J| if J < 1 << LOG_RADIX {
                            // SAFETY: as whoever made it vouches.
                            unsafe { field.stream(sinks[J].wrapping_add(sink), x[J]) }
                        });
                    } else {
                        each!(|J| if J < 1 << LOG_RADIX {
                            // SAFETY: as whoever made it vouches.
                            unsafe { field.store(sinks[J].wrapping_add(sink), x[J]) }
                        });
                    }
                }
            }
        }
    }
}
