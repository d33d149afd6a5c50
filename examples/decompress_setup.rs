//! Decompresses the points of Ethereum's KZG setup, and many generated ones, and compares with blst.
//!
//! ```text
//! cargo run --release --example decompress_setup -- [--device cpu|cuda:0|wgpu:0] [--log-n N]
//! ```
//!
//! The setup (EIP-4844) is 4,096 points of G1 and 65 of G2 of BLS12-381, in ZCash's encoding. All are brought from
//! bytes on the host to checked points on the device: each coordinate below p, a point of the curve, in the subgroup.
//! So are 2^N generated points of G1 (2^20 on a GPU, 2^12 elsewhere). Every coordinate must equal blst's, and for the
//! setup some points must be what c-kzg commits with. Then some encodings are spoilt in every way there is, and each
//! must be named by its place and by what is wrong.

use std::{
    env,
    process::ExitCode,
    time::{Duration, Instant},
};

use ark_bls12_381::{Fq, Fq2, G1Affine, G2Affine, g1, g2};
use ark_ec::AffineRepr;
use ark_ff::BigInt;
use ark_serialize::CanonicalSerialize;
use blst::{BLST_ERROR, blst_fp, blst_p1_affine, blst_p2_affine};
use c_kzg::{BYTES_PER_BLOB, Blob, ethereum_kzg_settings};
use evariste::{
    Kind,
    prelude::*,
    sqrt::{Encoding, PointError},
};
use rayon::prelude::*;

type Result<T, E = Box<dyn std::error::Error + Send + Sync>> = std::result::Result<T, E>;

/// Bytes of a compressed point of G1, and of G2.
const BYTES: [usize; 2] = [48, 96];

/// The points L_i of the setup.
const G1_LAGRANGE: &[u8] = include_bytes!("data/kzg_g1_lagrange.bin");

/// The first powers of the secret in G2.
const G2_MONOMIAL: &[u8] = include_bytes!("data/kzg_g2_monomial.bin");

/// Places of the setup that are compared with c-kzg.
const COMPARED: [usize; 3] = [0, 1, 4095];

/// Points that are made on the host; more are these again.
const DISTINCT: usize = 1 << 12;

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
    let (mut device, mut log_n) = (None, None);
    let mut arguments = env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let value = arguments.next().ok_or("usage: decompress_setup [--device cpu|cuda:N|wgpu:N] [--log-n N]")?;
        match argument.as_str() {
            "--device" => device = Some(value.parse::<Device>()?),
            "--log-n" => log_n = Some(value.parse::<u32>()?),
            _ => return Err(format!("{argument} is not known").into()),
        }
    }
    let device = device.map_or_else(Device::best, Ok)?;
    let info = device.info();
    let is_gpu = info.id.kind != Kind::Cpu && !info.features.software;
    let log_n = log_n.unwrap_or(if is_gpu { 20 } else { 12 });
    println!("device: {device}");
    let start = Instant::now();
    let decoder = Decoder::new(&device)?;
    println!("plans: {:.1?}", start.elapsed());

    setup(&decoder)?;
    println!("setup: 4,096 points of G1 and 65 of G2 equal blst's, and c-kzg's commitments");
    let bytes = generated(log_n)?;
    let time = first(&decoder, &bytes)?;
    println!(
        "2^{log_n} points of G1: {:.3} ms from bytes on the host to checked points, {:.2} million a second; all equal blst's",
        time.as_secs_f64() * 1e3,
        (bytes.len() / BYTES[0]) as f64 / time.as_secs_f64() / 1e6,
    );
    let named = spoilt(&decoder)?;
    println!("{named} spoilt encodings were named by place and kind");
    Ok(())
}

/// Plans for both groups.
struct Decoder {
    g1: Decompress<g1::Config>,
    g2: Decompress<g2::Config>,
}

impl Decoder {
    fn new(device: &Device) -> Result<Self> {
        let g1 = Decompress::new(device, Encoding::Zcash)?;
        Ok(Self { g1, g2: Decompress::new(device, Encoding::Zcash)? })
    }
}

/// The points of the setup equal blst's, and some are what c-kzg commits with.
fn setup(decoder: &Decoder) -> Result<()> {
    let points = decoder.g1.decompress_host(G1_LAGRANGE)?.to_vec()?;
    if points != blst_g1(G1_LAGRANGE)? {
        return Err("a point of the setup in G1 differs from blst's".into());
    }
    if decoder.g2.decompress_host(G2_MONOMIAL)?.to_vec()? != blst_g2(G2_MONOMIAL)? {
        return Err("a point of the setup in G2 differs from blst's".into());
    }
    // Blobs have their elements in bit-reversed order, the setup in natural order.
    let settings = ethereum_kzg_settings(0);
    for place in COMPARED {
        let mut blob = vec![0; BYTES_PER_BLOB];
        let reversed = place.reverse_bits() >> (usize::BITS - points.len().ilog2());
        blob[32 * (reversed + 1) - 1] = 1;
        let commitment = settings.blob_to_kzg_commitment(&Blob::from_bytes(&blob)?)?.to_bytes();
        if compressed(&points[place])? != commitment.into_inner() {
            return Err(format!("point {place} of the setup is not what c-kzg commits with").into());
        }
    }
    Ok(())
}

