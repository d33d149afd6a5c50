use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    fmt,
    ops::Range,
    sync::{Arc, Mutex, OnceLock, PoisonError},
};

use ark_ff::FftField;
use evariste_backend::{
    Arg, Buffer, Device, DeviceInfo, Element, Event, HostBuffer, Kernel, KernelSpec, Queue, Secrecy, View, ViewMut,
};
use evariste_field::{DeviceField, Mont, Vector, known_constants, source};
use rayon::prelude::*;

use crate::{
    Config, Error, Order, Result, Split, Twiddles,
    pass::{self, Params, Shape, flags},
    reference::root_of_unity,
};

/// Largest size: 2^28 elements of 32 bytes are 8 GiB, and twice that is needed.
const MAX_LOG_N: u32 = 28;

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

/// Share of the cache that data and scratch may have together to count as staying there.
const CACHE_SHARE: u64 = 2;

/// Tiles that each unit of the device should get before tiles grow beyond one line.
const TILES_PER_UNIT: u32 = 2;

/// Limbs up to which kernels are compiled for their flags: beyond, arithmetic hides what they cost, and a kernel takes
/// seconds to compile.
const MAX_SPECIALISED_LIMBS: usize = 12;

/// Cosets whose powers a plan keeps.
const MAX_COSETS: usize = 8;

/// A plan for transforms of 2^`log_n` elements of `F` on one device.
///
/// The forward transform evaluates: X_k = Σ x_i w^(ik), with w arkworks' root of unity of order n, so that results agree
/// with `ark_poly`. The inverse interpolates, n⁻¹ included. On a coset g·H the forward transform gives the values at
/// g·w^k.
///
/// A transform is split into up to four passes, each of which does transforms of up to 2^10 points in the memory of a
/// workgroup (Bailey's four-step method, applied again to what is left); reordering happens as the passes load and
/// store. It costs (n/2) log₂ n multiplications less the trivial ones in the passes, n for the twiddles between two
/// passes, which are stored (n elements for each direction, those of the inverse from its first use on), and 2n on a
/// coset; each pass reads and writes the data once. [`Ntt::on`] gives the same plan on another queue than the default one.
///
/// ```
/// # fn main() -> Result<(), evariste_ntt::Error> {
/// use ark_bls12_381::Fr;
/// use evariste_backend::Device;
/// use evariste_field::Mont;
/// use evariste_ntt::Ntt;
///
/// let device = Device::best()?;
/// let ntt = Ntt::<Fr>::new(&device, 2)?;
/// let mut x = device.upload::<Mont<Fr>>(&[1, 2, 3, 4].map(Fr::from))?;
/// ntt.forward(&mut x)?;
/// assert_eq!(x.to_vec()?[0], Fr::from(10));
/// ntt.inverse(&mut x)?;
/// assert_eq!(x.to_vec()?, [1, 2, 3, 4].map(Fr::from));
/// # Ok(())
/// # }
/// ```
pub struct Ntt<F: DeviceField> {
    shared: Arc<Shared<F>>,
    queue: Option<Queue>,
}

/// What a plan has on all queues.
struct Shared<F: DeviceField> {
    device: Device,
    layout: Layout,
    /// Those that were used so far.
    kernels: Mutex<BTreeMap<Shape, Arc<Kernel<Params>>>>,
    /// Roots within passes, forward and inverse, as known constants; then n⁻¹ as one.
    roots: Buffer<u32>,
    forward: Factors<F>,
    inverse: OnceLock<Factors<F>>,
    vector: Vector<F>,
    cosets: Mutex<VecDeque<Coset<F>>>,
}

/// Factors between the passes of one direction.
struct Factors<F: DeviceField> {
    factors: Buffer<Mont<F>>,
    /// When they are there, and the plan's roots too, for other queues than the default one.
    ready: Event,
}

/// Powers of a coset's generator, as `scale` tables of the kernel.
#[derive(Clone)]
struct Coset<F: DeviceField> {
    generator: F,
    inverse: bool,
    powers: Arc<Buffer<Mont<F>>>,
    ready: Event,
}

/// How a transform is split into passes, and where its tables lie.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Layout {
    log_n: u32,
    /// log₂ of the points of each pass, in the order in which digits of the index are transformed, highest first.
    log_rows: Vec<u32>,
    /// log₂ of the lines of each pass' tiles.
    log_columns: Vec<u32>,
    twiddles: Twiddles,
    tiling: Tiling,
}

/// What tiles a device takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Tiling {
    /// log₂ of the elements of the largest tile.
    log_tile: u32,
    /// The same where passes are balanced.
    log_balanced: u32,
    /// log₂ of the elements that should lie side by side where a pass loads and stores them.
    log_run: u32,
    /// log₂ of the elements that a thread takes in a step.
    log_radix: u32,
    /// Threads of the largest workgroup.
    threads: u32,
    /// log₂ of the tiles that the device should get before they grow beyond what runs need.
    log_tiles: u32,
    /// Kernels are compiled for the flags of a launch: not on processors, which would compile for longer than that saves.
    specialised: bool,
}

impl Tiling {
    fn new<F: DeviceField>(info: &DeviceInfo, log_n: u32) -> Self {
        let bytes = source::tile_bytes::<F>(1);
        let fits = (info.limits.workgroup_bytes / bytes).max(4).ilog2();
        // Elements that the registers of a thread hold.
        let per_thread = if F::LIMBS <= 2 { 16 } else { 4 };
        let threads = info.limits.workgroup_threads.min(THREADS);
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
        let log_tiles = (TILES_PER_UNIT * info.parallelism).max(1).ilog2();
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
        let specialised = threads > 1 && !info.features.software && F::LIMBS <= MAX_SPECIALISED_LIMBS;
        Self { log_tile, log_balanced, log_run, log_radix, threads, log_tiles, specialised }
    }

