//! FRI over BabyBear: commit phases with trees of Poseidon2, folds, quotients, and proofs of work.

use std::iter;

use anyhow::{Context, Result, ensure};
use ark_ff::{FftField, Field};
use evariste::backend::{Buffer, Device, Element};
use evariste::field::{
    DeviceField, Mont,
    small::{BabyBear, BabyBear4},
};
use evariste::fri::{
    ConstraintQuotients, Constraints, Error, Fold, Fri, FriConfig, Opened, Quotients, Selector, log_arities, reference,
    verify_query,
};
use evariste::hash::{DuplexSponge, Merkle, Poseidon2, Poseidon2Parameters, Rows};
use evariste::ntt::{LowDegreeExtension, Order};

use crate::{
    ALL, input,
    limits::Work,
    request::Request,
    session::{self, Algorithm, Case, Headline, Session},
    sizes::Sizes,
    target::Target,
    timing::Budget,
};

pub(crate) const ALGORITHM: Algorithm = Algorithm {
    name: "fri",
    headlines: &[
        Headline { case: "baby-bear/fri/device", title: "FRI commit phase, BabyBear degree 4" },
        Headline { case: "baby-bear/fri-fold/device", title: "FRI fold by 2, BabyBear degree 4" },
    ],
    budget: |request| Budget::of(request.coverage),
    run,
    is_too_large,
};

fn is_too_large(error: &anyhow::Error) -> bool {
    match (error.downcast_ref(), error.downcast_ref()) {
        (Some(Error::Device(error)), _) | (_, Some(evariste::ntt::Error::Device(error))) => {
            session::is_too_large_for_device(error)
        }
        _ => session::is_too_large(error),
    }
}

/// The field of evaluations.
type F = BabyBear4;

/// Products in the prime field of one in the field of evaluations, and of a permutation of width 16.
const PRODUCTS: f64 = 16.0;
const PERMUTATION: f64 = 772.0;

/// log₂ of the most evaluations, and of the most rows of a matrix.
const MAX_LOG_LEN: u32 = 26;
const MAX_LOG_ROWS: u32 = 22;

/// Columns of a matrix.
const COLUMNS: usize = 64;

/// Queries, or elements, that are checked.
const CHECKED: usize = 8;

fn run(session: &mut Session, targets: &[Target], request: &Request) {
    for target in targets {
        let sizes = request.log_n.clone().unwrap_or_else(|| Sizes::usual(&target.device, request.coverage));
        for log_n in Sizes::union(&[sizes]).into_iter().filter(|log_n| (4..=MAX_LOG_LEN).contains(log_n)) {
            for (log_arity, name) in [(1, "fri"), (3, "fri-by-8")] {
                if log_arity == 1 || ALL {
                    commit(session, target, name, log_arity, log_n);
                }
            }
            for (log_arity, name) in [(1, "fri-fold"), (2, "fri-fold-4"), (3, "fri-fold-8"), (4, "fri-fold-16")] {
                if log_arity == 1 || ALL {
                    fold(session, target, name, log_arity, log_n);
                }
            }
            if log_n <= MAX_LOG_ROWS && ALL {
                quotients(session, target, log_n);
                constraints(session, target, log_n);
            }
        }
    }
}

fn case(name: &str, target: &Target, log_n: u32, products: f64, bytes: f64) -> Case {
    // Multiplications of the limits' field, as both grow with the square of the limbs.
    let weight = (BabyBear::LIMBS as f64 / ark_bls12_381::Fr::LIMBS as f64).powi(2);
    Case {
        name: format!("baby-bear/{name}/device"),
        device: target.device.info().id.to_string(),
        peer: None,
        log_n,
        elements: Some(1 << log_n),
        floor: Some(target.limits.floor(Work { multiplications: weight * products, bytes })),
    }
}

/// Evaluations of a polynomial with half as many random coefficients, on the coset of the generator.
fn codeword(device: &Device, log_len: u32) -> Result<Buffer<Mont<F>>> {
    let columns = <F as Field>::extension_degree() as usize;
    let extension = LowDegreeExtension::<BabyBear>::new(device, log_len - 1, 1)?.columns(columns);
    let values = device.upload::<Mont<BabyBear>>(&input::random::<BabyBear>(columns << (log_len - 1)))?;
    let mut out = device.alloc::<Mont<F>>(1 << log_len)?;
    extension.extend_into(&values, BabyBear::GENERATOR, Order::BitReversed, out.as_view_mut().flattened())?;
    Ok(out)
}

