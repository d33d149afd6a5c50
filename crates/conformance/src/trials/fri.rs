//! Folds, quotients and commit phases of FRI.

mod queues;

use ark_ff::{AdditiveGroup, FftField, Field};
use evariste::backend::{Buffer, Device, Error as DeviceError, View};
use evariste::field::{
    DevicePrimeField, Mont,
    small::{BabyBear, BabyBear4, Goldilocks2},
};
use evariste::fri::{
    ConstraintQuotients, Constraints, Error, Fold, Fri, FriConfig, FriField, Opened, Quotients, Selector, reference,
    verify_query,
};
use evariste::hash::{DuplexSponge, Merkle, Poseidon2, Poseidon2Parameters, Rows};
use libtest_mimic::Failed;

use crate::{
    area::Area,
    devices::{garbage, other_device},
    expect::{expect, expect_equal, expect_error, expect_same},
    harness::{DeviceTrials, Outcome},
    launches::KernelGroup,
    loops::Divided,
    prepared::quietly,
    samples::samples,
    secrecy::{Operation, Probe},
};

/// The fields: one of four words, one whose prime field has words of 64 bits, and a prime field.
type F = BabyBear4;

pub(crate) const AREA: Area = Area {
    kernels: KERNELS,
    operations: OPERATIONS,
    ordered: queues::ORDERED,
    divided: DIVIDED,
    prepared: Some(prepared),
    plans: queues::PLANS,
    ..Area::new("fri", add)
};

fn add(trials: &mut DeviceTrials<'_>) {
    trials.add("fold::baby-bear-4", folds::<F>);
    trials.add("fold::goldilocks-2", folds::<Goldilocks2>);
    trials.add("fold::bls12-381-fr", folds::<ark_bls12_381::Fr>);
    trials.add("quotients", quotients);
    trials.add("constraints::baby-bear-4", constraints::<F>);
    trials.add("constraints::goldilocks-2", constraints::<Goldilocks2>);
    trials.add_alone("commit", commit);
    trials.add("misuse", misuse);
}

const KERNELS: &[KernelGroup] = &[
    KernelGroup {
        name: "fri-fold",
        cases: &["fold::"],
        kernels: |_| {
            Ok([Fold::<F>::kernels(), Fold::<Goldilocks2>::kernels(), Fold::<ark_bls12_381::Fr>::kernels()].concat())
        },
    },
    KernelGroup { name: "fri-quotients", cases: &["quotients"], kernels: |_| Ok(Quotients::<F>::kernels()) },
    KernelGroup {
        name: "fri-constraints",
        cases: &["constraints::"],
        kernels: |_| {
            let kernels = [ConstraintQuotients::<F>::kernels(), ConstraintQuotients::<Goldilocks2>::kernels()].concat();
            Ok(kernels.into_iter().filter(|spec| spec.name.starts_with("fri_")).collect())
        },
    },
];

fn parameters() -> Result<Poseidon2Parameters<BabyBear>, Failed> {
    Ok(Poseidon2Parameters::plonky3(16)?)
}

fn merkle(device: &Device) -> Result<Merkle<BabyBear>, Failed> {
    Ok(Merkle::new(Poseidon2::new(device, parameters()?)?))
}

const CONFIG: FriConfig = FriConfig { log_blowup: 1, log_final_len: 1, max_log_arity: 2, log_cap: 1 };

/// By every arity, with something added and without, by one workgroup and by several.
fn folds<F: FriField>(device: &Device) -> Outcome {
    let (shift, beta, factor) = (F::BasePrimeField::GENERATOR, F::from(77u8).inverse().ok_or("1 / 77")?, F::from(5u8));
    let fold = Fold::<F>::new(device, 12)?;
    for log_len in [4, 12] {
        let values = samples::<F>(1 << log_len, 1);
        let data = device.upload::<Mont<F>>(&values)?;
        for log_arity in 1..=4 {
            let expected = reference::fold(&values, log_arity, beta, shift);
            let mut out = garbage(device, expected.len())?;
            fold.fold(&data, beta, shift, &mut out)?;
            expect_same(&format!("2^{log_len} by 2^{log_arity}"), &out.to_vec()?, &expected)?;
            let sums: Vec<F> = expected.iter().zip(&values[1..]).map(|(x, y)| *x + factor * y).collect();
            fold.fold_and_add(&data, beta, shift, (data.view(1..1 + sums.len())?, factor), &mut out)?;
            expect_same(&format!("2^{log_len} by 2^{log_arity}, added to"), &out.to_vec()?, &sums)?;
        }
    }
    Ok(())
}

