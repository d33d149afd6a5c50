use std::{mem, ops::Range, sync::Arc};

#[cfg(doc)]
use evariste_backend::Error;
use evariste_backend::{
    Buffer, DeviceInfo, Queue, Result, ViewMut,
    author::{Arg, Binding, BindingType, CpuArg, Kernel, KernelSpec, Wiped, loop_iterations},
    params,
};
use rayon::prelude::*;

use crate::{
    histogram::{Digits, Histogram},
    scan::{GROUP_BYTES, GROUP_ITERATIONS, Scan},
    scattered::Scattered,
    words::{THREADS, checked_bits, checked_len, mask, source},
};

/// Bits of a digit where the workgroups of a pass wait for each other.
const SWEEP_BITS: u32 = 8;

/// Keys of a tile there: 16 a thread, so that runs of equal random digits fill 64 bytes.
const SWEEP_TILE: u32 = 16 * THREADS;

/// Words before the states of the tiles, one for each pass.
const SWEEP_TICKETS: usize = 8;

/// Bits of a digit otherwise: each thread has a counter for each digit in workgroup memory.
const SCATTER_BITS: u32 = 4;

/// Keys of a tile there: 4 a thread, so that a tile's keys and values fit the memory of the counters.
const SCATTER_TILE: u32 = 4 * THREADS;

/// Keys that a CPU thread takes at a time.
const GRAIN: usize = 1 << 15;

/// How a [`RadixSort`] moves keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SortMethod {
    /// Digits of 8 bits. One kernel counts the digits of all passes. Then each pass reads and writes every key once,
    /// and a workgroup gets the places of its keys from those before it (decoupled look-back). A pair of key and value
    /// moves 4 + 16 · ⌈bits / 8⌉ bytes.
    Sweep,
    /// Digits of 4 bits. Each pass counts the digits of tiles, scans the counts and moves the keys: no workgroup waits
    /// for another. A pair of key and value moves 20 · ⌈bits / 4⌉ bytes.
    Scatter,
}

impl SortMethod {
    /// Returns the fastest method that suits a device.
    pub fn fastest(info: &DeviceInfo) -> Self {
        match info.features.forward_progress && info.limits.loop_iterations.is_none() {
            true => Self::Sweep,
            false => Self::Scatter,
        }
    }
}

/// How a [`RadixSort`] is made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct RadixSortConfig {
    /// The method; `None` is the fastest that suits the device.
    pub method: Option<SortMethod>,
}

impl RadixSortConfig {
    /// Sets [`RadixSortConfig::method`]; with `None` the plan chooses.
    #[must_use]
    pub fn method(mut self, method: impl Into<Option<SortMethod>>) -> Self {
        self.method = method.into();
        self
    }
}

params! {
    struct SweepParams {
        len: u32,
        shift: u32,
        mask: u32,
        pass_index: u32,
        totals: u32,
    }

    struct TileParams {
        len: u32,
        tiles: u32,
        shift: u32,
        mask: u32,
    }
}

/// Sorts 32-bit keys, each with a 32-bit value, by any range of the keys' bits, stably.
///
/// It sorts by one digit after the other from the lowest on (least significant digit first). The pairs move between the
/// given buffers and others of the same lengths. The time depends on the keys only through caches.
///
/// ```
/// # fn main() -> Result<(), evariste_backend::Error> {
/// use evariste_backend::Device;
/// use evariste_primitives::RadixSort;
///
/// let device = Device::best()?;
/// let mut keys = device.upload::<u32>(&[0x52, 0x31, 0x22, 0x31])?;
/// let mut values = device.upload::<u32>(&[0, 1, 2, 3])?;
/// RadixSort::new(&device)?.sort(&mut keys, &mut values, 0..4)?;
/// assert_eq!(keys.to_vec()?, [0x31, 0x31, 0x52, 0x22]);
/// assert_eq!(values.to_vec()?, [1, 3, 0, 2]);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct RadixSort {
    queue: Queue,
    method: Method,
}

#[derive(Clone, Debug)]
enum Method {
    Sweep { histogram: Histogram, sweep: Arc<Kernel<SweepParams>> },
    Scatter { count: Arc<Kernel<TileParams>>, scan: Scan, scatter: Arc<Kernel<TileParams>> },
}

