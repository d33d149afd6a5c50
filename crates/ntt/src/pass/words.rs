//! The body of a pass over prime fields of one word, in lanes of vectors.
//!
//! A tile is some neighbouring lines. Its levels of butterflies are done in steps of up to four levels. Registers hold
//! 2^4 rows of one vector of lanes for such a step. If lines lie side by side, the first step loads them from the data
//! and the last stores them there, with their factors. Steps between leave them in the tile's memory, row by row. If a
//! line is a run of its own, squares of rows and lines are transposed, on the way into the tile's memory and out. Rare
//! cases (other factors, lines that fill no vector) are done one by one, there too.

use std::any::Any;

use evariste_backend::{author::Wiped, parallel};
use evariste_field::words::{WordField, WordJob, Words};

use self::{lines::Rows, memory::Memory, steps::Steps, tile::Tile};
use super::cpu::Pass;
use crate::order::reverse_bits;

mod butterflies;
mod factors;
mod lines;
mod memory;
mod steps;
#[cfg(test)]
mod tests;
mod tile;

/// Bytes of a tile, which should stay in the level 2 cache of a core with what it is made from. Zen 4 has cores with 1
/// MiB. With half of these bytes, matrices of 2^18 × 64 words took 1.14 times as long there. With twice these bytes,
/// single transforms of 2^18 words took 1.2 times as long.
const TILE_BYTES: usize = 1 << 18;

/// The same on processors without vectors of 512 bits. Many of these have 256 or 512 KiB.
const SMALL_TILE_BYTES: usize = 1 << 17;

/// Bytes from which on the results of a pass from one buffer to another are stored past the caches, which spares
/// reading what is overwritten.
const MIN_STREAMED_BYTES: u64 = if cfg!(test) { 1 << 12 } else { 1 << 26 };

/// Tiles that a thread should get at the least, where these would be narrow otherwise.
const TILES_PER_THREAD: usize = 4;

/// Bytes of a line of cache.
const CACHE_LINE: usize = 64;

impl Pass<'_> {
    /// Does it on all cores.
    pub(super) fn run_in_words(&self, words: Words) {
        words.run(Whole { pass: self, words });
    }
}

impl Pass<'_> {
    /// Whether results should go past the caches, as far as this is known before the place of each. They should if they
    /// go to other memory than their inputs, in rows of whole vectors, and exceed the caches. In place, caches have the
    /// lines.
    fn is_streamed<F: WordField>(&self) -> bool {
        let Self { variant, params, input, output, .. } = *self;
        let bytes = (u64::from(params.lines) * size_of::<F::Word>() as u64) << variant.log_rows;
        let is_aligned = output.cast::<F::Lanes>().is_aligned() && (params.row_out as usize).is_multiple_of(F::LANES);
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
        let most = (tile_bytes / size_of::<F::Word>()) >> pass.variant.log_rows;
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
        let log_rows = pass.variant.log_rows;
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
        let mut words: Wiped<F::Word> = vec![bytemuck::Zeroable::zeroed(); rows.len + spare].into();
        let aligned = words.as_ptr().align_offset(CACHE_LINE).min(spare);
        let words = &mut words[aligned..];
        let mut tile = Tile {
            memory: Memory { pass, field, reversed, rows, lines: Vec::new(), words },
            steps,
            vectors: (0..width / F::LANES).map(|vector| vector * F::LANES).collect(),
            streamed: pass.is_streamed::<F>(),
        };
        for i in tiles {
            let first = pass.params.first + (i * width) as u32;
            tile.memory.lines.clear();
            let count = ((pass.params.lines - first) as usize).min(*width);
            tile.memory.lines.extend(pass.params.lines_from(first).take(count));
            tile.run();
        }
        field.fence();
    }
}
