//! Hash functions of bytes: many short messages, one long one, and trees over matrices.

use anyhow::{Result, ensure};
use evariste::field::{Mont, small::BabyBear};
use evariste::hash::{Arity, ByteHash, HashFunction, Merkle, Rows, Serialization, SerializingHash, verify};
use rayon::prelude::*;

use crate::{
    ALL,
    coverage::Coverage,
    input,
    limits::Work,
    request::Request,
    session::{self, Algorithm, Case, Headline, Session},
    sizes::Sizes,
    target::Target,
    timing::Budget,
};

pub(crate) const ALGORITHM: Algorithm = Algorithm {
    name: "byte-hash",
    headlines: &[
        Headline { case: "keccak-256/rows-64/device", title: "Keccak-256 of 64 bytes" },
        Headline { case: "blake3/one/device", title: "BLAKE3, KiB of one message" },
    ],
    budget: |request| Budget::of(request.coverage),
    run,
    is_too_large,
};

fn is_too_large(error: &anyhow::Error) -> bool {
    match error.downcast_ref() {
        Some(evariste::hash::Error::Device(error)) => session::is_too_large_for_device(error),
        _ => session::is_too_large(error),
    }
}

/// log₂ of the most messages, of the most KiB of one message, and of the most rows of trees.
const MAX_LOG_MESSAGES: u32 = 24;
const MAX_LOG_KIB: u32 = 20;
const MAX_LOG_ROWS: u32 = 21;

/// Columns of matrices.
const COLUMNS: usize = 256;

/// Digests, or rows, that are checked.
const CHECKED: usize = 8;

/// Additions, logical operations and shifts of words in the time of a multiplication in BLS12-381 Fr, which limits are
/// measured in. An H200 starts 64 a clock on each of 132 multiprocessors: 16.7 T in a second at 1.98 GHz. It does 67 G
/// multiplications.
const INSTRUCTIONS: f64 = 250.0;

fn run(session: &mut Session, targets: &[Target], request: &Request) {
    for target in targets {
        if !ALL || request.coverage == Coverage::Summary {
            let [messages, kib] =
                [MAX_LOG_MESSAGES, MAX_LOG_KIB].map(|most| Sizes::of_headline(&target.device, most, 18));
            rows(session, target, HashFunction::Keccak256, 64, messages);
            one(session, target, kib);
            continue;
        }
        let sizes = request.log_n.clone().unwrap_or_else(|| Sizes::usual(&target.device, request.coverage));
        for log_n in Sizes::union(&[sizes]) {
            if log_n <= MAX_LOG_MESSAGES {
                for function in HashFunction::ALL {
                    // SHA-3 is Keccak with another padding.
                    if function != HashFunction::Sha3_256 {
                        rows(session, target, function, 64, log_n);
                    }
                }
            }
            if log_n <= MAX_LOG_KIB {
                rows(session, target, HashFunction::Keccak256, 1024, log_n);
            }
            if log_n <= MAX_LOG_KIB {
                one(session, target, log_n);
            }
            if log_n <= MAX_LOG_ROWS {
                for function in [HashFunction::Keccak256, HashFunction::Sha256, HashFunction::Blake3] {
                    tree(session, target, function, Arity::Two, log_n);
                }
                tree(session, target, HashFunction::Keccak256, Arity::Four, log_n);
            }
        }
    }
}

fn name(function: HashFunction) -> String {
    function.to_string().to_lowercase()
}

/// Instructions of a message: those of its blocks, and of the parents of its chunks.
fn instructions(function: HashFunction, bytes: usize) -> f64 {
    let (blocks, each) = match function {
        HashFunction::Keccak256 | HashFunction::Sha3_256 => (bytes / 136 + 1, 4320.0),
        HashFunction::Sha256 => ((bytes + 8) / 64 + 1, 1384.0),
        HashFunction::Blake2s256 => (bytes.div_ceil(64).max(1), 976.0),
        _ => (bytes.div_ceil(64).max(1) + bytes.div_ceil(1024).saturating_sub(1), 680.0),
    };
    blocks as f64 * each
}

fn case(name: String, target: &Target, log_n: u32, instructions: f64, bytes: usize) -> Case {
    let work = Work { multiplications: instructions / INSTRUCTIONS, bytes: bytes as f64 };
    Case {
        name,
        device: target.device.info().id.to_string(),
        peer: None,
        log_n,
        elements: Some(1 << log_n),
        floor: Some(target.limits.floor(work)),
    }
}

