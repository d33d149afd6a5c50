//! Commits to Ethereum blobs and proves what they are (EIP-4844), and compares with c-kzg.
//!
//! ```text
//! cargo run --release --example blob_commitment -- [--device cpu|cuda:0|wgpu:0] [FILE]…
//! ```
//!
//! Each file holds one blob of 131,072 bytes; together they make one batch. Without files, random blobs are committed
//! to: one, then a batch of 64.
//!
//! A blob is 4,096 elements of the scalar field of BLS12-381, as big-endian integers of 32 bytes: the values p_i of a
//! polynomial p of degree below 4,096 at the 4,096th roots of unity w_i, in bit-reversed order (consensus-specs,
//! deneb/polynomial-commitments).
//!
//! - Its commitment is Σ p_i·L_i, where the L_i are the values of the Lagrange polynomials at the secret of the trusted
//!   setup, times the generator of G1: one multi-scalar multiplication (`blob_to_kzg_commitment`).
//! - Its proof shows what p is at a point z that is a hash of the blob and the commitment. With y = p(z), it is the
//!   commitment to q = (p − y)/(X − z), whose values are (p_i − y)/(w_i − z): one more (`compute_blob_kzg_proof`).
//!
//! The points L_i stay on the device. c-kzg does not hand out those of the trusted setup that it ships, but its
//! commitment to the blob that is 1 at place i and 0 elsewhere is L_i.

#[path = "shared/blobs.rs"]
mod blobs;

use std::{
    process::ExitCode,
    time::{Duration, Instant},
};

use ark_bls12_381::{Fr, G1Affine, G1Projective, g1::Config};
use ark_ec::CurveGroup;
use ark_ff::{AdditiveGroup, FftField, Field, PrimeField, batch_inversion};
use ark_serialize::{CanonicalDeserialize, CanonicalSerialize};
use c_kzg::{BYTES_PER_BLOB, BYTES_PER_COMMITMENT, Blob, KzgSettings, ethereum_kzg_settings};
use evariste::{msm::Precompute, prelude::*};
use rayon::prelude::*;
use ring::digest;

use blobs::{BYTES, LOG_BLOB, NO_TABLES, Result, decode, median};

/// What is hashed before a blob: a name, and the number of its elements as 16 bytes.
const DOMAIN: &[u8; 16] = b"FSBLOBVERIFY_V1_";

/// Bytes of the points and their multiples on the device.
const TABLES: u64 = 16 << 20;

/// A commitment or a proof: a compressed point.
type Point = [u8; BYTES_PER_COMMITMENT];

fn main() -> ExitCode {
    blobs::exit(run)
}

fn run() -> Result<()> {
    let (device, batches) = blobs::arguments("blob_commitment")?;
    println!("device: {device}");
    let start = Instant::now();
    let setup = setup(ethereum_kzg_settings(NO_TABLES))?;
    println!("trusted setup, by c-kzg: {:.1?}", start.elapsed());
    let start = Instant::now();
    let config = MsmConfig::default().precompute(Precompute::Tables { budget: TABLES });
    let committer = Committer::new(&device, &setup, config)?;
    println!("plan: {:.1?}", start.elapsed());
    for blobs in batches {
        report(&committer, &blobs)?;
    }
    Ok(())
}

/// Commits to a batch, compares with c-kzg, and prints how long both took.
fn report(committer: &Committer, blobs: &[u8]) -> Result<()> {
    let count = blobs.len() / BYTES_PER_BLOB;
    let elements = decode(blobs)?;
    let commitments = committer.commitments(&elements)?;
    let proofs = committer.proofs(blobs, &elements, &commitments)?;

    let start = Instant::now();
    let expected = reference(blobs)?;
    let peer = start.elapsed();
    for (blob, (own, expected)) in commitments.iter().zip(&proofs).zip(&expected).enumerate() {
        for (what, own, expected) in [("commitment to", own.0, &expected.0), ("proof of", own.1, &expected.1)] {
            if own != expected {
                return Err(format!("the {what} blob {blob} differs from c-kzg's").into());
            }
        }
    }

    let committing = median(|| committer.commitments(&decode(blobs)?).map(drop))?;
    let proving = median(|| committer.proofs(blobs, &elements, &commitments).map(drop))?;
    let blob = |time: Duration| time.as_secs_f64() * 1e3 / count as f64;
    println!(
        "{count:>2} blob(s): {:.3} ms a blob for the commitment, {:.3} ms for the proof; c-kzg {:.3} ms for both; all equal \
         c-kzg's",
        blob(committing),
        blob(proving),
        blob(peer),
    );
    Ok(())
}

/// Commits to blobs on one device.
struct Committer {
    msm: Msm<Config>,
    /// The roots of unity, in bit-reversed order.
    roots: Vec<Fr>,
}

impl Committer {
    fn new(device: &Device, setup: &[G1Affine], config: MsmConfig) -> Result<Self> {
        let root = Fr::get_root_of_unity(1 << LOG_BLOB).ok_or("the field has no root of unity of order 2^12")?;
        let powers: Vec<Fr> =
            std::iter::successors(Some(Fr::ONE), |power| Some(*power * root)).take(setup.len()).collect();
        let roots = (0..setup.len()).map(|i| powers[i.reverse_bits() >> (usize::BITS - LOG_BLOB)]).collect();
        Ok(Self { msm: Msm::with_config(device, setup, config)?, roots })
    }