    /// log₂ of the points of each pass.
    fn split(&self, log_n: u32, split: Split) -> Vec<u32> {
        let balanced = |passes: u32| (0..passes).map(|i| log_n / passes + u32::from(i < log_n % passes)).collect();
        match split {
            Split::Balanced => balanced(log_n.div_ceil(self.log_balanced.saturating_sub(self.log_run).max(3))),
            Split::Square if log_n == 0 => Vec::new(),
            Split::Square => balanced(log_n.div_ceil(self.log_tile).next_power_of_two()),
            Split::Rectangular => {
                let full = (log_n / self.log_tile) as usize;
                let rest = Some(log_n % self.log_tile).filter(|rest| *rest > 0);
                std::iter::repeat_n(self.log_tile, full).chain(rest).collect()
            }
            Split::ThreeWay => balanced(log_n.min(3).max(log_n.div_ceil(self.log_tile))),
        }
    }
}

impl Layout {
    fn new<F: DeviceField + FftField>(info: &DeviceInfo, log_n: u32, config: Config) -> Result<Self> {
        if log_n > F::TWO_ADICITY {
            return Err(Error::TwoAdicity { expected: F::TWO_ADICITY, actual: log_n });
        }
        if log_n > MAX_LOG_N {
            return Err(Error::TooLarge { expected: MAX_LOG_N, actual: 1 << log_n.min(63) });
        }
        Ok(Self::tiled(log_n, config, Tiling::new::<F>(info, log_n)))
    }

    fn tiled(log_n: u32, config: Config, tiling: Tiling) -> Self {
        let log_rows = tiling.split(log_n, config.split);
        let busy = log_n.saturating_sub(tiling.log_tiles).max(MIN_LOG_TILE);
        let columns = |rows: &u32| tiling.log_tile.min(busy.max(rows + tiling.log_run)).saturating_sub(*rows);
        let log_columns = log_rows.iter().map(columns).collect();
        Self { log_n, log_rows, log_columns, twiddles: config.twiddles, tiling }
    }

    fn shape(&self, pass: usize, interleaved: bool, in_place: bool, flags: u32) -> Shape {
        let (log_rows, log_columns) = (self.log_rows[pass], self.log_columns[pass]);
        let log_radix = self.tiling.log_radix.min(log_rows);
        let threads = (1u32 << (log_rows + log_columns - log_radix)).min(self.tiling.threads);
        // The last pass has no factors.
        let twiddles = if pass + 1 == self.log_rows.len() { Twiddles::Stored } else { self.twiddles };
        let flags = self.tiling.specialised.then_some(flags);
        Shape { log_rows, log_columns, log_radix, threads, twiddles, interleaved, in_place, flags }
    }

    /// The shapes of transforms of whole batches in these orders.
    fn shapes(&self, input: Order, output: Order, interleaved: bool, inverse: bool, coset: bool) -> Vec<Shape> {
        let mut passes = self.passes(input, output, interleaved);
        self.scale(&mut passes, (input, output), inverse, coset);
        (0..passes.len()).map(|i| self.shape_of(&passes, i)).collect()
    }

    fn shape_of(&self, passes: &[Pass], i: usize) -> Shape {
        let Pass { interleaved, from, to, flags, .. } = passes[i];
        self.shape(i, interleaved, from == to, flags)
    }

    /// log₂ of the order of the roots that the passes use.
    fn log_roots(&self) -> u32 {
        self.log_rows.iter().copied().max().unwrap_or(0)
    }

    /// Roots of one direction.
    fn roots(&self) -> usize {
        1 << self.log_roots().saturating_sub(1)
    }

    /// log₂ of the entries of the lower of the two tables by whose products powers are found.
    fn log_split(&self) -> u32 {
        self.log_n.div_ceil(2)
    }

    /// Entries of both tables of powers.
    fn powers(&self) -> usize {
        (1 << self.log_split()) + (1 << (self.log_n - self.log_split()))
    }

    /// For each pass, where its factors start and log₂ of the number of its lines' offsets. Behind them, their end.
    fn twiddles(&self) -> (Vec<(usize, u32)>, usize) {
        let (mut at, mut left) = (0, self.log_n);
        let tables = self.log_rows.iter().map(|rows| {
            left -= rows;
            let start = at;
            // The last pass has none.
            at += match self.twiddles {
                _ if left == 0 => 0,
                // One for output 0, and a row for each other output.
                Twiddles::Stored => 1 + (((1 << rows) - 1) << left),
                Twiddles::TwoLevel => self.powers(),
                Twiddles::BinaryPowers => self.log_n as usize + 2,
                Twiddles::OnTheFly => 2,
            };
            (start, left)
        });
        (tables.collect(), at)
    }

