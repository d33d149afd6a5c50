//! Sumchecks: proofs compared byte by byte with those of the definition.

mod freed;
mod prepared;
mod queues;
mod secrets;

use std::{collections::HashSet, sync::Arc};

use ark_bls12_381::Fr;
use ark_ff::{AdditiveGroup, Field};
use ark_std::rand::{SeedableRng, rngs::StdRng};
use evariste::backend::{Buffer, Device, Error as DeviceError, Secrecy};
use evariste::field::{
    DeviceField, Expression, Mont,
    small::{BabyBear, BabyBear4, Goldilocks, Goldilocks2},
};
use evariste::sumcheck::{
    Blake3Transcript, Challenge, Error, Mle, Order, Refused, Statement, Strategy, Sumcheck, SumcheckConfig, Weight,
    reference,
};

use crate::{
    area::Area,
    devices::{is_emulated, other_device},
    expect::{expect, expect_equal, expect_same},
    fields::EVERY_FIELD,
    harness::{DeviceTrials, Outcome},
    launches::{Exception, KernelGroup, Launched},
    recorder::Recorder,
    sizes::is_few,
};

pub(crate) const AREA: Area = Area {
    kernels: KERNELS,
    // One workgroup draws the last challenge, and does the last rounds, so that few pairs are never a round's.
    exceptions: &[
        Exception::new("sumcheck_finish", "", Launched::ByOne),
        Exception::new("sumcheck_tail", "", Launched::ByOne),
        Exception::new("sumcheck_round", "", Launched::BySeveral),
    ],
    operations: secrets::OPERATIONS,
    freed: freed::FREED,
    without_operation: &[("sumcheck_outer", "it has no input but a point")],
    ordered: queues::ORDERED,
    prepared: Some(prepared::sumchecks),
    plans: queues::PLANS,
    ..Area::new("sumcheck", add)
};

fn add(trials: &mut DeviceTrials<'_>) {
    over::<Fr, Fr>(trials, "bls12-381-fr");
    over::<BabyBear4, BabyBear>(trials, "baby-bear-4");
    trials.add("strategies", strategies::<BabyBear4, BabyBear>);
    if EVERY_FIELD {
        over::<Goldilocks2, Goldilocks>(trials, "goldilocks-2");
        trials.add("bls12-381-fr::strategies", strategies::<Fr, Fr>);
    }
    // Tables of a small field, and of the field of challenges.
    trials.add("many_tables", many_tables::<BabyBear4, BabyBear>);
    trials.add("misuse", misuse::<BabyBear4, BabyBear>);
    trials.add("kernels_are_listed", kernels_are_listed::<BabyBear4, BabyBear>);
    if EVERY_FIELD || !is_emulated(trials.device) {
        trials.add("many_tables::bls12-381-fr", many_tables::<Fr, Fr>);
        trials.add("misuse::bls12-381-fr", misuse::<Fr, Fr>);
        trials.add("kernels_are_listed::bls12-381-fr", kernels_are_listed::<Fr, Fr>);
    }
    trials.add("long_messages", long_messages);
    trials.add("from_host", from_host);
    trials.add("small_challenges", small_challenges);
    trials.add("many_products", many_products);
    trials.add_alone("no_host_copies_and_few_launches", counted);
}

const KERNELS: &[KernelGroup] = &[
    KernelGroup {
        name: "sumcheck-long",
        cases: &["bls12-381-fr::"],
        kernels: |_| Ok(Sumcheck::<Fr>::kernels(&gate())),
    },
    KernelGroup {
        name: "sumcheck-short",
        cases: &["baby-bear-4::"],
        kernels: |_| Ok(Sumcheck::<BabyBear4, BabyBear>::kernels(&gate())),
    },
];

fn over<E: DeviceField, T: DeviceField>(trials: &mut DeviceTrials<'_>, field: &str) {
    trials.add(&format!("{field}::proofs"), proofs::<E, T>);
    trials.add(&format!("{field}::tables"), tables::<E, T>);
}

/// a · b − c.
fn gate() -> Expression {
    let [a, b, c] = [0, 1, 2].map(Expression::column);
    a * b - c
}

