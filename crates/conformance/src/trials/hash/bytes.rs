//! Hash functions of bytes, and trees with them.

use std::iter;

use ark_std::rand::{RngCore, SeedableRng, rngs::StdRng};
use evariste::backend::{Device, author::KernelSpec};
use evariste::field::small::{BabyBear, Goldilocks};
use evariste::hash::{
    Arity, ByteHash, ByteMerkle, ByteRows, Error, HashFunction, Merkle, Rows, Serialization, SerializingHash,
    TreeParameters, reference::bytes::digest, verify_bytes,
};

use super::{Reads, operand, tree_with};
use crate::{
    devices::{garbage, other_device},
    expect::{expect, expect_equal, expect_error, expect_same},
    harness::{DeviceTrials, Outcome},
    launches::KernelGroup,
    prepared::quietly,
    secrecy::Probe,
    sizes::lengths,
};

pub(super) fn add(trials: &mut DeviceTrials<'_>) {
    trials.add("bytes::keccak-256", |device| hashes(device, HashFunction::Keccak256));
    trials.add("bytes::sha3-256", |device| hashes(device, HashFunction::Sha3_256));
    trials.add("bytes::sha-256", |device| hashes(device, HashFunction::Sha256));
    trials.add("bytes::blake2s-256", |device| hashes(device, HashFunction::Blake2s256));
    trials.add("bytes::blake3", |device| hashes(device, HashFunction::Blake3));
    trials.add("bytes::tree::baby-bear", |device| {
        let serialization = Serialization::plonky3::<BabyBear>(HashFunction::Keccak256);
        tree_with::<BabyBear, _>(device, SerializingHash::new(device, serialization)?, Reads::Shared)
    });
    trials.add("bytes::tree::goldilocks", |device| {
        let serialization = Serialization::plonky3::<Goldilocks>(HashFunction::Blake3).with_arity(Arity::Four);
        tree_with::<Goldilocks, _>(device, SerializingHash::new(device, serialization)?, Reads::Shared)
    });
    // Rows and digests are of different types.
    trials.add_alone("tree_of_bytes", |device| {
        let serialization = Serialization::plonky3::<BabyBear>(HashFunction::Keccak256);
        tree_with::<BabyBear, _>(device, SerializingHash::new(device, serialization)?, Reads::AtMost(2))
    });
    trials.add("bytes::tree::rows", tree_of_rows);
    trials.add("bytes::misuse", misuse);
}

pub(super) const KERNELS: KernelGroup =
    KernelGroup { name: "byte-hash", cases: &["bytes::"], kernels: |_| Ok(kernels()) };

fn kernels() -> Vec<KernelSpec> {
    let trees = [
        TreeParameters::<BabyBear>::tree_kernels(&Serialization::plonky3::<BabyBear>(HashFunction::Keccak256)),
        TreeParameters::<Goldilocks>::tree_kernels(
            &Serialization::plonky3::<Goldilocks>(HashFunction::Blake3).with_arity(Arity::Four),
        ),
    ];
    let others = [HashFunction::Sha256, HashFunction::Blake2s256].map(ByteHash::kernels);
    trees.into_iter().chain(others).flatten().collect()
}

/// Random bytes.
fn bytes(len: usize, seed: u64) -> Vec<u8> {
    let mut bytes = vec![0; len];
    StdRng::seed_from_u64(seed).fill_bytes(&mut bytes);
    bytes
}

/// Trees over rows of bytes, at an odd place of a buffer.
fn tree_of_rows(device: &Device) -> Outcome {
    let merkle = ByteMerkle::new(device, HashFunction::Keccak256, Arity::Four)?;
    let (function, arity) = (merkle.hash().function(), merkle.arity());
    for [height, columns, shorter] in [[1, 7, 0], [256, 45, 0], [64, 200, 32]] {
        let values = [bytes(height * columns, 3), bytes(shorter * 9, 4)];
        let data = device.upload::<u8>(&[&[0][..], &values[0], &values[1]].concat())?;
        let (tall, short) = (data.view(1..1 + height * columns)?, data.view(1 + height * columns..)?);
        let matrices = [ByteRows::new(tall, columns), ByteRows::new(short, 9)];
        let matrices = &matrices[..if shorter == 0 { 1 } else { 2 }];
        let tree = merkle.commit(matrices)?;
        let leaves = tree.nodes().view(..height)?.to_vec()?;
        let expected: Vec<_> = values[0].chunks_exact(columns).map(|row| digest(function, row)).collect();
        expect_same(&format!("leaves of {height} rows"), &leaves, &expected)?;
        let (root, indices) = (merkle.root(&tree)?, [0, height - 1, height / 2]);
        for (index, opening) in indices.into_iter().zip(merkle.open(&tree, matrices, &indices, 0)?) {
            expect_same("an opened row", &opening.rows[0], &values[0][index * columns..][..columns])?;
            verify_bytes(function, arity, &root, tree.dimensions(), index, &opening)?;
        }
    }
    Ok(())
}

