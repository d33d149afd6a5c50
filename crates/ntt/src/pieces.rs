//! Transforms of host data that the device's memory does not hold: Bailey's four steps, with pieces of columns and then of
//! rows on the device.

use ark_ff::FftField;
use evariste_backend::{
    Buffer, Device, DeviceId, Element, Error as DeviceError, Event, HostBuffer, Queue, Secrecy, Stream, Transfer,
    ViewMut, decode, parallel,
};
use evariste_field::{DeviceField, Mont, Vector, source};
use rayon::prelude::*;

use crate::{Error, Ntt, Result, reference::root_of_unity};

/// Device memory of a piece in its first step, in elements for each of its own: three are on their way, with as much for their
/// transposes and as scratch, and there are two tables of factors.
const MEMORY: u64 = 3 * 3 + 2;

/// Pieces in host memory that are on their way, filled or emptied at once.
const IN_FLIGHT: usize = 4;

/// log₂ of the least elements that are cut into pieces, and of the least lines of a piece: rows of so many have the alignment
/// of elements in host memory.
const MIN_LOG_N: u32 = 4;
const MIN_LINES: usize = 4;

/// The forward transform of a host slice, natural order to natural order, with at most `device_bytes` of device memory for
/// data, factors and scratch at a time; tables, of about √n elements for each direction, come on top. It takes as much host
/// memory again as the slice. Each element passes to the device and back twice, while others are worked on; all arithmetic is
/// the device's, and the host copies runs of elements of neighbouring columns. Neither device nor host memory is zeroed
/// afterwards.
///
/// # Errors
/// [`Error::NotPowerOfTwo`], [`Error::TwoAdicity`], [`Error::TooLittle`] if not even four columns of √n elements and what belongs
/// to them fit, [`Error::Device`]. The slice is unchanged then. [`Error::Interrupted`] if the device failed in the second half of
/// the work: parts of the result are there.
pub fn forward_in_pieces<F: DeviceField + FftField>(device: &Device, x: &mut [F], device_bytes: u64) -> Result<()> {
    in_pieces(device, x, device_bytes, false)
}

/// The inverse of [`forward_in_pieces`].
///
/// # Errors
/// As [`forward_in_pieces`].
pub fn inverse_in_pieces<F: DeviceField + FftField>(device: &Device, x: &mut [F], device_bytes: u64) -> Result<()> {
    in_pieces(device, x, device_bytes, true)
}

fn in_pieces<F: DeviceField + FftField>(device: &Device, x: &mut [F], device_bytes: u64, inverse: bool) -> Result<()> {
    if x.is_empty() {
        return Ok(());
    }
    if !x.len().is_power_of_two() {
        return Err(Error::NotPowerOfTwo { actual: x.len() });
    }
    let log_n = x.len().ilog2();
    let Some(root) = root_of_unity::<F>(log_n) else {
        return Err(Error::TwoAdicity { expected: F::TWO_ADICITY, actual: log_n });
    };
    let root = if inverse { root.inverse().unwrap_or(F::ONE) } else { root };
    let (log_rows, log_columns) = (log_n / 2, log_n.div_ceil(2));
    let (rows, columns) = (1usize << log_rows, 1usize << log_columns);
    let line = (MEMORY * u64::from(source::tile_bytes::<F>(1))) << log_columns;
    let lines = usize::try_from(device_bytes / line).unwrap_or(usize::MAX);
    if lines < MIN_LINES {
        return Err(Error::TooLittle { expected: MIN_LINES as u64 * line, actual: device_bytes });
    }
    let lines = 1 << lines.ilog2();
    if log_n < MIN_LOG_N {
        let ntt = Ntt::<F>::new(device, log_n)?;
        let mut data = device.upload::<Mont<F>>(x)?;
        if inverse {
            ntt.inverse(&mut data)?
        } else {
            ntt.forward(&mut data)?
        }
        let result = data.as_view().read_on(None)?;
        return result.wait_into(x).map_err(Error::Interrupted);
    }

    // Columns of x, then output k of column j times w^(jk), as row j.
    let ntt = Ntt::<F>::new(device, log_rows)?;
    let mut turned = scratch(x.len())?;
    let count = lines.min(columns);
    let transform = ntt.transform().columns(count);
    let len = rows * count;
    let mut factors = Factors::new(device, root, rows, count)?;
    let work = |queue: &Queue, data: &mut Buffer<Mont<F>>| {
        let (mut piece, mut turned) = data.as_view_mut().split_at(len)?;
        let transform = transform.clone().on(queue);
        if inverse {
            transform.inverse(&mut piece)?
        } else {
            transform.forward(&mut piece)?
        }
        factors.vector.on(queue).transpose(&piece, rows, &mut turned)?;
        factors.multiply(queue, &mut turned)?;
        Ok(len..2 * len)
    };
    let store = |i: usize, host: &HostBuffer| decode::<Mont<F>>(host, &mut turned[i * len..][..len]);
    stream(device, 2 * len, (x, columns, count), columns / count, work, store)?;
    drop(factors);

    // Columns of what was turned, whose outputs are columns of the result.
    let ntt = Ntt::<F>::new(device, log_columns)?;
    let count = lines.min(rows);
    let transform = ntt.transform().columns(count);
    let len = columns * count;
    let work = |queue: &Queue, data: &mut Buffer<Mont<F>>| {
        let transform = transform.clone().on(queue);
        if inverse {
            transform.inverse(&mut *data)?
        } else {
            transform.forward(&mut *data)?
        }
        Ok(0..len)
    };
    let mut written = false;
    let store = |i: usize, host: &HostBuffer| {
        written = true;
        let run = count * Mont::<F>::BYTES;
        let row =
            |(l, row): (usize, &mut [F])| Mont::<F>::decode(&host[l * run..][..run], &mut row[i * count..][..count]);
        x.par_chunks_mut(rows).enumerate().try_for_each(row)
    };
    match stream(device, len, (&turned, rows, count), rows / count, work, store) {
        Err(Error::Device(error)) if written => Err(Error::Interrupted(error)),
        done => done,
    }
}

