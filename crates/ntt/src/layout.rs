//! How a transform is split into passes, and where its tables lie.

use ark_ff::FftField;
use evariste_backend::{Device, DeviceInfo, Dialect};
use evariste_field::{DeviceField, source};

use crate::{
    Config, Error, Order, Result, Split, Twiddles,
    pass::{Shape, flags},
    reference::root_of_unity,
};

/// Largest size: kernels count elements in 32 bits.
const MAX_LOG_N: u32 = 31;

/// Threads of a workgroup, of which three or four share a multiprocessor.
const THREADS: u32 = 256;

/// Elements of a tile at the least, so that small transforms share workgroups.
const MIN_LOG_TILE: u32 = 7;

/// Largest tile of a CPU's thread: with the tables it should stay in the level 2 cache.
const MAX_LOG_CPU_TILE: u32 = 12;

/// log₂ of the lines side by side that a CPU's thread takes: two vectors of lanes. On a Xeon, passes of up to 2^8 points
/// with these took 0.8 of the time of passes of 2^10 points with 4 or 8 at 2^20 elements of 32 bytes.
const LOG_CPU_RUN: u32 = 4;

/// The same for elements of one word: bytes of a tile and side by side count, and these are short.
const LOG_CPU_RUN_OF_WORDS: u32 = 6;

/// The same where transforms lie side by side themselves: as many as a line of cache holds of the shortest elements.
const LOG_CPU_RUN_OF_COLUMNS: u32 = 4;

/// Bytes that should lie side by side where a pass loads and stores data in memory: four sectors of a GPU's. With two,
/// a transform of 2^26 elements of 32 bytes took 20.8 ms on an H200, against 17 with a pass more.
const RUN_BYTES: u32 = 128;

/// The same for elements of one word, of which a tile has too few lines side by side for more.
const RUN_BYTES_OF_WORDS: u32 = 64;

/// The same for data that stays in the device's cache, where it is too little for more: one sector. For 2^16 and 2^18
/// elements of 32 bytes, three passes with runs of 128 bytes took 24.7 and 60.7 µs on an H200, two passes with runs of 32
/// took 31.0 and 72.4.
const CACHED_RUN_BYTES: u32 = 32;

/// log₂ of the least elements of a tile that are split into rows and runs of [`RUN_BYTES`] in the device's cache.
const MIN_LOG_SHARE: u32 = 8;

/// Percent of a device's memory that a plan with its data takes at most where factors are stored: some is others'.
const MEMORY_PERCENT: u64 = 90;

/// The same where factors have their quotients, which take as much again and save some 4% of the time.
const QUOTIENTS_PERCENT: u64 = 7;

/// Share of the cache that data and scratch may have together to count as staying there.
const CACHE_SHARE: u64 = 2;

/// Tiles that each unit of the device should get before tiles grow beyond one line.
const TILES_PER_UNIT: u32 = 2;

/// Limbs up to which kernels are compiled for their flags: beyond, arithmetic hides what they cost, and a kernel takes
/// seconds to compile.
const MAX_SPECIALISED_LIMBS: usize = 12;

/// How a transform is split into passes, and where its tables lie.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Layout {
    pub(crate) log_n: u32,
    /// log₂ of the points of each pass, in the order in which digits of the index are transformed, highest first.
    pub(crate) log_rows: Vec<u32>,
    /// log₂ of the lines of each pass' tiles.
    pub(crate) log_columns: Vec<u32>,
    /// Passes, the first ones, that leave two transforms each of half as many elements, by a kernel of their own.
    pub(crate) halvings: usize,
    pub(crate) twiddles: Twiddles,
    pub(crate) tiling: Tiling,
    /// log₂ of the root of order 16, modulo 192, where that is a power of two and kernels multiply by such with shifts.
    pub(crate) root_shift: Option<u32>,
    /// Roots and factors are those of products of parts, in WGSL.
    pub(crate) lazy: bool,
}

