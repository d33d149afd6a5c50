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
//! polynomial of degree below 4,096 at the 4,096th roots of unity, in bit-reversed order. Its extension is the values at
//! the 8,192nd roots of unity, in bit-reversed order too, cut into 128 cells of 64 elements (consensus-specs,
//! fulu/polynomial-commitments-sampling, `compute_cells`).
//!
//! Let w be the root of unity of order 8,192, so that w² is the one of order 4,096. Place i of the extension has the
//! value at w^rev13(i), with rev13(i) the 13 digits of i reversed. The highest digit of i becomes the lowest of rev13(i):
//!
//! - i < 4,096: rev13(i) = 2 rev12(i), an even power of w. This half is the blob itself, and nothing is computed.
//! - i = 4,096 + j: rev13(i) = 2 rev12(j) + 1. This half is the values on the coset w·H of the group H of the 4,096th
//!   roots of unity, in bit-reversed order.
//!
//! So an extension is an inverse transform of 2^12 elements from bit-reversed values to coefficients, and a forward
//! transform of the same size on a coset, back to bit-reversed values. No transform of 2^13 elements, no padding with
//! zeros, no reordering.

use std::{
    env, fs,
    process::ExitCode,
    time::{Duration, Instant},
};

use ark_bls12_381::Fr;
use ark_ff::{BigInt, FftField, PrimeField, UniformRand};
use c_kzg::{BYTES_PER_BLOB, BYTES_PER_CELL, Blob, CELLS_PER_EXT_BLOB, ethereum_kzg_settings};
use evariste::prelude::*;
use rayon::prelude::*;

type Result<T, E = Box<dyn std::error::Error>> = std::result::Result<T, E>;

/// log₂ of the elements of a blob.
const LOG_BLOB: u32 = 12;

/// Bytes of an element.
const BYTES: usize = 32;

/// Bytes of the cells of a blob.
const BYTES_PER_EXTENSION: usize = CELLS_PER_EXT_BLOB * BYTES_PER_CELL;

/// c-kzg's tables for proofs, which cells do not need.
const NO_TABLES: u64 = 0;

/// Timed runs, of which the median is told, after one to warm up.
const RUNS: usize = 9;

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<()> {
    let (mut device, mut files) = (None, Vec::new());
    let mut arguments = env::args_os().skip(1);
    while let Some(argument) = arguments.next() {
        if argument == "--device" {
            let name = arguments.next().ok_or("--device needs the name of a device")?;
            device = Some(name.to_string_lossy().parse::<Device>()?);
        } else if argument.to_string_lossy().starts_with('-') {
            return Err("usage: blob_cells [--device cpu|cuda:N|wgpu:N] [FILE]…".into());
        } else {
            files.push(argument);
        }
    }
    let device = device.map_or_else(Device::best, Ok)?;

    let batches = if files.is_empty() {
        vec![random_blobs(1), random_blobs(64)]
    } else {
        let mut batch = Vec::with_capacity(files.len() * BYTES_PER_BLOB);
        for file in &files {
            let name = file.to_string_lossy();
            let blob = fs::read(file).map_err(|error| format!("{name}: {error}"))?;
            if blob.len() != BYTES_PER_BLOB {
                return Err(format!("{name}: a blob has {BYTES_PER_BLOB} bytes, got {}", blob.len()).into());
            }
            batch.extend(blob);
        }
        vec![batch]
    };

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

/// The elements of a batch of blobs, which must all be canonical, that is below the modulus.
fn decode(blobs: &[u8]) -> Result<Vec<Fr>, String> {
    let element = |(place, bytes): (usize, &[u8])| {
        let mut limbs = [0; 4];
        for (limb, bytes) in limbs.iter_mut().rev().zip(bytes.chunks_exact(8)) {
            *limb = bytes.iter().fold(0, |limb, &byte| limb << 8 | u64::from(byte));
        }
        Fr::from_bigint(BigInt(limbs)).ok_or_else(|| {
            let (blob, element) = (place >> LOG_BLOB, place % (1 << LOG_BLOB));
            let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
            let (expected, actual) = (hex(&big_endian(Fr::MODULUS)), hex(bytes));
            format!(
                "element {element} of blob {blob} is not canonical: expected less than 0x{expected}, got 0x{actual}"
            )
        })
    };
    blobs.par_chunks_exact(BYTES).enumerate().map(element).collect()
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

fn big_endian(x: BigInt<4>) -> [u8; BYTES] {
    let mut bytes = [0; BYTES];
    for (bytes, limb) in bytes.chunks_exact_mut(8).zip(x.0.iter().rev()) {
        bytes.copy_from_slice(&limb.to_be_bytes());
    }
    bytes
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

/// Random blobs, the same on every run, that begin with the smallest and the largest element.
fn random_blobs(count: usize) -> Vec<u8> {
    let mut rng = ark_std::test_rng();
    let mut blob = || {
        let edges = [Fr::from(0), Fr::from(-1)];
        let random = (edges.len()..1 << LOG_BLOB).map(|_| Fr::rand(&mut rng));
        edges.into_iter().chain(random).flat_map(|x| big_endian(x.into_bigint())).collect::<Vec<u8>>()
    };
    (0..count).flat_map(|_| blob()).collect()
}

fn median(mut run: impl FnMut() -> Result<()>) -> Result<Duration> {
    run()?;
    let mut times = Vec::with_capacity(RUNS);
    for _ in 0..RUNS {
        let start = Instant::now();
        run()?;
        times.push(start.elapsed());
    }
    times.sort();
    Ok(times[RUNS / 2])
}

#[cfg(test)]
mod tests {
    use super::*;

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