impl RadixSort {
    /// Makes a plan by the fastest method that suits the device, on a queue (`&device` is its default one). Compiles
    /// the kernels.
    ///
    /// # Errors
    /// - [`Error::Compile`] if the compiler or the driver refuses a kernel.
    /// - [`Error::Unavailable`] if the compiler is missing and the disk cache has not the kernels.
    /// - [`Error::Driver`] if a call of the driver fails.
    /// - [`Error::Lost`] if the device is lost.
    pub fn new(queue: impl Into<Queue>) -> Result<Self> {
        Self::with_config(queue, RadixSortConfig::default())
    }

    /// Makes a plan with a configuration. All methods work on all devices. On a device without forward progress,
    /// [`SortMethod::Sweep`] runs a single workgroup. If such a device limits the loop iterations of a thread
    /// ([`Limits::loop_iterations`](evariste_backend::Limits::loop_iterations)), it refuses more than some 60,000 keys.
    ///
    /// # Errors
    /// - [`Error::Compile`] if the compiler or the driver refuses a kernel.
    /// - [`Error::Unavailable`] if the compiler is missing and the disk cache has not the kernels.
    /// - [`Error::Driver`] if a call of the driver fails.
    /// - [`Error::Lost`] if the device is lost.
    pub fn with_config(queue: impl Into<Queue>, config: RadixSortConfig) -> Result<Self> {
        let queue = queue.into();
        let device = queue.device();
        let method = match config.method.unwrap_or_else(|| SortMethod::fastest(device.info())) {
            SortMethod::Sweep => {
                let sweep = Arc::new(Kernel::new(device, sweep_spec())?);
                Method::Sweep { histogram: Histogram::new(&queue)?, sweep }
            }
            SortMethod::Scatter => Method::Scatter {
                count: Arc::new(Kernel::new(device, count_spec())?),
                scan: Scan::new(&queue)?,
                scatter: Arc::new(Kernel::new(device, scatter_spec())?),
            },
        };
        Ok(Self { queue, method })
    }

    /// Returns the same plan for work on `queue`.
    #[must_use]
    pub fn on(&self, queue: &Queue) -> Self {
        let method = match self.method.clone() {
            Method::Sweep { histogram, sweep } => Method::Sweep { histogram: histogram.on(queue), sweep },
            Method::Scatter { count, scan, scatter } => Method::Scatter { count, scan: scan.on(queue), scatter },
        };
        Self { queue: queue.clone(), method }
    }

    /// Returns the kernels of both methods, for compiling them ahead.
    #[doc(hidden)]
    pub fn kernels() -> Vec<KernelSpec> {
        let own = [sweep_spec(), count_spec(), scatter_spec()];
        Histogram::kernels().into_iter().chain(Scan::kernels()).chain(own).collect()
    }

    /// Returns the kernels that [`RadixSort::new`] compiles for such a device.
    #[doc(hidden)]
    pub fn kernels_on(info: &DeviceInfo) -> Vec<KernelSpec> {
        match SortMethod::fastest(info) {
            SortMethod::Sweep => Histogram::kernels().into_iter().chain([sweep_spec()]).collect(),
            SortMethod::Scatter => Scan::kernels().into_iter().chain([count_spec(), scatter_spec()]).collect(),
        }
    }

    /// Returns the method in use.
    pub fn method(&self) -> SortMethod {
        match self.method {
            Method::Sweep { .. } => SortMethod::Sweep,
            Method::Scatter { .. } => SortMethod::Scatter,
        }
    }

    /// Returns the bytes of scratch that sorting `len` keys by `bits` of their bits takes.
    pub fn required_bytes(&self, len: usize, bits: u32) -> u64 {
        let moved = 8 * len as u64;
        let passes = Passes::new(0, bits, self.digit_bits());
        moved
            + match &self.method {
                _ if passes.count == 0 => 0,
                Method::Sweep { histogram, .. } => {
                    let columns = passes.count << passes.bits;
                    let rows = histogram.required_bytes(len, 0) * u64::from(columns);
                    rows + 4 * u64::from(columns) + 4 * state_words(len) as u64
                }
                Method::Scatter { .. } => {
                    let counts = len.div_ceil(SCATTER_TILE as usize) << SCATTER_BITS;
                    8 * counts as u64 + Scan::scratch_bytes(counts)
                }
            }
    }