/// Host memory for `len` elements.
fn scratch<F: DeviceField>(len: usize) -> Result<Vec<F>> {
    let mut scratch = Vec::new();
    if scratch.try_reserve_exact(len).is_err() {
        let requested = (len as u64).saturating_mul(size_of::<F>() as u64);
        return Err(DeviceError::OutOfMemory { device: DeviceId::CPU, requested, available: None }.into());
    }
    // On all cores: the system makes pages when they are written first, which one core does at 2 GB/s.
    (0..len).into_par_iter().map(|_| F::ZERO).collect_into_vec(&mut scratch);
    Ok(scratch)
}

/// Sends a matrix through the device by `pieces` blocks of columns: each lies in host memory as rows of `count` elements of the
/// matrix' rows of `width`, `work` is queued, and `store(i, host)` takes what has become of piece i, in order.
fn stream<F: DeviceField>(
    device: &Device,
    memory: usize,
    (matrix, width, count): (&[F], usize, usize),
    pieces: usize,
    mut work: impl FnMut(&Queue, &mut Buffer<Mont<F>>) -> Result<std::ops::Range<usize>>,
    mut store: impl FnMut(usize, &HostBuffer) -> evariste_backend::Result<()>,
) -> Result<()> {
    let run = count * Mont::<F>::BYTES;
    let mut stream = Stream::new(device, memory, Secrecy::Public)?;
    let idle = (0..IN_FLIGHT.min(pieces))
        .map(|_| device.host_buffer(matrix.len() / width * run, Transfer::Both, Secrecy::Public));
    let mut idle = idle.collect::<Result<Vec<_>, _>>()?;
    let mut stored = 0;
    let mut take = |host: &HostBuffer| {
        stored += 1;
        store(stored - 1, host)
    };
    for i in 0..pieces {
        let mut host = match idle.pop() {
            Some(host) => host,
            None => {
                let Some(host) = stream.next()? else { unreachable!("what is not idle is on its way") };
                take(&host)?;
                host
            }
        };
        parallel::chunks(&mut host, run, &|k, row| {
            Mont::<F>::encode(&matrix[k * width + i * count..][..count], row);
        });
        if let Some(host) = stream.run(host, &mut work)? {
            take(&host)?;
            idle.push(host);
        }
    }
    while let Some(host) = stream.next()? {
        take(&host)?;
    }
    Ok(())
}

/// The factors w^(jk) between the two steps, of one piece after the other.
struct Factors<F: DeviceField> {
    vector: Vector<F>,
    /// Row j of the piece whose turn it is: w^(jk).
    now: Buffer<Mont<F>>,
    /// w^(count · k) in each row: from a piece to the next.
    step: Buffer<Mont<F>>,
    /// When the factors are those of the next piece.
    ready: Event,
}

impl<F: DeviceField> Factors<F> {
    /// Those of the first of the pieces of `count` rows of `len` factors.
    fn new(device: &Device, root: F, len: usize, count: usize) -> Result<Self> {
        let vector = Vector::<F>::new(device);
        let mut now = device.alloc::<Mont<F>>(len * count)?;
        let mut step = device.alloc::<Mont<F>>(len * count)?;
        // The powers of `base`, in each of `rows` rows.
        let repeat = |base: F, mut rows: ViewMut<'_, Mont<F>>| -> Result<()> {
            vector.powers(base, F::ONE, rows.view_mut(..len)?)?;
            let mut done = len;
            while done < rows.len() {
                let (from, to) = rows.reborrow().split_at(done)?;
                to.into_part(..done)?.copy_from(&from)?;
                done *= 2;
            }
            Ok(())
        };
        vector.powers(F::ONE, F::ONE, now.view_mut(..len)?)?;
        let mut done = 1;
        while done < count {
            let mut factors = step.view_mut(..done * len)?;
            repeat(root.pow([done as u64]), factors.reborrow())?;
            let (from, to) = now.as_view_mut().split_at(done * len)?;
            vector.mul(&from, &factors, to.into_part(..done * len)?)?;
            done *= 2;
        }
        repeat(root.pow([count as u64]), step.as_view_mut())?;
        let ready = device.record(None)?;
        Ok(Self { vector, now, step, ready })
    }

    /// Multiplies the next piece by its factors.
    fn multiply(&mut self, queue: &Queue, piece: &mut ViewMut<'_, Mont<F>>) -> Result<()> {
        let device = self.now.device().clone();
        let vector = self.vector.on(queue);
        device.wait_for(Some(queue), &self.ready)?;
        vector.mul_assign(piece, &self.now)?;
        vector.mul_assign(&mut self.now, &self.step)?;
        self.ready = device.record(Some(queue))?;
        Ok(())
    }
}
