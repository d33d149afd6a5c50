//! Poseidon2 over BabyBear: permutations, trees over matrices, and extension with commitment as STARK provers use it.

use std::{iter, time::Instant};

use anyhow::{Context, Result, ensure};
use ark_ff::{FftField, Field, batch_inversion};
use evariste::backend::{Buffer, Element, Secrecy, Transfer};
use evariste::field::{
    DeviceField, Mont,
    small::{BabyBear, Goldilocks, KoalaBear, Mersenne31},
};
use evariste::hash::{Arity, Merkle, Poseidon2, Poseidon2Field, Poseidon2Parameters, Rows, reference, verify};
use evariste::ntt::{self as ntt, LowDegreeExtension, Order, reference::root_of_unity};
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
    name: "hash",
    headlines: &[
        Headline { case: "baby-bear/poseidon2/device", title: "Poseidon2, BabyBear, width 16" },
        Headline { case: "baby-bear/lde-commit-256/device", title: "LDE + commit, BabyBear × 256" },
    ],
    budget: |request| Budget::of(request.coverage),
    run,
    is_too_large,
};

fn is_too_large(error: &anyhow::Error) -> bool {
    match (error.downcast_ref(), error.downcast_ref()) {
        (Some(evariste::hash::Error::Device(error)), _) | (_, Some(evariste::ntt::Error::Device(error))) => {
            session::is_too_large_for_device(error)
        }
        _ => session::is_too_large(error),
    }
}

/// log₂ of the most states.
const MAX_LOG_STATES: u32 = 22;

/// log₂ of the most rows of trees, and of matrices that are extended.
const MAX_LOG_ROWS: u32 = 21;
const MAX_LOG_EXTENDED: u32 = 20;

/// Columns of matrices.
const COLUMNS: [usize; 2] = [8, 256];

/// log₂ of the factor by which an extension has more rows.
const LOG_BLOWUP: u32 = 1;

/// Elements that a thread copies to pinned memory at a time.
const GRAIN: usize = 1 << 14;

/// States, or rows, that are checked.
const CHECKED: usize = 8;

fn run(session: &mut Session, targets: &[Target], request: &Request) {
    for target in targets {
        if !ALL || request.coverage == Coverage::Summary {
            permute::<BabyBear>(
                session,
                target,
                "baby-bear",
                16,
                Sizes::of_headline(&target.device, MAX_LOG_STATES, 18),
            );
            let log_n = Sizes::of_headline(&target.device, MAX_LOG_EXTENDED, 14);
            extend_and_commit(session, target, 256, log_n, Place::Device);
            continue;
        }
        let sizes = request.log_n.clone().unwrap_or_else(|| Sizes::usual(&target.device, request.coverage));
        for log_n in Sizes::union(&[sizes]) {
            if log_n <= MAX_LOG_STATES {
                permute::<BabyBear>(session, target, "baby-bear", 16, log_n);
                permute::<BabyBear>(session, target, "baby-bear", 24, log_n);
                permute::<BabyBear>(session, target, "baby-bear", 32, log_n);
                permute::<KoalaBear>(session, target, "koala-bear", 16, log_n);
                permute::<Mersenne31>(session, target, "mersenne-31", 16, log_n);
                permute::<Goldilocks>(session, target, "goldilocks", 12, log_n);
            }
            for columns in COLUMNS {
                if log_n <= MAX_LOG_ROWS {
                    tree(session, target, columns, Arity::Two, log_n);
                }
                if log_n <= MAX_LOG_ROWS && columns == 256 {
                    tree(session, target, columns, Arity::Four, log_n);
                }
                if log_n <= MAX_LOG_EXTENDED && columns == 256 {
                    for place in [Place::Device, Place::Host, Place::Pinned] {
                        extend_and_commit(session, target, columns, log_n, place);
                    }
                }
            }
        }
    }
}

/// Multiplications of a permutation: of S-boxes x^α and of the matrix of partial rounds.
fn multiplications<F: Poseidon2Field>(width: usize) -> f64 {
    let (alpha, partial) = match (<F as ark_ff::PrimeField>::MODULUS_BIT_SIZE, width) {
        (64, _) => (4, 22),
        (_, 16) if F::GENERATOR == F::from(3u64) => (2, 20),
        (_, 16) if F::GENERATOR == F::from(7u64) => (3, 14),
        (_, 16) => (4, 13),
        (_, 32) => (4, 30),
        _ => (4, 21),
    };
    (alpha * (8 * width + partial) + width * partial) as f64
}

