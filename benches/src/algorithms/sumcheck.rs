//! Sumchecks with the transcript on the device, whose proofs are verified.

use std::{
    cell::RefCell,
    time::{Duration, Instant},
};

use anyhow::{Context, Error, Result, ensure};
use ark_bls12_381::Fr;
use ark_ff::{AdditiveGroup, Field};
use evariste::backend::{Buffer, Device, Kind, Secrecy};
use evariste::field::{Expression, Mont, Vector};
use evariste::sumcheck::{
    self as sumcheck, Blake3Transcript, Challenge, Closure, ProverOutput, Statement, Strategy, SubClaim, Sumcheck,
    SumcheckConfig, Transcript, Weight,
};
use rayon::prelude::*;

use crate::{
    ALL,
    coverage::Coverage,
    input,
    limits::Work,
    request::Request,
    session::{Algorithm, Case, Headline, Session, is_too_large_for_device},
    sizes::Sizes,
    target::Target,
    timing::{Budget, Timing},
};

/// Zero-checks of a · b − c by each strategy, and a larger expression.
pub(crate) const ALGORITHM: Algorithm = Algorithm {
    name: "sumcheck",
    headlines: &[Headline {
        case: "bls12-381-fr/zero-check/device", title: "sumcheck of eq·(AB − C), BLS12-381 Fr"
    }],
    budget: |request| Budget::of(request.coverage),
    run,
    is_too_large,
};

fn is_too_large(error: &Error) -> bool {
    match error.downcast_ref() {
        Some(sumcheck::Error::Device(error)) => is_too_large_for_device(error),
        _ => crate::session::is_too_large(error),
    }
}

/// Bytes of an element.
const BYTES: f64 = 32.0;

/// How a zero-check is proved.
#[derive(Clone, Copy, Debug)]
struct Way {
    name: &'static str,
    strategy: Strategy,
    challenge: Challenge,
    consumed: bool,
}

const fn way(name: &'static str, strategy: Strategy, challenge: Challenge) -> Way {
    Way { name, strategy, challenge, consumed: false }
}

const MAIN: Way = way("zero-check/device", Strategy::ZeroCheck, Challenge::Device);

const OTHERS: [Way; 5] = [
    Way { name: "zero-check/consumed/device", consumed: true, ..MAIN },
    way("zero-check/host-transcript", Strategy::ZeroCheck, Challenge::Host),
    way("split-eq/device", Strategy::SplitEq, Challenge::Device),
    way("claim/host-transcript", Strategy::FromClaim, Challenge::Host),
    way("textbook/host-transcript", Strategy::Textbook, Challenge::Host),
];

fn run(session: &mut Session, targets: &[Target], request: &Request) {
    for target in targets {
        let sizes = sizes(target, request);
        for log_n in sizes.iter().copied() {
            zero_check(session, target, log_n, MAIN);
            if !ALL || request.coverage == Coverage::Summary {
                continue;
            }
            OTHERS.iter().for_each(|way| zero_check(session, target, log_n, *way));
            two_rounds(session, target, log_n);
            FORMS.iter().for_each(|form| rounds(session, target, log_n, *form));
            many_tables(session, target, log_n);
            if request.peers && target.device.info().id.kind == Kind::Cpu {
                arkworks(session, target, log_n);
            }
        }
    }
}

/// The sizes asked for; else, and on processors and emulations, smaller ones.
fn sizes(target: &Target, request: &Request) -> Vec<u32> {
    if let Some(sizes) = &request.log_n {
        return Sizes::union([sizes]);
    }
    let info = target.device.info();
    match (request.coverage, info.features.software || info.limits.workgroup_threads == 1) {
        (Coverage::Summary, false) => vec![24],
        (_, true) => vec![10],
        (Coverage::Small, false) => vec![10, 18, 22],
        (Coverage::Full, false) => vec![10, 12, 14, 16, 18, 20, 22, 24, 25, 26, 28],
    }
}

/// a · b − c.
fn gate() -> Expression {
    let [a, b, c] = [0, 1, 2].map(Expression::column);
    a * b - c
}

fn statement(log_n: u32) -> Result<Statement<Fr>> {
    Ok(Statement::<Fr>::new(log_n as usize, &gate())?.weight(Weight::ZeroCheck))
}

fn transcript() -> Blake3Transcript {
    Blake3Transcript::new(b"bench")
}

/// Compares the values of tables with those that the host finds: a proof that all is 0 is accepted without.
fn check(tables: &[&Buffer<Mont<Fr>>], sub: &SubClaim<Fr>) -> Result<String> {
    check_rows(tables.iter().map(|table| Ok(table.to_vec()?)), sub)
}

