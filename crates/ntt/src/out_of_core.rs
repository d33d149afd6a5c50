//! Transforms of host data that the device's memory does not hold: Bailey's four steps (D. H. Bailey, "FFTs in external
//! or hierarchical memory", 1990), with pieces of columns and then of rows on the device.
//!
//! The data is a matrix of R rows and C columns, stored by rows, n = R · C. In the end it is another of C rows and R
//! columns:
//!
//! ```text
//! X[k1 + R k2] = Σ_c (w_n^(c k1) Σ_r x[r C + c] w_R^(r k1)) w_C^(c k2)
//! ```
//!
//! A piece of the first step is a block of columns c, which the host gathers into pinned memory. On the device it is
//! transformed along r, multiplied by the twiddles w_n^(c k1), and cut into blocks of rows k1. Each block is
//! transposed. It comes back as blocks (k1, c), each in one run.
//!
//! A piece of the second step is a block of rows k1: one such run of each piece of the first. Side by side they are a
//! matrix with a row for each c. They are transformed along c, and come back into the same runs, from where the host
//! takes rows k2.
//!
//! So the host copies each element twice, in runs whose length is the lines of a piece. All other copies are the
//! device's, of blocks with the square of that number of elements.

use std::{fmt, ops::Range};

use ark_ff::FftField;
use evariste_backend::{
    Buffer, Device, DeviceId, Element, Error as DeviceError, Event, HostBuffer, PinnedPipeline, Queue, Secrecy,
    Transfer, ViewMut, author::decode, parallel,
};
use evariste_field::{DeviceField, Mont, Vector, source};
use rayon::prelude::*;

use crate::{
    error::{Error, Result},
    layout::Direction,
    plan::Ntt,
    tables::unity,
};

/// Device memory in elements for each element of a piece of the first step. Three pieces are on their way, with the
/// same memory for their transposes and as scratch. There are two tables of twiddles.
const MEMORY: u64 = 3 * 3 + 2;

/// log₂ of the least elements that are cut into pieces.
const MIN_LOG_N: u32 = 4;

/// The fewest lines of a piece: shorter rows have less than the alignment of elements in host memory.
const MIN_LINES: usize = 4;

/// Least bytes of a block that a piece of either step shares with one of the other, if there are more blocks than
/// these. Each block is a copy of its own.
const MIN_BLOCK: usize = 4096;
const FEW_BLOCKS: u128 = 4096;

/// A plan for transforms of host slices larger than the device's memory, natural order to natural order, in place.
///
/// It holds device memory for pieces of a slice, and pinned host memory of the slice's size. Each element travels to
/// the device and back twice, while the device works on others. The device does all arithmetic.
///
/// ```
/// # fn main() -> Result<(), evariste_ntt::Error> {
/// use ark_bls12_381::Fr;
/// use evariste_backend::{Device, Secrecy};
/// use evariste_ntt::OutOfCore;
///
/// let device = Device::best()?;
/// // At most 200 KiB of device memory for data of 512 KiB.
/// let mut plan = OutOfCore::<Fr>::new(&device, 14, 200 << 10, Secrecy::Public)?;
/// let mut x: Vec<Fr> = (0..1 << 14).map(Fr::from).collect();
/// plan.forward_host(&mut x)?;
/// plan.inverse_host(&mut x)?;
/// assert_eq!(x[77], Fr::from(77));
/// # Ok(())
/// # }
/// ```
pub struct OutOfCore<F: DeviceField> {
    device: Device,
    log_n: u32,
    secrecy: Secrecy,
    steps: Steps<F>,
}

enum Steps<F: DeviceField> {
    /// Of few elements, which the device holds.
    One(Ntt<F>),
    Two(Box<Pieces<F>>),
}