    /// Sorts pairs of key and value by the keys' bits `bits`, where bit 0 is the lowest. Pairs whose keys agree in
    /// these bits keep their order.
    ///
    /// # Errors
    /// - [`Error::OutOfRange`] if `bits` ends beyond bit 32 or before it starts.
    /// - [`Error::Length`] unless there is a value for each key.
    /// - [`Error::WrongDevice`] if a view or the queue is of another device.
    /// - [`Error::TooLarge`] for more than [`MAX_LEN`](crate::MAX_LEN) keys. Also for [`SortMethod::Sweep`] with more
    ///   keys than one workgroup alone may go through.
    /// - [`Error::OutOfMemory`] if there is no room for the scratch.
    /// - [`Error::Driver`] if a call of the driver fails.
    /// - [`Error::Lost`] if the device is lost.
    ///
    /// The checks come before anything is moved. If the device fails after the first pass, the buffers hold the pairs
    /// in some order, or what the device left. If a view is not a whole buffer, an odd number of digits takes one more
    /// copy of the pairs at the end.
    pub fn sort<'a>(
        &self,
        keys: impl Into<ViewMut<'a, u32>>,
        values: impl Into<ViewMut<'a, u32>>,
        bits: Range<u32>,
    ) -> Result<()> {
        let (mut keys, mut values) = (keys.into(), values.into());
        let queue = self.queue.expect_device(match &self.method {
            Method::Sweep { sweep, .. } => sweep.device(),
            Method::Scatter { count, .. } => count.device(),
        })?;
        let device = queue.device();
        let (shift, bits) = checked_bits(&bits)?;
        values.expect_len("the values of a sort", keys.len())?;
        device.expect_same("the keys of a sort", keys.device())?;
        device.expect_same("the values of a sort", values.device())?;
        let len = checked_len(device, "sort", keys.len())?;
        let passes = Passes::new(shift, bits, self.digit_bits());
        if len < 2 || passes.count == 0 {
            return Ok(());
        }
        let mut moved_keys: Buffer<u32> = device.alloc_with(keys.len(), keys.secrecy())?;
        let mut moved_values: Buffer<u32> = device.alloc_with(keys.len(), values.secrecy())?;
        // Passes go from the pairs to the moved ones and back.
        let mut pairs = [[keys.reborrow(), values.reborrow()], [moved_keys.as_view_mut(), moved_values.as_view_mut()]];
        let secrecy = pairs[0][0].secrecy();
        match &self.method {
            Method::Sweep { histogram, sweep } => {
                let digits = Digits { shift, total: bits, bits: passes.bits, fields: passes.count };
                let mut totals: Buffer<u32> = device.alloc_with((passes.count << passes.bits) as usize, secrecy)?;
                let mut state: Buffer<u32> = device.alloc_with(state_words(len as usize), secrecy)?;
                queue.clear(&mut state)?;
                histogram.count_digits(pairs[0][0].as_view(), digits, totals.as_view_mut())?;
                for pass in 0..passes.count {
                    let (shift, mask) = passes.digit(pass);
                    let params = SweepParams { len, shift, mask, pass_index: pass, totals: pass << passes.bits };
                    let [[keys, values], [moved_keys, moved_values]] = &mut pairs;
                    let args = &mut [
                        Arg::read(keys),
                        Arg::read(values),
                        Arg::read(&totals),
                        Arg::write(&mut state),
                        Arg::write(moved_keys),
                        Arg::write(moved_values),
                    ];
                    // SAFETY: all four vectors have `len` elements, and places beyond them are left out, which there
                    // are if another queue changes the keys meanwhile; `state` has a pair for each tile and digit.
                    unsafe { sweep.launch(queue, len.div_ceil(SWEEP_TILE).into(), &params, args) }?;
                    pairs.reverse();
                }
            }
            Method::Scatter { count, scan, scatter } => {
                let tiles = len.div_ceil(SCATTER_TILE);
                let mut counts: Buffer<u32> = device.alloc_with((tiles << SCATTER_BITS) as usize, secrecy)?;
                let mut offsets: Buffer<u32> = device.alloc_with(counts.len(), secrecy)?;
                for pass in 0..passes.count {
                    let (shift, mask) = passes.digit(pass);
                    let params = TileParams { len, tiles, shift, mask };
                    // SAFETY: there are `len` keys, and `counts` has a counter for each tile and digit.
                    unsafe {
                        let args = &mut [Arg::read(&pairs[0][0]), Arg::write(&mut counts)];
                        count.launch(queue, tiles.into(), &params, args)
                    }?;
                    scan.exclusive(&counts, &mut offsets)?;
                    let [[keys, values], [moved_keys, moved_values]] = &mut pairs;
                    let args = &mut [
                        Arg::read(keys),
                        Arg::read(values),
                        Arg::read(&offsets),
                        Arg::write(moved_keys),
                        Arg::write(moved_values),
                    ];
                    // SAFETY: all four vectors have `len` elements, and places beyond them are left out, which there
                    // are if another queue changes the keys meanwhile; `offsets` has one for each tile and digit.
                    unsafe { scatter.launch(queue, tiles.into(), &params, args) }?;
                    pairs.reverse();
                }
            }
        }
        if passes.count % 2 == 1 {
            queue.replace(keys, moved_keys)?;
            queue.replace(values, moved_values)?;
        }
        Ok(())
    }

    fn digit_bits(&self) -> u32 {
        match self.method {
            Method::Sweep { .. } => SWEEP_BITS,
            Method::Scatter { .. } => SCATTER_BITS,
        }
    }
}

