//! The layout of a transform: its passes, and the places of its tables.

use ark_ff::FftField;
use evariste_backend::{Device, DeviceInfo, Dialect};
use evariste_field::{DeviceField, source};

use crate::{
    config::{NttConfig, Split, Twiddles},
    error::{Error, Result},
    order::Order,
    pass::{KernelVariant, flags},
    reference::root_of_unity,
    tuning::{LOG_SHORT_TILE_OF_COLUMNS, MAX_LOG_N, MEMORY_PERCENT, MIN_LOG_TILE, QUOTIENTS_PERCENT, Tiling},
};

/// The passes of a transform, and the places of its tables.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Layout {
    pub(crate) log_n: u32,
    /// log₂ of the points of each pass, in the order in which digits of the index are transformed, highest first.
    pub(crate) log_rows: Vec<u32>,
    /// log₂ of the lines of each pass' tiles.
    pub(crate) log_width: Vec<u32>,
    /// The number of first passes that split a transform into two of half the size, by a kernel of their own.
    pub(crate) halvings: usize,
    pub(crate) twiddles: Twiddles,
    pub(crate) tiling: Tiling,
    /// The tiles for columns of matrices, if they are others.
    tiling_of_columns: Option<Tiling>,
    /// log₂ of the root of order 16, modulo 192, where that is a power of two and kernels multiply by such with shifts.
    pub(crate) root_shift: Option<u32>,
    /// Roots and twiddles are those of partially reduced products, in WGSL.
    pub(crate) partially_reduced: bool,
}