impl<F: DeviceField + FftField> OutOfCore<F> {
    /// Makes a plan for slices of 2^`log_n` elements, with at most `device_bytes` of device memory for data, twiddles
    /// and scratch at a time. Tables of about √n elements for each direction come on top. `secrecy` is that of device
    /// and pinned memory; the slices are yours. Less device memory means smaller copies; pieces of some hundred columns
    /// are best.
    ///
    /// # Errors
    /// - [`Error::TwoAdicity`] if the field has no root of unity of order 2^`log_n`.
    /// - [`Error::TooLarge`] if 2^`log_n` elements take half of the address space or more.
    /// - [`Error::Device`] if `device_bytes` does not hold four columns of √n elements with twiddles and scratch. For
    ///   large n, it has to hold enough columns for copies of 4 KiB.
    /// - [`Error::Device`] if device or pinned host memory is exhausted, if kernels do not compile, or if the device
    ///   fails.
    pub fn new(device: &Device, log_n: u32, device_bytes: u64, secrecy: Secrecy) -> Result<Self> {
        if log_n > F::TWO_ADICITY {
            return Err(Error::TwoAdicity { expected: F::TWO_ADICITY, actual: log_n });
        }
        let bytes = u64::from(source::tile_bytes::<F>(1));
        if log_n >= usize::BITS - bytes.ilog2() - 1 {
            let expected = usize::BITS - bytes.ilog2() - 2;
            return Err(Error::TooLarge {
                expected: 1 << expected,
                actual: 1u64.checked_shl(log_n).unwrap_or(u64::MAX),
            });
        }
        let log_line = log_n.div_ceil(2);
        let line = (MEMORY * bytes) << log_line;
        let lines = usize::try_from(device_bytes / line).unwrap_or(usize::MAX);
        let least = least_lines(log_n, bytes);
        if lines < least {
            let needed = least as u64 * line;
            return Err(DeviceError::InsufficientMemory { needed, available: device_bytes }.into());
        }
        // One call takes fewer than 2^32 elements.
        let lines = (1 << lines.ilog2()).min(1 << 31u32.saturating_sub(log_line)).max(MIN_LINES);
        let steps = match log_n < MIN_LOG_N {
            true => Steps::One(Ntt::new(device, log_n)?),
            false => Steps::Two(Box::new(Pieces::new(device, log_n, lines, secrecy)?)),
        };
        Ok(Self { device: device.clone(), log_n, secrecy, steps })
    }

    /// Evaluates a host slice in place: the coefficients of a polynomial become its values at the 2^`log_n`-th roots of
    /// unity.
    ///
    /// # Errors
    /// [`Error::Device`] if `x` has another length, or if the device fails in the first half of the work. The slice is
    /// unchanged then. [`Error::Interrupted`] if the device fails in the second half: the slice may hold a part of the
    /// result.
    pub fn forward_host(&mut self, x: &mut [F]) -> Result<()> {
        self.run(x, Direction::Forward)
    }

    /// Interpolates a host slice in place: the inverse of [`OutOfCore::forward_host`].
    ///
    /// # Errors
    /// [`Error::Device`] if `x` has another length, or if the device fails in the first half of the work. The slice is
    /// unchanged then. [`Error::Interrupted`] if the device fails in the second half: the slice may hold a part of the
    /// result.
    pub fn inverse_host(&mut self, x: &mut [F]) -> Result<()> {
        self.run(x, Direction::Inverse)
    }

    fn run(&mut self, x: &mut [F], direction: Direction) -> Result<()> {
        let expected = 1 << self.log_n;
        if x.len() != expected {
            return Err(DeviceError::length("the slice of a transform out of core", expected, x.len()).into());
        }
        match &mut self.steps {
            Steps::One(ntt) => {
                let mut data = self.device.upload_with::<Mont<F>>(x, self.secrecy)?;
                ntt.transform().run(data.as_view_mut(), direction)?;
                let result = self.device.default_queue().download(&data)?;
                result.wait_into(x).map_err(Error::Interrupted)
            }
            Steps::Two(pieces) => pieces.run(&self.device, x, direction),
        }
    }
}

impl<F: DeviceField> fmt::Debug for OutOfCore<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OutOfCore").field("device", &self.device).field("log_n", &self.log_n).finish_non_exhaustive()
    }
}