/// Key bits, divided into digits of equal width but for the last.
#[derive(Clone, Copy, Debug)]
struct Passes {
    shift: u32,
    total: u32,
    /// Bits of a digit.
    bits: u32,
    count: u32,
}

impl Passes {
    fn new(shift: u32, total: u32, most: u32) -> Self {
        let count = total.div_ceil(most);
        let bits = total.div_ceil(count.max(1));
        Self { shift, total, bits, count }
    }

    /// Shift and mask of a pass's digit.
    fn digit(&self, pass: u32) -> (u32, u32) {
        let done = pass * self.bits;
        (self.shift + done, mask(self.bits.min(self.total - done)))
    }
}

/// Words of the state of a sweep: tickets, and a pair for each tile and digit.
fn state_words(len: usize) -> usize {
    SWEEP_TICKETS + (len.div_ceil(SWEEP_TILE as usize) << (SWEEP_BITS + 1))
}

fn sweep_spec() -> KernelSpec {
    let bindings = [
        Binding::read("keys", BindingType::U32),
        Binding::read("values", BindingType::U32),
        Binding::read("totals", BindingType::U32),
        Binding::write("state", BindingType::U32),
        Binding::write("keys_out", BindingType::U32),
        Binding::write("values_out", BindingType::U32),
    ];
    let body = |params: &SweepParams, [keys, values, totals, _, keys_out, values_out]: &mut [CpuArg<'_>; 6]| {
        let (len, digits) = (params.len as usize, params.mask as usize + 1);
        let (keys, values) = (&keys.read::<u32>()[..len], &values.read::<u32>()[..len]);
        let mut next = Wiped::from(vec![0usize; digits]);
        let mut sum = 0;
        for (next, total) in next.iter_mut().zip(&totals.read::<u32>()[params.totals as usize..]) {
            *next = sum;
            sum += *total as usize;
        }
        let digit = |key: u32| (key >> params.shift & params.mask) as usize;
        let grain = len.div_ceil(4 * rayon::current_num_threads()).max(GRAIN);
        let count = |keys: &[u32]| {
            let mut counts = Wiped::from(vec![0usize; digits]);
            keys.iter().for_each(|key| counts[digit(*key)] += 1);
            counts
        };
        let mut starts: Vec<Wiped<usize>> = keys.par_chunks(grain).map(count).collect();
        for counts in &mut starts {
            for (count, next) in counts.iter_mut().zip(next.iter_mut()) {
                *next += mem::replace(count, *next);
            }
        }
        let keys_out = Scattered::new(&mut keys_out.write::<u32>()[..len]);
        let values_out = Scattered::new(&mut values_out.write::<u32>()[..len]);
        keys.par_chunks(grain).zip(values.par_chunks(grain)).zip(starts).for_each(|((keys, values), mut places)| {
            for (key, value) in keys.iter().zip(values) {
                let place = &mut places[digit(*key)];
                keys_out.write(*place, *key);
                values_out.write(*place, *value);
                *place += 1;
            }
        });
    };
    let source = |language| {
        let constants = [("TILE", SWEEP_TILE)];
        source(
            language,
            &constants,
            &[evariste_cuda::GROUP, evariste_cuda::primitives::SORT_SWEEP],
            &[evariste_shaders::primitives::SORT_SWEEP],
        )
    };
    // In WGSL one workgroup goes through all keys, half a tile at a time, and each thread through all of that.
    let iterations = |params: &SweepParams| {
        let keys = params.len.min(SWEEP_TILE / 2);
        let part = loop_iterations(keys.div_ceil(THREADS).into(), 0) + loop_iterations(keys.into(), 0);
        loop_iterations(THREADS.into(), 0) + loop_iterations(params.len.div_ceil(SWEEP_TILE / 2).into(), part)
    };
    KernelSpec::new("sort_sweep", "u32", bindings, body, source)
        .threads(THREADS)
        .shared_bytes(4 * SWEEP_TILE)
        .iterations(iterations)
}