impl Layout {
    pub(crate) fn new<F: DeviceField + FftField>(info: &DeviceInfo, log_n: u32, config: NttConfig) -> Result<Self> {
        if log_n > F::TWO_ADICITY {
            return Err(Error::TwoAdicity { expected: F::TWO_ADICITY, actual: log_n });
        }
        if log_n > MAX_LOG_N {
            return Err(Error::TooLarge { expected: 1 << MAX_LOG_N, actual: 1 << log_n.min(63) });
        }
        let tiling = Tiling::new::<F>(info, log_n);
        let cuda = info.dialect() == Dialect::Cuda;
        let root_shift = if cuda { root_shift::<F>() } else { None };
        let quotients = cuda && source::cuda_is_lazy::<F>();
        let partially_reduced =
            info.dialect() == Dialect::Wgsl && info.features.int64 && source::wgsl_lazy_factor::<F>().is_some();
        let tiling_of_columns = tiling.of_columns::<F>(info);
        let layout = |twiddles| Self {
            root_shift,
            partially_reduced,
            tiling_of_columns,
            ..Self::tiled(log_n, config.split, twiddles, tiling)
        };
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

    /// A layout of other tiles for the columns of a matrix, where these are many elements side by side.
    pub(crate) fn of_columns(&self, columns: usize) -> Option<Self> {
        let Self { log_n, twiddles, tiling, root_shift, partially_reduced, .. } = *self;
        let of_columns = self.tiling_of_columns?;
        let single = self.log_rows == tiling.split(log_n, Split::Balanced);
        let enough =
            of_columns.threads == 1 || log_n + columns.max(1).ilog2() >= of_columns.log_tile + tiling.log_tiles;
        if columns < 1 << of_columns.log_run || !single || !enough {
            return None;
        }
        let layout = Self::tiled(log_n, Split::Balanced, twiddles, of_columns);
        if of_columns.threads == 1 {
            // More lines side by side alone gain nothing.
            return (layout.log_rows.len() < self.log_rows.len()).then_some(layout);
        }
        // Short columns are enough for whole tiles, too.
        let tile = |rows: u32| of_columns.log_tile.min(LOG_SHORT_TILE_OF_COLUMNS.max(rows + of_columns.log_run));
        let log_width = layout.log_rows.iter().map(|rows| tile(*rows).saturating_sub(*rows)).collect();
        Some(Self { log_width, root_shift, partially_reduced, ..layout })
    }

    pub(crate) fn tiled(log_n: u32, split: Split, twiddles: Twiddles, tiling: Tiling) -> Self {
        let log_rows = tiling.split(log_n, split);
        let busy = log_n.saturating_sub(tiling.log_tiles).max(MIN_LOG_TILE);
        let columns = |rows: &u32| tiling.log_tile.min(busy.max(rows + tiling.log_run)).saturating_sub(*rows);
        let log_width = log_rows.iter().map(columns).collect();
        // A round that is all of a transform has no factors: it is a usual pass.
        let halvings = match split {
            Split::Halves => (tiling.halvings(log_n) as usize).min(log_rows.len().saturating_sub(1)),
            _ => 0,
        };
        let (tiling_of_columns, root_shift, partially_reduced) = (None, None, false);
        Self {
            log_n,
            log_rows,
            log_width,
            halvings,
            twiddles,
            tiling,
            tiling_of_columns,
            root_shift,
            partially_reduced,
        }
    }

    pub(crate) fn variant_of(&self, passes: &[Pass], pass: usize) -> KernelVariant {
        let Pass { batch, from, to, flags, direction, .. } = passes[pass];
        let (interleaved, in_place) = (batch == Batch::Columns, from == to);
        if pass < self.halvings {
            return KernelVariant::halving(self.tiling.threads, interleaved, in_place);
        }
        let (log_rows, log_width) = (self.log_rows[pass], self.log_width[pass]);
        let log_radix = self.tiling.log_radix.min(log_rows);
        let threads = (1u32 << (log_rows + log_width - log_radix)).min(self.tiling.threads);
        // The last pass has no factors.
        let twiddles = if pass + 1 == self.log_rows.len() { Twiddles::Stored } else { self.twiddles };
        let direct_stores = self.tiling.direct_stores && log_radix > 1 && flags & flags::LINES_OUT == 0;
        let flags = self.tiling.specialised.then_some(flags);
        let log_root = self.tiling.specialised.then(|| self.log_roots() - log_rows);
        let root_shift = self.root_shift.map(|shift| match direction {
            Direction::Forward => shift,
            Direction::Inverse => 192 - shift,
        });
        KernelVariant {
            log_rows,
            log_width,
            log_radix,
            threads,
            twiddles,
            interleaved,
            in_place,
            flags,
            log_root,
            root_shift,
            direct_stores,
            halving: false,
        }
    }

    /// The kernels of transforms of whole batches between two orders. The first pass reads from `start`.
    pub(crate) fn variants(
        &self,
        orders: (Order, Order),
        batch: Batch,
        direction: Direction,
        domain: Domain,
        start: BufferRole,
    ) -> Vec<KernelVariant> {
        let mut passes = self.passes(orders, batch, start);
        self.scale(&mut passes, orders, direction, domain);
        (0..passes.len()).map(|i| self.variant_of(&passes, i)).collect()
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

    /// The passes between two orders, without direction and scaling. The first pass reads from `start`.
    pub(crate) fn passes(&self, (input, output): (Order, Order), batch: Batch, start: BufferRole) -> Vec<Pass> {
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
                (false, 0) => (start, BufferRole::Data),
                (false, _) => (BufferRole::Data, BufferRole::Data),
                (true, 0) => (start, BufferRole::Scratch),
                (true, _) if i == last => (BufferRole::Scratch, BufferRole::Data),
                (true, _) => (BufferRole::Scratch, BufferRole::Scratch),
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

    /// Adds direction and scaling to passes. The coset's powers scale before a forward transform, and after an inverse
    /// one. The first pass' twiddles have n⁻¹ as a factor, if there are any.
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

impl NttConfig {
    /// Returns the configuration with the choices that [`Ntt::with_config`](crate::Ntt::with_config) makes for
    /// 2^`log_n` elements on `device`.
    ///
    /// # Errors
    /// [`Error::TwoAdicity`](crate::Error::TwoAdicity) if the field has no root of unity of order 2^`log_n`;
    /// [`Error::TooLarge`](crate::Error::TooLarge) if `log_n` is above 31.
    pub fn resolve<F: DeviceField + FftField>(self, device: &Device, log_n: u32) -> Result<Self> {
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
    /// The batch of matrices with this number of columns.
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
pub(crate) enum BufferRole {
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
    pub(crate) from: BufferRole,
    pub(crate) to: BufferRole,
}

#[cfg(test)]
mod tests {
    use ark_bls12_381::Fr;
    use evariste_backend::Kind;
    use evariste_field::small::{BabyBear, Goldilocks};

    use super::*;

    #[test]
    fn factors_are_stored_while_they_fit() {
        let mut info = Device::cpu().info().clone();
        let chosen = |info: &DeviceInfo, log_n| Layout::new::<Fr>(info, log_n, NttConfig::default()).unwrap().twiddles;
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
        let asked = NttConfig::default().twiddles(Twiddles::StoredWithQuotients);
        let of = |info: &DeviceInfo, log_n, config| Layout::new::<Fr>(info, log_n, config).unwrap().twiddles;
        assert_eq!(of(&info, 20, asked), Twiddles::Stored);
        (info.id.kind, info.limits.workgroup_threads, info.limits.workgroup_bytes) = (Kind::Cuda, 1024, 227 << 10);
        (info.memory_bytes, info.limits.buffer_bytes, info.architecture) = (Some(141 << 30), 141 << 30, "sm_90".into());
        // 6 · 2^25 · 32 bytes are below 7% of the memory, twice that is above.
        let chosen = [25, 26].map(|log_n| of(&info, log_n, NttConfig::default()));
        assert_eq!(chosen, [Twiddles::StoredWithQuotients, Twiddles::Stored]);
        assert_eq!(of(&info, 31, asked), Twiddles::StoredWithQuotients);
        let goldilocks = Layout::new::<Goldilocks>(&info, 20, asked).unwrap();
        assert_eq!(goldilocks.twiddles, Twiddles::Stored);
        assert!(goldilocks.root_shift.is_some_and(|shift| shift < 192 && shift % 24 == 12));
        info.limits.buffer_bytes = 1 << 30;
        let chosen = [24, 25].map(|log_n| of(&info, log_n, NttConfig::default()));
        assert_eq!(chosen, [Twiddles::StoredWithQuotients, Twiddles::Stored]);
        (info.limits.buffer_bytes, info.architecture) = (141 << 30, "sm_89".into());
        assert_eq!(of(&info, 20, NttConfig::default()), Twiddles::Stored);
        info.id.kind = Kind::Wgpu;
        assert_eq!(of(&info, 20, asked), Twiddles::Stored);
    }

    #[test]
    fn passes_are_balanced_and_few() {
        let mut info = Device::cpu().info().clone();
        for (workgroup_bytes, threads) in [(16 << 10, 256), (48 << 10, 256), (227 << 10, 1024), (256 << 10, 1)] {
            (info.limits.workgroup_bytes, info.limits.workgroup_threads) = (workgroup_bytes, threads);
            for log_n in 0..=31 {
                let layout = Layout::new::<Fr>(&info, log_n, NttConfig::default()).unwrap();
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
        let config = NttConfig::default().split(Split::Halves);
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
            let layout = Layout::new::<Goldilocks>(&info, log_n, NttConfig::default()).unwrap();
            let other = layout.of_columns(columns);
            (layout.log_rows.len(), other.map(|layout| layout.log_rows))
        };
        assert_eq!(passes(16, 64), (2, None));
        assert_eq!(passes(17, 64), (3, Some(vec![9, 8])));
        assert_eq!(passes(20, 16), (3, Some(vec![10, 10])));
        assert_eq!(passes(20, 15), (3, None));
        let large = Layout::new::<Fr>(&info, 20, NttConfig::default()).unwrap();
        assert_eq!(large.of_columns(64), None);
        let split = NttConfig::default().split(Split::Rectangular);
        let chosen = Layout::new::<Goldilocks>(&info, 20, split).unwrap();
        assert_eq!(chosen.of_columns(64), None);
    }

    #[test]
    fn many_columns_have_tiles_of_their_own_on_gpus() {
        let mut info = Device::cpu().info().clone();
        info.id.kind = Kind::Cuda;
        (info.limits.workgroup_bytes, info.limits.workgroup_threads) = (227 << 10, 1024);
        (info.parallelism, info.limits.cache_bytes) = (132, 50 << 20);
        let words = |info: &DeviceInfo, log_n, columns| {
            let layout = Layout::new::<BabyBear>(info, log_n, NttConfig::default()).unwrap();
            let other = layout.of_columns(columns)?;
            Some((other.log_rows, other.log_width, other.tiling.log_radix))
        };
        assert_eq!(words(&info, 20, 256), Some((vec![10, 10], vec![4, 4], 5)));
        assert_eq!(words(&info, 14, 256), Some((vec![7, 7], vec![5, 5], 5)));
        assert_eq!(words(&info, 3, 1 << 19), Some((vec![3], vec![9], 5)));
        // Not enough for every multiprocessor, and rows that are no runs.
        assert_eq!(words(&info, 13, 256), None);
        assert_eq!(words(&info, 24, 15), None);
        let long = |log_n| Layout::new::<Goldilocks>(&info, log_n, NttConfig::default()).unwrap();
        let columns = long(16).of_columns(256).unwrap();
        assert_eq!((columns.tiling, columns.log_rows), (long(24).tiling, vec![8, 8]));
        assert_eq!(Layout::new::<Fr>(&info, 16, NttConfig::default()).unwrap().of_columns(256), None);
        // Tiles fit the memory.
        for bytes in [16 << 10, 48 << 10] {
            info.limits.workgroup_bytes = bytes;
            let (rows, width, radix) = words(&info, 20, 256).unwrap();
            assert_eq!((rows.len(), radix), (3, 4));
            assert!(rows.iter().zip(&width).all(|(rows, width)| 4 << (rows + width) <= bytes), "{rows:?} × {width:?}");
        }
    }
}