/// Values of polynomials, whose evaluations several threads sum up, or one.
fn values(device: &Device) -> Outcome {
    let (z, shift) = (samples::<F>(64, 2)[63], BabyBear::GENERATOR);
    let plan = Quotients::<F>::new(device, 7)?;
    for (log_height, columns) in [(7u32, 3), (3, 300)] {
        let coefficients = samples::<BabyBear>(columns << log_height, 9);
        let columns_of: Vec<&[BabyBear]> = coefficients.chunks(1 << log_height).collect();
        let points = reference::points(log_height, shift);
        let rows: Vec<BabyBear> =
            points.iter().flat_map(|x| columns_of.iter().map(|p| reference::evaluate(p, *x))).collect();
        let lifted = |p: &&[BabyBear]| p.iter().map(|x| F::from_base_prime_field(*x)).collect::<Vec<_>>();
        let expected: Vec<F> = columns_of.iter().map(|p| reference::evaluate(&lifted(p), z)).collect();
        let data = device.upload::<Mont<BabyBear>>(&rows)?;
        let found = plan.evaluate(&Rows::new(&data, columns), &[z], shift)?;
        expect_same(&format!("values of {columns} polynomials"), &found[0], &expected)?;
    }
    Ok(())
}

/// Matrices of two heights, one of them opened at two points. Then values at points.
fn quotients(device: &Device) -> Outcome {
    let (alpha, shift) = (samples::<F>(64, 2)[63], BabyBear::GENERATOR);
    let points = |columns: usize, count: usize| -> Vec<(F, Vec<F>)> {
        (0..count).map(|i| (samples::<F>(70 + i, 3)[69 + i], samples(columns, i as u64))).collect()
    };
    let shapes = [(2048, 3, points(3, 2)), (64, 5, points(5, 1))];
    let matrices = shapes.each_ref().map(|(height, columns, _)| samples::<BabyBear>(height * columns, 4));
    let expected = shapes.iter().zip(&matrices).map(|((height, columns, points), matrix)| {
        let mut sums = vec![F::ZERO; *height];
        for (number, (z, values)) in points.iter().enumerate() {
            let quotients = reference::quotients(matrix, values, *z, alpha, shift);
            let weight = alpha.pow([(number * columns) as u64]);
            sums.iter_mut().zip(quotients).for_each(|(sum, quotient)| *sum += weight * quotient);
        }
        sums
    });
    let buffers =
        matrices.iter().map(|matrix| device.upload::<Mont<BabyBear>>(matrix)).collect::<Result<Vec<_>, _>>()?;
    let opened: Vec<_> = buffers
        .iter()
        .zip(&shapes)
        .map(|(buffer, (_, columns, points))| Opened { matrix: Rows::new(buffer, *columns), points })
        .collect();
    let sums = Quotients::<F>::new(device, 11)?.quotients(&opened, alpha, shift)?;
    for ((sum, expected), (height, ..)) in sums.iter().zip(expected).zip(&shapes) {
        expect_same(&format!("quotients of {height} rows"), &sum.to_vec()?, &expected)?;
    }
    values(device)
}

/// Constraints with every selector on `columns` columns, of which later ones need all products of a chain.
fn chain<B: DevicePrimeField>(columns: u32, products: u32) -> Constraints<B> {
    let mut all = Constraints::default();
    let [public, five] = [all.public(0), all.constant(B::from(5u64))];
    for (i, selector) in [Selector::FirstRow, Selector::LastRow, Selector::Transition].into_iter().enumerate() {
        let (value, selector) = (all.next(i as u32 % columns), all.selector(selector));
        let difference = all.sub(value, public);
        let constraint = all.mul(selector, difference);
        all.assert_zero(constraint);
    }
    let mut kept = vec![all.column(columns - 1)];
    for i in 0..products {
        let column = all.column(i % columns);
        let sum = all.add(kept[kept.len() - 1], five);
        kept.push(all.mul(sum, column));
    }
    for _ in 0..2 {
        let first = all.neg(kept[0]);
        let sum = kept[1..].iter().fold(first, |sum, term| all.add(sum, *term));
        all.assert_zero(sum);
        kept.reverse();
    }
    all
}

/// Traces of several workgroups and of one, wide ones and narrow ones, and more values at a time than slots.
fn constraints<F: FriField>(device: &Device) -> Outcome {
    let (alpha, shift) = (samples::<F>(64, 2)[63], F::BasePrimeField::GENERATOR);
    let public = samples::<F::BasePrimeField>(66, 3)[65..].to_vec();
    let plan = ConstraintQuotients::<F>::new(device, 8)?;
    for (rows, columns, products, log_chunks) in [(256, 3, 4, 1), (8, 12, 50, 0)] {
        let all = chain::<F::BasePrimeField>(columns as u32, products);
        let codeword = samples::<F::BasePrimeField>((rows * columns) << log_chunks, 4);
        let expected = reference::constraint_quotients(&all, &codeword, [rows, log_chunks], &public, alpha, shift);
        let data = device.upload::<Mont<F::BasePrimeField>>(&codeword)?;
        let program = plan.program(&all)?;
        let chunks = plan.quotients(&program, &Rows::new(&data, columns), [rows, log_chunks], &public, alpha, shift)?;
        for (chunk, expected) in chunks.iter().zip(expected) {
            expect_same(&format!("quotients of {rows} rows"), &chunk.to_vec()?, &expected)?;
        }
    }
    Ok(())
}