/// A commit phase to a constant, with the challenges of a transcript on the host.
fn commit(session: &mut Session, target: &Target, name: &str, max_log_arity: u32, log_n: u32) {
    let config = FriConfig { max_log_arity, ..FriConfig::default() };
    let (mut products, mut bytes, mut log_len) = (0.0, 0.0, log_n);
    for log_arity in log_arities(&[log_n], &config) {
        let (arity, rows) = (f64::from(1u32 << log_arity), 2f64.powi((log_len - log_arity) as i32));
        products += rows * (PERMUTATION * ((arity / 2.0).ceil() + 1.0) + PRODUCTS * (arity - 1.0));
        // The values are read by the hash and the fold; digests are written, and read once but for the root.
        bytes += rows * (Mont::<F>::BYTES as f64 * (2.0 * arity + 1.0) + 32.0 * 4.0);
        log_len -= log_arity;
    }
    session.measure(case(name, target, log_n, products, bytes), |budget| {
        let device = &target.device;
        let parameters = Poseidon2Parameters::<BabyBear>::plonky3(16)?;
        let merkle = Merkle::new(Poseidon2::new(device, parameters.clone())?);
        let fri = Fri::<F>::new(merkle, log_n, config)?;
        let values = codeword(device, log_n)?;
        let work = |betas: &mut Vec<F>| {
            let mut transcript = DuplexSponge::new(parameters.clone());
            fri.commit(&[values.as_view()], BabyBear::GENERATOR, |cap| {
                transcript.observe(cap);
                let beta = transcript.draw_extension();
                betas.push(beta);
                Ok::<_, Error>(beta)
            })
        };
        let (before, mut betas) = (device.stats().launches, Vec::new());
        let committed = work(&mut betas)?;
        let launches = device.stats().launches - before;
        let places: Vec<usize> = input::places(CHECKED, 1 << log_n).into_iter().collect();
        let opened = fri.open(&committed, &values, &places)?;
        let rounds: Vec<_> = committed.rounds().iter().map(|round| round.cap()).zip(betas).collect();
        for (place, steps) in places.iter().zip(&opened) {
            let value = values.view(*place..place + 1)?.to_vec()?[0];
            let (inputs, polynomial) = ([(log_n, value)], committed.final_polynomial());
            verify_query(&parameters, &config, BabyBear::GENERATOR, &rounds, polynomial, *place, &inputs, steps)?;
        }
        drop(committed);
        let timing =
            budget.time_queued(|| work(&mut Vec::new()).map(drop).map_err(Into::into), || Ok(device.sync()?))?;
        Ok((timing, Some(launches), format!("{CHECKED} queries, verified")))
    });
}

fn fold(session: &mut Session, target: &Target, name: &str, log_arity: u32, log_n: u32) {
    let rows = 1usize << (log_n - log_arity);
    let arity = 1usize << log_arity;
    let products = rows as f64 * PRODUCTS * (arity - 1) as f64;
    let bytes = (rows * (arity + 1) * Mont::<F>::BYTES) as f64;
    session.measure(case(name, target, log_n, products, bytes), |budget| {
        let device = &target.device;
        let fold = Fold::<F>::new(device, log_n)?;
        let host: Vec<F> = input::random(1 << log_n);
        let values = device.upload::<Mont<F>>(&host)?;
        let mut out = device.zeros::<Mont<F>>(rows)?;
        let (beta, shift) = (input::random::<F>(1)[0], BabyBear::GENERATOR);
        let before = device.stats().launches;
        fold.fold(&values, beta, shift, &mut out)?;
        let launches = device.stats().launches - before;
        let places = input::places(CHECKED, rows);
        for row in places {
            let points: Vec<BabyBear> =
                (row * arity..(row + 1) * arity).map(|i| reference::point(log_n, shift, i)).collect();
            let expected = reference::interpolate(&points, &host[row * arity..][..arity], beta);
            ensure!(out.view(row..=row)?.to_vec()? == [expected], "row {row} is wrong");
        }
        let timing = budget.time_queued(|| Ok(fold.fold(&values, beta, shift, &mut out)?), || Ok(device.sync()?))?;
        Ok((timing, Some(launches), format!("definition, {CHECKED} of {rows} rows")))
    });
}