/// What tiles a device takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Tiling {
    /// log₂ of the elements of the largest tile.
    pub(crate) log_tile: u32,
    /// The same where passes are balanced.
    pub(crate) log_balanced: u32,
    /// log₂ of the elements that should lie side by side where a pass loads and stores them.
    pub(crate) log_run: u32,
    /// log₂ of the elements that a thread takes in a step.
    pub(crate) log_radix: u32,
    /// Threads of the largest workgroup.
    pub(crate) threads: u32,
    /// log₂ of the tiles that the device should get before they grow beyond what runs need.
    pub(crate) log_tiles: u32,
    /// Kernels are compiled for the flags of a launch: not on processors, which would compile for longer than that saves.
    pub(crate) specialised: bool,
    /// There are kernels of their own for passes that store lines which are neighbours: in WGSL.
    pub(crate) direct: bool,
}

impl Tiling {
    pub(crate) fn new<F: DeviceField>(info: &DeviceInfo, log_n: u32) -> Self {
        let bytes = source::tile_bytes::<F>(1);
        let fits = (info.limits.workgroup_bytes / bytes).max(4).ilog2();
        // Elements that the registers of a thread hold.
        let per_thread = if F::LIMBS <= 2 { 16 } else { 4 };
        let threads = info.limits.workgroup_threads.clamp(1, THREADS);
        let (log_cpu_run, log_cpu_tile) = match F::LIMBS {
            ..=2 => (LOG_CPU_RUN_OF_WORDS, MAX_LOG_CPU_TILE + 2),
            _ => (LOG_CPU_RUN, MAX_LOG_CPU_TILE),
        };
        let log_tile = match threads {
            // From two passes on there are lines side by side even in one transform.
            1 => fits.saturating_sub(1).min(log_cpu_tile).min(log_n.div_ceil(2) + log_cpu_run),
            threads => fits.min((threads * per_thread).ilog2()),
        };
        // Where elements are too few for full workgroups on every unit, threads take two each, so that they are more.
        let idle = 1 << log_n < 4 * u64::from(THREADS) * u64::from(info.parallelism);
        let log_radix = match F::LIMBS {
            _ if idle => 1,
            ..=2 => 4,
            _ => 2,
        };
        let log_tiles = TILES_PER_UNIT.saturating_mul(info.parallelism).max(1).ilog2();
        let cached = CACHE_SHARE * 2 * (u64::from(bytes) << log_n) <= info.limits.cache_bytes;
        let log_run = |bytes_side_by_side: u32| bytes_side_by_side.div_ceil(bytes).next_power_of_two().ilog2();
        // Tiles that leave no unit idle, if they take enough rows.
        let share = log_tile.min(log_n.saturating_sub(log_tiles));
        let (log_balanced, log_run) = match (threads, cached) {
            (1, _) => (log_tile, log_cpu_run),
            (_, false) if F::LIMBS == 1 => (log_tile, log_run(RUN_BYTES_OF_WORDS)),
            (_, false) => (log_tile, log_run(RUN_BYTES)),
            (_, true) if F::LIMBS > 2 && share >= MIN_LOG_SHARE => (share, log_run(RUN_BYTES)),
            (_, true) => (log_tile, log_run(CACHED_RUN_BYTES)),
        };
        let direct = info.dialect() == Dialect::Wgsl;
        let specialised = threads > 1 && !info.features.software && F::LIMBS <= MAX_SPECIALISED_LIMBS;
        Self { log_tile, log_balanced, log_run, log_radix, threads, log_tiles, specialised, direct }
    }

    /// log₂ of the points of each pass.
    pub(crate) fn split(&self, log_n: u32, split: Split) -> Vec<u32> {
        let balanced = |passes: u32| (0..passes).map(|i| log_n / passes + u32::from(i < log_n % passes)).collect();
        match split {
            Split::Balanced => {
                let most = self.log_balanced.saturating_sub(self.log_run).max(3);
                let passes = log_n.div_ceil(most);
                // With even numbers of levels, steps of radix 4 are fewer.
                let (pairs, odd) = (log_n / 2, log_n % 2);
                let even =
                    |i| 2 * (pairs / passes + u32::from(i < pairs % passes)) + odd * u32::from(i == pairs % passes);
                match self.threads > 1 && self.log_radix == 2 && (0..passes).all(|i| even(i) <= most) {
                    true => (0..passes).map(even).collect(),
                    false => balanced(passes),
                }
            }
            Split::Square if log_n == 0 => Vec::new(),
            Split::Square => balanced(log_n.div_ceil(self.log_tile).next_power_of_two()),
            Split::Rectangular => {
                let full = (log_n / self.log_tile) as usize;
                let rest = Some(log_n % self.log_tile).filter(|rest| *rest > 0);
                std::iter::repeat_n(self.log_tile, full).chain(rest).collect()
            }
            Split::ThreeWay => balanced(log_n.min(3).max(log_n.div_ceil(self.log_tile))),
            Split::Halves => {
                let halvings = self.halvings(log_n);
                let square = self.split(log_n - halvings, Split::Square);
                std::iter::repeat_n(1, halvings as usize).chain(square).collect()
            }
        }
    }
}