fn random<F: Field>(len: usize, seed: u64) -> Vec<F> {
    let mut rng = StdRng::seed_from_u64(seed);
    (0..len).map(|_| F::rand(&mut rng)).collect()
}

fn lifted<E: DeviceField, T: DeviceField>(table: &[T]) -> Vec<E> {
    let lift = |x: &T| {
        let mut limbs = vec![0; E::LIMBS];
        x.store(&mut limbs);
        E::load(&limbs)
    };
    table.iter().map(lift).collect()
}

fn upload<F: DeviceField>(
    device: &Device,
    tables: &[Vec<F>],
) -> Result<Vec<Buffer<Mont<F>>>, evariste::backend::Error> {
    tables.iter().map(|table| device.upload_with::<Mont<F>>(table, Secrecy::Secret)).collect()
}

/// Tables in host memory that would take 123 kB: two rounds from the host, and four.
fn from_host(device: &Device) -> Outcome {
    let num_vars = 11;
    let tables = satisfied::<BabyBear>(num_vars);
    let slices: Vec<&[BabyBear]> = tables.iter().map(Vec::as_slice).collect();
    let plan = Sumcheck::<BabyBear4, BabyBear>::new(device, &gate())?;
    let transcript = || Blake3Transcript::new(b"from the host");
    for (order, bytes) in [(Order::MsbFirst, 60_000), (Order::LsbFirst, 60_000), (Order::MsbFirst, 17_000)] {
        let statement = Statement::<BabyBear4>::new(num_vars, &gate())?.weight(Weight::ZeroCheck).order(order);
        let claim = BabyBear4::ZERO;
        let lifted: Vec<Vec<BabyBear4>> = tables.iter().map(|table| lifted(table)).collect();
        let (expected, _) = reference::prove(&statement, num_vars, &lifted, claim, &mut transcript());
        let proved = plan.prove_host(&statement, &slices, bytes, Secrecy::Secret, claim, &mut transcript())?;
        expect_equal(&format!("the proof, {order:?}, {bytes} bytes"), &proved.proof, &expected)?;
        expect_equal("the sub-claim", &statement.verify(claim, &expected, &mut transcript())?.point, &proved.point)?;
    }
    Ok(())
}

/// Tables of a · b − c, which is 0 everywhere.
fn satisfied<F: Field>(num_vars: usize) -> Vec<Vec<F>> {
    let (a, b) = (random::<F>(1 << num_vars, 1), random::<F>(1 << num_vars, 2));
    let c = a.iter().zip(&b).map(|(a, b)| *a * b).collect();
    vec![a, b, c]
}

fn transcript() -> Blake3Transcript {
    Blake3Transcript::new(b"conformance")
}

/// Both orders, all weights, with tables that stay and tables that do not.
fn proofs<E: DeviceField, T: DeviceField>(device: &Device) -> Outcome {
    let plan = Sumcheck::<E, T>::new(device, &gate())?;
    // Emulated GPUs take minutes to compile all kernels over a long field: each order and weight once, all with each
    // other over a short one.
    let halved = is_emulated(device) && !EVERY_FIELD && E::LIMBS > 4;
    // The third of 12 rounds is the last one that has a launch of its own.
    let most = if is_few(device) { 12 } else { 10 };
    for num_vars in [1, 2, 4, most] {
        let tables = satisfied::<T>(num_vars);
        let definition: Vec<Vec<E>> = tables.iter().map(|table| lifted(table)).collect();
        let buffers = upload(device, &tables)?;
        let given: Vec<_> = buffers.iter().collect();
        for order in [Order::MsbFirst, Order::LsbFirst] {
            for weight in [Weight::None, Weight::Eq(random(num_vars, 3)), Weight::ZeroCheck] {
                if halved && (order == Order::MsbFirst) != (weight == Weight::ZeroCheck) {
                    continue;
                }
                let statement = Statement::<E>::new(num_vars, &gate())?.order(order).weight(weight.clone());
                let context = format!("{num_vars} variables, {order:?}, {weight:?}");
                let claim = E::ZERO;
                let (expected, _) = reference::prove(&statement, num_vars, &definition, claim, &mut transcript());
                let proved = plan.prove(&statement, &given, claim, &mut transcript())?;
                expect_same(&context, &proved.proof.to_bytes(), &expected.to_bytes())?;
                let owned = upload(device, &tables)?;
                let consumed = plan.prove_consuming(&statement, owned, claim, &mut transcript())?;
                expect_same(&format!("{context}, consumed"), &consumed.proof.to_bytes(), &expected.to_bytes())?;
                let sub = statement.verify(claim, &proved.proof, &mut transcript())?;
                expect_same(&context, &sub.point, &proved.point)?;
                if weight != Weight::ZeroCheck {
                    expect_equal("a sum", &plan.sum(&statement, &given)?, &claim)?;
                }
            }
        }
        for (buffer, table) in buffers.iter().zip(&tables) {
            expect_same("a table that stays", &buffer.to_vec()?, table)?;
        }
    }
    Ok(())
}