/// Rows, messages of different lengths, pairs, and one long message, by the definition.
fn hashes(device: &Device, function: HashFunction) -> Outcome {
    let hash = ByteHash::new(device, function)?;
    let all = bytes(260_000, 1);
    let data = device.upload::<u8>(&all)?;
    // Chunks and parents of BLAKE3 by several workgroups; around the ends of blocks; within words.
    for (count, len, start) in
        [(1, 0, 0), (3, 1, 3), (200, 64, 0), (130, 136, 8), (5, 137, 1), (200, 1100, 4), (2, 3073, 0)]
    {
        let mut out = garbage(device, count)?;
        hash.hash_rows(data.view(start..start + count * len)?, len, &mut out)?;
        let expected: Vec<_> = (0..count).map(|row| digest(function, &all[start + row * len..][..len])).collect();
        expect_same(&format!("{count} rows of {len} bytes"), &out.to_vec()?, &expected)?;
    }
    for count in lengths(device, &[0, 1, 129, 257]) {
        let mut ends: Vec<usize> = iter::once(5).chain((0..count).map(|i| i * 37 % 150)).collect();
        if let Some(long) = ends.get_mut(1) {
            *long = 5200;
        }
        if let Some(long) = ends.get_mut(7) {
            *long = 1025;
        }
        let offsets: Vec<usize> = ends
            .into_iter()
            .scan(0, |end, len| {
                *end += len;
                Some(*end)
            })
            .collect();
        let mut out = garbage(device, count)?;
        hash.hash_many(&data, &offsets, &mut out)?;
        let expected: Vec<_> = offsets.windows(2).map(|pair| digest(function, &all[pair[0]..pair[1]])).collect();
        expect_same(&format!("{count} messages of different lengths"), &out.to_vec()?, &expected)?;
        let mut pairs = garbage(device, count / 2)?;
        hash.compress(out.view(count % 2..)?, &mut pairs)?;
        let expected: Vec<_> =
            expected[count % 2..].chunks_exact(2).map(|pair| digest(function, pair.as_flattened())).collect();
        expect_same(&format!("{} pairs", count / 2), &pairs.to_vec()?, &expected)?;
    }
    expect_equal("one message", &hash.digest(data.view(3..30_000)?)?, &digest(function, &all[3..30_000]))
}

pub(super) fn prepared(device: &Device) -> Outcome {
    let (data, mut out) = (device.zeros::<u8>(4000)?, device.zeros::<[u8; 32]>(2)?);
    for function in DIFFERENT {
        let hash = ByteHash::new(device, function)?;
        hash.prepare()?;
        quietly(device, "what prepared hash functions compile", || {
            hash.hash_rows(&data, 2000, &mut out)?;
            Ok(hash.hash_many(&data, &[0, 9, 4000], &mut out)?)
        })?;
    }
    Ok(())
}

fn misuse(device: &Device) -> Outcome {
    let hash = ByteHash::new(device, HashFunction::Blake3)?;
    let before = [[7; 32]; 3];
    let (data, mut out) = (device.upload::<u8>(&bytes(64, 2))?, device.upload::<[u8; 32]>(&before)?);
    let descending = expect_error("an offset below another", hash.hash_many(&data, &[0, 9, 8, 64], &mut out))?;
    expect_equal("it", &descending, &Error::Offset { index: 2, least: 9, most: 64, actual: 8 })?;
    let beyond = expect_error("an offset beyond the end", hash.hash_many(&data, &[0, 9, 10, 65], &mut out))?;
    expect_equal("it", &beyond, &Error::Offset { index: 3, least: 10, most: 64, actual: 65 })?;
    let few = expect_error("too few offsets", hash.hash_many(&data, &[0, 9, 10], &mut out))?;
    expect_equal("they", &few, &Error::Offsets { expected: 4, actual: 3 })?;
    expect_error("a wrong length", hash.hash_rows(&data, 21, &mut out))?;
    if let Some(other) = other_device(device) {
        let there = other.upload::<u8>(&bytes(63, 2))?;
        let error = expect_error("another device", hash.hash_rows(&there, 21, &mut out))?;
        let is_refused = matches!(error, Error::Device(evariste::backend::Error::WrongDevice { .. }));
        expect("another device is refused", is_refused)?;
    }
    expect_same("digests after misuse", &out.to_vec()?, &before)
}

/// The functions that have kernels of their own, one after the other.
const DIFFERENT: [HashFunction; 4] =
    [HashFunction::Keccak256, HashFunction::Sha256, HashFunction::Blake2s256, HashFunction::Blake3];

pub(super) fn rows_of_secrets(p: &Probe) -> Outcome {
    // Of more than 16 chunks, which the CPU takes at a time.
    let messages = p.operand::<u8>(&bytes(2 * 20_000, 100 + u64::from(p.run())))?;
    let mut out = p.output_of::<[u8; 32]>(2)?;
    let hashes = DIFFERENT.map(|function| ByteHash::new(&p.device, function));
    p.watch(|| {
        hashes.iter().try_for_each(|hash| hash.as_ref().map_err(Clone::clone)?.hash_rows(&messages, 20_000, &mut out))
    })
}

pub(super) fn many_of_secrets(p: &Probe) -> Outcome {
    let messages = p.operand::<u8>(&bytes(6000, 200 + u64::from(p.run())))?;
    let mut out = p.output_of::<[u8; 32]>(3)?;
    let hashes = DIFFERENT.map(|function| ByteHash::new(&p.device, function));
    let offsets = [0, 40, 4000, 6000];
    p.watch(|| {
        hashes.iter().try_for_each(|hash| hash.as_ref().map_err(Clone::clone)?.hash_many(&messages, &offsets, &mut out))
    })
}

pub(super) fn tree_of_secrets(p: &Probe) -> Outcome {
    let serialization = Serialization::plonky3::<Goldilocks>(HashFunction::Keccak256);
    let merkle = Merkle::new(SerializingHash::<Goldilocks>::new(&p.device, serialization)?);
    let (a, b) = (operand::<Goldilocks>(p, 27, 5 * 64)?, operand::<Goldilocks>(p, 28, 9 * 16)?);
    p.watch(|| merkle.commit(&[Rows::new(&a, 5), Rows::new(&b, 9)]))
}