/// Evaluates one host slice in place, out of core, with at most `device_bytes` of public device memory. It makes an
/// [`OutOfCore`] plan for this one call.
///
/// # Errors
/// [`Error::NotPowerOfTwo`] if the length is neither 0 nor a power of two. Otherwise it fails under the conditions of
/// [`OutOfCore::new`] and [`OutOfCore::forward_host`].
pub fn forward_out_of_core<F: DeviceField + FftField>(device: &Device, x: &mut [F], device_bytes: u64) -> Result<()> {
    match plan(device, x, device_bytes)? {
        Some(mut plan) => plan.forward_host(x),
        None => Ok(()),
    }
}

/// Interpolates one host slice in place, out of core: the inverse of [`forward_out_of_core`].
///
/// # Errors
/// Fails under the conditions of [`forward_out_of_core`].
pub fn inverse_out_of_core<F: DeviceField + FftField>(device: &Device, x: &mut [F], device_bytes: u64) -> Result<()> {
    match plan(device, x, device_bytes)? {
        Some(mut plan) => plan.inverse_host(x),
        None => Ok(()),
    }
}

/// For a slice, unless that is empty.
fn plan<F: DeviceField + FftField>(device: &Device, x: &[F], device_bytes: u64) -> Result<Option<OutOfCore<F>>> {
    if x.is_empty() {
        return Ok(None);
    }
    if !x.len().is_power_of_two() {
        return Err(Error::NotPowerOfTwo { actual: x.len() });
    }
    OutOfCore::new(device, x.len().ilog2(), device_bytes, Secrecy::Public).map(Some)
}

/// Lines that a piece has at least, a power of two.
fn least_lines(log_n: u32, bytes: u64) -> usize {
    let serves = |lines: &usize| {
        let block = lines * lines;
        block * bytes as usize >= MIN_BLOCK || (1u128 << log_n) / block as u128 <= FEW_BLOCKS
    };
    (0..).map(|i| MIN_LINES << i).find(serves).unwrap_or(MIN_LINES)
}

/// The two steps in pieces.
struct Pieces<F: DeviceField> {
    grid: Grid,
    secrecy: Secrecy,
    /// Along the columns of x, and along the rows of what the first step leaves.
    ntts: [Ntt<F>; 2],
    stream: PinnedPipeline<Mont<F>>,
    /// The pieces of the first step, each in one block for each piece of the second. Empty if the device failed to
    /// return some of it.
    host: Vec<Vec<HostBuffer>>,
}

/// How a matrix is cut.
#[derive(Clone, Copy, Debug)]
struct Grid {
    rows: usize,
    columns: usize,
    /// Columns of a piece of the first step, and rows of one of the second.
    width: usize,
    height: usize,
}

impl Grid {
    /// Pieces of the first and of the second step.
    fn pieces(self) -> [usize; 2] {
        [self.columns / self.width, self.rows / self.height]
    }

    /// Elements of a block that a piece of either step has of one of the other.
    fn block(self) -> usize {
        self.width * self.height
    }
}

impl<F: DeviceField + FftField> Pieces<F> {
    /// With pieces of up to `lines` lines.
    fn new(device: &Device, log_n: u32, lines: usize, secrecy: Secrecy) -> Result<Self> {
        let (log_rows, log_columns) = (log_n / 2, log_n.div_ceil(2));
        let (rows, columns) = (1 << log_rows, 1 << log_columns);
        let grid = Grid { rows, columns, width: lines.min(columns), height: lines.min(rows) };
        let ntts = [Ntt::new(device, log_rows)?, Ntt::new(device, log_columns)?];
        let stream = PinnedPipeline::new(device, (2 * rows * grid.width).max(columns * grid.height), secrecy)?;
        let host = host_memory(device, grid, Mont::<F>::BYTES, secrecy)?;
        Ok(Self { grid, secrecy, ntts, stream, host })
    }

    fn run(&mut self, device: &Device, x: &mut [F], direction: Direction) -> Result<()> {
        // Of a call that panicked.
        self.drain();
        let done = self.steps(device, x, direction);
        if done.is_err() {
            self.drain();
        }
        done
    }

