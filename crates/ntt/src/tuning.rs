//! The tuning constants, each with its reason and measurement, and the tiles that they give a device.

use evariste_backend::{DeviceInfo, Dialect};
use evariste_field::{DeviceField, source};

use crate::config::Split;

/// Largest size: kernels count elements in 32 bits.
pub(crate) const MAX_LOG_N: u32 = 31;

/// Threads of a workgroup: three or four workgroups share a multiprocessor.
const THREADS: u32 = 256;

/// Elements of a tile at the least, so that small transforms share workgroups.
pub(crate) const MIN_LOG_TILE: u32 = 7;

/// Largest tile of a CPU's thread: with the tables it should stay in the level 2 cache.
const MAX_LOG_CPU_TILE: u32 = 12;

/// log₂ of the lines side by side that a CPU's thread takes: two vectors of lanes. The measure is 2^20 elements of 32
/// bytes on a Xeon. Passes of up to 2^8 points with these took 0.8 of the time of passes of 2^10 points with 4 or 8.
const LOG_CPU_RUN: u32 = 4;

/// The same for elements of one word: bytes of a tile and side by side count, and these are short.
const LOG_CPU_RUN_OF_WORDS: u32 = 6;

/// The same for the columns of matrices: a line of cache holds this number of the shortest elements.
const LOG_CPU_RUN_OF_COLUMNS: u32 = 4;

/// log₂ of the words of a tile of columns of words, where workgroups have the memory: 16 columns of 2^10 rows, so that
/// 2^20 rows take two passes. On an H200, 256 columns of so many rows over BabyBear took 1.57 ms, against 2.0 in three
/// passes of 2^12 words. Threads take 2 × 32 words: 2 × 16, by twice as many, took 1.84 ms.
const LOG_TILE_OF_COLUMNS: u32 = 14;
const LOG_RADIX_OF_COLUMNS: u32 = 5;

/// log₂ of the elements that a GPU's tile of columns has at the least.
pub(crate) const LOG_SHORT_TILE_OF_COLUMNS: u32 = 12;

/// Bytes that should lie side by side where a pass loads and stores data in memory: four sectors of a GPU's. With two,
/// a transform of 2^26 elements of 32 bytes took 20.8 ms on an H200, against 17 with a pass more.
const RUN_BYTES: u32 = 128;

/// The same for elements of one word: a tile has too few lines side by side for more.
const RUN_BYTES_OF_WORDS: u32 = 64;

/// The same for data that stays in the device's cache, if it is too little for more: one sector. On an H200, 2^16 and
/// 2^18 elements of 32 bytes took 24.7 and 60.7 µs in three passes with runs of 128 bytes. Two passes with runs of 32
/// took 31.0 and 72.4.
const CACHED_RUN_BYTES: u32 = 32;

/// log₂ of the least elements of a tile that are split into rows and runs of [`RUN_BYTES`] in the device's cache.
const MIN_LOG_SHARE: u32 = 8;

/// Percent of a device's memory that a plan with its data takes at most where factors are stored: some is others'.
pub(crate) const MEMORY_PERCENT: u64 = 90;

/// The same where factors have their quotients, which take as much again and save some 4% of the time.
pub(crate) const QUOTIENTS_PERCENT: u64 = 7;

/// Share of the cache that data and scratch may have together to count as staying there.
const CACHE_SHARE: u64 = 2;

/// Tiles that each unit of the device should get before tiles grow beyond one line.
const TILES_PER_UNIT: u32 = 2;

/// Limbs up to which kernels are compiled for their flags: beyond, arithmetic hides what they cost, and a kernel takes
/// seconds to compile.
const MAX_SPECIALISED_LIMBS: usize = 12;

/// The tiles of a device.
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
    /// Kernels are compiled for the flags of a launch: not on processors, which would compile for longer than that
    /// saves.
    pub(crate) specialised: bool,
    /// There are kernels of their own for passes that store lines which are neighbours: in WGSL.
    pub(crate) direct_stores: bool,
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
        let direct_stores = info.dialect() == Dialect::Wgsl;
        let specialised = threads > 1 && !info.features.software && F::LIMBS <= MAX_SPECIALISED_LIMBS;
        Self { log_tile, log_balanced, log_run, log_radix, threads, log_tiles, specialised, direct_stores }
    }

    /// The tiles for columns of matrices, many of which lie side by side, if these are others.
    pub(crate) fn of_columns<F: DeviceField>(&self, info: &DeviceInfo) -> Option<Self> {
        if F::LIMBS > 2 {
            return None;
        }
        if self.threads == 1 {
            return Some(Self { log_run: LOG_CPU_RUN_OF_COLUMNS, ..*self });
        }
        // As of a transform that no cache holds and no unit waits for.
        let long = Self::new::<F>(info, MAX_LOG_N);
        let bytes = source::tile_bytes::<F>(1 << LOG_TILE_OF_COLUMNS);
        let tiling = match info.dialect() {
            Dialect::Cuda if F::LIMBS == 1 && bytes <= info.limits.workgroup_bytes => Self {
                log_tile: LOG_TILE_OF_COLUMNS,
                log_balanced: LOG_TILE_OF_COLUMNS,
                log_radix: LOG_RADIX_OF_COLUMNS,
                ..long
            },
            _ => long,
        };
        (tiling != *self).then_some(tiling)
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

    /// Rounds of [`Split::Halves`] until a square of two passes is left, or one pass.
    pub(crate) fn halvings(&self, log_n: u32) -> u32 {
        log_n.saturating_sub(2 * self.log_tile).max(log_n % 2)
    }
}