/// Quotients of a matrix at two points.
fn quotients(session: &mut Session, target: &Target, log_n: u32) {
    let rows = 1usize << log_n;
    let products = rows as f64 * (4.0 * COLUMNS as f64 + 2.0 * 6.0 * PRODUCTS);
    let bytes = rows as f64 * (4.0 * COLUMNS as f64 + Mont::<F>::BYTES as f64);
    let name = format!("fri-quotients-{COLUMNS}");
    session.measure(case(&name, target, log_n, products, bytes), |budget| {
        let device = &target.device;
        let plan = Quotients::<F>::new(device, log_n)?;
        let host: Vec<BabyBear> = input::random(rows * COLUMNS);
        let matrix = device.upload::<Mont<BabyBear>>(&host)?;
        let random: Vec<F> = input::random(3 + 2 * COLUMNS);
        let (alpha, shift) = (random[0], BabyBear::GENERATOR);
        let points = [1, 2].map(|i| (random[i], random[3 + (i - 1) * COLUMNS..][..COLUMNS].to_vec()));
        let opened = [Opened { matrix: Rows::new(&matrix, COLUMNS), points: &points }];
        let before = device.stats().launches;
        let sums = plan.quotients(&opened, alpha, shift)?;
        let launches = device.stats().launches - before;
        for row in input::places(CHECKED, rows) {
            let x = F::from_base_prime_field(reference::point(log_n, shift, row));
            let mut expected = F::from(0u8);
            let mut weights = iter::successors(Some(F::from(1u8)), |weight| Some(*weight * alpha));
            for (z, values) in &points {
                let inverse = (*z - x).inverse().context("a point in the domain")?;
                for (value, p) in values.iter().zip(&host[row * COLUMNS..]) {
                    let weight = weights.next().context("a power")?;
                    expected += weight * (*value - F::from_base_prime_field(*p)) * inverse;
                }
            }
            ensure!(sums[0].view(row..=row)?.to_vec()? == [expected], "row {row} is wrong");
        }
        drop(sums);
        let timing = budget.time_queued(
            || plan.quotients(&opened, alpha, shift).map(drop).map_err(Into::into),
            || Ok(device.sync()?),
        )?;
        Ok((timing, Some(launches), format!("definition, {CHECKED} of 2^{log_n} rows")))
    });
}

/// In all rows but the last, each column's next element is the product of this one and the column's after it, plus three
/// times that of the one after.
fn squares() -> Constraints<BabyBear> {
    let mut all = Constraints::default();
    let (transition, three) = (all.selector(Selector::Transition), all.constant(BabyBear::from(3u64)));
    for column in 0..COLUMNS as u32 {
        let [a, b, c] = [0, 1, 2].map(|i| all.column((column + i) % COLUMNS as u32));
        let (product, multiple) = (all.mul(a, b), all.mul(c, three));
        let (sum, next) = (all.add(product, multiple), all.next(column));
        let difference = all.sub(next, sum);
        let constraint = all.mul(transition, difference);
        all.assert_zero(constraint);
    }
    all
}

/// Quotients of one constraint a column.
fn constraints(session: &mut Session, target: &Target, log_n: u32) {
    let rows = 1usize << log_n;
    let products = rows as f64 * 7.0 * COLUMNS as f64;
    let bytes = rows as f64 * (4.0 * COLUMNS as f64 + Mont::<F>::BYTES as f64);
    let name = format!("fri-constraints-{COLUMNS}");
    session.measure(case(&name, target, log_n, products, bytes), |budget| {
        let (device, all) = (&target.device, squares());
        let plan = ConstraintQuotients::<F>::new(device, log_n)?;
        let program = plan.program(&all)?;
        let host: Vec<BabyBear> = input::random(rows * COLUMNS);
        let codeword = device.upload::<Mont<BabyBear>>(&host)?;
        let codeword = Rows::new(&codeword, COLUMNS);
        let (alpha, shift) = (input::random::<F>(1)[0], BabyBear::GENERATOR);
        let work = || plan.quotients(&program, &codeword, [rows, 0], &[], alpha, shift);
        let before = device.stats().launches;
        let found = work()?;
        let launches = device.stats().launches - before;
        let place = |row: usize| row.reverse_bits() >> (usize::BITS - log_n);
        let last = reference::point(log_n, BabyBear::from(1u64), rows - 1);
        for row in input::places(CHECKED, rows) {
            let x = reference::point(log_n, shift, place(row));
            let rows_of = [row, (row + 1) % rows].map(|row| &host[place(row) * COLUMNS..][..COLUMNS]);
            // No constraint has the other selectors.
            let values = all.values(rows_of, &[], [x - last; 3]);
            let sum = values.iter().fold(F::from(0u8), |sum, value| sum * alpha + F::from_base_prime_field(*value));
            let vanishing = x.pow([rows as u64]) - BabyBear::from(1u64);
            let expected = sum / F::from_base_prime_field(vanishing);
            ensure!(found[0].view(row..=row)?.to_vec()? == [expected], "row {row} is wrong");
        }
        drop(found);
        let timing = budget.time_queued(|| work().map(drop).map_err(Into::into), || Ok(device.sync()?))?;
        Ok((timing, Some(launches), format!("definition, {CHECKED} of 2^{log_n} rows")))
    });
}