    /// The passes between two orders, without direction and scaling.
    fn passes(&self, input: Order, output: Order, interleaved: bool) -> Vec<Pass> {
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
            if !interleaved {
                let lines = [(stride_in, flags::LINES_IN), (stride_out, flags::LINES_OUT)];
                flags |= lines.iter().filter(|(stride, _)| *stride == 0).map(|(_, flag)| flag).sum::<u32>();
            }
            let log_twiddles = if i == last { 0 } else { left };
            let (from, to) = match (scratch, i) {
                (false, _) => (Place::Data, Place::Data),
                (true, 0) => (Place::Data, Place::Scratch),
                (true, _) if i == last => (Place::Scratch, Place::Data),
                (true, _) => (Place::Scratch, Place::Scratch),
            };
            let twiddles = starts[i].0;
            Pass {
                log_rows: rows,
                interleaved,
                stride_in,
                stride_out,
                flags,
                twiddles,
                log_twiddles,
                shift: done,
                from,
                to,
            }
        };
        log_rows.iter().enumerate().map(pass).collect()
    }

    /// Adds scaling to passes: by the coset's powers before a forward transform, after an inverse one. n⁻¹ is a factor of the
    /// first pass' twiddles where there are any.
    fn scale(&self, passes: &mut [Pass], (input, output): (Order, Order), inverse: bool, coset: bool) {
        let reversed = |order| if order == Order::BitReversed { flags::SCALE_REVERSED } else { 0 };
        let Some(last) = passes.len().checked_sub(1) else { return };
        match (inverse, coset) {
            (false, false) => {}
            (false, true) => passes[0].flags |= flags::SCALE_IN | reversed(input),
            (true, false) if last == 0 => passes[0].flags |= flags::SCALE_OUT | flags::SCALE_CONSTANT,
            (true, false) => {}
            (true, true) => passes[last].flags |= flags::SCALE_OUT | reversed(output),
        }
        if inverse && last > 0 {
            passes[0].flags |= flags::TWIDDLE_ZERO;
        }
    }

    /// Whether a transform between these orders needs a second buffer: its last pass then stores to other places than
    /// it loads from.
    fn needs_scratch(&self, input: Order, output: Order) -> bool {
        self.log_rows.len() > 1 && input == output
    }
}

impl<F: DeviceField + FftField> Ntt<F> {
    /// A plan for 2^`log_n` elements: compiles its kernels, or loads them from the cache, and computes its tables.
    ///
    /// # Errors
    /// [`Error::TwoAdicity`], [`Error::TooLarge`], [`Error::Device`].
    pub fn new(device: &Device, log_n: u32) -> Result<Self> {
        Self::with_config(device, log_n, Config::default())
    }

    /// [`Ntt::new`] with other tables or passes.
    ///
    /// # Errors
    /// [`Error::TwoAdicity`], [`Error::TooLarge`], [`Error::Device`].
    pub fn with_config(device: &Device, log_n: u32, config: Config) -> Result<Self> {
        Self::with_layout(device, Layout::new::<F>(device.info(), log_n, config)?)
    }

    fn with_layout(device: &Device, layout: Layout) -> Result<Self> {
        let vector = Vector::new(device);
        // Before the factors: where these are there, on the default queue, so are the roots.
        let roots = device.upload(&roots::<F>(&layout)?)?;
        let forward = factors::<F>(device, &layout, &vector, false)?;
        let (inverse, cosets, kernels) = (OnceLock::new(), Mutex::default(), Mutex::default());
        let device = device.clone();
        let shared = Arc::new(Shared { device, layout, kernels, roots, forward, inverse, vector, cosets });
        let plan = Self { shared, queue: None };
        let shapes = plan.shared.layout.shapes(Order::Natural, Order::Natural, false, false, false);
        shapes.into_par_iter().try_for_each(|shape| plan.kernel(shape).map(drop))?;
        Ok(plan)
    }

    /// Device memory in bytes that a plan of this size and calls on `batch` transforms take beside the data: tables of
    /// both directions, and scratch. Powers of coset generators, 2√n elements each, come on top.
    ///
    /// # Errors
    /// [`Error::TwoAdicity`], [`Error::TooLarge`], also for a batch that no call takes: one of 2^32 elements or more.
    pub fn required_bytes(device: &Device, log_n: u32, batch: usize, config: Config) -> Result<u64> {
        let layout = Layout::new::<F>(device.info(), log_n, config)?;
        let len = (batch as u64).saturating_mul(1 << log_n);
        if u32::try_from(len).is_err() {
            return Err(Error::TooLarge { expected: 32, actual: len });
        }
        let scratch = if layout.needs_scratch(Order::Natural, Order::Natural) { len } else { 0 };
        let tables = 2 * layout.twiddles().1 + 3 * (2 * layout.roots() + 1);
        Ok((scratch + tables as u64) * u64::from(source::tile_bytes::<F>(1)))
    }

    /// The kernels of a plan, for compiling them ahead: those of its transforms in natural order, one after the other, and
    /// with `all` of columns, between all orders and on cosets too.
    ///
    /// # Errors
    /// [`Error::TwoAdicity`], [`Error::TooLarge`].
    pub fn kernels(info: &DeviceInfo, log_n: u32, config: Config, all: bool) -> Result<Vec<KernelSpec>> {
        let layout = Layout::new::<F>(info, log_n, config)?;
        let mut shapes = BTreeSet::new();
        for case in 0..if all { 1 << 5 } else { 2 } {
            let is = |bit: u32| case >> bit & 1 == 1;
            let [input, output] = [3, 4].map(|bit| if is(bit) { Order::BitReversed } else { Order::Natural });
            shapes.extend(layout.shapes(input, output, is(2), is(0), is(1)));
        }
        let passes = shapes.into_iter().map(Shape::spec::<F>);
        Ok(passes.chain([pass::twiddles::spec::<F>()]).collect())
    }

    /// The device.
    pub fn device(&self) -> &Device {
        &self.shared.device
    }

    /// The same plan, with the same tables and kernels, on a queue of its own. What it shares with work of other queues, such as
    /// data, is ordered by events ([`Device::record`], [`Device::wait_for`]).
    #[must_use]
    pub fn on(&self, queue: &Queue) -> Self {
        Self { shared: Arc::clone(&self.shared), queue: Some(queue.clone()) }
    }