impl Tiling {
    /// Rounds of [`Split::Halves`] until a square of two passes is left, or one pass.
    fn halvings(&self, log_n: u32) -> u32 {
        log_n.saturating_sub(2 * self.log_tile).max(log_n % 2)
    }
}

impl Layout {
    pub(crate) fn new<F: DeviceField + FftField>(info: &DeviceInfo, log_n: u32, config: Config) -> Result<Self> {
        if log_n > F::TWO_ADICITY {
            return Err(Error::TwoAdicity { expected: F::TWO_ADICITY, actual: log_n });
        }
        if log_n > MAX_LOG_N {
            return Err(Error::TooLarge { expected: MAX_LOG_N, actual: 1 << log_n.min(63) });
        }
        let tiling = Tiling::new::<F>(info, log_n);
        let cuda = info.dialect() == Dialect::Cuda;
        let root_shift = if cuda { root_shift::<F>() } else { None };
        let quotients = cuda && source::cuda_is_lazy::<F>();
        let lazy = info.dialect() == Dialect::Wgsl && info.features.int64 && source::wgsl_lazy_factor::<F>().is_some();
        let layout = |twiddles| Self { root_shift, lazy, ..Self::tiled(log_n, config.split, twiddles, tiling) };
        match config.twiddles {
            Some(Twiddles::StoredWithQuotients) if !quotients => return Ok(layout(Twiddles::Stored)),
            Some(twiddles) => return Ok(layout(twiddles)),
            None => {}
        }
        let stored = layout(Twiddles::Stored);
        let element = u64::from(source::tile_bytes::<F>(1));
        let tables = element * stored.twiddles().1 as u64;
        // Of both directions, with data and scratch.
        let all = 2 * tables + 2 * (element << log_n);
        let fits = |bytes, percent| info.memory_bytes.is_none_or(|memory| bytes <= memory / 100 * percent);
        let quotients = quotients && !info.has_slow_memory();
        if quotients && fits(all + 2 * tables, QUOTIENTS_PERCENT) && 2 * tables <= info.limits.buffer_bytes {
            return Ok(layout(Twiddles::StoredWithQuotients));
        }
        Ok(if fits(all, MEMORY_PERCENT) && tables <= info.limits.buffer_bytes {
            stored
        } else {
            layout(Twiddles::TwoLevel)
        })
    }

    /// Another, of fewer passes, for the columns of a matrix on a processor: rows are the runs that passes over single transforms
    /// need many lines for.
    pub(crate) fn of_columns<F: DeviceField>(&self, columns: usize) -> Option<Self> {
        let Self { log_n, twiddles, tiling, .. } = *self;
        let single = self.log_rows == tiling.split(log_n, Split::Balanced);
        if tiling.threads > 1 || F::LIMBS > 2 || columns < 1 << LOG_CPU_RUN_OF_COLUMNS || !single {
            return None;
        }
        let tiling = Tiling { log_run: LOG_CPU_RUN_OF_COLUMNS, ..tiling };
        let layout = Self::tiled(log_n, Split::Balanced, twiddles, tiling);
        (layout.log_rows.len() < self.log_rows.len()).then_some(layout)
    }

