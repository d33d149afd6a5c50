//! Expressions as lists of steps, without repetition.

use std::{collections::HashMap, sync::OnceLock};

use ark_ff::Field;

/// The context for key derivation in the digest of an expression.
pub(crate) const CONTEXT: &str = "evariste 2026-11-21 expression steps v1";

/// One operation of an expression. Its operands are the numbers of earlier steps, from 0 on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Step {
    /// The value of the column with this index.
    Column(u32),
    /// The constant with this index.
    Constant(u32),
    /// An integer.
    Integer(i64),
    /// The sum of two steps.
    Add(u32, u32),
    /// The first step minus the second.
    Sub(u32, u32),
    /// The product of two steps.
    Mul(u32, u32),
    /// The negative of a step.
    Neg(u32),
}

impl Step {
    /// Returns the steps that this one is computed from.
    pub fn operands(self) -> impl Iterator<Item = u32> {
        let (a, b) = match self {
            Step::Column(_) | Step::Constant(_) | Step::Integer(_) => (None, None),
            Step::Neg(a) => (Some(a), None),
            Step::Add(a, b) | Step::Sub(a, b) | Step::Mul(a, b) => (Some(a), Some(b)),
        };
        a.into_iter().chain(b)
    }
}

/// An expression as a list of steps, none of them twice. The last one is the result: it cannot have come up before,
/// since no expression is part of its own operands.
#[derive(Debug)]
pub(crate) struct Tape {
    pub(crate) steps: Vec<Step>,
    digest: OnceLock<[u8; 32]>,
}

/// A tape while it is written.
#[derive(Default)]
pub(crate) struct Writer {
    steps: Vec<Step>,
    known: HashMap<Step, u32>,
}

impl Writer {
    pub(crate) fn push(&mut self, step: Step) -> u32 {
        let step = match step {
            Step::Add(a, b) => Step::Add(a.min(b), a.max(b)),
            Step::Mul(a, b) => Step::Mul(a.min(b), a.max(b)),
            other => other,
        };
        if let Some(number) = self.known.get(&step) {
            return *number;
        }
        let number = self.steps.len() as u32;
        self.steps.push(step);
        self.known.insert(step, number);
        number
    }

    pub(crate) fn finish(self) -> Tape {
        Tape { steps: self.steps, digest: OnceLock::new() }
    }
}

impl Tape {
    pub(crate) fn digest(&self) -> &[u8; 32] {
        self.digest.get_or_init(|| digest_of(&self.steps))
    }

    pub(crate) fn value<F: Field>(&self, columns: &[F], constants: &[F]) -> F {
        let mut values = Vec::with_capacity(self.steps.len());
        for step in &self.steps {
            let at = |number: u32| -> F { values[number as usize] };
            values.push(match *step {
                Step::Column(index) => columns[index as usize],
                Step::Constant(index) => constants[index as usize],
                Step::Integer(value) => F::from(value),
                Step::Add(a, b) => at(a) + at(b),
                Step::Sub(a, b) => at(a) - at(b),
                Step::Mul(a, b) => at(a) * at(b),
                Step::Neg(a) => -at(a),
            });
        }
        values.last().copied().unwrap_or(F::ZERO)
    }
}

/// The hash of these steps: see `Expression::digest`.
fn digest_of(steps: &[Step]) -> [u8; 32] {
    let mut hasher = blake3::Hasher::new_derive_key(CONTEXT);
    let mut put = |tag: u8, numbers: &[u32]| {
        hasher.update(&[tag]);
        for number in numbers {
            hasher.update(&number.to_le_bytes());
        }
    };
    for step in steps {
        match *step {
            Step::Column(index) => put(0, &[index]),
            Step::Constant(index) => put(1, &[index]),
            Step::Integer(value) => put(2, &[value as u32, (value >> 32) as u32]),
            Step::Add(a, b) => put(3, &[a, b]),
            Step::Sub(a, b) => put(4, &[a, b]),
            Step::Mul(a, b) => put(5, &[a, b]),
            Step::Neg(a) => put(6, &[a]),
        }
    }
    *hasher.finalize().as_bytes()
}