    pub(crate) fn queue(&self) -> Option<&Queue> {
        self.queue.as_ref()
    }

    /// Operations where the plan works.
    pub(crate) fn vector(&self) -> Vector<F> {
        let vector = &self.shared.vector;
        self.queue().map_or_else(|| vector.clone(), |queue| vector.on(queue))
    }

    /// Elements of one transform.
    pub fn size(&self) -> usize {
        1 << self.shared.layout.log_n
    }

    /// Launches that one transform takes.
    pub fn passes_per_transform(&self) -> usize {
        self.shared.layout.log_rows.len()
    }

    /// Evaluates in place, natural order to natural order, each run of [`Ntt::size`] elements of `data` on its own.
    ///
    /// # Errors
    /// [`Error::Length`], [`Error::TooLarge`], [`Error::Device`].
    pub fn forward<'d>(&self, data: impl Into<ViewMut<'d, Mont<F>>>) -> Result<()> {
        self.transform().forward(data)
    }

    /// Interpolates: the inverse of [`Ntt::forward`].
    ///
    /// # Errors
    /// As [`Ntt::forward`].
    pub fn inverse<'d>(&self, data: impl Into<ViewMut<'d, Mont<F>>>) -> Result<()> {
        self.transform().inverse(data)
    }

    /// A transform with other orders, a coset or another queue, to be set on it.
    pub fn transform(&self) -> Transform<'_, F> {
        let order = Order::Natural;
        Transform { plan: self, input: order, output: order, coset: F::ONE, columns: None, queue: self.queue() }
    }

    /// A transform on the coset of `generator`.
    pub fn coset(&self, generator: F) -> Transform<'_, F> {
        self.transform().coset(generator)
    }

    fn kernel(&self, shape: Shape) -> Result<Arc<Kernel<Params>>> {
        let kernels = || self.shared.kernels.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(kernel) = kernels().get(&shape) {
            return Ok(kernel.clone());
        }
        let kernel = Arc::new(Kernel::new(&self.shared.device, shape.spec::<F>())?);
        Ok(kernels().entry(shape).or_insert(kernel).clone())
    }

    fn inverse_factors(&self) -> Result<&Factors<F>> {
        if let Some(factors) = self.shared.inverse.get() {
            return Ok(factors);
        }
        let factors = factors::<F>(&self.shared.device, &self.shared.layout, &self.shared.vector, true)?;
        Ok(self.shared.inverse.get_or_init(|| factors))
    }

    /// The powers of a coset's generator: g^i for the forward transform, g^(−i) for the inverse, with n⁻¹ where no
    /// twiddle brings it.
    fn coset_powers(&self, generator: F, inverse: bool) -> Result<Coset<F>> {
        let lock = || self.shared.cosets.lock().unwrap_or_else(PoisonError::into_inner);
        let known = |coset: &&Coset<F>| coset.generator == generator && coset.inverse == inverse;
        if let Some(coset) = lock().iter().find(known) {
            return Ok(coset.clone());
        }
        let (base, scale) = match inverse {
            false => (generator, F::ONE),
            // A single pass has no twiddles that bring n⁻¹.
            true if self.shared.layout.log_rows.len() < 2 => {
                (inverted(generator), inverse_of_n::<F>(self.shared.layout.log_n)?)
            }
            true => (inverted(generator), F::ONE),
        };
        let split = self.shared.layout.log_split();
        let mut powers = self.shared.device.alloc(self.shared.layout.powers())?;
        let (low, high) = powers.as_view_mut().split_at(1 << split)?;
        self.shared.vector.powers(base, F::ONE, low)?;
        self.shared.vector.powers(base.pow([1 << split]), scale, high)?;
        let ready = self.shared.device.record(None)?;
        let coset = Coset { generator, inverse, powers: Arc::new(powers), ready };
        let mut cosets = lock();
        cosets.truncate(MAX_COSETS - 1);
        cosets.push_front(coset.clone());
        Ok(coset)
    }
}

impl<F: DeviceField> Clone for Ntt<F> {
    fn clone(&self) -> Self {
        Self { shared: Arc::clone(&self.shared), queue: self.queue.clone() }
    }
}

impl<F: DeviceField> fmt::Debug for Ntt<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Shared { device, layout, .. } = &*self.shared;
        f.debug_struct("Ntt").field("device", device).field("layout", layout).finish_non_exhaustive()
    }
}

fn inverse_of_n<F: DeviceField>(log_n: u32) -> Result<F> {
    let inverse = F::from(2u8).pow([u64::from(log_n)]).inverse();
    inverse.ok_or(Error::TwoAdicity { expected: 0, actual: log_n })
}

fn unity<F: FftField>(log_n: u32) -> Result<F> {
    root_of_unity(log_n).ok_or(Error::TwoAdicity { expected: F::TWO_ADICITY, actual: log_n })
}

fn inverted<F: FftField>(x: F) -> F {
    x.inverse().unwrap_or(F::ONE)
}

/// The roots within passes as known constants, forward then inverse, and n⁻¹.
fn roots<F: DeviceField + FftField>(layout: &Layout) -> Result<Vec<u32>> {
    let root = unity::<F>(layout.log_roots())?;
    let powers = |base: F| std::iter::successors(Some(F::ONE), move |x| Some(*x * base)).take(layout.roots());
    let inverse_of_n = inverse_of_n::<F>(layout.log_n)?;
    Ok(known_constants(powers(root).chain(powers(inverted(root))).chain([inverse_of_n])))
}