    pub(crate) fn tiled(log_n: u32, split: Split, twiddles: Twiddles, tiling: Tiling) -> Self {
        let log_rows = tiling.split(log_n, split);
        let busy = log_n.saturating_sub(tiling.log_tiles).max(MIN_LOG_TILE);
        let columns = |rows: &u32| tiling.log_tile.min(busy.max(rows + tiling.log_run)).saturating_sub(*rows);
        let log_columns = log_rows.iter().map(columns).collect();
        // A round that is all of a transform has no factors: it is a usual pass.
        let halvings = match split {
            Split::Halves => (tiling.halvings(log_n) as usize).min(log_rows.len().saturating_sub(1)),
            _ => 0,
        };
        Self { log_n, log_rows, log_columns, halvings, twiddles, tiling, root_shift: None, lazy: false }
    }

    pub(crate) fn shape_of(&self, passes: &[Pass], pass: usize) -> Shape {
        let Pass { batch, from, to, flags, direction, .. } = passes[pass];
        let (interleaved, in_place) = (batch == Batch::Columns, from == to);
        if pass < self.halvings {
            return Shape::halving(self.tiling.threads, interleaved, in_place);
        }
        let (log_rows, log_columns) = (self.log_rows[pass], self.log_columns[pass]);
        let log_radix = self.tiling.log_radix.min(log_rows);
        let threads = (1u32 << (log_rows + log_columns - log_radix)).min(self.tiling.threads);
        // The last pass has no factors.
        let twiddles = if pass + 1 == self.log_rows.len() { Twiddles::Stored } else { self.twiddles };
        let direct = self.tiling.direct && log_radix > 1 && flags & flags::LINES_OUT == 0;
        let flags = self.tiling.specialised.then_some(flags);
        let log_root = self.tiling.specialised.then(|| self.log_roots() - log_rows);
        let root_shift = self.root_shift.map(|shift| match direction {
            Direction::Forward => shift,
            Direction::Inverse => 192 - shift,
        });
        Shape {
            log_rows,
            log_columns,
            log_radix,
            threads,
            twiddles,
            interleaved,
            in_place,
            flags,
            log_root,
            root_shift,
            direct,
            halving: false,
        }
    }

    /// The shapes of transforms of whole batches between two orders, the first pass of which reads from `start`.
    pub(crate) fn shapes(
        &self,
        orders: (Order, Order),
        batch: Batch,
        direction: Direction,
        domain: Domain,
        start: Place,
    ) -> Vec<Shape> {
        let mut passes = self.passes(orders, batch, start);
        self.scale(&mut passes, orders, direction, domain);
        (0..passes.len()).map(|i| self.shape_of(&passes, i)).collect()
    }

    /// log₂ of the order of the roots that the passes use.
    pub(crate) fn log_roots(&self) -> u32 {
        self.log_rows.iter().copied().max().unwrap_or(0)
    }

    /// Roots of one direction.
    pub(crate) fn roots(&self) -> usize {
        1 << self.log_roots().saturating_sub(1)
    }

    /// log₂ of the entries of the lower of the two tables by whose products powers are found.
    pub(crate) fn log_split(&self) -> u32 {
        self.log_n.div_ceil(2)
    }

    /// Entries of both tables of powers.
    pub(crate) fn powers(&self) -> usize {
        (1 << self.log_split()) + (1 << (self.log_n - self.log_split()))
    }

    /// For each pass, where its factors start and log₂ of the number of its lines' offsets. Behind them, their end.
    pub(crate) fn twiddles(&self) -> (Vec<(usize, u32)>, usize) {
        let (mut at, mut left) = (0, self.log_n);
        let tables = self.log_rows.iter().enumerate().map(|(pass, rows)| {
            left -= rows;
            let start = at;
            // The last pass has none.
            at += match self.twiddles {
                _ if left == 0 => 0,
                _ if pass < self.halvings => self.powers(),
                // One for output 0, a row for each other output, and the inverse of the first.
                Twiddles::StoredWithQuotients => 2 * (1 + (((1 << rows) - 1) << left)),
                Twiddles::Stored => 2 + (((1 << rows) - 1) << left),
                Twiddles::TwoLevel => self.powers(),
                Twiddles::BinaryPowers => self.log_n as usize + 2,
                // One for output 0.
                Twiddles::HalfStored => 1 + (1 << (left + rows - 1)),
                Twiddles::OnTheFly | Twiddles::TwoPowers => 2,
            };
            (start, left)
        });
        (tables.collect(), at)
    }

