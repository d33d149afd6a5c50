//! Transforms of host data that the device's memory does not hold: Bailey's four steps, with pieces of columns and then of
//! rows on the device.

use ark_ff::FftField;
use evariste_backend::{Device, Element, HostBuffer, Secrecy, Transfer, decode, parallel};
use evariste_field::{DeviceField, Mont, source};

use crate::{Error, Ntt, Pipeline, Result, Transform, reference::root_of_unity};

/// Rows of the result that one thread collects at a time.
const GRAIN: usize = 16;

/// Pieces on the device at a time: one comes, one is worked on, one goes. Each has as much scratch.
const PIECES: u64 = 3;

/// Pieces in host memory that are on their way, filled or emptied at once.
const IN_FLIGHT: usize = 4;

/// Elements that one thread encodes at a time.
const ELEMENTS: usize = 1 << 12;

/// The forward transform of a host slice, natural order to natural order, with at most `device_bytes` of device memory for
/// data and scratch at a time; tables, of about √n elements for each direction, come on top. It takes twice as much host
/// memory again as the slice, and each element passes to the device and back twice, while others are worked on.
///
/// # Errors
/// [`Error::NotPowerOfTwo`], [`Error::TwoAdicity`], [`Error::TooLittle`] if not even three columns of √n elements and their
/// scratch fit, [`Error::Device`]. The slice is unchanged then.
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
    // Lines of at most `columns` elements of a piece, of which as many fit as work in turn.
    let line = (PIECES * u64::from(source::tile_bytes::<F>(2))) << log_columns;
    let lines = usize::try_from(device_bytes / line).unwrap_or(usize::MAX);
    if lines == 0 {
        return Err(Error::TooLittle { expected: line, actual: device_bytes });
    }
    let lines = 1 << lines.ilog2();

    // Columns of x, then output k of column j times w^(jk).
    let ntt = Ntt::<F>::new(device, log_rows)?;
    let mut turned = vec![F::ZERO; x.len()];
    let count = lines.min(columns);
    let load = |i: usize, k: usize, row: &mut [F]| row.copy_from_slice(&x[k * columns + i * count..][..count]);
    let store = |i: usize, piece: Vec<F>| {
        parallel::chunks(&mut turned, columns, &|k, turned| {
            let (step, mut factor) = (root.pow([k as u64]), root.pow([(k * i * count) as u64]));
            for (y, x) in turned[i * count..][..count].iter_mut().zip(&piece[k * count..]) {
                *y = *x * factor;
                factor *= step;
            }
        });
    };
    stream(ntt.transform().columns(count), (rows, count), columns / count, inverse, load, store)?;

    // Rows, whose outputs are columns of the result.
    let ntt = Ntt::<F>::new(device, log_columns)?;
    let count = lines.min(rows);
    let mut result = vec![F::ZERO; x.len()];
    let load = |i: usize, k: usize, row: &mut [F]| row.copy_from_slice(&turned[(i * count + k) * columns..][..columns]);
    let store = |i: usize, piece: Vec<F>| {
        parallel::chunks(&mut result, GRAIN * rows, &|block, result| {
            for (k, piece) in piece.chunks(columns).enumerate() {
                let places = result.iter_mut().skip(i * count + k).step_by(rows);
                places.zip(&piece[block * GRAIN..]).for_each(|(y, x)| *y = *x);
            }
        });
    };
    stream(ntt.transform(), (count, columns), rows / count, inverse, load, store)?;
    x.copy_from_slice(&result);
    Ok(())
}

/// Transforms pieces of `rows` × `columns` elements: `load(i, k, row)` fills row k of piece i, and `store(i, piece)` takes what
/// it has become, in order.
fn stream<F: DeviceField + FftField>(
    transform: Transform<'_, F>,
    (rows, columns): (usize, usize),
    pieces: usize,
    inverse: bool,
    load: impl Fn(usize, usize, &mut [F]) + Sync,
    mut store: impl FnMut(usize, Vec<F>),
) -> Result<()> {
    let device = transform.plan().device().clone();
    let (len, bytes) = (rows * columns, Mont::<F>::BYTES);
    let mut pipeline = Pipeline::new(transform.clone(), len / transform.plan().size(), Secrecy::Public)?;
    let mut stored = 0;
    let mut take = |host: &HostBuffer| -> Result<()> {
        let mut piece = vec![F::ZERO; len];
        decode::<Mont<F>>(host, &mut piece)?;
        store(stored, piece);
        stored += 1;
        Ok(())
    };
    let idle = (0..IN_FLIGHT.min(pieces)).map(|_| device.host_buffer(len * bytes, Transfer::Both, Secrecy::Public));
    let mut idle = idle.collect::<Result<Vec<_>, _>>()?;
    for i in 0..pieces {
        let mut host = match idle.pop() {
            Some(host) => host,
            None => {
                let Some(host) = pipeline.next()? else { unreachable!("what is not idle is on its way") };
                take(&host)?;
                host
            }
        };
        let mut piece = vec![F::ZERO; len];
        parallel::chunks(&mut piece, columns, &|k, row| load(i, k, row));
        parallel::chunks(&mut host, ELEMENTS * bytes, &|i, host| {
            Mont::<F>::encode(&piece[i * ELEMENTS..][..host.len() / bytes], host);
        });
        let done = if inverse { pipeline.inverse(host)? } else { pipeline.forward(host)? };
        if let Some(host) = done {
            take(&host)?;
            idle.push(host);
        }
    }
    while let Some(host) = pipeline.next()? {
        take(&host)?;
    }
    Ok(())
}