/// The tables of the factors between the passes of one direction. Those of the inverse's first pass have the factor n⁻¹.
fn factors<F: DeviceField + FftField>(
    device: &Device,
    layout: &Layout,
    vector: &Vector<F>,
    inverse: bool,
) -> Result<Factors<F>> {
    let (starts, len) = layout.twiddles();
    let mut factors = device.alloc(len)?;
    let between = &starts[..starts.len().saturating_sub(1)];
    for (i, &(start, left)) in between.iter().enumerate() {
        let root = unity::<F>(layout.log_n)?;
        let root = if inverse { inverted(root) } else { root };
        let factor = if inverse && i == 0 { inverse_of_n(layout.log_n)? } else { F::ONE };
        let split = layout.log_split();
        let two_level = |powers: ViewMut<'_, Mont<F>>| -> Result<()> {
            let (low, high) = powers.split_at(1 << split)?;
            vector.powers(root, F::ONE, low)?;
            Ok(vector.powers(root.pow([1 << split]), factor, high)?)
        };
        match layout.twiddles {
            Twiddles::Stored => {
                let mut powers = device.alloc(layout.powers())?;
                two_level(powers.as_view_mut())?;
                factors.view_mut(start..=start)?.write(&[factor])?;
                let rows = layout.log_rows[i];
                let len = ((1u32 << rows) - 1) << left;
                let (at, shift) = (start as u32 + 1, layout.log_n - left - rows);
                let params = pass::twiddles::Params { len, at, log_columns: left, shift, split };
                let kernel = Kernel::new(device, pass::twiddles::spec::<F>())?;
                let groups = u64::from(len).div_ceil(u64::from(kernel.spec().threads));
                let args = &mut [Arg::read(&powers), Arg::write(&mut factors)];
                // SAFETY: exponents are below n, so inside both tables; the places of this pass lie inside `factors`.
                unsafe { kernel.launch(None, groups, &params, args)? };
            }
            Twiddles::TwoLevel => two_level(factors.view_mut(start..start + layout.powers())?)?,
            Twiddles::BinaryPowers | Twiddles::OnTheFly => {
                let count = if layout.twiddles == Twiddles::OnTheFly { 1 } else { layout.log_n as usize + 1 };
                let powers = std::iter::successors(Some(root), |power| Some(power.square())).take(count);
                let powers: Vec<F> = powers.collect();
                factors.view_mut(start..start + 1 + count)?.write(&[&[factor], &powers[..]].concat())?;
            }
        }
    }
    Ok(Factors { factors, ready: device.record(None)? })
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Data,
    Scratch,
}

#[derive(Clone, Copy, Debug)]
struct Pass {
    log_rows: u32,
    interleaved: bool,
    stride_in: u32,
    stride_out: u32,
    flags: u32,
    twiddles: usize,
    log_twiddles: u32,
    /// log₂ of the power of the plan's root whose powers the factors are.
    shift: u32,
    from: Place,
    to: Place,
}

/// One way of applying a plan: orders, coset, queue.
///
/// ```
/// # fn main() -> Result<(), evariste_ntt::Error> {
/// # use ark_bls12_381::Fr;
/// # use ark_ff::FftField;
/// # use evariste_backend::Device;
/// # use evariste_field::Mont;
/// use evariste_ntt::{Ntt, Order};
///
/// # let device = Device::best()?;
/// let ntt = Ntt::<Fr>::new(&device, 3)?;
/// let mut x = device.upload::<Mont<Fr>>(&[7; 8].map(Fr::from))?;
/// // Evaluations on a coset in bit-reversed order, and back: no reordering pass at all.
/// ntt.coset(Fr::GENERATOR).output(Order::BitReversed).forward(&mut x)?;
/// ntt.coset(Fr::GENERATOR).input(Order::BitReversed).inverse(&mut x)?;
/// assert_eq!(x.to_vec()?, [7; 8].map(Fr::from));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
#[must_use = "nothing happens before `forward` or `inverse`"]
pub struct Transform<'a, F: DeviceField> {
    plan: &'a Ntt<F>,
    input: Order,
    output: Order,
    coset: F,
    columns: Option<usize>,
    queue: Option<&'a Queue>,
}