    /// The commitments to polynomials, each by its 4,096 values.
    fn commitments(&self, values: &[Fr]) -> Result<Vec<Point>> {
        let sums = self.msm.msm_batch(values.len() >> LOG_BLOB, values)?;
        G1Projective::normalize_batch(&sums).iter().map(compressed).collect()
    }

    /// The proofs of blobs, given their elements and the commitments to them.
    fn proofs(&self, blobs: &[u8], elements: &[Fr], commitments: &[Point]) -> Result<Vec<Point>> {
        let mut quotients = vec![Fr::ZERO; elements.len()];
        quotients
            .par_chunks_exact_mut(1 << LOG_BLOB)
            .zip(elements.par_chunks_exact(1 << LOG_BLOB))
            .zip(blobs.par_chunks_exact(BYTES_PER_BLOB).zip(commitments))
            .try_for_each(|((quotient, values), (blob, commitment))| {
                self.divide(values, challenge(blob, commitment), quotient)
            })?;
        self.commitments(&quotients)
    }

    /// The values of (p − p(z))/(X − z) at the roots of unity w_i, given those of p, by the barycentric formula
    /// p(z) = (z^n − 1)/n · Σ p_i w_i/(z − w_i).
    fn divide(&self, values: &[Fr], z: Fr, quotient: &mut [Fr]) -> Result<()> {
        for (difference, root) in quotient.iter_mut().zip(&self.roots) {
            *difference = *root - z;
        }
        if quotient.contains(&Fr::ZERO) {
            return Err("the challenge is a root of unity, which happens for one blob of 2^243".into());
        }
        batch_inversion(quotient);
        let terms =
            values.iter().zip(&self.roots).zip(&*quotient).map(|((value, root), inverse)| *value * root * inverse);
        let n = Fr::from(1u64 << LOG_BLOB);
        let scale = (Fr::ONE - z.pow([1 << LOG_BLOB])) / n;
        let y = scale * terms.sum::<Fr>();
        for (quotient, value) in quotient.iter_mut().zip(values) {
            *quotient *= *value - y;
        }
        Ok(())
    }
}

/// The point at which a blob is opened.
fn challenge(blob: &[u8], commitment: &Point) -> Fr {
    let mut hash = digest::Context::new(&digest::SHA256);
    hash.update(DOMAIN);
    hash.update(&(1u128 << LOG_BLOB).to_be_bytes());
    hash.update(blob);
    hash.update(commitment);
    Fr::from_be_bytes_mod_order(hash.finish().as_ref())
}

/// The points that commitments are sums of, in the order of a blob's elements.
fn setup(settings: &KzgSettings) -> Result<Vec<G1Affine>> {
    let point = |place: usize| {
        let mut blob = vec![0; BYTES_PER_BLOB];
        blob[(place + 1) * BYTES - 1] = 1;
        let commitment = settings.blob_to_kzg_commitment(&Blob::from_bytes(&blob)?)?.to_bytes();
        Ok(G1Affine::deserialize_compressed_unchecked(&commitment.into_inner()[..])?)
    };
    (0..1 << LOG_BLOB).into_par_iter().map(point).collect()
}

fn compressed(point: &G1Affine) -> Result<Point> {
    let mut bytes = [0; BYTES_PER_COMMITMENT];
    point.serialize_compressed(&mut bytes[..])?;
    Ok(bytes)
}

/// Commitments and proofs by c-kzg, one blob after the other.
fn reference(blobs: &[u8]) -> Result<Vec<(Point, Point)>> {
    let settings = ethereum_kzg_settings(NO_TABLES);
    let both = |blob| {
        let blob = Blob::from_bytes(blob)?;
        let commitment = settings.blob_to_kzg_commitment(&blob)?.to_bytes();
        let proof = settings.compute_blob_kzg_proof(&blob, &commitment)?.to_bytes();
        Ok((commitment.into_inner(), proof.into_inner()))
    };
    blobs.chunks_exact(BYTES_PER_BLOB).map(both).collect()
}

#[cfg(test)]
mod tests {
    use ark_ff::BigInt;

    use super::{
        blobs::{big_endian, random_blobs},
        *,
    };

    #[test]
    fn commitments_and_proofs_equal_those_of_c_kzg_on_every_device() {
        let constant = big_endian(BigInt::from(7u8)).repeat(1 << LOG_BLOB);
        let blobs = [vec![0; BYTES_PER_BLOB], constant, random_blobs(1)].concat();
        let expected: (Vec<Point>, Vec<Point>) = reference(&blobs).unwrap().into_iter().unzip();
        let setup = setup(ethereum_kzg_settings(NO_TABLES)).unwrap();
        let elements = decode(&blobs).unwrap();
        // An emulation takes half a minute to compile kernels over 381 bits.
        for device in Device::all().into_iter().filter(|device| !device.info().features.software) {
            let committer = Committer::new(&device, &setup, MsmConfig::default()).unwrap();
            let commitments = committer.commitments(&elements).unwrap();
            let proofs = committer.proofs(&blobs, &elements, &commitments).unwrap();
            assert!((commitments, proofs) == expected, "{device}");
        }
    }

    #[test]
    fn elements_that_are_not_below_the_modulus_are_refused() {
        let mut blobs = random_blobs(2);
        blobs[BYTES_PER_BLOB + 5 * BYTES..][..BYTES].fill(0xff);
        let error = decode(&blobs).unwrap_err().to_string();
        assert!(error.contains("element 5 of blob 1"), "{error}");
    }
}