fn case<F: DeviceField>(name: String, target: &Target, log_n: u32, products: f64, moved: f64) -> Case {
    // Multiplications of the limits' field, as both grow with the square of the limbs.
    let weight = (F::LIMBS as f64 / ark_bls12_381::Fr::LIMBS as f64).powi(2);
    let work = Work { multiplications: weight * products, bytes: moved * Mont::<F>::BYTES as f64 };
    Case {
        name,
        device: target.device.info().id.to_string(),
        peer: None,
        log_n,
        elements: Some(1 << log_n),
        floor: Some(target.limits.floor(work)),
    }
}

fn permute<F: Poseidon2Field>(session: &mut Session, target: &Target, field: &str, width: usize, log_n: u32) {
    let (count, usual) = (1usize << log_n, if F::LIMBS == 1 { 16 } else { 8 });
    let more = if width == usual { String::new() } else { format!("-{width}") };
    let (products, moved) = (count as f64 * multiplications::<F>(width), 2.0 * (count * width) as f64);
    let name = format!("{field}/poseidon2{more}/device");
    session.measure(case::<F>(name, target, log_n, products, moved), |budget| {
        let device = &target.device;
        let parameters = Poseidon2Parameters::<F>::plonky3(width)?;
        let poseidon2 = Poseidon2::new(device, parameters.clone())?;
        let states: Vec<F> = input::random(count * width);
        let mut data = device.upload::<Mont<F>>(&states)?;
        let before = device.stats().launches;
        poseidon2.permute(&mut data)?;
        let launches = device.stats().launches - before;
        for place in input::places(CHECKED, count) {
            let range = place * width..(place + 1) * width;
            let mut expected = states[range.clone()].to_vec();
            reference::permute(&parameters, &mut expected);
            ensure!(data.view(range)?.to_vec()? == expected, "state {place} is wrong");
        }
        let timing = budget.time_queued(|| Ok(poseidon2.permute(&mut data)?), || Ok(device.sync()?))?;
        Ok((timing, Some(launches), format!("definition, {CHECKED} of 2^{log_n} states")))
    });
}

/// Permutations of a tree.
fn permutations(rows: usize, columns: usize, arity: Arity) -> f64 {
    let children = arity.children();
    (rows * columns.div_ceil(width(arity) - 8) + (rows - 1) / (children - 1)) as f64
}

/// The width of states that hold so many digests.
fn width(arity: Arity) -> usize {
    8 * arity.children()
}

fn tree(session: &mut Session, target: &Target, columns: usize, arity: Arity, log_n: u32) {
    let rows = 1usize << log_n;
    let products = permutations(rows, columns, arity) * multiplications::<BabyBear>(width(arity));
    let moved = (rows * (columns + 4 * 8)) as f64;
    let of = if arity == Arity::Two { "" } else { "-of-4" };
    let name = format!("baby-bear/poseidon2-tree-{columns}{of}/device");
    session.measure(case::<BabyBear>(name, target, log_n, products, moved), |budget| {
        let device = &target.device;
        let parameters = Poseidon2Parameters::<BabyBear>::plonky3(width(arity))?.with_arity(arity);
        let merkle = Merkle::new(Poseidon2::new(device, parameters.clone())?);
        let host: Vec<BabyBear> = input::random(rows * columns);
        let matrix = device.upload::<Mont<BabyBear>>(&host)?;
        let matrices = [Rows::new(&matrix, columns)];
        let before = device.stats().launches;
        let tree = merkle.commit(&matrices)?;
        let launches = device.stats().launches - before;
        let root = merkle.root(&tree)?;
        let places: Vec<usize> = input::places(CHECKED, rows).into_iter().collect();
        let openings = merkle.open(&tree, &matrices, &places, 0)?;
        for (place, opening) in places.iter().zip(&openings) {
            verify(&parameters, &root, tree.dimensions(), *place, opening)?;
            ensure!(opening.rows[0] == host[place * columns..][..columns], "row {place} is another one");
        }
        drop(tree);
        let timing =
            budget.time_queued(|| merkle.commit(&matrices).map(drop).map_err(Into::into), || Ok(device.sync()?))?;
        Ok((timing, Some(launches), format!("paths of {CHECKED} of 2^{log_n} rows")))
    });
}

/// Where the rows are that are committed to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Device,
    /// Pageable memory of the host.
    Host,
    Pinned,
}