    /// The passes between two orders, the first of which reads from `start`, without direction and scaling.
    pub(crate) fn passes(&self, (input, output): (Order, Order), batch: Batch, start: Place) -> Vec<Pass> {
        let Layout { log_n, ref log_rows, .. } = *self;
        let (starts, _) = self.twiddles();
        let scratch = self.needs_scratch(input, output);
        let last = log_rows.len().saturating_sub(1);
        let mut left = log_n;
        let pass = |(i, &rows): (usize, &u32)| {
            let done = log_n - left;
            left -= rows;
            let (stride, mut flags) = match input {
                Order::Natural => (left, flags::ROWS_OUT_REVERSED | flags::TWIDDLE_OFFSET),
                Order::BitReversed => (done, flags::ROWS_IN_REVERSED | flags::TWIDDLE_BLOCK),
            };
            let (mut stride_in, mut stride_out) = (stride, stride);
            if i == last {
                flags &= !(flags::TWIDDLE_OFFSET | flags::TWIDDLE_BLOCK);
                match (input, output) {
                    (Order::Natural, Order::Natural) => {
                        flags = flags & !flags::ROWS_OUT_REVERSED | flags::LOAD_REVERSED;
                        (stride_in, stride_out) = (0, done);
                    }
                    (Order::BitReversed, Order::BitReversed) => {
                        flags |= flags::ROWS_OUT_REVERSED | flags::STORE_REVERSED;
                        (stride_in, stride_out) = (done, 0);
                    }
                    _ => {}
                }
            }
            if batch == Batch::Rows {
                let lines = [(stride_in, flags::LINES_IN), (stride_out, flags::LINES_OUT)];
                flags |= lines.iter().filter(|(stride, _)| *stride == 0).map(|(_, flag)| flag).sum::<u32>();
            }
            let log_twiddles = if i == last { 0 } else { left };
            let (from, to) = match (scratch, i) {
                (false, 0) => (start, Place::Data),
                (false, _) => (Place::Data, Place::Data),
                (true, 0) => (start, Place::Scratch),
                (true, _) if i == last => (Place::Scratch, Place::Data),
                (true, _) => (Place::Scratch, Place::Scratch),
            };
            let twiddles = starts[i].0;
            Pass {
                log_rows: rows,
                batch,
                stride_in,
                stride_out,
                flags,
                direction: Direction::Forward,
                twiddles,
                log_twiddles,
                shift: done,
                from,
                to,
            }
        };
        log_rows.iter().enumerate().map(pass).collect()
    }

    /// Adds direction and scaling to passes: by the coset's powers before a forward transform, after an inverse one. n⁻¹ is a
    /// factor of the first pass' twiddles where there are any.
    pub(crate) fn scale(
        &self,
        passes: &mut [Pass],
        (input, output): (Order, Order),
        direction: Direction,
        domain: Domain,
    ) {
        let reversed = |order| if order == Order::BitReversed { flags::SCALE_REVERSED } else { 0 };
        let Some(last) = passes.len().checked_sub(1) else { return };
        passes.iter_mut().for_each(|pass| pass.direction = direction);
        match (direction, domain) {
            (Direction::Forward, Domain::Subgroup) => {}
            (Direction::Forward, Domain::Coset) => passes[0].flags |= flags::SCALE_IN | reversed(input),
            (Direction::Inverse, Domain::Subgroup) if last == 0 => {
                passes[0].flags |= flags::SCALE_OUT | flags::SCALE_CONSTANT
            }
            (Direction::Inverse, Domain::Subgroup) => {}
            (Direction::Inverse, Domain::Coset) => passes[last].flags |= flags::SCALE_OUT | reversed(output),
        }
        if direction == Direction::Inverse && last > 0 {
            passes[0].flags |= flags::TWIDDLE_ZERO;
        }
    }

    /// Whether a transform between these orders needs a second buffer: its last pass then stores to other places than
    /// it loads from.
    pub(crate) fn needs_scratch(&self, input: Order, output: Order) -> bool {
        self.log_rows.len() > 1 && input == output
    }
}

