//! Extends Ethereum blobs to their PeerDAS cells (EIP-7594), and compares with c-kzg.
//!
//! ```text
//! cargo run --release --example blob_cells -- [--device cpu|cuda:0|wgpu:0] [FILE]…
//! ```
//!
//! Each file holds one blob of 131,072 bytes; together they make one batch. Without files, random blobs are extended:
//! one, then a batch of 64.
//!
//! A blob is 4,096 elements of the scalar field of BLS12-381, as big-endian integers of 32 bytes: the values of a
//! polynomial of degree below 4,096 at the 4,096th roots of unity, in bit-reversed order. Its extension is the values
//! at the 8,192nd roots of unity, in bit-reversed order too, cut into 128 cells of 64 elements (consensus-specs,
//! fulu/polynomial-commitments-sampling, `compute_cells`).
//!
//! Let w be the root of unity of order 8,192, so that w² is the one of order 4,096. Place i of the extension has the
//! value at w^rev13(i), with rev13(i) the 13 digits of i reversed. The highest digit of i becomes the lowest of
//! rev13(i):
//!
//! - i < 4,096: rev13(i) = 2 rev12(i), an even power of w. This half is the blob itself, and nothing is computed.
//! - i = 4,096 + j: rev13(i) = 2 rev12(j) + 1. This half is the values on the coset w·H of the group H of the 4,096th
//!   roots of unity, in bit-reversed order.
//!
//! So an extension is an inverse transform of 2^12 elements from bit-reversed values to coefficients, and a forward
//! transform of the same size on a coset, back to bit-reversed values. No transform of 2^13 elements, no padding with
//! zeros, no reordering.

#[path = "shared/blobs.rs"]
mod blobs;

use std::{
    process::ExitCode,
    time::{Duration, Instant},
};

use ark_bls12_381::Fr;
use ark_ff::{FftField, PrimeField};
use c_kzg::{BYTES_PER_BLOB, BYTES_PER_CELL, Blob, CELLS_PER_EXT_BLOB, ethereum_kzg_settings};
use evariste::prelude::*;
use rayon::prelude::*;

use blobs::{BYTES, LOG_BLOB, NO_TABLES, Result, big_endian, decode, median};

/// Bytes of the cells of a blob.
const BYTES_PER_EXTENSION: usize = CELLS_PER_EXT_BLOB * BYTES_PER_CELL;

fn main() -> ExitCode {
    blobs::exit(run)
}

fn run() -> Result<()> {
    let (device, batches) = blobs::arguments("blob_cells")?;
    println!("device: {device}");
    let start = Instant::now();
    let extender = Extender::new(&device)?;
    println!("plan: {:.1?}", start.elapsed());
    ethereum_kzg_settings(NO_TABLES); // Loads c-kzg's trusted setup, which no time below should contain.
    for blobs in batches {
        report(&extender, &blobs)?;
    }
    Ok(())
}

/// Extends a batch, compares with c-kzg, and prints how long both took.
fn report(extender: &Extender, blobs: &[u8]) -> Result<()> {
    let count = blobs.len() / BYTES_PER_BLOB;
    let cells = extender.cells(blobs)?;

    let start = Instant::now();
    let expected = reference(blobs)?;
    let peer = start.elapsed();
    if let Some(wrong) = cells.chunks(BYTES_PER_CELL).zip(expected.chunks(BYTES_PER_CELL)).position(|(a, b)| a != b) {
        let (blob, cell) = (wrong / CELLS_PER_EXT_BLOB, wrong % CELLS_PER_EXT_BLOB);
        return Err(format!("cell {cell} of blob {blob} differs from c-kzg's").into());
    }

    let whole = median(|| extender.cells(blobs).map(drop))?;
    // The same work on data that stays on the device. What the values are does not matter to its time.
    let mut data = extender.device().upload::<Mont<Fr>>(&decode(blobs)?)?;
    let resident = median(|| {
        extender.extend(&mut data)?;
        Ok(extender.device().sync()?)
    })?;

    let blob = |time: Duration| time.as_secs_f64() * 1e3 / count as f64;
    println!(
        "{count:>2} blob(s): {:.3} ms a blob from bytes to cells, {:.3} ms of it transforms; c-kzg {:.3} ms a blob; \
         all {} cells equal c-kzg's",
        blob(whole),
        blob(resident),
        blob(peer),
        count * CELLS_PER_EXT_BLOB,
    );
    Ok(())
}