impl<'a, F: DeviceField + FftField> Transform<'a, F> {
    pub(crate) fn plan(&self) -> &'a Ntt<F> {
        self.plan
    }

    /// The order of the data before (natural unless set).
    pub fn input(mut self, order: Order) -> Self {
        self.input = order;
        self
    }

    /// The order of the data after (natural unless set).
    pub fn output(mut self, order: Order) -> Self {
        self.output = order;
        self
    }

    /// The generator of the coset on which values are taken (1 unless set: the subgroup itself).
    pub fn coset(mut self, generator: F) -> Self {
        self.coset = generator;
        self
    }

    /// Transforms the columns of a matrix of [`Ntt::size`] rows and `count` columns, stored by rows; of each, where the
    /// data has several such matrices (unless set, runs of [`Ntt::size`] elements are transformed).
    pub fn columns(mut self, count: usize) -> Self {
        self.columns = Some(count);
        self
    }

    /// The queue to work on (the plan's unless set).
    pub fn on(mut self, queue: &'a Queue) -> Self {
        self.queue = Some(queue);
        self
    }

    /// Evaluates each run of [`Ntt::size`] elements of `data`, in place.
    ///
    /// # Errors
    /// [`Error::Length`], [`Error::TooLarge`], [`Error::ZeroCoset`], [`Error::Device`]. The data is unchanged then,
    /// unless the device failed in the middle.
    pub fn forward<'d>(&self, data: impl Into<ViewMut<'d, Mont<F>>>) -> Result<()> {
        self.run(data.into(), false)
    }

    /// Interpolates: the inverse of [`Transform::forward`] with the orders exchanged.
    ///
    /// # Errors
    /// As [`Transform::forward`].
    pub fn inverse<'d>(&self, data: impl Into<ViewMut<'d, Mont<F>>>) -> Result<()> {
        self.run(data.into(), true)
    }

    /// The forward transform of what `host` holds in the device's form ([`evariste_backend::Element::encode`]), in the same
    /// memory, which must be for both directions. The first pass starts when the first columns are on the device, and the
    /// first columns go back while the last pass works on others; [`crate::Pipeline`] overlaps several transforms.
    ///
    /// # Errors
    /// As [`Transform::forward`]. The host memory is dropped then.
    pub fn forward_pinned(&self, host: HostBuffer, secrecy: Secrecy) -> Result<HostBuffer> {
        self.run_pinned(host, secrecy, false)
    }

    /// The inverse of [`Transform::forward_pinned`] with the orders exchanged.
    ///
    /// # Errors
    /// As [`Transform::forward_pinned`].
    pub fn inverse_pinned(&self, host: HostBuffer, secrecy: Secrecy) -> Result<HostBuffer> {
        self.run_pinned(host, secrecy, true)
    }

    fn run(&self, mut data: ViewMut<'_, Mont<F>>, inverse: bool) -> Result<()> {
        let Some(run) = self.prepare(data.as_view(), inverse)? else { return Ok(()) };
        let mut scratch = run.scratch(data.as_view())?;
        let lines = |i| run.lines(i, data.len());
        let lines: Vec<u32> = (0..run.passes.len()).map(lines).collect();
        let mut passes = lines.into_iter().enumerate();
        passes.try_for_each(|(i, lines)| run.launch(i, 0..lines, data.reborrow(), &mut scratch))
    }

    fn run_pinned(&self, host: HostBuffer, secrecy: Secrecy, inverse: bool) -> Result<HostBuffer> {
        let (device, bytes) = (&self.plan.shared.device, Mont::<F>::BYTES);
        host.expect_download("the host memory of a transform")?;
        let len = host.len() / bytes;
        let mut data = device.alloc_with::<Mont<F>>(len, secrecy)?;
        let Some(run) = self.prepare(data.as_view(), inverse)? else { return Ok(host) };
        let mut scratch = run.scratch(data.as_view())?;
        let transfers = device.queue()?;

        // Blocks of columns where the lines of the outer passes are columns of one matrix.
        let last = run.passes.len() - 1;
        let natural = (self.input, self.output) == (Order::Natural, Order::Natural);
        let whole = run.layout.log_n == len.ilog2() && natural && last > 0;
        let pieces = |i: usize| {
            let tiles = u64::from(run.lines(i, len)) / run.kernels[i].0.lines_per_group();
            if whole { PIECES.min(tiles as usize).max(1) } else { 1 }
        };
        let (into, out_of) = (pieces(0), pieces(last));
        let rows = |i: usize, pieces| if pieces > 1 { 1 << run.passes[i].log_rows } else { 1 };

        let (uploaded, uploading) =
            data.as_view_mut().write_pinned_columns(Some(&transfers), host, rows(0, into), into)?;
        let mut done = Vec::with_capacity(out_of);
        for i in 0..=last {
            let lines = run.lines(i, len);
            let pieces = if i == 0 {
                into
            } else if i == last {
                out_of
            } else {
                1
            };
            for piece in 0..pieces as u32 {
                if i == 0 {
                    device.wait_for(self.queue, &uploaded[piece as usize])?;
                }
                let share = lines / pieces as u32;
                run.launch(i, piece * share..(piece + 1) * share, data.as_view_mut(), &mut scratch)?;
                if i == last {
                    done.push(device.record(self.queue)?);
                }
            }
        }
        // The memory is free again as soon as the device has the data, while it still works on it.
        let host = uploading.wait()?;
        let back = data.as_view().read_pinned_columns(Some(&transfers), host, rows(last, out_of), &done)?;
        Ok(back.wait()?)
    }

    /// Checks the data and makes everything ready, unless nothing is to be done.
    fn prepare(&self, data: View<'_, Mont<F>>, inverse: bool) -> Result<Option<Run<'a, F>>> {
        let (plan, queue) = (self.plan, self.queue);
        let layout = &plan.shared.layout;
        plan.shared.device.expect_same("the data of a transform", data.device())?;
        let columns = self.columns.unwrap_or(1);
        let unit = plan.size().saturating_mul(columns);
        if if unit == 0 { !data.is_empty() } else { !data.len().is_multiple_of(unit) } {
            return Err(Error::Length { expected: unit, actual: data.len() });
        }
        if u32::try_from(data.len()).is_err() {
            return Err(Error::TooLarge { expected: 32, actual: data.len() as u64 });
        }
        if self.coset.is_zero() {
            return Err(Error::ZeroCoset);
        }
        if layout.log_n == 0 || data.is_empty() {
            return Ok(None);
        }
        let mut passes = layout.passes(self.input, self.output, columns > 1);
        layout.scale(&mut passes, (self.input, self.output), inverse, !self.coset.is_one());
        let shapes = (0..passes.len()).map(|i| layout.shape_of(&passes, i));
        let kernels = shapes.map(|shape| Ok((shape, plan.kernel(shape)?))).collect::<Result<Vec<_>>>()?;
        // Before the first pass: what a later one refused would leave the data half transformed.
        kernels.iter().try_for_each(|(_, kernel)| kernel.expect_fits(&Params::default()))?;
        let factors = if inverse { plan.inverse_factors()? } else { &plan.shared.forward };
        let coset = if self.coset.is_one() { None } else { Some(plan.coset_powers(self.coset, inverse)?) };
        if queue.is_some() {
            plan.shared.device.wait_for(queue, &factors.ready)?;
            coset.iter().try_for_each(|coset| plan.shared.device.wait_for(queue, &coset.ready))?;
        }
        let scratch = layout.needs_scratch(self.input, self.output);
        Ok(Some(Run { plan, layout, queue, inverse, columns, passes, kernels, factors, coset, scratch }))
    }
}

