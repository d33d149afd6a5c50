//! Quotients of constraints against their definition.

use super::*;
use crate::{
    ConstraintQuotients, Constraints, Selector, Term,
    constraints::{ConstraintProgram, Program, constraint_slots},
};

/// Constraints with all that they may have. Of `shared` products, all later ones need each, so that as many are kept.
fn constraints<B: evariste_field::DevicePrimeField>(shared: u32) -> Constraints<B> {
    let mut all = Constraints::<B>::default();
    let [a, b, next] = [all.column(0), all.column(2), all.next(1)];
    let [five, public] = [all.constant(B::from(5u64)), all.public(1)];
    for selector in [Selector::FirstRow, Selector::LastRow, Selector::Transition] {
        let difference = all.sub(next, public);
        let selector = all.selector(selector);
        let product = all.mul(selector, difference);
        all.assert_zero(product);
    }
    // A column alone, and the same constraint twice.
    all.assert_zero(b);
    all.assert_zero(b);
    let mut kept: Vec<Term> = vec![all.neg(a)];
    for i in 0..shared {
        let sum = all.add(kept[kept.len() - 1], five);
        let product = if i % 2 == 0 { all.mul(sum, next) } else { all.mul(sum, sum) };
        kept.push(product);
    }
    for _ in 0..2 {
        let sum = kept.iter().copied().reduce(|a, b| all.add(a, b)).unwrap();
        let product = kept.iter().copied().reduce(|a, b| all.mul(a, b)).unwrap();
        let constraint = all.sub(product, sum);
        all.assert_zero(constraint);
        kept.reverse();
    }
    all
}

fn check<F: FriField>(shared: u32, [rows, columns]: [usize; 2], log_chunks: usize, devices: &[Device]) {
    let all = constraints::<F::BasePrimeField>(shared);
    let codeword = random::<F::BasePrimeField>((columns * rows) << log_chunks);
    let (public, alpha, shift) = (random::<F::BasePrimeField>(3), random::<F>(1)[0], F::BasePrimeField::GENERATOR);
    let expected = reference::constraint_quotients(&all, &codeword, [rows, log_chunks], &public, alpha, shift);
    for device in devices {
        let plan = ConstraintQuotients::<F>::new(device, rows.ilog2()).unwrap();
        let program = plan.program(&all).unwrap();
        assert_eq!(program.constraints(), all.len());
        let buffer = device.upload::<Mont<F::BasePrimeField>>(&codeword).unwrap();
        let matrix = Rows::new(&buffer, columns);
        // All rows, one and some at a time, if slots are not in workgroup memory: pieces that do not divide them.
        for words in [usize::MAX, 0, 3 * program.spilled()] {
            let mut plan = plan.on(&device.default_queue());
            plan.spilled_words = words;
            let found = plan.quotients(&program, &matrix, [rows, log_chunks], &public, alpha, shift).unwrap();
            let found: Vec<Vec<F>> = found.iter().map(|chunk| chunk.to_vec().unwrap()).collect();
            assert_eq!(found, expected, "{shared}, {rows} rows, {log_chunks}, {words}, {}", device.info().name);
            if program.spilled() == 0 {
                break;
            }
        }
    }
}

#[test]
fn quotients_of_constraints_are_those_of_the_definition() {
    let devices = devices();
    check::<BabyBear4>(3, [256, 4], 1, &devices);
    // More values at a time than workgroup memory has.
    check::<BabyBear4>(60, [8, 9], 0, &devices);
    check::<Goldilocks2>(20, [2, 40], 2, &devices);
    check::<KoalaBear5>(1, [1, 3], 1, &devices);
    check::<ark_bls12_381::Fr>(6, [4, 3], 0, &devices[..1]);
}

#[test]
fn wrong_arguments_are_refused() {
    type F = BabyBear4;
    let (device, all) = (Device::cpu(), constraints::<BabyBear>(1));
    let plan = ConstraintQuotients::<F>::new(&device, 3).unwrap();
    assert_eq!(plan.program(&Constraints::default()).err(), Some(Error::NoInput));
    let far: [fn(&mut Constraints<BabyBear>) -> Term; 3] =
        [|all| all.column(1 << 29), |all| all.next(u32::MAX), |all| all.public((1 << 29) - 4)];
    for far in far {
        let mut all = Constraints::default();
        let value = far(&mut all);
        all.assert_zero(value);
        let refused = plan.program(&all).err();
        assert!(matches!(refused, Some(Error::Device(DeviceError::TooLarge { .. }))), "{refused:?}");
    }
    let program: ConstraintProgram<F> = plan.program(&all).unwrap();
    let buffer = device.zeros::<Mont<BabyBear>>(8 * 6).unwrap();
    let public = [BabyBear::from(1); 2];
    let refused = |columns, shape, public: &[BabyBear], shift| {
        let matrix = Rows::new(&buffer, columns);
        plan.quotients(&program, &matrix, shape, public, F::from(3u64), shift).err()
    };
    let shift = BabyBear::GENERATOR;
    assert_eq!(refused(6, [8, 0], &public, shift), None);
    assert!(matches!(refused(3, [16, 0], &public, shift), Some(Error::TooLong { actual: 16, .. })));
    assert!(matches!(refused(6, [6, 0], &public, shift), Some(Error::Height { actual: 6, .. })));
    assert!(matches!(refused(6, [8, 40], &public, shift), Some(Error::Domain { actual: 43, .. })));
    assert!(matches!(refused(6, [8, 1], &public, shift), Some(Error::Proof { expected: 96, actual: 48, .. })));
    assert!(matches!(refused(2, [8, 0], &public, shift), Some(Error::Proof { expected: 3, actual: 2, .. })));
    assert!(matches!(refused(6, [8, 0], &public[1..], shift), Some(Error::Proof { expected: 2, actual: 1, .. })));
    for shift in [BabyBear::from(0), BabyBear::from(1)] {
        assert!(matches!(refused(6, [8, 0], &public, shift), Some(Error::Parameter { .. })));
    }
}

#[test]
#[should_panic(expected = "of other constraints")]
fn values_of_other_constraints_are_refused() {
    let (mut all, mut other) = (Constraints::<BabyBear>::default(), Constraints::<BabyBear>::default());
    let [_, value] = [0, 1].map(|i| other.column(i));
    let own = all.column(0);
    all.add(own, value);
}

#[test]
fn instructions_are_few_and_slots_are_used_again() {
    let slots = constraint_slots::<BabyBear4>() as usize;
    let all = constraints::<BabyBear>(40);
    let whole: Program = all.program(usize::MAX, usize::MAX);
    assert_eq!((whole.parts.len(), whole.slots > 40), (1, true));
    // One part spills less than two parts compute twice, unless a part must be short.
    let parts = all.program(slots, 60);
    assert!(parts.parts.len() > 1 && parts.parts.iter().all(|part| part.len() <= 200), "{:?}", parts.parts);
    // Sums that do not live on take two slots at most.
    let mut chain = Constraints::<BabyBear>::default();
    let columns: Vec<Term> = (0..100).map(|i| chain.column(i)).collect();
    for pair in columns.windows(2) {
        let sum = chain.add(pair[0], pair[1]);
        let square = chain.mul(sum, sum);
        chain.assert_zero(square);
    }
    let program = chain.program(slots, usize::MAX);
    assert_eq!((program.slots, program.instructions.len(), program.parts.len()), (1, 2 * 99, 1));
}