/// The values on a coset of twice the points, in bit-reversed order, and their tree.
fn extend_and_commit(session: &mut Session, target: &Target, columns: usize, log_n: u32, place: Place) {
    let (rows, more) = (1usize << log_n, 1usize << (log_n + LOG_BLOWUP));
    let butterflies = (columns * rows) as f64 / 2.0 * f64::from(log_n) * f64::from(1 + (1u32 << LOG_BLOWUP));
    let products = butterflies + permutations(more, columns, Arity::Two) * multiplications::<BabyBear>(16);
    let moved = (rows * columns + 2 * more * columns) as f64;
    let name = format!("baby-bear/lde-commit-{columns}/{}", format!("{place:?}").to_lowercase());
    let case = case::<BabyBear>(name, target, log_n, products, moved);
    // The way over the bus is none of the limits that are measured.
    let floor = case.floor.filter(|_| place == Place::Device);
    session.measure(Case { floor, ..case }, |budget| {
        let device = &target.device;
        let parameters = Poseidon2Parameters::<BabyBear>::plonky3(16)?;
        let merkle = Merkle::new(Poseidon2::new(device, parameters.clone())?);
        let extension = LowDegreeExtension::<BabyBear>::new(device, log_n, LOG_BLOWUP)?.columns(columns);
        let host: Vec<BabyBear> = input::random(rows * columns);
        let mut values = device.upload::<Mont<BabyBear>>(&host)?;
        let mut extended = device.alloc::<Mont<BabyBear>>(more * columns)?;
        let commit = |values: &Buffer<Mont<BabyBear>>, extended: &mut Buffer<Mont<BabyBear>>| -> Result<_> {
            extension.extend_into(values, BabyBear::GENERATOR, Order::BitReversed, &mut *extended)?;
            Ok(merkle.commit(&[Rows::new(&*extended, columns)])?)
        };
        let before = device.stats().launches;
        let tree = commit(&values, &mut extended)?;
        let launches = device.stats().launches - before;
        let root = merkle.root(&tree)?;
        let dimensions = tree.dimensions().to_vec();
        let timing = match place {
            Place::Device => budget.time_queued(|| commit(&values, &mut extended).map(drop), || Ok(device.sync()?))?,
            Place::Host => budget.time(|| {
                values.write(&host)?;
                commit(&values, &mut extended).map(drop)?;
                Ok(device.sync()?)
            })?,
            Place::Pinned => {
                let bytes = Mont::<BabyBear>::BYTES;
                let mut pinned = Some(device.host_buffer(host.len() * bytes, Transfer::Upload, Secrecy::Public)?);
                budget.time_parts(|| {
                    let mut rows = pinned.take().context("the memory of the run before")?;
                    let parts = rows.par_chunks_mut(GRAIN * bytes).zip(host.par_chunks(GRAIN));
                    parts.for_each(|(encoded, values)| Mont::<BabyBear>::encode(values, encoded));
                    let start = Instant::now();
                    let mut tree = merkle.by_columns(dimensions[0], Secrecy::Public)?;
                    let host =
                        extension.extend_pinned(rows, BabyBear::GENERATOR, &mut extended, |block, extended| {
                            Ok::<_, anyhow::Error>(tree.absorb(Rows::new(extended, columns), block.len())?)
                        })?;
                    let tree = tree.finish()?;
                    device.sync()?;
                    let time = start.elapsed();
                    ensure!(merkle.root(&tree)? == root, "the commitment by blocks has another root");
                    pinned = Some(host);
                    Ok(time)
                })?
            }
        };
        let places: Vec<usize> = input::places(CHECKED, more).into_iter().collect();
        let openings = merkle.open(&tree, &[Rows::new(&extended, columns)], &places, 0)?;
        for (place, opening) in places.iter().zip(&openings) {
            verify(&parameters, &root, &dimensions, *place, opening)?;
        }
        // One value of the extension, by the values of its column.
        let (place, column) = (places[0], places[1] % columns);
        let root: BabyBear = root_of_unity(log_n + LOG_BLOWUP).context("a root of unity")?;
        let exponent = ntt::reverse_bits(place as u32, log_n + LOG_BLOWUP);
        let x = BabyBear::GENERATOR * root.pow([exponent.into()]);
        let expected = value_at(host.iter().skip(column).step_by(columns), root.pow([1 << LOG_BLOWUP]), x, rows);
        ensure!(openings[0].rows[0][column] == expected, "the extension has another value in row {place}");
        Ok((timing, Some(launches), format!("paths of {CHECKED} of 2^{} rows, and a value", log_n + LOG_BLOWUP)))
    });
}

/// The value at x of the polynomial with these values at the powers of w, of order n: (xⁿ − 1) / n · Σ vᵢ wⁱ / (x − wⁱ).
fn value_at<'a, F: FftField>(values: impl Iterator<Item = &'a F>, w: F, x: F, n: usize) -> F {
    let powers: Vec<F> = iter::successors(Some(F::ONE), |power| Some(*power * w)).take(n).collect();
    let mut inverses: Vec<F> = powers.iter().map(|power| x - power).collect();
    batch_inversion(&mut inverses);
    let terms = values.zip(powers.iter().zip(&inverses)).map(|(value, (power, inverse))| *value * power * inverse);
    (x.pow([n as u64]) - F::ONE) / F::from(n as u64) * terms.sum::<F>()
}
