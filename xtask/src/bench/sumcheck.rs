//! Sumchecks with the transcript on the device, whose proofs are verified.

use std::cell::RefCell;

use anyhow::{Context, Error, Result, ensure};
use ark_bls12_381::Fr;
use ark_ff::AdditiveGroup;
use evariste_backend::{Buffer, Device};
use evariste_field::{Expression, Mont, Vector};
use evariste_sumcheck::{
    self as sumcheck, Blake3Transcript, Config, Draw, Proved, Statement, Strategy, SubClaim, Sumcheck, Weight,
};
use rayon::prelude::*;

use super::{
    depth::Depth,
    input,
    limits::Work,
    session::{Algorithm, Case, Headline, Session, is_too_large_for_device},
    sizes::Sizes,
    target::Target,
    timing::Budget,
    wanted::Wanted,
};

/// Zero-checks of a · b − c by each strategy, and a larger expression.
pub(crate) static ALGORITHM: Algorithm = Algorithm {
    name: "sumcheck",
    headlines: &[Headline {
        case: "bls12-381-fr/zero-check/device", title: "sumcheck of eq·(AB − C), BLS12-381 Fr"
    }],
    budget: |wanted| Budget::of(wanted.depth),
    run,
    is_too_large,
};

fn is_too_large(error: &Error) -> bool {
    match error.downcast_ref() {
        Some(sumcheck::Error::Device(error)) => is_too_large_for_device(error),
        _ => super::session::is_too_large(error),
    }
}

/// Bytes of an element.
const BYTES: f64 = 32.0;

/// How a zero-check is proved.
#[derive(Clone, Copy, Debug)]
struct Way {
    name: &'static str,
    strategy: Strategy,
    draw: Draw,
    consumed: bool,
}

const fn way(name: &'static str, strategy: Strategy, draw: Draw) -> Way {
    Way { name, strategy, draw, consumed: false }
}

const MAIN: Way = way("zero-check/device", Strategy::ZeroCheck, Draw::Device);

const OTHERS: [Way; 5] = [
    Way { name: "zero-check/consumed/device", consumed: true, ..MAIN },
    way("zero-check/host-transcript", Strategy::ZeroCheck, Draw::Host),
    way("split-eq/device", Strategy::SplitEq, Draw::Device),
    way("claim/host-transcript", Strategy::FromClaim, Draw::Host),
    way("textbook/host-transcript", Strategy::Textbook, Draw::Host),
];

fn run(session: &mut Session, targets: &[Target], wanted: &Wanted) {
    for target in targets {
        let sizes = sizes(target, wanted);
        for log_n in sizes.iter().copied() {
            zero_check(session, target, log_n, MAIN);
            if wanted.depth == Depth::Summary {
                continue;
            }
            OTHERS.iter().for_each(|way| zero_check(session, target, log_n, *way));
            many_tables(session, target, log_n);
        }
    }
}

/// The sizes asked for; else, and on processors and emulations, smaller ones.
fn sizes(target: &Target, wanted: &Wanted) -> Vec<u32> {
    if let Some(sizes) = &wanted.log_n {
        return Sizes::union([sizes]);
    }
    let info = target.device.info();
    match (wanted.depth, info.features.software || info.limits.workgroup_threads == 1) {
        (Depth::Summary, false) => vec![24],
        (_, true) => vec![10],
        (Depth::Small, false) => vec![10, 18, 22],
        (Depth::Full, false) => vec![10, 12, 14, 16, 18, 20, 22, 24, 25, 26, 28],
    }
}

fn transcript() -> Blake3Transcript {
    Blake3Transcript::new(b"bench")
}

/// Compares the values of tables with those that the host finds: a proof that all is 0 is accepted without.
fn check(tables: &[&Buffer<Mont<Fr>>], sub: &SubClaim<Fr>) -> Result<String> {
    for (table, value) in tables.iter().zip(&sub.tables) {
        let mut rows = table.to_vec()?;
        for r in sub.point.iter().rev() {
            let half = rows.len() / 2;
            let (low, high) = rows.split_at_mut(half);
            low.par_iter_mut().zip(high.par_iter()).for_each(|(a, b)| *a += *r * (*b - *a));
            rows.truncate(half);
        }
        ensure!(rows == [*value], "a table has another value");
    }
    Ok("verified, and the values of the tables on the host".into())
}