/// Extends blobs on one device.
struct Extender {
    ntt: Ntt<Fr>,
    /// w, the root of unity of order 8,192.
    root: Fr,
}

impl Extender {
    fn new(device: &Device) -> Result<Self> {
        let root = Fr::get_root_of_unity(2 << LOG_BLOB).ok_or("the field has no root of unity of order 2^13")?;
        Ok(Self { ntt: Ntt::new(device, LOG_BLOB)?, root })
    }

    fn device(&self) -> &Device {
        self.ntt.device()
    }

    /// The cells of each blob of a batch, one after the other.
    fn cells(&self, blobs: &[u8]) -> Result<Vec<u8>> {
        let mut values = self.device().upload::<Mont<Fr>>(&decode(blobs)?)?;
        self.extend(&mut values)?;
        Ok(encode(blobs, &values.to_vec()?))
    }

    /// Replaces the values of each blob, those at the even powers of w, by the values at the odd powers.
    fn extend(&self, values: &mut Buffer<Mont<Fr>>) -> Result<()> {
        self.ntt.transform().input(Order::BitReversed).inverse(&mut *values)?;
        self.ntt.coset(self.root).output(Order::BitReversed).forward(values)?;
        Ok(())
    }
}

/// The cells of a batch: for each blob its own bytes, then the values at the odd powers.
fn encode(blobs: &[u8], odd: &[Fr]) -> Vec<u8> {
    let mut cells = vec![0; 2 * blobs.len()];
    cells
        .par_chunks_exact_mut(BYTES_PER_EXTENSION)
        .zip(blobs.par_chunks_exact(BYTES_PER_BLOB))
        .zip(odd.par_chunks_exact(1 << LOG_BLOB))
        .for_each(|((cells, blob), odd)| {
            let (first, second) = cells.split_at_mut(BYTES_PER_BLOB);
            first.copy_from_slice(blob);
            for (bytes, x) in second.chunks_exact_mut(BYTES).zip(odd) {
                bytes.copy_from_slice(&big_endian(x.into_bigint()));
            }
        });
    cells
}

/// The cells by c-kzg, one blob after the other.
fn reference(blobs: &[u8]) -> Result<Vec<u8>> {
    let settings = ethereum_kzg_settings(NO_TABLES);
    let mut cells = Vec::with_capacity(2 * blobs.len());
    for blob in blobs.chunks_exact(BYTES_PER_BLOB) {
        let blob_cells = settings.compute_cells(&Blob::from_bytes(blob)?)?;
        blob_cells.iter().for_each(|cell| cells.extend(cell.to_bytes()));
    }
    Ok(cells)
}

#[cfg(test)]
mod tests {
    use ark_ff::BigInt;

    use super::{blobs::random_blobs, *};

    #[test]
    fn cells_equal_those_of_c_kzg_on_every_device() {
        let constant = big_endian(BigInt::from(7u8)).repeat(1 << LOG_BLOB);
        let blobs = [vec![0; BYTES_PER_BLOB], constant, random_blobs(3)].concat();
        let expected = reference(&blobs).unwrap();
        for device in Device::all() {
            let extender = Extender::new(&device).unwrap();
            assert!(extender.cells(&blobs).unwrap() == expected, "{device}, a batch");
            let one = extender.cells(&blobs[4 * BYTES_PER_BLOB..]).unwrap();
            assert!(one == expected[4 * BYTES_PER_EXTENSION..], "{device}, one blob");
            assert!(extender.cells(&[]).unwrap().is_empty(), "{device}, an empty batch");
        }
    }

    #[test]
    fn elements_that_are_not_below_the_modulus_are_refused() {
        let mut blobs = random_blobs(2);
        let place = (1 << LOG_BLOB) + 5;
        for (bytes, got) in
            [(big_endian(Fr::MODULUS), "got 0x73eda753299d7d48"), ([0xff; BYTES], "got 0xffffffffffffffff")]
        {
            blobs[place * BYTES..][..BYTES].copy_from_slice(&bytes);
            let error = decode(&blobs).unwrap_err();
            assert!(error.contains("element 5 of blob 1") && error.contains(got), "{error}");
        }
        assert!(reference(&blobs).is_err(), "c-kzg refuses it too");
    }
}