impl Config {
    /// Gives the same configuration with everything set: what [`Ntt::with_config`](crate::Ntt::with_config) makes of it
    /// for 2^`log_n` elements.
    ///
    /// # Errors
    /// [`Error::TwoAdicity`](crate::Error::TwoAdicity) if the field has no root of unity of order 2^`log_n`;
    /// [`Error::TooLarge`](crate::Error::TooLarge) if `log_n` is above 31.
    pub fn chosen<F: DeviceField + FftField>(self, device: &Device, log_n: u32) -> Result<Self> {
        let layout = Layout::new::<F>(device.info(), log_n, self)?;
        Ok(Self { twiddles: Some(layout.twiddles), ..self })
    }
}

/// log₂ modulo 192 of the root of order 16, where 2⁹⁶ is −1 and that root a power of two.
fn root_shift<F: DeviceField + FftField>() -> Option<u32> {
    let two = F::from(2u8);
    // No other prime of two limbs divides 2^64 − 2^32 + 1.
    if F::LIMBS != 2 || two.pow([64]) + F::ONE != two.pow([32]) {
        return None;
    }
    let root = root_of_unity::<F>(4)?;
    (0..192).find(|exponent| two.pow([u64::from(*exponent)]) == root)
}

/// Whether a transform evaluates or interpolates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    Forward,
    Inverse,
}

/// How the transforms of a batch lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Batch {
    /// One after the other.
    Rows,
    /// Side by side: the columns of a matrix.
    Columns,
}

impl Batch {
    /// Of matrices of so many columns.
    pub(crate) fn of(columns: usize) -> Self {
        if columns > 1 { Batch::Columns } else { Batch::Rows }
    }
}

/// Where the values of a transform are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Domain {
    /// On the roots of unity.
    Subgroup,
    /// On these times a generator.
    Coset,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// What is transformed, where that stays as it is.
    Source,
    Data,
    Scratch,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Pass {
    pub(crate) log_rows: u32,
    pub(crate) batch: Batch,
    pub(crate) stride_in: u32,
    pub(crate) stride_out: u32,
    pub(crate) flags: u32,
    pub(crate) direction: Direction,
    pub(crate) twiddles: usize,
    pub(crate) log_twiddles: u32,
    /// log₂ of the power of the plan's root whose powers the factors are.
    pub(crate) shift: u32,
    pub(crate) from: Place,
    pub(crate) to: Place,
}

#[cfg(test)]
mod tests {
    use ark_bls12_381::Fr;
    use evariste_backend::Kind;
    use evariste_field::small::Goldilocks;

    use super::*;

    #[test]
    fn factors_are_stored_while_they_fit() {
        let mut info = Device::cpu().info().clone();
        let chosen = |info: &DeviceInfo, log_n| Layout::new::<Fr>(info, log_n, Config::default()).unwrap().twiddles;
        info.memory_bytes = Some(141 << 30);
        info.limits.buffer_bytes = 141 << 30;
        assert_eq!(
            [29, 30, 31].map(|log_n| chosen(&info, log_n)),
            [Twiddles::Stored, Twiddles::TwoLevel, Twiddles::TwoLevel]
        );
        info.limits.buffer_bytes = 4 << 30;
        assert_eq!([27, 28].map(|log_n| chosen(&info, log_n)), [Twiddles::Stored, Twiddles::TwoLevel]);
        info.memory_bytes = None;
        assert_eq!(chosen(&info, 26), Twiddles::Stored);
    }