fn check_rows(tables: impl Iterator<Item = Result<Vec<Fr>>>, sub: &SubClaim<Fr>) -> Result<String> {
    for (table, value) in tables.zip(&sub.tables) {
        let mut rows = table?;
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
    // Each round but the first folds three tables, which takes 3 products for each of their elements in all; each
    // evaluates at two points, the first at one, where only two tables count.
    let work = Work { multiplications: 6.0 * elements as f64, bytes: 11.0 * BYTES * elements as f64 };
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
        let (gate, statement) = (gate(), statement(log_n)?);
        let config = SumcheckConfig::default().strategy(way.strategy).challenge(way.challenge);
        let plan = Sumcheck::<Fr>::with_config(device, &gate, config)?;
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
        let same = |again: ProverOutput<Fr>| -> Result<()> {
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

/// Rounds that are measured each for itself, as profiles of HyperPlonk's sumcheck show them.
const ROUNDS: u32 = 13;

/// A statement and a strategy for a proof whose rounds are measured.
#[derive(Clone, Copy, Debug)]
struct Form {
    name: &'static str,
    strategy: Strategy,
    /// eq is a table that the prover is given, as a factor of the expression, and not a weight.
    eq_is_given: bool,
    /// What a pair of each table takes in the first round, and in others.
    first: PerPair,
    others: PerPair,
}

/// What a round takes for each pair of elements of the tables.
#[derive(Clone, Copy, Debug)]
struct PerPair {
    multiplications: f64,
    /// Elements read and elements written.
    elements: f64,
}

const fn per_pair(multiplications: f64, elements: f64) -> PerPair {
    PerPair { multiplications, elements }
}

/// An evaluation takes a product and its weight. The first round folds nothing; others fold each table, which reads
/// four elements, writes two, and takes two products.
const FORMS: [Form; 4] = [
    // The experiment of HyperPlonk's source: four tables, evaluated at four points.
    Form {
        name: "four-tables",
        strategy: Strategy::Textbook,
        eq_is_given: true,
        first: per_pair(8.0, 8.0),
        others: per_pair(16.0, 24.0),
    },
    // The same with eq as a table of our own, at three points.
    Form {
        name: "claim",
        strategy: Strategy::FromClaim,
        eq_is_given: false,
        first: per_pair(6.0, 8.0),
        others: per_pair(14.0, 24.0),
    },
    // Three tables, at 0 and at infinity.
    Form {
        name: "split-eq",
        strategy: Strategy::SplitEq,
        eq_is_given: false,
        first: per_pair(4.0, 6.0),
        others: per_pair(10.0, 18.0),
    },
    // The first round evaluates at one point, infinity, where only two tables count.
    Form {
        name: "zero-check",
        strategy: Strategy::ZeroCheck,
        eq_is_given: false,
        first: per_pair(2.0, 4.0),
        others: per_pair(10.0, 18.0),
    },
];

/// The first rounds of a proof one by one, each until the host has drawn its challenge: what a read and the next launch
/// take counts, and the tables of eq in the first one where the prover makes them.
fn rounds(session: &mut Session, target: &Target, log_n: u32, form: Form) {
    let mut measured = None;
    for round in 0..ROUNDS.min(log_n) {
        let pairs = (1u64 << (log_n - 1 - round)) as f64;
        let PerPair { multiplications, elements } = if round == 0 { form.first } else { form.others };
        let work = Work { multiplications: multiplications * pairs, bytes: elements * BYTES * pairs };
        let limits = &target.limits;
        let described = Case {
            name: format!("bls12-381-fr/{}/round-{:02}/host-transcript", form.name, round + 1),
            device: target.device.info().id.to_string(),
            peer: None,
            log_n,
            elements: Some(2 * pairs as usize),
            floor: Some(limits.floor(work)),
        };
        session.measure(described, |budget| {
            let times: &mut Vec<Vec<Duration>> = match &mut measured {
                Some(times) => times,
                none => none.insert(times_of_rounds(target, log_n, form, budget)?),
            };
            let timing = Timing::of(std::mem::take(&mut times[round as usize]), 1);
            let seconds = timing.median.as_secs_f64();
            let shares = [work.bytes / limits.copy_bytes_per_s, work.multiplications / limits.mul_per_s];
            let [copy, mul] = shares.map(|share| 100.0 * share / seconds);
            Ok((timing, None, format!("verified; {copy:.1}% of copy bandwidth, {mul:.1}% of multiplications")))
        });
    }
}

/// The times of each round of several proofs.
fn times_of_rounds(target: &Target, log_n: u32, form: Form, budget: &Budget) -> Result<Vec<Vec<Duration>>> {
    let device = &target.device;
    let mut tables = satisfied(device, 1 << log_n)?;
    let (expression, statement) = match form.eq_is_given {
        false => (gate(), statement(log_n)?),
        true => {
            let expression = Expression::column(3) * gate();
            tables.push(device.upload::<Mont<Fr>>(&eq_table(&input::random::<Fr>(log_n as usize)))?);
            let statement = Statement::<Fr>::new(log_n as usize, &expression)?;
            (expression, statement)
        }
    };
    let config = SumcheckConfig::default().strategy(form.strategy).challenge(Challenge::Host);
    let plan = Sumcheck::<Fr>::with_config(device, &expression, config)?;
    let given: Vec<_> = tables.iter().collect();
    let stamps = RefCell::new(Vec::new());
    let stamped = || {
        let (mut inner, stamps) = (transcript(), &stamps);
        Closure::new(move |message: &[u8]| -> Fr {
            Transcript::<Fr>::absorb(&mut inner, message);
            let challenge = inner.challenge();
            stamps.borrow_mut().push(Instant::now());
            challenge
        })
    };
    let proved = plan.prove(&statement, &given, Fr::ZERO, &mut stamped())?;
    check(&given, &statement.verify(Fr::ZERO, &proved.proof, &mut stamped())?)?;
    // The point of eq comes first, by a challenge for each variable. The last of these is the start, or else the call
    // is.
    let before = if form.eq_is_given { 1 } else { log_n as usize };
    let mut times = vec![Vec::new(); log_n as usize];
    let start = Instant::now();
    while times[0].len() < budget.runs || start.elapsed() < budget.time {
        stamps.borrow_mut().clear();
        if form.eq_is_given {
            stamps.borrow_mut().push(Instant::now());
        }
        let again = plan.prove(&statement, &given, Fr::ZERO, &mut stamped())?;
        ensure!(again.proof == proved.proof, "another proof");
        let stamps = stamps.borrow();
        ensure!(stamps.len() == before + log_n as usize, "{} challenges of a proof", stamps.len());
        for (times, stamps) in times.iter_mut().zip(stamps[before - 1..].windows(2)) {
            times.push(stamps[1] - stamps[0]);
        }
    }
    Ok(times)
}

/// eq(point, x) for all x. Its first variable is the lowest bit of x.
fn eq_table(point: &[Fr]) -> Vec<Fr> {
    let mut eq = vec![Fr::ONE];
    for p in point {
        let ones: Vec<Fr> = eq.par_iter().with_min_len(GRAIN).map(|x| *x * p).collect();
        let zeros: Vec<Fr> = eq.par_iter().zip(&ones).with_min_len(GRAIN).map(|(x, one)| *x - one).collect();
        eq = zeros;
        eq.extend(ones);
    }
    eq
}

/// Three such tables in host memory.
fn of_host(log_n: u32) -> [Vec<Fr>; 3] {
    let (a, b): (Vec<Fr>, Vec<Fr>) = (input::random(1 << log_n), input::random(1 << log_n));
    let c = a.par_iter().zip(&b).map(|(a, b)| *a * b).collect();
    [a, b, c]
}

/// Three tables, made on the device. The last is the product of the others.
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

/// Tables in host memory, with half of the device memory that all would take, so that the first two rounds take one
/// pass over them.
fn two_rounds(session: &mut Session, target: &Target, log_n: u32) {
    let elements = 1usize << log_n;
    let described = Case {
        name: "bls12-381-fr/zero-check/two-rounds-a-pass/host".into(),
        device: target.device.info().id.to_string(),
        peer: None,
        log_n,
        elements: Some(elements),
        floor: None,
    };
    session.measure(described, |budget| {
        let (gate, statement) = (gate(), statement(log_n)?);
        let device_bytes = (3.0 * 2.0 * BYTES * elements as f64) as u64 / 2;
        let plan = Sumcheck::<Fr>::new(&target.device, &gate)?;
        let tables = of_host(log_n);
        let given: Vec<&[Fr]> = tables.iter().map(Vec::as_slice).collect();
        let prove = || -> Result<_> {
            let secrecy = Secrecy::Public;
            Ok(plan.prove_host(&statement, &given, device_bytes, secrecy, Fr::ZERO, &mut transcript())?)
        };
        let before = target.device.stats().launches;
        let proved = prove()?;
        let launches = target.device.stats().launches - before;
        let sub = statement.verify(Fr::ZERO, &proved.proof, &mut transcript())?;
        let checked = check_rows(tables.iter().map(|table| Ok(table.clone())), &sub)?;
        let timing = budget.time(|| {
            ensure!(prove()?.proof == proved.proof, "another proof");
            Ok(())
        })?;
        Ok((timing, Some(launches), checked))
    });
}

/// The textbook's prover by `ark_ff`, on all cores: the weight is a table, each round is evaluated at 0, 1, 2 and 3,
/// then all tables are folded. It is given the challenges of our proof.
fn arkworks(session: &mut Session, target: &Target, log_n: u32) {
    let described = Case {
        name: "bls12-381-fr/zero-check/host".into(),
        device: target.device.info().id.to_string(),
        peer: Some("arkworks"),
        log_n,
        elements: Some(1 << log_n),
        floor: None,
    };
    session.measure(described, |budget| {
        let statement = statement(log_n)?;
        let plan = Sumcheck::<Fr>::new(&target.device, &gate())?;
        let [a, b, c] = of_host(log_n);
        let upload = |table: &Vec<Fr>| target.device.upload::<Mont<Fr>>(table);
        let buffers = [&a, &b, &c].into_iter().map(upload).collect::<Result<Vec<_>, _>>()?;
        let given: Vec<_> = buffers.iter().collect();
        let proved = plan.prove(&statement, &given, Fr::ZERO, &mut transcript())?;
        let weight = proved.weight.context("a zero-check has a point")?;
        let prove = || textbook(&weight, [&a, &b, &c], &proved.point);
        let (rounds, last) = prove();
        // Each round leads to the next, and the last one to the values of the tables that our proof has.
        let mut claim = Fr::ZERO;
        for (round, r) in rounds.iter().zip(proved.point.iter().rev()) {
            ensure!(round[0] + round[1] == claim, "a round has another sum");
            claim = at(round, *r);
        }
        ensure!(last[1..] == proved.proof.values[..], "a table has another value");
        ensure!(claim == last[0] * (last[1] * last[2] - last[3]), "the last round has another value");
        let timing = budget.time(|| {
            ensure!(prove().1 == last, "another proof");
            Ok(())
        })?;
        Ok((timing, None, "every round, and the values of the tables by our proof".into()))
    });
}

/// Pairs that one thread takes at least.
const GRAIN: usize = 1 << 8;

/// The rounds' values at 0, 1, 2 and 3, and the last values of eq and of the tables.
fn textbook(weight: &[Fr], tables: [&[Fr]; 3], point: &[Fr]) -> (Vec<[Fr; 4]>, Vec<Fr>) {
    let eq = eq_table(weight);
    let mut folded: Vec<Vec<Fr>> = Vec::new();
    let mut rounds = Vec::with_capacity(point.len());
    for r in point.iter().rev() {
        let now: Vec<&[Fr]> = match folded.is_empty() {
            true => [&eq[..]].into_iter().chain(tables).collect(),
            false => folded.iter().map(Vec::as_slice).collect(),
        };
        let half = now[0].len() / 2;
        let values = |x: usize| {
            let mut ends: [Fr; 4] = std::array::from_fn(|table| now[table][x]);
            let ways: [Fr; 4] = std::array::from_fn(|table| now[table][half + x] - ends[table]);
            std::array::from_fn(|_| {
                let [w, a, b, c] = ends;
                ends.iter_mut().zip(&ways).for_each(|(end, way)| *end += way);
                w * (a * b - c)
            })
        };
        let add = |a: [Fr; 4], b: [Fr; 4]| std::array::from_fn(|i| a[i] + b[i]);
        rounds.push((0..half).into_par_iter().with_min_len(GRAIN).map(values).reduce(|| [Fr::ZERO; 4], add));
        let fold = |table: &&[Fr]| -> Vec<Fr> {
            let (low, high) = table.split_at(half);
            low.par_iter().zip(high).with_min_len(GRAIN).map(|(a, b)| *a + *r * (*b - a)).collect()
        };
        folded = now.iter().map(fold).collect();
    }
    (rounds, folded.iter().map(|table| table[0]).collect())
}

/// The polynomial with these values at 0, 1, 2 and 3.
fn at(values: &[Fr; 4], x: Fr) -> Fr {
    let term = |i: usize| {
        let others = (0..4).filter(|j| *j != i).map(|j| (Fr::from(j as u64), Fr::from(i as u64)));
        let (above, below) =
            others.fold((Fr::ONE, Fr::ONE), |(above, below), (j, i)| (above * (x - j), below * (i - j)));
        values[i] * above / below
    };
    (0..4).map(term).sum()
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
        let plan = Sumcheck::<Fr>::new(device, &expression)?;
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