    /// Waits for what is on its way, so that nothing of a call is left to the next.
    fn drain(&mut self) {
        while self.stream.next().map_or(true, |parts| parts.is_some()) {}
    }

    fn steps(&mut self, device: &Device, x: &mut [F], direction: Direction) -> Result<()> {
        let Self { grid, secrecy, ntts: [first, second], stream, host } = self;
        let (grid, bytes) = (*grid, Mont::<F>::BYTES);
        let Grid { rows, columns, width, height } = grid;
        let log_n = rows.ilog2() + columns.ilog2();
        let root = unity::<F>(log_n)?;
        let root = match direction {
            Direction::Forward => root,
            Direction::Inverse => root.inverse().unwrap_or(F::ONE),
        };
        let mut blocks = std::mem::take(host);
        if blocks.is_empty() {
            blocks = host_memory(device, grid, bytes, *secrecy)?;
        }

        let mut twiddles = StepTwiddles::new(device, root, rows, width)?;
        let mut turned = Vec::with_capacity(blocks.len());
        for (i, mut parts) in blocks.into_iter().enumerate() {
            for (j, part) in parts.iter_mut().enumerate() {
                parallel::chunks(part, width * bytes, &|r, row| {
                    Mont::<F>::encode(&x[(j * height + r) * columns + i * width..][..width], row);
                });
            }
            let len = rows * width;
            let work = |queue: &Queue, data: &mut Buffer<Mont<F>>| {
                let (mut piece, rest) = data.as_view_mut().split_at(len)?;
                let mut out = rest.into_part(..len)?;
                apply(first, width, queue, direction, &mut piece)?;
                twiddles.multiply(queue, &mut piece)?;
                let vector = twiddles.vector.on(queue);
                for at in (0..len).step_by(grid.block()) {
                    let block = at..at + grid.block();
                    vector.transpose(piece.view(block.clone())?, height, out.view_mut(block)?)?;
                }
                Ok::<_, Error>(len..2 * len)
            };
            turned.extend(stream.run(parts, work)?);
        }
        while let Some(parts) = stream.next()? {
            turned.push(parts);
        }
        drop(twiddles);

        let mut written = false;
        let mut finished = Vec::with_capacity(grid.pieces()[1]);
        let mut store = |parts: Vec<HostBuffer>| {
            written = true;
            let i = finished.len();
            let row = |(k, row): (usize, &mut [F])| {
                let run = &parts[k / width][k % width * height * bytes..][..height * bytes];
                decode::<Mont<F>>(run, &mut row[i * height..][..height])
            };
            x.par_chunks_mut(rows).enumerate().try_for_each(row)?;
            finished.push(parts);
            Ok::<_, Error>(())
        };
        let second_step = || {
            let mut turned: Vec<_> = turned.into_iter().map(Vec::into_iter).collect();
            for _ in 0..grid.pieces()[1] {
                let parts = turned.iter_mut().filter_map(Iterator::next).collect();
                let work = |queue: &Queue, data: &mut Buffer<Mont<F>>| {
                    let piece: Range<usize> = 0..columns * height;
                    apply(second, height, queue, direction, &mut data.view_mut(piece.clone())?)?;
                    Ok::<_, Error>(piece)
                };
                if let Some(parts) = stream.run(parts, work)? {
                    store(parts)?;
                }
            }
            while let Some(parts) = stream.next()? {
                store(parts)?;
            }
            Ok(())
        };
        match second_step() {
            Err(Error::Device(error)) if written => return Err(Error::Interrupted(error)),
            done => done?,
        }
        // In the order of the first step again.
        let mut finished: Vec<_> = finished.into_iter().map(Vec::into_iter).collect();
        let piece = |_| finished.iter_mut().filter_map(Iterator::next).collect();
        *host = (0..grid.pieces()[0]).map(piece).collect();
        Ok(())
    }
}

/// Transforms a piece of `lines` columns.
fn apply<F: DeviceField + FftField>(
    ntt: &Ntt<F>,
    lines: usize,
    queue: &Queue,
    direction: Direction,
    piece: &mut ViewMut<'_, Mont<F>>,
) -> Result<()> {
    ntt.transform().columns(lines).on(queue).run(piece.reborrow(), direction)
}