fn zero_check(session: &mut Session, target: &Target, log_n: u32, way: Way) {
    let elements = 1usize << log_n;
    // Each round but the first folds three tables, which takes 3 products for each of their elements in all; each evaluates
    // at two points, the first at one.
    let work = Work { multiplications: 6.5 * elements as f64, bytes: 3.0 * 4.0 * BYTES * elements as f64 };
    let described = Case {
        name: format!("bls12-381-fr/{}", way.name),
        device: target.device.info().id.to_string(),
        peer: None,
        log_n,
        elements: Some(elements),
        floor: Some(target.limits.floor(work)),
    };
    session.measure(described, |budget| {
        let device = &target.device;
        let [a, b, c] = [0, 1, 2].map(Expression::column);
        let gate = a * b - c;
        let statement = Statement::<Fr>::new(log_n as usize, &gate)?.weight(Weight::ZeroCheck);
        let config = Config { strategy: way.strategy, draw: way.draw, check: false };
        let plan = Sumcheck::<Fr>::new(device, &gate, config)?;
        let mut tables = satisfied(device, elements)?;
        let consume = |tables| Ok::<_, Error>(plan.prove_consuming(&statement, tables, Fr::ZERO, &mut transcript())?);
        let prove = |tables: &[Buffer<Mont<Fr>>]| -> Result<_> {
            let given: Vec<_> = tables.iter().collect();
            Ok(plan.prove(&statement, &given, Fr::ZERO, &mut transcript())?)
        };
        let before = device.stats().launches;
        let proved = if way.consumed { consume(std::mem::take(&mut tables))? } else { prove(&tables)? };
        let launches = device.stats().launches - before;
        let sub = statement.verify(Fr::ZERO, &proved.proof, &mut transcript())?;
        // Tables that are consumed may leave no room for others beside them, so that they are made again each time.
        if way.consumed {
            tables = satisfied(device, elements)?;
        }
        let checked = check(&tables.iter().collect::<Vec<_>>(), &sub)?;
        let same = |again: Proved<Fr>| -> Result<()> {
            ensure!(again.proof == proved.proof, "another proof");
            Ok(())
        };
        let timing = match way.consumed {
            false => budget.time(|| same(prove(&tables)?))?,
            true => {
                tables.clear();
                let made = RefCell::new(None);
                let make = || -> Result<Vec<Buffer<Mont<Fr>>>> {
                    let tables = satisfied(device, elements)?;
                    device.sync()?;
                    Ok(tables)
                };
                let prove = |_: u32| same(consume(made.take().context("tables are missing")??)?);
                budget.time_prepared(1, || *made.borrow_mut() = Some(make()), prove)?
            }
        };
        Ok((timing, Some(launches), checked))
    });
}

/// Three tables of which the last is the product of the others, made on the device.
fn satisfied(device: &Device, elements: usize) -> Result<Vec<Buffer<Mont<Fr>>>> {
    let mut tables = (0..3).map(|_| device.alloc(elements)).collect::<Result<Vec<_>, _>>()?;
    let [a, b, c] = &mut tables[..] else { unreachable!("there are three") };
    let vector = Vector::<Fr>::new(device);
    let base = input::random(2);
    vector.powers(base[0], base[1], &mut *a)?;
    vector.square(&*a, &mut *b)?;
    vector.mul(&*a, &*b, &mut *c)?;
    Ok(tables)
}

/// An expression of degree 5 in 12 tables.
fn many_tables(session: &mut Session, target: &Target, log_n: u32) {
    const TABLES: usize = 12;
    let elements = 1usize << log_n;
    let x: Vec<Expression> = (0..TABLES as u32).map(Expression::column).collect();
    let expression =
        x[..5].iter().cloned().product::<Expression>() + &x[5] * &x[6] * &x[7] + (&x[8] + &x[9]).pow(2) * &x[10]
            - &x[11];
    // Folding, and five points with 8 products and a weight.
    let work = Work {
        multiplications: (TABLES as f64 + 5.0 * 9.0) * elements as f64,
        bytes: TABLES as f64 * 4.0 * BYTES * elements as f64,
    };
    let described = Case {
        name: "bls12-381-fr/degree-5-of-12/device".into(),
        device: target.device.info().id.to_string(),
        peer: None,
        log_n,
        elements: Some(elements),
        floor: Some(target.limits.floor(work)),
    };
    session.measure(described, |budget| {
        let device = &target.device;
        let host: Vec<Fr> = input::random(elements);
        let vector = Vector::<Fr>::new(device);
        let mut tables = vec![device.upload::<Mont<Fr>>(&host)?];
        for _ in 1..TABLES {
            let mut next = device.alloc(elements)?;
            vector.mul(&tables[0], &tables[tables.len() - 1], &mut next)?;
            tables.push(next);
        }
        let given: Vec<_> = tables.iter().collect();
        let point = input::random(log_n as usize);
        let statement = Statement::<Fr>::new(log_n as usize, &expression)?.weight(Weight::Eq(point));
        let plan = Sumcheck::<Fr>::new(device, &expression, Config::default())?;
        let claim = plan.sum(&statement, &given)?;
        let before = device.stats().launches;
        let proved = plan.prove(&statement, &given, claim, &mut transcript())?;
        let launches = device.stats().launches - before;
        let sub = statement.verify(claim, &proved.proof, &mut transcript())?;
        let checked = check(&given, &sub)?;
        let timing = budget.time(|| {
            let again = plan.prove(&statement, &given, claim, &mut transcript())?;
            ensure!(again.proof == proved.proof, "another proof");
            Ok(())
        })?;
        Ok((timing, Some(launches), checked))
    });
}
