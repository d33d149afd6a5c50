use std::{ops::Range, sync::Arc};

use evariste_backend::{
    Buffer, Error, Queue, Result, Secrecy, View, ViewMut,
    author::{Arg, Binding, BindingType, CpuArg, Kernel, KernelSpec, loop_iterations},
    params,
};
use rayon::prelude::*;

use crate::words::{THREADS, checked_bits, checked_len, mask, source};

/// The most bits of a digit that [`Histogram`] counts.
pub const MAX_BITS: u32 = 16;

/// Counters of a workgroup; they fill the 16 KiB that every device has. Larger windows would let fewer workgroups share
/// a multiprocessor. More windows read a chunk again, from cache.
const WINDOW: u32 = 4096;

/// Rows of counts for each unit that runs workgroups.
const ROWS_PER_UNIT: u32 = 4;

/// Keys of a chunk at least, for each counter of its row: so writing and adding the rows costs little.
const KEYS_PER_COUNTER: u32 = 4;

/// Keys of a chunk at least.
const MIN_CHUNK: u32 = 4096;

/// Digits of a key that are counted at once, at most.
const MAX_FIELDS: u32 = 4;

params! {
    struct CountParams {
        len: u32,
        chunk: u32,
        shift: u32,
        mask: u32,
        bits: u32,
        fields: u32,
        windows: u32,
        chunks: u32,
    }

    struct SumParams {
        rows: u32,
        columns: u32,
    }
}

/// Neighbouring digits of keys, all of the same width but for the last, which may be narrower.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Digits {
    /// The first bit of the first digit.
    pub(crate) shift: u32,
    /// Bits of all digits.
    pub(crate) total: u32,
    /// Bits of a digit.
    pub(crate) bits: u32,
    /// Digits.
    pub(crate) fields: u32,
}

/// Counts how often each value of a digit occurs in a vector of 32-bit keys. Each key is read once for every 4096
/// values.
///
/// Each workgroup counts a chunk of the keys in its own memory and writes a row; a second kernel adds the rows. Where
/// the counters do not fit that memory, several workgroups take windows of them.
///
/// ```
/// # fn main() -> Result<(), evariste_backend::Error> {
/// use evariste_backend::Device;
/// use evariste_primitives::Histogram;
///
/// let device = Device::best()?;
/// let keys = device.upload::<u32>(&[0x31, 0x12, 0x32, 0x32])?;
/// let mut counts = device.alloc(4)?;
/// Histogram::new(&device)?.count(&keys, 0..2, &mut counts)?;
/// assert_eq!(counts.to_vec()?, [0, 1, 3, 0]);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Histogram {
    queue: Queue,
    count: Arc<Kernel<CountParams>>,
    sum: Arc<Kernel<SumParams>>,
}

impl Histogram {
    /// Makes a plan on a queue (`&device` is its default one). Compiles the kernels.
    ///
    /// # Errors
    /// - [`Error::Compile`] if the compiler or the driver refuses a kernel.
    /// - [`Error::Unavailable`] if the compiler is missing and the disk cache has not the kernels.
    /// - [`Error::Driver`] if a call of the driver fails.
    /// - [`Error::Lost`] if the device is lost.
    pub fn new(queue: impl Into<Queue>) -> Result<Self> {
        let queue = queue.into();
        let (count, sum) = (Kernel::new(queue.device(), count_spec())?, Kernel::new(queue.device(), sum_spec())?);
        Ok(Self { queue, count: Arc::new(count), sum: Arc::new(sum) })
    }

    /// Returns the same plan for work on `queue`.
    #[must_use]
    pub fn on(&self, queue: &Queue) -> Self {
        Self { queue: queue.clone(), ..self.clone() }
    }

    /// Returns the kernels, for compiling them ahead.
    #[doc(hidden)]
    pub fn kernels() -> Vec<KernelSpec> {
        vec![count_spec(), sum_spec()]
    }