/// Pinned memory for the pieces of the first step, each in the blocks that it shares with those of the second.
fn host_memory(device: &Device, grid: Grid, bytes: usize, secrecy: Secrecy) -> Result<Vec<Vec<HostBuffer>>> {
    let [first, second] = grid.pieces();
    let mut pieces = list(first)?;
    for _ in 0..first {
        let mut rest = device.host_buffer(second * grid.block() * bytes, Transfer::Both, secrecy)?;
        let mut parts = list(second)?;
        for _ in 1..second {
            let after = rest.split_off(grid.block() * bytes);
            parts.push(std::mem::replace(&mut rest, after));
        }
        parts.push(rest);
        pieces.push(parts);
    }
    Ok(pieces)
}

/// A list with room for `len` items.
fn list<T>(len: usize) -> Result<Vec<T>> {
    let mut list = Vec::new();
    match list.try_reserve_exact(len) {
        Ok(()) => Ok(list),
        Err(_) => {
            let requested = (len * size_of::<T>()) as u64;
            Err(DeviceError::OutOfMemory { device: DeviceId::CPU, requested, available: None }.into())
        }
    }
}

/// The twiddles w^(jk) between the two steps, of one piece after the other.
struct StepTwiddles<F: DeviceField> {
    vector: Vector<F>,
    /// Row k of the piece whose turn it is: w^(jk) for its columns j.
    now: Buffer<Mont<F>>,
    /// w^(width · k) everywhere in row k: from a piece to the next.
    step: Buffer<Mont<F>>,
    /// When the twiddles are those of the next piece.
    ready: Event,
}

impl<F: DeviceField> StepTwiddles<F> {
    /// Those of the first of the pieces of `rows` rows and `width` columns.
    fn new(device: &Device, root: F, rows: usize, width: usize) -> Result<Self> {
        let vector = Vector::<F>::new(device);
        let len = rows * width;
        let mut now = device.alloc::<Mont<F>>(len)?;
        let mut step = device.alloc::<Mont<F>>(len)?;
        // Column j is w^j to the powers k. Each step doubles the columns, as rows that are transposed in the end.
        vector.powers(F::ONE, F::ONE, step.view_mut(..rows)?)?;
        let mut done = 1;
        while done < width {
            let (from, to) = step.as_view_mut().split_at(done * rows)?;
            let mut to = to.into_part(..done * rows)?;
            repeat(&vector, root.pow([done as u64]), rows, to.reborrow())?;
            vector.mul_assign(to, &from)?;
            done *= 2;
        }
        vector.transpose(&step, width, &mut now)?;
        // The first piece needs no step, so that there is time for one more transpose through a buffer of its own.
        let mut rows_of_steps = device.alloc::<Mont<F>>(len)?;
        repeat(&vector, root.pow([width as u64]), rows, rows_of_steps.as_view_mut())?;
        vector.transpose(&rows_of_steps, width, &mut step)?;
        let ready = device.default_queue().record()?;
        Ok(Self { vector, now, step, ready })
    }

    /// Multiplies the next piece by its twiddles.
    fn multiply(&mut self, queue: &Queue, piece: &mut ViewMut<'_, Mont<F>>) -> Result<()> {
        let vector = self.vector.on(queue);
        queue.wait_for(&self.ready)?;
        vector.mul_assign(piece, &self.now)?;
        vector.mul_assign(&mut self.now, &self.step)?;
        self.ready = queue.record()?;
        Ok(())
    }
}

/// Fills each row of `len` elements with the powers of `base`.
fn repeat<F: DeviceField>(vector: &Vector<F>, base: F, len: usize, mut rows: ViewMut<'_, Mont<F>>) -> Result<()> {
    vector.powers(base, F::ONE, rows.view_mut(..len)?)?;
    let mut done = len;
    while done < rows.len() {
        let (from, to) = rows.reborrow().split_at(done)?;
        to.into_part(..done)?.copy_from(&from)?;
        done *= 2;
    }
    Ok(())
}