fn rows(session: &mut Session, target: &Target, function: HashFunction, bytes: usize, log_n: u32) {
    let count = 1usize << log_n;
    let work = count as f64 * instructions(function, bytes);
    let name = format!("{}/rows-{bytes}/device", name(function));
    session.measure(case(name, target, log_n, work, count * (bytes + 32)), |budget| {
        let device = &target.device;
        let hash = ByteHash::new(device, function)?;
        let messages: Vec<u8> = input::random(count * bytes);
        let data = device.upload::<u8>(&messages)?;
        let mut out = device.zeros::<[u8; 32]>(count)?;
        let before = device.stats().launches;
        hash.hash_rows(&data, bytes, &mut out)?;
        let launches = device.stats().launches - before;
        for place in input::places(CHECKED, count) {
            let digest = out.view(place..=place)?.to_vec()?;
            ensure!(digest == [function.digest(&messages[place * bytes..][..bytes])], "digest {place} is wrong");
        }
        let timing = budget.time_queued(|| Ok(hash.hash_rows(&data, bytes, &mut out)?), || Ok(device.sync()?))?;
        Ok((timing, Some(launches), format!("host, {CHECKED} of 2^{log_n} digests")))
    });
}

/// One message of 2^`log_n` KiB.
fn one(session: &mut Session, target: &Target, log_n: u32) {
    let bytes = 1024usize << log_n;
    let work = instructions(HashFunction::Blake3, bytes);
    session.measure(case("blake3/one/device".to_owned(), target, log_n, work, bytes), |budget| {
        let device = &target.device;
        let hash = ByteHash::new(device, HashFunction::Blake3)?;
        // Random words, some at a time.
        let mut message = vec![0u8; bytes];
        message.par_chunks_mut(8).enumerate().for_each(|(i, word)| {
            word.copy_from_slice(&(i as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29).to_le_bytes());
        });
        let data = device.upload::<u8>(&message)?;
        let mut out = device.zeros::<[u8; 32]>(1)?;
        let before = device.stats().launches;
        hash.hash_rows(&data, bytes, &mut out)?;
        let launches = device.stats().launches - before;
        ensure!(out.to_vec()? == [HashFunction::Blake3.digest(&message)], "the digest is wrong");
        let timing = budget.time_queued(|| Ok(hash.hash_rows(&data, bytes, &mut out)?), || Ok(device.sync()?))?;
        Ok((timing, Some(launches), "host".to_owned()))
    });
}

fn tree(session: &mut Session, target: &Target, function: HashFunction, arity: Arity, log_n: u32) {
    let (rows, children) = (1usize << log_n, arity.children());
    let nodes = (rows - 1) / (children - 1);
    let work = rows as f64 * instructions(function, 4 * COLUMNS) + nodes as f64 * instructions(function, 32 * children);
    let moved = 4 * rows * COLUMNS + 2 * (rows + nodes) * 32;
    let (name, of) = (name(function), if arity == Arity::Two { "" } else { "-of-4" });
    let name = format!("baby-bear/{}-tree-{COLUMNS}{of}/device", name.trim_end_matches("-256"));
    session.measure(case(name, target, log_n, work, moved), |budget| {
        let device = &target.device;
        let serialization = Serialization::plonky3::<BabyBear>(function).with_arity(arity);
        let merkle = Merkle::new(SerializingHash::<BabyBear>::new(device, serialization)?);
        let host: Vec<BabyBear> = input::random(rows * COLUMNS);
        let matrix = device.upload::<Mont<BabyBear>>(&host)?;
        let matrices = [Rows::new(&matrix, COLUMNS)];
        let commit = || -> Result<_> { Ok(merkle.commit(&matrices)?) };
        let before = device.stats().launches;
        let tree = commit()?;
        let launches = device.stats().launches - before;
        let root = merkle.root(&tree)?;
        let places = input::places(CHECKED, rows);
        let openings = merkle.open(&tree, &matrices, &places, 0)?;
        for (place, opening) in places.iter().zip(&openings) {
            verify(&serialization, &root, tree.dimensions(), *place, opening)?;
            ensure!(opening.rows[0] == host[place * COLUMNS..][..COLUMNS], "row {place} is another one");
        }
        drop(tree);
        let timing = budget.time_queued(|| commit().map(drop), || Ok(device.sync()?))?;
        Ok((timing, Some(launches), format!("paths of {CHECKED} of 2^{log_n} rows")))
    });
}
