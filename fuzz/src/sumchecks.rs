use arbitrary::Unstructured;
use ark_bls12_381::Fr;
use evariste_field::{DeviceField, Expression, small::BabyBear4};
use evariste_sumcheck::{Blake3Transcript, Order, Proof, Statement, Weight, reference};

use crate::choice;

/// Proofs of sums: true ones are accepted, and any bytes and shapes besides are refused.
///
/// # Panics
/// If a true proof is refused, or another one accepted whose bytes or claim differ.
pub fn sumchecks(data: &[u8]) {
    let mut input = Unstructured::new(data);
    match choice(input.arbitrary()) {
        true => check::<Fr>(&mut input),
        false => check::<BabyBear4>(&mut input),
    }
}

fn transcript() -> Blake3Transcript {
    Blake3Transcript::new(b"fuzz")
}

fn check<E: DeviceField>(input: &mut Unstructured<'_>) {
    let [a, b, c] = [0, 1, 2].map(Expression::column);
    let expressions = [a.clone(), &a * &b - &c, (&a + 3).pow(3) * &b - &c * 2, &(&a - &b).pow(2) - &c];
    let expression = choice(input.choose(&expressions));
    let num_vars = choice(input.int_in_range(1..=3_usize));
    let seed: u64 = choice(input.arbitrary());
    let element = |i: usize| E::from(seed.wrapping_mul(2 * i as u64 + 1) ^ (seed >> 9)).square() + E::from(i as u64);
    let weights = [Weight::None, Weight::Eq((0..num_vars).map(|i| element(1000 + i)).collect())];
    let order = if choice(input.arbitrary()) { Order::MsbFirst } else { Order::LsbFirst };
    let weight = choice(input.choose(&weights)).clone();
    let point = if let Weight::Eq(point) = &weight { Some(point.clone()) } else { None };
    let Ok(statement) = Statement::<E>::new(num_vars, expression) else {
        unreachable!("it has variables and a degree")
    };
    let statement = statement.weight(weight).order(order);
    let tables: Vec<Vec<E>> =
        (0..statement.tables()).map(|table| (0..1 << num_vars).map(|x| element(100 * table + x)).collect()).collect();
    let claim = reference::sum(&statement, &tables, point.as_deref());
    let rounds = choice(input.int_in_range(1..=num_vars));
    let (proof, _) = reference::prove(&statement, rounds, &tables, claim, &mut transcript());
    let sub = statement.verify_rounds(rounds, claim, &proof, &mut transcript());
    let Ok(sub) = sub else { panic!("a true proof is refused: {sub:?}") };

    let mut bytes = proof.to_bytes();
    for _ in 0..choice(input.int_in_range(0..=3_u8)) {
        let at = choice(input.int_in_range(0..=bytes.len()));
        match choice(input.int_in_range(0..=2_u8)) {
            0 if at < bytes.len() => bytes[at] = choice(input.arbitrary()),
            1 => bytes.insert(at, choice(input.arbitrary())),
            _ => bytes.truncate(at),
        }
    }
    let claimed = if choice(input.arbitrary()) { claim } else { claim + E::from(choice::<u8>(input.arbitrary())) };
    let changed = bytes != proof.to_bytes() || claimed != claim;
    if let Ok(read) = Proof::from_bytes(&statement, rounds, &bytes) {
        assert_eq!(read.to_bytes(), bytes);
        let outcome = statement.verify_rounds(rounds, claimed, &read, &mut transcript());
        // Of some rounds alone the sub-claim tells.
        let accepted = outcome.is_ok_and(|other| rounds == num_vars || other.value == sub.value);
        assert_eq!(accepted, !changed);
    } else {
        assert!(changed);
    }

    // Proofs of any shape.
    let mut row = || -> Vec<E> { (0..choice(input.int_in_range(0..=5))).map(element).collect() };
    let shaped = Proof { rounds: vec![row(), row()], values: row() };
    let outcome = statement.verify_rounds(rounds, claimed, &shaped, &mut transcript());
    let fits = shaped.rounds.len() == rounds && shaped.rounds.iter().all(|round| round.len() == statement.degree());
    assert!(outcome.is_err() || fits && rounds < num_vars);
}