const SCATTER_CONSTANTS: [(&str, u32); 2] = [("TILE", SCATTER_TILE), ("DIGITS", 1 << SCATTER_BITS)];

fn count_spec() -> KernelSpec {
    let bindings = [Binding::read("keys", BindingType::U32), Binding::write("counts", BindingType::U32)];
    let body = |params: &TileParams, [keys, counts]: &mut [CpuArg<'_>; 2]| {
        let tiles = params.tiles as usize;
        let counts = Scattered::new(&mut counts.write::<u32>()[..tiles << SCATTER_BITS]);
        let keys = keys.read::<u32>()[..params.len as usize].par_chunks(SCATTER_TILE as usize);
        keys.enumerate().for_each(|(tile, keys)| {
            let mut count = [0; 1 << SCATTER_BITS];
            keys.iter().for_each(|key| count[(key >> params.shift & params.mask) as usize] += 1);
            for (digit, count) in count.into_iter().enumerate() {
                counts.write(digit * tiles + tile, count);
            }
        });
    };
    let source = |language| {
        let (cuda, wgsl) = (evariste_cuda::primitives::SORT_COUNT, evariste_shaders::primitives::SORT_COUNT);
        source(language, &SCATTER_CONSTANTS, &[evariste_cuda::GROUP, cuda], &[wgsl])
    };
    let iterations = |_: &TileParams| {
        loop_iterations((SCATTER_TILE / THREADS).into(), 0) + loop_iterations(u64::from(THREADS) >> SCATTER_BITS, 0)
    };
    KernelSpec::new("sort_count", "u32", bindings, body, source)
        .threads(THREADS)
        .shared_bytes(4 * THREADS)
        .iterations(iterations)
}

fn scatter_spec() -> KernelSpec {
    let bindings = [
        Binding::read("keys", BindingType::U32),
        Binding::read("values", BindingType::U32),
        Binding::read("offsets", BindingType::U32),
        Binding::write("keys_out", BindingType::U32),
        Binding::write("values_out", BindingType::U32),
    ];
    let body = |params: &TileParams, [keys, values, offsets, keys_out, values_out]: &mut [CpuArg<'_>; 5]| {
        let (len, tile_len) = (params.len as usize, SCATTER_TILE as usize);
        let keys = keys.read::<u32>()[..len].par_chunks(tile_len);
        let values = values.read::<u32>()[..len].par_chunks(tile_len);
        let offsets = &offsets.read::<u32>()[..(params.tiles as usize) << SCATTER_BITS];
        let keys_out = Scattered::new(&mut keys_out.write::<u32>()[..len]);
        let values_out = Scattered::new(&mut values_out.write::<u32>()[..len]);
        keys.zip(values).enumerate().for_each(|(tile, (keys, values))| {
            let mut places = [0; 1 << SCATTER_BITS];
            for (digit, place) in places.iter_mut().enumerate() {
                *place = offsets[digit * params.tiles as usize + tile] as usize;
            }
            for (key, value) in keys.iter().zip(values) {
                let place = &mut places[(key >> params.shift & params.mask) as usize];
                keys_out.write(*place, *key);
                values_out.write(*place, *value);
                *place += 1;
            }
        });
    };
    let source = |language| {
        source(
            language,
            &SCATTER_CONSTANTS,
            &[evariste_cuda::GROUP, evariste_cuda::primitives::SORT_SCATTER],
            &[evariste_shaders::primitives::GROUP, evariste_shaders::primitives::SORT_SCATTER],
        )
    };
    let memory = 4 * THREADS * (1 << SCATTER_BITS) / 2 + 4 * (1 << SCATTER_BITS) + GROUP_BYTES;
    let iterations = |_: &TileParams| {
        let words = loop_iterations(1 << (SCATTER_BITS - 1), 0);
        3 * words + loop_iterations((SCATTER_TILE / THREADS).into(), 0) + GROUP_ITERATIONS
    };
    KernelSpec::new("sort_scatter", "u32", bindings, body, source)
        .threads(THREADS)
        .shared_bytes(memory)
        .iterations(iterations)
}