/// How long it takes to decode encodings, whose points must equal blst's.
fn first(decoder: &Decoder, bytes: &[u8]) -> Result<Duration> {
    let points = decoder.g1.decompress_host(bytes)?;
    let distinct = bytes.len().min(DISTINCT * BYTES[0]);
    let expected = blst_g1(&bytes[..distinct])?;
    let same = points.to_vec()?.chunks(expected.len()).all(|points| points == expected);
    if !same {
        return Err("a generated point differs from blst's".into());
    }
    // A second time, with all memory there.
    let start = Instant::now();
    let (points, wrong) = decoder.g1.try_decompress_host(bytes)?;
    let time = start.elapsed();
    if !wrong.is_empty() || points.len() != bytes.len() / BYTES[0] {
        return Err("a second time something else comes out".into());
    }
    Ok(time)
}

/// Spoils encodings of the setup, and tells how many were named for what they are.
fn spoilt(decoder: &Decoder) -> Result<usize> {
    let mut bytes = G1_LAGRANGE.to_vec();
    let mut point = |place: usize, spoil: &dyn Fn(&mut [u8])| spoil(&mut bytes[place * BYTES[0]..][..BYTES[0]]);
    // Not marked as compressed; the point at infinity with a coordinate; p or more; off the curve; outside of the
    // subgroup.
    point(3, &|p| p[0] &= 0x7f);
    point(40, &|p| p[0] |= 0x40);
    point(500, &|p| {
        p.fill(0xff);
        p[0] = 0x9f;
    });
    point(1000, &|p| {
        p.fill(0);
        p[0] = 0x80;
        p[47] = 1;
    });
    point(4095, &|p| {
        p.fill(0);
        p[0] = 0x80;
        p[47] = 4;
    });
    let expected = [
        (3, PointError::Flags),
        (40, PointError::Flags),
        (500, PointError::NotCanonical),
        (1000, PointError::NotOnCurve),
        (4095, PointError::NotInSubgroup),
    ];
    let (_, wrong) = decoder.g1.try_decompress_host(&bytes)?;
    if wrong != expected {
        return Err(format!("spoilt points were named {wrong:?}, not {expected:?}").into());
    }
    for (place, _) in expected {
        if blst_g1(&bytes[place * BYTES[0]..][..BYTES[0]]).is_ok() {
            return Err(format!("blst takes point {place}").into());
        }
    }
    Ok(expected.len())
}

/// Encodings of 2^`log_n` multiples of the generator.
fn generated(log_n: u32) -> Result<Vec<u8>> {
    let len = 1usize << log_n;
    let distinct = len.min(DISTINCT);
    let multiple =
        |i: usize| compressed(&(G1Affine::generator() * ark_bls12_381::Fr::from(i as u64 * i as u64 + 7)).into());
    let points = (0..distinct).into_par_iter().map(multiple).collect::<Result<Vec<_>>>()?;
    Ok(points.concat().repeat(len / distinct))
}

fn compressed(point: &G1Affine) -> Result<[u8; 48]> {
    let mut bytes = [0; 48];
    point.serialize_compressed(&mut bytes[..])?;
    Ok(bytes)
}

/// Refused encodings, as blst names them.
fn expect(outcome: BLST_ERROR, in_group: bool) -> Result<()> {
    match outcome {
        BLST_ERROR::BLST_SUCCESS if in_group => Ok(()),
        BLST_ERROR::BLST_SUCCESS => Err("blst finds a point outside of the subgroup".into()),
        error => Err(format!("blst refuses an encoding: {error:?}").into()),
    }
}

fn field(x: &blst_fp) -> Fq {
    Fq::new_unchecked(BigInt(x.l))
}

/// Points of G1 by blst, checked.
fn blst_g1(bytes: &[u8]) -> Result<Vec<G1Affine>> {
    let decode = |bytes: &[u8]| {
        let mut point = blst_p1_affine::default();
        // SAFETY: 48 bytes, and a point of its own, which is of the curve where it is looked at again.
        let (outcome, in_group) = unsafe {
            let outcome = blst::blst_p1_uncompress(&mut point, bytes.as_ptr());
            (outcome, outcome == BLST_ERROR::BLST_SUCCESS && blst::blst_p1_affine_in_g1(&point))
        };
        expect(outcome, in_group)?;
        Ok(G1Affine::new_unchecked(field(&point.x), field(&point.y)))
    };
    bytes.par_chunks_exact(BYTES[0]).map(decode).collect()
}

/// Points of G2 by blst, checked.
fn blst_g2(bytes: &[u8]) -> Result<Vec<G2Affine>> {
    let decode = |bytes: &[u8]| {
        let mut point = blst_p2_affine::default();
        // SAFETY: 96 bytes, and a point of its own, which is of the curve where it is looked at again.
        let (outcome, in_group) = unsafe {
            let outcome = blst::blst_p2_uncompress(&mut point, bytes.as_ptr());
            (outcome, outcome == BLST_ERROR::BLST_SUCCESS && blst::blst_p2_affine_in_g2(&point))
        };
        expect(outcome, in_group)?;
        let [x, y] = [point.x, point.y].map(|x| Fq2::new(field(&x.fp[0]), field(&x.fp[1])));
        Ok(G2Affine::new_unchecked(x, y))
    };
    bytes.par_chunks_exact(BYTES[1]).map(decode).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// On the processor alone: the suite of devices has points on all of them.
    #[test]
    fn points_equal_those_of_blst_and_spoilt_ones_are_named() {
        let decoder = Decoder::new(&Device::cpu()).unwrap();
        setup(&decoder).unwrap();
        first(&decoder, &generated(6).unwrap()).unwrap();
        spoilt(&decoder).unwrap();
    }
}