    #[test]
    fn factors_have_quotients_where_products_and_memory_serve() {
        let mut info = Device::cpu().info().clone();
        let asked = Config { twiddles: Some(Twiddles::StoredWithQuotients), ..Config::default() };
        let of = |info: &DeviceInfo, log_n, config| Layout::new::<Fr>(info, log_n, config).unwrap().twiddles;
        assert_eq!(of(&info, 20, asked), Twiddles::Stored);
        (info.id.kind, info.limits.workgroup_threads, info.limits.workgroup_bytes) = (Kind::Cuda, 1024, 227 << 10);
        (info.memory_bytes, info.limits.buffer_bytes, info.architecture) = (Some(141 << 30), 141 << 30, "sm_90".into());
        // 6 · 2^25 · 32 bytes are below 7% of the memory, twice that is above.
        let chosen = [25, 26].map(|log_n| of(&info, log_n, Config::default()));
        assert_eq!(chosen, [Twiddles::StoredWithQuotients, Twiddles::Stored]);
        assert_eq!(of(&info, 31, asked), Twiddles::StoredWithQuotients);
        let goldilocks = Layout::new::<Goldilocks>(&info, 20, asked).unwrap();
        assert_eq!(goldilocks.twiddles, Twiddles::Stored);
        assert!(goldilocks.root_shift.is_some_and(|shift| shift < 192 && shift % 24 == 12));
        info.limits.buffer_bytes = 1 << 30;
        let chosen = [24, 25].map(|log_n| of(&info, log_n, Config::default()));
        assert_eq!(chosen, [Twiddles::StoredWithQuotients, Twiddles::Stored]);
        (info.limits.buffer_bytes, info.architecture) = (141 << 30, "sm_89".into());
        assert_eq!(of(&info, 20, Config::default()), Twiddles::Stored);
        info.id.kind = Kind::Wgpu;
        assert_eq!(of(&info, 20, asked), Twiddles::Stored);
    }

    #[test]
    fn passes_are_balanced_and_few() {
        let mut info = Device::cpu().info().clone();
        for (workgroup_bytes, threads) in [(16 << 10, 256), (48 << 10, 256), (227 << 10, 1024), (256 << 10, 1)] {
            (info.limits.workgroup_bytes, info.limits.workgroup_threads) = (workgroup_bytes, threads);
            for log_n in 0..=31 {
                let layout = Layout::new::<Fr>(&info, log_n, Config::default()).unwrap();
                let rows = &layout.log_rows;
                assert_eq!(rows.iter().sum::<u32>(), log_n);
                assert!(rows.len() <= if log_n > 28 { 5 } else { 4 }, "{layout:?}");
                assert!(rows.iter().max().zip(rows.iter().min()).is_none_or(|(max, min)| max - min <= 2));
            }
        }
    }

    #[test]
    fn halves_are_squares_that_fit() {
        let mut info = Device::cpu().info().clone();
        (info.limits.workgroup_bytes, info.limits.workgroup_threads) = (48 << 10, 256);
        let config = Config { split: Split::Halves, ..Config::default() };
        let rows = |log_n| {
            let layout = Layout::new::<Fr>(&info, log_n, config).unwrap();
            (layout.halvings, layout.log_rows)
        };
        assert_eq!(rows(0), (0, vec![]));
        assert_eq!(rows(1), (0, vec![1]));
        assert_eq!(rows(3), (1, vec![1, 2]));
        assert_eq!(rows(10), (0, vec![10]));
        assert_eq!(rows(16), (0, vec![8, 8]));
        assert_eq!(rows(17), (1, vec![1, 8, 8]));
        assert_eq!(rows(21), (1, vec![1, 10, 10]));
        assert_eq!(rows(24), (4, vec![1, 1, 1, 1, 10, 10]));
        assert_eq!(rows(25), (5, vec![1, 1, 1, 1, 1, 10, 10]));
    }

    #[test]
    fn columns_take_fewer_passes_where_rows_are_runs() {
        let info = Device::cpu().info().clone();
        let passes = |log_n, columns| {
            let layout = Layout::new::<Goldilocks>(&info, log_n, Config::default()).unwrap();
            let other = layout.of_columns::<Goldilocks>(columns);
            (layout.log_rows.len(), other.map(|layout| layout.log_rows))
        };
        assert_eq!(passes(16, 64), (2, None));
        assert_eq!(passes(17, 64), (3, Some(vec![9, 8])));
        assert_eq!(passes(20, 16), (3, Some(vec![10, 10])));
        assert_eq!(passes(20, 15), (3, None));
        let large = Layout::new::<Fr>(&info, 20, Config::default()).unwrap();
        assert_eq!(large.of_columns::<Fr>(64), None);
        let split = Config { split: Split::Rectangular, ..Config::default() };
        let chosen = Layout::new::<Goldilocks>(&info, 20, split).unwrap();
        assert_eq!(chosen.of_columns::<Goldilocks>(64), None);
    }
}