/// Blocks of columns in which one transform's data comes and goes: the part of the outer passes that is not overlapped with a
/// transfer.
const PIECES: usize = 8;

/// A transform with everything that its launches need.
struct Run<'a, F: DeviceField> {
    plan: &'a Ntt<F>,
    layout: &'a Layout,
    queue: Option<&'a Queue>,
    inverse: bool,
    /// Transforms side by side.
    columns: usize,
    passes: Vec<Pass>,
    kernels: Vec<(Shape, Arc<Kernel<Params>>)>,
    factors: &'a Factors<F>,
    coset: Option<Coset<F>>,
    /// A second buffer is needed.
    scratch: bool,
}

impl<F: DeviceField + FftField> Run<'_, F> {
    fn scratch(&self, data: View<'_, Mont<F>>) -> Result<Option<Buffer<Mont<F>>>> {
        match self.scratch {
            true => Ok(Some(self.plan.shared.device.alloc_with(data.len(), data.secrecy())?)),
            false => Ok(None),
        }
    }

    /// Lines of a pass over so many elements.
    fn lines(&self, pass: usize, len: usize) -> u32 {
        (len >> self.passes[pass].log_rows) as u32
    }

    /// Queues pass `i` of some lines.
    fn launch(
        &self,
        i: usize,
        lines: Range<u32>,
        data: ViewMut<'_, Mont<F>>,
        scratch: &mut Option<Buffer<Mont<F>>>,
    ) -> Result<()> {
        let (Self { plan, layout, .. }, pass) = (self, self.passes[i]);
        let (shape, kernel) = &self.kernels[i];
        let params = Params {
            first: lines.start,
            lines: lines.end,
            log_n: layout.log_n,
            stride_in: pass.stride_in,
            stride_out: pass.stride_out,
            flags: pass.flags,
            roots: if self.inverse { layout.roots() as u32 } else { 0 },
            log_roots: layout.log_roots(),
            twiddles: pass.twiddles as u32,
            log_twiddles: pass.log_twiddles,
            shift: pass.shift,
            split: layout.log_split(),
            scales: if self.coset.is_some() { 0 } else { 3 * 2 * layout.roots() as u32 },
            log_scales: layout.log_split(),
            interleaved: self.columns as u32,
        };
        let groups = u64::from(lines.end - lines.start).div_ceil(shape.lines_per_group());
        let scale = self.coset.as_ref().map_or(Arg::read(&plan.shared.roots), |coset| Arg::read(&*coset.powers));
        let tables = [Arg::read(&plan.shared.roots), Arg::read(&self.factors.factors), scale];
        let mut args = match (pass.from, pass.to, scratch) {
            (Place::Data, Place::Scratch, Some(scratch)) => vec![Arg::read(&data), Arg::write(scratch)],
            (Place::Scratch, Place::Data, Some(scratch)) => vec![Arg::read(scratch), Arg::write(data)],
            (Place::Scratch, Place::Scratch, Some(scratch)) => vec![Arg::write(scratch)],
            _ => vec![Arg::write(data)],
        };
        args.extend(tables);
        // SAFETY: lines are among those that cover exactly the elements of the data; rows and offsets of lines stay inside
        // the tables.
        Ok(unsafe { kernel.launch(self.queue, groups, &params, &mut args) }?)
    }
}

#[cfg(test)]
mod tests {
    use ark_bls12_381::Fr;
    use ark_ff::UniformRand;
    use evariste_field::small::Goldilocks;

    use super::*;
    use crate::reference;

    fn random<F: UniformRand>(len: usize) -> Vec<F> {
        let mut rng = ark_std::test_rng();
        (0..len).map(|_| F::rand(&mut rng)).collect()
    }

    #[test]
    fn every_order_and_size_matches_the_definition() {
        let device = Device::cpu();
        let orders = [Order::Natural, Order::BitReversed];
        for log_n in 0..9 {
            let x = random::<Fr>(1 << log_n);
            let expected = reference::forward(&x, Fr::GENERATOR);
            // Small tiles bring several passes into reach of the naive reference.
            let tiles = [(3, 0), (4, 1), (4, 0), (5, 2), (12, 0)];
            let configs = Twiddles::ALL.map(|twiddles| Split::ALL.map(|split| Config { twiddles, split }));
            for ((log_tile, log_run), config) in
                tiles.iter().flat_map(|tile| configs.iter().flatten().map(|c| (*tile, *c)))
            {
                let log_balanced = log_tile;
                let (log_radix, log_tiles, specialised) = (2, 2, false);
                let tiling = Tiling { log_tile, log_balanced, log_run, log_radix, threads: 1, log_tiles, specialised };
                let layout = Layout::tiled(log_n, config, tiling);
                let ntt = Ntt::<Fr>::with_layout(&device, layout).unwrap();
                for (input, output) in orders.iter().flat_map(|i| orders.map(|o| (*i, o))) {
                    let mut data = device.upload(&reference::reorder(&x, Order::Natural, input)).unwrap();
                    let transform = ntt.coset(Fr::GENERATOR).input(input).output(output);
                    transform.forward(&mut data).unwrap();
                    assert_eq!(
                        data.to_vec().unwrap(),
                        reference::reorder(&expected, Order::Natural, output),
                        "2^{log_n}, tile 2^{log_tile}, {config:?}, {input:?} to {output:?}"
                    );
                    ntt.coset(Fr::GENERATOR).input(output).output(input).inverse(&mut data).unwrap();
                    assert_eq!(data.to_vec().unwrap(), reference::reorder(&x, Order::Natural, input));
                }
            }
        }
    }

