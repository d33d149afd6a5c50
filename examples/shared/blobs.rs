//! Ethereum blobs, as programs read, make and time them.

use std::{
    env, fs,
    process::ExitCode,
    time::{Duration, Instant},
};

use ark_bls12_381::Fr;
use ark_ff::{BigInt, PrimeField, UniformRand};
use c_kzg::BYTES_PER_BLOB;
use evariste::Device;
use rayon::prelude::*;

pub(crate) type Result<T, E = Box<dyn std::error::Error + Send + Sync>> = std::result::Result<T, E>;

/// log₂ of the elements of a blob.
pub(crate) const LOG_BLOB: u32 = 12;

/// Bytes of an element.
pub(crate) const BYTES: usize = 32;

/// c-kzg's tables for proofs of cells, which none of the programs computes.
pub(crate) const NO_TABLES: u64 = 0;

/// Timed runs, after one to warm up.
const RUNS: usize = 9;

/// Runs a program and prints its error.
pub(crate) fn exit(run: impl FnOnce() -> Result<()>) -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

/// The device and the batches of blobs that the arguments of a program name: one batch of all files, or without files a
/// random blob and a batch of 64.
pub(crate) fn arguments(program: &str) -> Result<(Device, Vec<Vec<u8>>)> {
    let (mut device, mut files) = (None, Vec::new());
    let mut arguments = env::args_os().skip(1);
    while let Some(argument) = arguments.next() {
        if argument == "--device" {
            let name = arguments.next().ok_or("--device needs the name of a device")?;
            device = Some(name.to_string_lossy().parse::<Device>()?);
        } else if argument.to_string_lossy().starts_with('-') {
            return Err(format!("usage: {program} [--device cpu|cuda:N|wgpu:N] [FILE]…").into());
        } else {
            files.push(argument);
        }
    }
    let device = device.map_or_else(Device::best, Ok)?;
    if files.is_empty() {
        return Ok((device, vec![random_blobs(1), random_blobs(64)]));
    }
    let mut batch = Vec::with_capacity(files.len() * BYTES_PER_BLOB);
    for file in &files {
        let name = file.to_string_lossy();
        let blob = fs::read(file).map_err(|error| format!("{name}: {error}"))?;
        if blob.len() != BYTES_PER_BLOB {
            return Err(format!("{name}: a blob has {BYTES_PER_BLOB} bytes, got {}", blob.len()).into());
        }
        batch.extend(blob);
    }
    Ok((device, vec![batch]))
}

/// The elements of a batch of blobs, which must all be canonical, that is below the modulus.
pub(crate) fn decode(blobs: &[u8]) -> Result<Vec<Fr>, String> {
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

/// An element of a blob.
pub(crate) fn big_endian(x: BigInt<4>) -> [u8; BYTES] {
    let mut bytes = [0; BYTES];
    for (bytes, limb) in bytes.chunks_exact_mut(8).zip(x.0.iter().rev()) {
        bytes.copy_from_slice(&limb.to_be_bytes());
    }
    bytes
}

/// Random blobs, the same on every run, that begin with the smallest and the largest element.
pub(crate) fn random_blobs(count: usize) -> Vec<u8> {
    let mut rng = ark_std::test_rng();
    let mut blob = || {
        let edges = [Fr::from(0), Fr::from(-1)];
        let random = (edges.len()..1 << LOG_BLOB).map(|_| Fr::rand(&mut rng));
        edges.into_iter().chain(random).flat_map(|x| big_endian(x.into_bigint())).collect::<Vec<u8>>()
    };
    (0..count).flat_map(|_| blob()).collect()
}

/// The median time of some runs.
pub(crate) fn median(mut run: impl FnMut() -> Result<()>) -> Result<Duration> {
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