fn tables<E: DeviceField, T: DeviceField>(device: &Device) -> Outcome {
    let operations = Mle::<E, T>::new(device);
    for num_vars in [1, 2, 10, 14] {
        let (point, table) = (random::<E>(num_vars, 4), random::<T>(1 << num_vars, 5));
        let buffer = device.upload::<Mont<T>>(&table)?;
        for order in [Order::MsbFirst, Order::LsbFirst] {
            let folded = operations.bind(&buffer, point[0], order)?;
            let expected = reference::bind(&lifted(&table), point[0], order);
            expect_same("a folded table", &folded.to_vec()?, &expected)?;
            let twice = Mle::<E>::new(device).bind(&device.upload::<Mont<E>>(&lifted(&table))?, point[0], order)?;
            expect_same("a folded table of the field of challenges", &twice.to_vec()?, &expected)?;
        }
        let eq = operations.eq(&point)?.to_vec()?;
        if num_vars <= 10 {
            expect_same("eq", &eq, &reference::eq(&point))?;
        }
        expect_equal("the sum of eq", &eq.iter().sum::<E>(), &E::ONE)?;
    }
    Ok(())
}

/// Every strategy gives the same proof, wherever challenges are drawn.
fn strategies<E: DeviceField, T: DeviceField>(device: &Device) -> Outcome {
    let tables = satisfied::<T>(5);
    let definition: Vec<Vec<E>> = tables.iter().map(|table| lifted(table)).collect();
    let buffers = upload(device, &tables)?;
    let given: Vec<_> = buffers.iter().collect();
    let statement = Statement::<E>::new(5, &gate())?.weight(Weight::ZeroCheck);
    let (expected, _) = reference::prove(&statement, 5, &definition, E::ZERO, &mut transcript());
    for strategy in [Strategy::Textbook, Strategy::FromClaim, Strategy::SplitEq, Strategy::ZeroCheck] {
        let config = SumcheckConfig::default().strategy(strategy).challenge(Challenge::Host).check(true);
        let plan = Sumcheck::<E, T>::with_config(device, &gate(), config)?;
        let proved = plan.prove(&statement, &given, E::ZERO, &mut transcript())?;
        expect_same(&format!("{strategy:?}"), &proved.proof.to_bytes(), &expected.to_bytes())?;
        let wrong = plan.prove(&statement, &given, E::ONE, &mut transcript()).err();
        expect_equal("a claim that no zero-check has", &wrong, &Some(Error::ZeroCheckClaim))?;
        // a · b − a is not 0 everywhere.
        let wrong = plan.prove(&statement, &[given[0], given[1], given[0]], E::ZERO, &mut transcript()).err();
        expect_equal("a false claim", &wrong, &Some(Error::FalseClaim))?;
    }
    Ok(())
}