    /// Sets `out[d]` to the number of keys whose digit is d. The digit of a key is the integer in its bits `bits`,
    /// where bit 0 is the lowest. The output has 2^`bits.len()` elements, at most 2^[`MAX_BITS`].
    ///
    /// # Errors
    /// - [`Error::OutOfRange`] if `bits` ends beyond bit 32 or before it starts.
    /// - [`Error::TooLarge`] for more than [`MAX_BITS`] bits or [`MAX_LEN`](crate::MAX_LEN) keys.
    /// - [`Error::Length`] unless `out` has 2^`bits.len()` elements.
    /// - [`Error::WrongDevice`] if a view or the queue is of another device.
    /// - [`Error::OutOfMemory`] if there is no room for the scratch.
    /// - [`Error::Driver`] if a call of the driver fails.
    /// - [`Error::Lost`] if the device is lost.
    ///
    /// Nothing has been written then, unless a call of the driver failed or the device was lost.
    pub fn count<'a>(
        &self,
        keys: impl Into<View<'a, u32>>,
        bits: Range<u32>,
        out: impl Into<ViewMut<'a, u32>>,
    ) -> Result<()> {
        let (keys, out) = (keys.into(), out.into());
        let (shift, bits) = checked_bits(&bits)?;
        if bits > MAX_BITS {
            let (device, limit) = (self.queue.device().info().id, MAX_BITS.into());
            return Err(Error::TooLarge {
                what: "the digit of a histogram",
                device,
                expected: limit,
                actual: bits.into(),
            });
        }
        out.expect_len("the output of a histogram", 1 << bits)?;
        self.count_digits(keys, Digits { shift, total: bits, bits, fields: 1 }, out)
    }

    /// Returns the bytes of scratch that [`Histogram::count`] takes for `len` keys and a digit of `bits` bits.
    pub fn required_bytes(&self, len: usize, bits: u32) -> u64 {
        let columns = 1u32 << bits.min(MAX_BITS);
        4 * u64::from(self.rows(u32::try_from(len).unwrap_or(u32::MAX), columns).0) * u64::from(columns)
    }

    /// Counts all digits in one pass: `out[(f << bits) + d]` for digit f. The output must have `fields << bits`
    /// elements.
    pub(crate) fn count_digits(&self, keys: View<'_, u32>, digits: Digits, mut out: ViewMut<'_, u32>) -> Result<()> {
        let device = self.queue.expect_device(self.count.device())?.device();
        device.expect_same("the keys of a histogram", keys.device())?;
        device.expect_same("the output of a histogram", out.device())?;
        let len = checked_len(device, "histogram", keys.len())?;
        let Digits { shift, total, bits, fields } = digits;
        let columns = fields << bits;
        out.expect_len("the output of a histogram", columns as usize)?;
        if len == 0 {
            return self.queue.clear(&mut out);
        }
        let (rows, chunk) = self.rows(len, columns);
        let windows = columns.div_ceil(WINDOW);
        let secrecy = Secrecy::of([keys.secrecy(), out.secrecy()]);
        let mut counts: Buffer<u32> = device.alloc_with(rows as usize * columns as usize, secrecy)?;
        // A shift by all 32 bits of a key is not defined: there are no bits then.
        let shift = shift.min(u32::BITS - 1);
        let params = CountParams { len, chunk, shift, mask: mask(total), bits, fields, windows, chunks: rows };
        let args = &mut [Arg::read(keys), Arg::write(&mut counts)];
        // SAFETY: `keys` has `len` elements and `counts` a row of `columns` for each chunk; chunks beyond do nothing.
        unsafe { self.count.launch(&self.queue, u64::from(rows) * u64::from(windows), &params, args) }?;
        let args = &mut [Arg::read(&counts), Arg::write(out)];
        // SAFETY: `counts` has `rows` rows of `columns`, and the output has `columns` elements.
        unsafe { self.sum.launch(&self.queue, columns.div_ceil(THREADS).into(), &SumParams { rows, columns }, args) }
    }

    /// How many chunks the keys are counted in, and their length.
    fn rows(&self, len: u32, columns: u32) -> (u32, u32) {
        let most = self.queue.device().info().parallelism.saturating_mul(ROWS_PER_UNIT).max(1);
        let least = (columns * KEYS_PER_COUNTER).max(MIN_CHUNK);
        let mut chunk = len.div_ceil(most).max(least);
        let params = |chunk| CountParams { chunk, fields: MAX_FIELDS, ..CountParams::default() };
        while chunk > MIN_CHUNK && !self.count.fits(&params(chunk)) {
            chunk = chunk.div_ceil(2);
        }
        (len.div_ceil(chunk).max(1), chunk)
    }
}

fn count_spec() -> KernelSpec {
    let bindings = [Binding::read("keys", BindingType::U32), Binding::write("counts", BindingType::U32)];
    let body = |params: &CountParams, [keys, counts]: &mut [CpuArg<'_>; 2]| {
        let columns = (params.fields << params.bits) as usize;
        let rows = counts.write::<u32>()[..params.chunks as usize * columns].par_chunks_exact_mut(columns);
        let chunks = keys.read::<u32>()[..params.len as usize].par_chunks(params.chunk as usize);
        rows.zip(chunks).for_each(|(row, keys)| {
            row.fill(0);
            for key in keys {
                let key = key >> params.shift & params.mask;
                for f in 0..params.fields {
                    let digit = key >> (f * params.bits) & mask(params.bits);
                    row[((f << params.bits) + digit) as usize] += 1;
                }
            }
        });
    };
    let source = |language| {
        source(
            language,
            &[("WINDOW", WINDOW)],
            &[evariste_cuda::GROUP, evariste_cuda::primitives::HISTOGRAM],
            &[evariste_shaders::primitives::HISTOGRAM],
        )
    };
    let iterations = |params: &CountParams| {
        let keys = loop_iterations(params.chunk.div_ceil(THREADS).into(), loop_iterations(params.fields.into(), 0));
        keys + 2 * loop_iterations((WINDOW / THREADS).into(), 0)
    };
    KernelSpec::new("histogram", "u32", bindings, body, source)
        .threads(THREADS)
        .shared_bytes(4 * WINDOW)
        .iterations(iterations)
}

fn sum_spec() -> KernelSpec {
    let bindings = [Binding::read("matrix", BindingType::U32), Binding::write("sums", BindingType::U32)];
    let body = |params: &SumParams, [matrix, sums]: &mut [CpuArg<'_>; 2]| {
        let columns = params.columns as usize;
        let matrix = &matrix.read::<u32>()[..params.rows as usize * columns];
        sums.write::<u32>()[..columns].par_chunks_mut(WINDOW as usize).enumerate().for_each(|(window, sums)| {
            sums.fill(0);
            for row in matrix.chunks_exact(columns) {
                let row = &row[window * WINDOW as usize..];
                sums.iter_mut().zip(row).for_each(|(sum, count)| *sum = sum.wrapping_add(*count));
            }
        });
    };
    let source = |language| {
        source(language, &[], &[evariste_cuda::primitives::COLUMN_SUMS], &[evariste_shaders::primitives::COLUMN_SUMS])
    };
    KernelSpec::new("column_sums", "u32", bindings, body, source)
        .threads(THREADS)
        .iterations(|params: &SumParams| loop_iterations(params.rows.into(), 0))
}