/// Evaluations of a polynomial of half as many coefficients.
fn codeword(log_len: u32, shift: BabyBear) -> Vec<F> {
    let coefficients = samples::<F>(1 << (log_len - 1), 6);
    let points = reference::points(log_len, shift);
    points.into_iter().map(|x| reference::evaluate(&coefficients, F::from_base_prime_field(x))).collect()
}

fn commit(device: &Device) -> Outcome {
    let (shift, log_lens) = (BabyBear::GENERATOR, [7, 4]);
    let codewords = [codeword(7, shift), codeword(4, shift.pow([8]))];
    let buffers = codewords.iter().map(|values| device.upload::<Mont<F>>(values)).collect::<Result<Vec<_>, _>>()?;
    let inputs: Vec<View<'_, _>> = buffers.iter().map(Buffer::as_view).collect();
    let fri = Fri::<F>::new(merkle(device)?, 7, CONFIG)?;
    let (mut transcript, mut betas) = (DuplexSponge::new(parameters()?), Vec::new());
    let committed = fri.commit(&inputs, shift, |cap| -> Result<F, Error> {
        transcript.observe(cap);
        transcript.grind(fri.merkle().poseidon2(), 4)?;
        let beta = transcript.draw_extension();
        betas.push(beta);
        Ok(beta)
    })?;
    let (before, indices) = (device.stats().reads, [0, 127, 50]);
    let opened = fri.open(&committed, inputs[0], &indices)?;
    expect_equal("reads of several queries", &(device.stats().reads - before), &(betas.len() as u64))?;
    let rounds: Vec<_> = committed.rounds().iter().map(|round| round.cap()).zip(betas).collect();
    for (index, steps) in indices.into_iter().zip(&opened) {
        let place = |log_len: u32| index >> (7 - log_len);
        let values: Vec<_> =
            log_lens.iter().zip(&codewords).map(|(log_len, values)| (*log_len, values[place(*log_len)])).collect();
        let polynomial = committed.final_polynomial();
        verify_query(&parameters()?, &CONFIG, shift, &rounds, polynomial, index, &values, steps)?;
        let mut other = polynomial.to_vec();
        other[1] += F::ONE;
        let error = verify_query(&parameters()?, &CONFIG, shift, &rounds, &other, index, &values, steps);
        expect_equal("another polynomial", &error, &Err(Error::OtherPolynomial { index }))?;
    }
    Ok(())
}

fn misuse(device: &Device) -> Outcome {
    let fold = Fold::<F>::new(device, 5)?;
    let values = samples::<F>(64, 1);
    let (data, mut out) = (device.upload::<Mont<F>>(&values)?, device.upload::<Mont<F>>(&values)?);
    let (beta, one) = (F::from(3u8), BabyBear::ONE);
    let error = expect_error("too many values", fold.fold(&data, beta, one, out.view_mut(..32)?))?;
    expect("too many values are refused", matches!(error, Error::TooLong { expected: 32, actual: 64, .. }))?;
    let error = expect_error("24 values", fold.fold(data.view(..24)?, beta, one, out.view_mut(..12)?))?;
    expect("24 values are refused", matches!(error, Error::Height { actual: 24, .. }))?;
    let error = expect_error("a fold by 32", fold.fold(data.view(..32)?, beta, one, out.view_mut(..1)?))?;
    expect_equal("a fold by 32", &error, &Error::Arity { values: 32, folded: 1 })?;
    if let Some(other) = other_device(device) {
        let there = other.upload::<Mont<F>>(&values[..32])?;
        let error = expect_error("another device", fold.fold(&there, beta, one, out.view_mut(..16)?))?;
        expect("another device is refused", matches!(error, Error::Device(DeviceError::WrongDevice { .. })))?;
    }
    expect_same("the output of refused folds", &out.to_vec()?, &values)
}

/// An operand of values of its own: what is secret in one is public in no other. Without edge values.
fn operand<F: FriField>(p: &Probe, seed: u64, len: usize) -> Result<Buffer<Mont<F>>, Failed> {
    p.operand::<Mont<F>>(&samples::<F>(len + 64, 1000 * u64::from(p.run()) + seed)[64..])
}