/// More tables than WebGPU binds, and a high degree.
fn many_tables<E: DeviceField, T: DeviceField>(device: &Device) -> Outcome {
    let x: Vec<Expression> = (0..9u32).map(Expression::column).collect();
    let many = x[..5].iter().cloned().product::<Expression>() - (&x[5] + 3) * &x[6] - x[7].pow(2) + &x[8];
    let tables: Vec<Vec<T>> = (0..9).map(|seed| random(8, seed)).collect();
    let definition: Vec<Vec<E>> = tables.iter().map(|table| lifted(table)).collect();
    let buffers = upload(device, &tables)?;
    let point = random(3, 20);
    let statement = Statement::<E>::new(3, &many)?.weight(Weight::Eq(point.clone()));
    let claim = reference::sum(&statement, &definition, Some(&point));
    let (expected, _) = reference::prove(&statement, 3, &definition, claim, &mut transcript());
    let plan = Sumcheck::<E, T>::new(device, &many)?;
    let proved = plan.prove(&statement, &buffers.iter().collect::<Vec<_>>(), claim, &mut transcript())?;
    expect_same("a proof about nine tables", &proved.proof.to_bytes(), &expected.to_bytes())
}

/// Challenges of a field that is too small are refused unless they are asked for.
fn small_challenges(device: &Device) -> Outcome {
    let tables = satisfied::<Goldilocks>(3);
    let buffers = upload(device, &tables)?;
    let given: Vec<_> = buffers.iter().collect();
    let plan = Sumcheck::<Goldilocks>::new(device, &gate())?;
    let statement = Statement::<Goldilocks>::new(3, &gate())?;
    let refused = plan.prove(&statement, &given, Goldilocks::ZERO, &mut transcript()).err();
    expect_equal("refused", &refused, &Some(Error::SmallChallenges { expected: 100, actual: 61 }))?;
    let allowed = statement.clone().allow_small_challenges();
    let proved = plan.prove(&allowed, &given, Goldilocks::ZERO, &mut transcript())?;
    let (expected, _) = reference::prove(&allowed, 3, &tables, Goldilocks::ZERO, &mut transcript());
    expect_same("the proof", &proved.proof.to_bytes(), &expected.to_bytes())?;
    let refused = statement.verify(Goldilocks::ZERO, &proved.proof, &mut transcript());
    expect_equal("refused", &refused.err(), &Some(Refused::SmallChallenges { expected: 100, actual: 61 }))?;
    expect_same("the point", &allowed.verify(Goldilocks::ZERO, &proved.proof, &mut transcript())?.point, &proved.point)
}

/// Degree 6, with enough products for a text to have them once for all points.
fn many_products(device: &Device) -> Outcome {
    let product = |i: u32| (0..6).map(|j| Expression::column((i * j + i) % 4) + i64::from(i)).product::<Expression>();
    let many: Expression = (0..4).map(product).sum();
    let tables: Vec<Vec<Goldilocks>> = (0..4).map(|seed| random(32, seed)).collect();
    let lifted: Vec<Vec<Goldilocks2>> = tables.iter().map(|table| lifted(table)).collect();
    let buffers = upload(device, &tables)?;
    let given: Vec<_> = buffers.iter().collect();
    let plan = Sumcheck::<Goldilocks2, Goldilocks>::new(device, &many)?;
    for (order, weight) in [(Order::MsbFirst, Weight::None), (Order::LsbFirst, Weight::Eq(random(5, 21)))] {
        let point = if let Weight::Eq(point) = &weight { Some(point.clone()) } else { None };
        let statement = Statement::<Goldilocks2>::new(5, &many)?.order(order).weight(weight);
        let claim = reference::sum(&statement, &lifted, point.as_deref());
        let (expected, _) = reference::prove(&statement, 5, &lifted, claim, &mut transcript());
        expect_equal("the sum", &plan.sum(&statement, &given)?, &claim)?;
        let proved = plan.prove(&statement, &given, claim, &mut transcript())?;
        expect_same(&format!("a proof, {order:?}"), &proved.proof.to_bytes(), &expected.to_bytes())?;
    }
    Ok(())
}

