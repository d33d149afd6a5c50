//! The definition, naively, on the host.

use ark_ff::Field;
use evariste_field::DeviceField;

use crate::{
    polynomial,
    proof::Proof,
    statement::{Order, Statement},
    transcript::{Transcript, bytes_of},
};

/// Computes eq(p, x) for all x ∈ {0, 1}ⁿ.
pub fn eq<E: Field>(point: &[E]) -> Vec<E> {
    let factor = |x: usize| move |(j, p): (usize, &E)| if x >> j & 1 == 1 { *p } else { E::ONE - p };
    (0..1usize << point.len()).map(|x| point.iter().enumerate().map(factor(x)).product()).collect()
}

/// Evaluates the multilinear polynomial with these values on the cube at a point.
pub fn evaluate<E: Field>(table: &[E], point: &[E]) -> E {
    table.iter().zip(eq(point)).map(|(value, weight)| *value * weight).sum()
}

/// Binds the first variable of `order`.
pub fn bind<E: Field>(table: &[E], challenge: E, order: Order) -> Vec<E> {
    let half = table.len() / 2;
    let ends = |x: usize| match order {
        Order::MsbFirst => (table[x], table[x + half]),
        Order::LsbFirst => (table[2 * x], table[2 * x + 1]),
    };
    (0..half).map(ends).map(|(a, b)| a + challenge * (b - a)).collect()
}

/// Computes the weighted sum of a statement about these tables, where `point` is that of the weight.
pub fn sum<E: DeviceField>(statement: &Statement<E>, tables: &[Vec<E>], point: Option<&[E]>) -> E {
    let weights = point.map(eq);
    let row = |x: usize| -> Vec<E> { tables.iter().map(|table| table[x]).collect() };
    let value = |x: usize| statement.expression().value(&row(x), statement.constants_of());
    let weight = |x: usize| weights.as_ref().map_or(E::ONE, |weights| weights[x]);
    (0..1 << statement.num_vars()).map(|x| weight(x) * value(x)).sum()
}

/// Proves the first `rounds` rounds, round by round from the definition. Each polynomial comes from its values at 0 to
/// degree, and each value from the sum over all points of the remaining cube. Also gives the challenges.
///
/// # Panics
/// If tables, constants or coordinates are missing or of the wrong length.
pub fn prove<E: DeviceField>(
    statement: &Statement<E>,
    rounds: usize,
    tables: &[Vec<E>],
    claim: E,
    transcript: &mut dyn Transcript<E>,
) -> (Proof<E>, Vec<E>) {
    let (num_vars, order) = (statement.num_vars(), statement.binding_order());
    let mut tables = tables.to_vec();
    let mut point = statement.begin(claim, rounds, transcript);
    let (mut messages, mut challenges) = (Vec::new(), Vec::new());
    for round in 0..rounds {
        if let Some(point) = &mut point {
            match order {
                Order::MsbFirst => drop(point.remove(num_vars - 1 - round)),
                Order::LsbFirst => drop(point.remove(0)),
            }
        }
        let left = match num_vars - 1 - round {
            0 => None,
            left => Some(Statement::new(left, statement.expression()).map(|s| s.constants(statement.constants_of()))),
        };
        let value = |x: u64| {
            let bound: Vec<Vec<E>> = tables.iter().map(|table| bind(table, E::from(x), order)).collect();
            match &left {
                Some(Ok(left)) => sum(left, &bound, point.as_deref()),
                _ => {
                    let row: Vec<E> = bound.iter().map(|table| table[0]).collect();
                    statement.expression().value(&row, statement.constants_of())
                }
            }
        };
        let values: Vec<E> = (0..=statement.degree() as u64).map(value).collect();
        let message = polynomial::interpolate(&values)[1..].to_vec();
        transcript.absorb(&bytes_of(&message));
        let challenge = transcript.challenge();
        tables.iter_mut().for_each(|table| *table = bind(table, challenge, order));
        challenges.push(challenge);
        messages.push(message);
    }
    let mut values = Vec::new();
    if rounds == num_vars {
        values = tables.iter().map(|table| table[0]).collect();
        transcript.absorb(&bytes_of(&values));
    }
    (Proof { rounds: messages, values }, challenges)
}