const OPERATIONS: &[Operation] = &[
    Operation::new("fri_fold", 3, |p| {
        let fold = Fold::<F>::new(&p.device, 10)?;
        let (values, added) = (operand::<F>(p, 31, 1 << 10)?, operand::<F>(p, 32, 1 << 9)?);
        let mut out = p.output_of::<Mont<F>>(1 << 9)?;
        let (beta, shift) = (F::from(9u8), BabyBear::GENERATOR);
        p.watch(|| fold.fold_and_add(&values, beta, shift, (&added, beta), &mut out))
    }),
    Operation::new("fri_quotients", 2, |p| {
        let plan = Quotients::<F>::new(&p.device, 8)?;
        let (a, b) = (operand::<BabyBear>(p, 33, 3 << 8)?, operand::<BabyBear>(p, 34, 2 << 6)?);
        let z = samples::<F>(70, 7)[69];
        let points = [3, 2].map(|columns| [(z, samples::<F>(columns, 8))]);
        let matrices = [(Rows::new(&a, 3), &points[0]), (Rows::new(&b, 2), &points[1])];
        let opened = matrices.map(|(matrix, points)| Opened { matrix, points });
        p.watch(|| plan.quotients(&opened, z, BabyBear::GENERATOR))
    }),
    Operation::new("fri_evaluate", 1, |p| {
        let plan = Quotients::<F>::new(&p.device, 8)?;
        let matrix = operand::<BabyBear>(p, 36, 3 << 8)?;
        let points = [samples::<F>(70, 7)[69]];
        p.watch(|| plan.evaluate(&Rows::new(&matrix, 3), &points, BabyBear::GENERATOR))
    }),
    Operation::new("fri_constraints", 1, |p| {
        let plan = ConstraintQuotients::<F>::new(&p.device, 8)?;
        let program = plan.program(&chain::<BabyBear>(12, 3))?;
        let codeword = operand::<BabyBear>(p, 37, 12 << 8)?;
        let (alpha, public) = (samples::<F>(70, 7)[69], [BabyBear::from(7u8)]);
        let matrix = Rows::new(&codeword, 12);
        p.watch(|| plan.quotients(&program, &matrix, [256, 0], &public, alpha, BabyBear::GENERATOR))
    }),
    Operation::new("fri_commit", 1, |p| {
        let fri = Fri::<F>::new(merkle(&p.device)?, 8, CONFIG)?;
        let values = operand::<F>(p, 35, 1 << 8)?;
        let inputs = [values.as_view()];
        p.watch(|| fri.commit(&inputs, BabyBear::ONE, |_| Ok::<_, Error>(F::from(5u8))))
    }),
];

/// Wide matrices, on devices that end loops early.
const DIVIDED: &[Divided] = &[DIVIDED_QUOTIENTS, ("fri_constraints", 4600, constraints::<F>)];

const DIVIDED_QUOTIENTS: Divided = ("fri_quotients", 3500, |device| {
    let (columns, height) = (300, 4);
    let matrix = samples::<BabyBear>(columns * height, 5);
    let points = [(samples::<F>(70, 7)[69], samples::<F>(columns, 8))];
    let (alpha, shift) = (samples::<F>(64, 2)[63], BabyBear::GENERATOR);
    let expected = reference::quotients(&matrix, &points[0].1, points[0].0, alpha, shift);
    let data = device.upload::<Mont<BabyBear>>(&matrix)?;
    let opened = [Opened { matrix: Rows::new(&data, columns), points: &points }];
    let sums = Quotients::<F>::new(device, 2)?.quotients(&opened, alpha, shift)?;
    expect_same("quotients", &sums[0].to_vec()?, &expected)
});

fn prepared(device: &Device) -> Outcome {
    let (fold, plan) = (Fold::<F>::new(device, 4)?, Quotients::<F>::new(device, 4)?);
    let constraints = ConstraintQuotients::<F>::new(device, 4)?;
    fold.prepare()?;
    plan.prepare()?;
    constraints.prepare()?;
    let program = constraints.program(&chain(12, 3))?;
    let (data, mut out) = (device.zeros::<Mont<F>>(16)?, device.zeros::<Mont<F>>(4)?);
    let matrix = device.zeros::<Mont<BabyBear>>(16)?;
    let wide = device.zeros::<Mont<BabyBear>>(12 * 16)?;
    let points = [(samples::<F>(70, 7)[69], vec![F::ZERO])];
    let opened = [Opened { matrix: Rows::new(&matrix, 1), points: &points }];
    quietly(device, "what prepared folds and quotients compile", || {
        fold.fold(&data, F::ONE, BabyBear::ONE, &mut out)?;
        plan.quotients(&opened, F::ONE, BabyBear::ONE)?;
        plan.evaluate(&opened[0].matrix, &[points[0].0], BabyBear::ONE)?;
        let rows = Rows::new(&wide, 12);
        constraints.quotients(&program, &rows, [16, 0], &[BabyBear::ONE], F::ONE, BabyBear::GENERATOR)?;
        Ok(())
    })
}
