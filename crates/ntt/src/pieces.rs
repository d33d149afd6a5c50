//! Transforms of host data that the device's memory does not hold: Bailey's four steps, with pieces of columns and then of
//! rows on the device.

use ark_ff::FftField;
use evariste_backend::Device;
use evariste_field::{DeviceField, Mont, source};
use rayon::prelude::*;

use crate::{Error, Ntt, Result, Transform, reference::root_of_unity};

/// Rows of the result that one thread collects at a time.
const GRAIN: usize = 16;

/// The forward transform of a host slice, natural order to natural order, with at most `device_bytes` of device memory for
/// data and scratch at a time; tables, of about √n elements for each direction, come on top. It takes as much host memory
/// again as the slice, and each element passes to the device and back twice.
///
/// # Errors
/// [`Error::NotPowerOfTwo`], [`Error::TwoAdicity`], [`Error::TooLittle`] if not even one column of √n elements fits,
/// [`Error::Device`]. The slice is unchanged then.
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
    // Lines of at most `columns` elements that fit with their scratch.
    let line = u64::from(source::tile_bytes::<F>(2)) << log_columns;
    let lines = usize::try_from(device_bytes / line).unwrap_or(usize::MAX);
    if lines == 0 {
        return Err(Error::TooLittle { expected: line, actual: device_bytes });
    }
    let run = |transform: Transform<'_, F>, piece: &mut [F]| -> Result<()> {
        let mut data = device.upload::<Mont<F>>(piece)?;
        if inverse {
            transform.inverse(&mut data)?
        } else {
            transform.forward(&mut data)?
        }
        Ok(data.read_at(0, piece)?)
    };

    // Columns of x, then output k of column j times w^(jk).
    let ntt = Ntt::<F>::new(device, log_rows)?;
    let mut turned = vec![F::ZERO; x.len()];
    for first in (0..columns).step_by(lines) {
        let count = lines.min(columns - first);
        let mut piece = vec![F::ZERO; rows * count];
        let fill = |(piece, x): (&mut [F], &[F])| piece.copy_from_slice(&x[first..][..count]);
        piece.par_chunks_mut(count).zip(x.par_chunks(columns)).for_each(fill);
        run(ntt.transform().columns(count), &mut piece)?;
        let store = |(k, (turned, piece)): (usize, (&mut [F], &[F]))| {
            let (step, mut factor) = (root.pow([k as u64]), root.pow([(k * first) as u64]));
            for (y, x) in turned[first..][..count].iter_mut().zip(piece) {
                *y = *x * factor;
                factor *= step;
            }
        };
        turned.par_chunks_mut(columns).zip(piece.par_chunks(count)).enumerate().for_each(store);
    }

    // Rows, whose outputs are columns of the result.
    let ntt = Ntt::<F>::new(device, log_columns)?;
    turned.chunks_mut(lines.min(rows) * columns).try_for_each(|piece| run(ntt.transform(), piece))?;
    x.par_chunks_mut(GRAIN * rows).enumerate().for_each(|(i, x)| {
        for (k, turned) in turned.chunks(columns).enumerate() {
            let places = x.iter_mut().skip(k).step_by(rows);
            places.zip(&turned[i * GRAIN..]).for_each(|(x, y)| *x = *y);
        }
    });
    Ok(())
}