    #[test]
    fn numbers_at_their_extremes_are_errors_or_nothing_to_do() {
        let device = Device::cpu();
        let refused = |log_n| Ntt::<Goldilocks>::required_bytes(&device, log_n, 1, Config::default()).unwrap_err();
        assert!(matches!(refused(29), Error::TooLarge { .. }));
        assert!(matches!(refused(33), Error::TwoAdicity { .. }));
        assert!(matches!(refused(u32::MAX), Error::TwoAdicity { .. }));
        for (log_n, batch) in [(28, 16), (28, 1 << 36), (0, 1 << 32), (1, usize::MAX), (0, usize::MAX)] {
            let error = Ntt::<Goldilocks>::required_bytes(&device, log_n, batch, Config::default()).unwrap_err();
            assert!(matches!(error, Error::TooLarge { expected: 32, .. }), "2^{log_n} × {batch}: {error}");
        }
        let most = Ntt::<Goldilocks>::required_bytes(&device, 28, 15, Config::default()).unwrap();
        assert!(most > (15 << 28) * 8 && most < (18 << 28) * 8, "{most}");

        let ntt = Ntt::<Goldilocks>::new(&device, 3).unwrap();
        let mut nothing = device.alloc(0).unwrap();
        let mut data = device.upload(&random::<Goldilocks>(16)).unwrap();
        let before = data.to_vec().unwrap();
        for columns in [0, 3, usize::MAX / 8, usize::MAX] {
            ntt.transform().columns(columns).forward(&mut nothing).unwrap();
            let error = ntt.transform().columns(columns).forward(&mut data).unwrap_err();
            assert!(matches!(error, Error::Length { actual: 16, .. }), "{columns}: {error}");
        }
        assert_eq!(data.to_vec().unwrap(), before);
        for batch in [usize::MAX, usize::MAX / 8, 1 << 59] {
            assert!(crate::Pipeline::new(ntt.transform(), batch, Secrecy::Public).is_err(), "{batch}");
        }
        let mut host = random::<Goldilocks>(16);
        for device_bytes in [0, 1] {
            let error = crate::forward_in_pieces(&device, &mut host, device_bytes).unwrap_err();
            assert!(matches!(error, Error::TooLittle { .. }), "{error}");
        }
        let expected = reference::forward(&host, Goldilocks::from(1));
        crate::forward_in_pieces(&device, &mut host, u64::MAX).unwrap();
        assert_eq!(host, expected);
    }

    /// Transforms of `columns` columns of each of `matrices` matrices, on a coset, and back.
    fn check_columns<F: DeviceField + FftField>(log_n: u32, matrices: usize, columns: usize, twiddles: Twiddles) {
        let device = Device::cpu();
        let ntt = Ntt::<F>::with_config(&device, log_n, Config { twiddles, ..Config::default() }).unwrap();
        let x = random::<F>((matrices * columns) << log_n);
        let mut expected = x.clone();
        for matrix in expected.chunks_mut(columns << log_n) {
            for column in 0..columns {
                let values: Vec<F> = matrix[column..].iter().step_by(columns).copied().collect();
                let output = reference::forward(&values, F::GENERATOR);
                matrix[column..].iter_mut().step_by(columns).zip(output).for_each(|(place, value)| *place = value);
            }
        }
        let mut data = device.upload(&x).unwrap();
        let transform = ntt.coset(F::GENERATOR).columns(columns);
        transform.forward(&mut data).unwrap();
        let case = format!("{matrices} × {columns} × 2^{log_n}, {twiddles:?}");
        assert_eq!(data.to_vec().unwrap(), expected, "{case}");
        transform.inverse(&mut data).unwrap();
        assert_eq!(data.to_vec().unwrap(), x, "{case}");
    }

    #[test]
    fn lines_may_fill_vectors_or_not() {
        for (log_n, matrices, columns) in
            [(1, 7, 3), (3, 1, 1), (3, 5, 1), (6, 1, 1), (7, 3, 1), (4, 1, 9), (7, 2, 3), (9, 1, 1)]
        {
            for twiddles in [Twiddles::Stored, Twiddles::TwoLevel, Twiddles::OnTheFly] {
                check_columns::<Fr>(log_n, matrices, columns, twiddles);
                check_columns::<Goldilocks>(log_n, matrices, columns, twiddles);
            }
        }
    }

    #[test]
    fn passes_are_balanced_and_at_most_four() {
        let mut info = Device::cpu().info().clone();
        for (workgroup_bytes, threads) in [(16 << 10, 256), (48 << 10, 256), (227 << 10, 1024), (256 << 10, 1)] {
            (info.limits.workgroup_bytes, info.limits.workgroup_threads) = (workgroup_bytes, threads);
            for log_n in 0..=26 {
                let layout = Layout::new::<Fr>(&info, log_n, Config::default()).unwrap();
                let rows = &layout.log_rows;
                assert_eq!(rows.iter().sum::<u32>(), log_n);
                assert!(rows.len() <= 4, "{layout:?}");
                assert!(rows.iter().max().zip(rows.iter().min()).is_none_or(|(max, min)| max - min <= 1));
            }
        }
    }
}