/// What proofs and sums launch is what is compiled ahead.
fn kernels_are_listed<E: DeviceField, T: DeviceField>(device: &Device) -> Outcome {
    let recorder = Recorder::plain(device);
    let device = &Device::unregistered(Arc::clone(&recorder) as _);
    let tables = satisfied::<T>(12);
    let buffers = upload(device, &tables)?;
    let given: Vec<_> = buffers.iter().collect();
    let plan = Sumcheck::<E, T>::new(device, &gate())?;
    for order in [Order::MsbFirst, Order::LsbFirst] {
        for weight in [Weight::None, Weight::Eq(random(12, 3)), Weight::ZeroCheck] {
            let statement = Statement::<E>::new(12, &gate())?.order(order).weight(weight.clone());
            plan.prove(&statement, &given, E::ZERO, &mut transcript())?;
            plan.prove_consuming(&statement, upload(device, &tables)?, E::ZERO, &mut transcript())?;
            if weight != Weight::ZeroCheck {
                plan.sum(&statement, &given)?;
            }
        }
    }
    let listed: HashSet<_> =
        Sumcheck::<E, T>::kernels(&gate()).into_iter().map(|spec| (spec.name, spec.variant)).collect();
    let missing: Vec<_> = recorder.all_launched().into_iter().filter(|kernel| !listed.contains(kernel)).collect();
    expect_equal("kernels that are not listed", &missing, &vec![])
}

/// A message of 1,024 bytes behind its length, which is hashed in two pieces.
fn long_messages(device: &Device) -> Outcome {
    let power = Expression::column(0).pow(32);
    let table = random::<Fr>(2, 1);
    let statement = Statement::<Fr>::new(1, &power)?;
    let claim = reference::sum(&statement, std::slice::from_ref(&table), None);
    let (expected, _) = reference::prove(&statement, 1, std::slice::from_ref(&table), claim, &mut transcript());
    let plan = Sumcheck::<Fr>::new(device, &power)?;
    let proved = plan.prove(&statement, &[&device.upload::<Mont<Fr>>(&table)?], claim, &mut transcript())?;
    expect_same("the proof", &proved.proof.to_bytes(), &expected.to_bytes())
}

/// One read in a whole proof, and few launches.
fn counted(device: &Device) -> Outcome {
    const NUM_VARS: usize = 10;
    let buffers = upload(device, &satisfied::<BabyBear>(NUM_VARS))?;
    let given: Vec<_> = buffers.iter().collect();
    let statement = Statement::<BabyBear4>::new(NUM_VARS, &gate())?.weight(Weight::ZeroCheck);
    let plan = Sumcheck::<BabyBear4, BabyBear>::new(device, &gate())?;
    let before = device.stats();
    plan.prove(&statement, &given, BabyBear4::ZERO, &mut transcript())?;
    let after = device.stats();
    expect_equal("reads", &(after.reads - before.reads), &1)?;
    expect("at most n + 4 launches", after.launches - before.launches <= NUM_VARS as u64 + 4)
}

fn misuse<E: DeviceField, T: DeviceField>(device: &Device) -> Outcome {
    let plan = Sumcheck::<E, T>::new(device, &gate())?;
    let statement = Statement::<E>::new(2, &gate())?;
    let tables = satisfied::<T>(2);
    let buffers = upload(device, &tables)?;
    let given: Vec<_> = buffers.iter().collect();
    let prove = |statement: &Statement<E>, tables: &[&Buffer<Mont<T>>]| {
        plan.prove(statement, tables, E::ZERO, &mut transcript()).err()
    };
    let missing = Error::Device(DeviceError::length("the tables of a statement", 3, 2));
    expect_equal("a missing table", &prove(&statement, &given[..2]), &Some(missing))?;
    let short = device.zeros::<Mont<T>>(3)?;
    let unequal = Error::Device(DeviceError::length("the elements of a table", 4, 3));
    expect_equal("a short table", &prove(&statement, &[given[0], given[1], &short]), &Some(unequal))?;
    let other = Statement::<E>::new(2, &Expression::column(0))?;
    expect_equal("another expression", &prove(&other, &given), &Some(Error::OtherExpression))?;
    let none = Error::Variables { expected: 31, actual: 0 };
    expect_equal("no variables", &Statement::<E>::new(0, &gate()).err(), &Some(none))?;
    if let Some(other) = other_device(device) {
        let foreign = other.upload::<Mont<T>>(&tables[0])?;
        let outcome = prove(&statement, &[given[0], given[1], &foreign]);
        expect("a table of another device is refused", matches!(outcome, Some(Error::Device(_))))?;
    }
    Ok(())
}
