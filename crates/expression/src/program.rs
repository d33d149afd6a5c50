//! Programs of operations on slots, and the assignment of slots to values.

use std::{collections::HashMap, hash::Hash};

use crate::steps::Step;

/// An operation on earlier values, or on slots once these are assigned. `L` is a value that a kernel loads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Op<L> {
    /// Loads a value.
    Leaf(L),
    /// Adds two values.
    Add(u32, u32),
    /// Subtracts the second value from the first.
    Sub(u32, u32),
    /// Multiplies two values.
    Mul(u32, u32),
    /// Negates a value.
    Neg(u32),
    /// Chooses the first value or the second by a condition of the launch.
    Select(u32, u32),
}

impl<L> Op<L> {
    fn operands(&self) -> impl Iterator<Item = u32> + use<L> {
        let (a, b) = match *self {
            Op::Leaf(_) => (None, None),
            Op::Neg(a) => (Some(a), None),
            Op::Add(a, b) | Op::Sub(a, b) | Op::Mul(a, b) | Op::Select(a, b) => (Some(a), Some(b)),
        };
        a.into_iter().chain(b)
    }

    fn renamed(self, to: impl Fn(u32) -> u32) -> Self {
        match self {
            Op::Leaf(leaf) => Op::Leaf(leaf),
            Op::Neg(a) => Op::Neg(to(a)),
            Op::Add(a, b) => Op::Add(to(a), to(b)),
            Op::Sub(a, b) => Op::Sub(to(a), to(b)),
            Op::Mul(a, b) => Op::Mul(to(a), to(b)),
            Op::Select(a, b) => Op::Select(to(a), to(b)),
        }
    }
}

/// A line of a [`Program`]. `E` is an effect, such as a store.
#[derive(Clone, Copy, Debug)]
pub enum Line<L, E> {
    /// Sets a slot to the result of an operation on slots.
    Set {
        /// The slot.
        slot: u32,
        /// The operation.
        op: Op<L>,
    },
    /// Has an effect with the value of a slot.
    Effect {
        /// The effect.
        effect: E,
        /// The slot.
        slot: u32,
    },
}

/// Operations and effects in order, over numbered slots.
#[derive(Clone, Debug)]
pub struct Program<L, E> {
    lines: Vec<Line<L, E>>,
    slots: usize,
}

impl<L, E> Program<L, E> {
    /// The program without lines.
    pub const EMPTY: Self = Self { lines: Vec::new(), slots: 0 };

    /// Returns the lines.
    pub fn lines(&self) -> &[Line<L, E>] {
        &self.lines
    }

    /// Counts the slots.
    pub fn slots(&self) -> usize {
        self.slots
    }

    /// Counts the multiplications.
    pub fn multiplications(&self) -> usize {
        self.lines.iter().filter(|line| matches!(line, Line::Set { op: Op::Mul(..), .. })).count()
    }
}

/// Collects the operations and effects of a [`Program`]. Values are numbered from 0 on, and equal operations are one
/// value.
#[derive(Clone, Debug)]
pub struct Builder<L, E> {
    ops: Vec<Op<L>>,
    known: HashMap<Op<L>, u32>,
    /// Each effect with its value, and the number of operations before it.
    effects: Vec<(usize, E, u32)>,
}

impl<L, E> Default for Builder<L, E> {
    fn default() -> Self {
        Self { ops: Vec::new(), known: HashMap::new(), effects: Vec::new() }
    }
}

impl<L: Copy + Eq + Hash, E> Builder<L, E> {
    /// Returns the value of an operation on values.
    pub fn push(&mut self, op: Op<L>) -> u32 {
        if let Some(number) = self.known.get(&op) {
            return *number;
        }
        let number = self.ops.len() as u32;
        self.ops.push(op);
        self.known.insert(op, number);
        number
    }

    /// Has an effect with a value, after the operations so far.
    pub fn effect(&mut self, effect: E, value: u32) {
        self.effects.push((self.ops.len(), effect, value));
    }

    /// Returns the value of an expression's steps; `leaf` gives the value of each column, constant and integer.
    pub fn evaluate(&mut self, steps: &[Step], mut leaf: impl FnMut(&mut Self, Step) -> u32) -> u32 {
        let mut numbers: Vec<u32> = Vec::with_capacity(steps.len());
        for step in steps {
            let at = |number: u32| numbers[number as usize];
            let number = match *step {
                Step::Column(_) | Step::Constant(_) | Step::Integer(_) => leaf(self, *step),
                Step::Add(a, b) => self.push(Op::Add(at(a), at(b))),
                Step::Sub(a, b) => self.push(Op::Sub(at(a), at(b))),
                Step::Mul(a, b) => self.push(Op::Mul(at(a), at(b))),
                Step::Neg(a) => self.push(Op::Neg(at(a))),
            };
            numbers.push(number);
        }
        numbers.last().copied().unwrap_or(0)
    }

    /// Assigns slots to values: a slot is used again when nothing needs its value any more.
    pub fn finish(self) -> Program<L, E> {
        let mut last_use: Vec<usize> = (0..self.ops.len()).collect();
        for (number, op) in self.ops.iter().enumerate() {
            op.operands().for_each(|operand| last_use[operand as usize] = number);
        }
        for (before, _, value) in &self.effects {
            // The value lives until the operation after the effect.
            let last = &mut last_use[*value as usize];
            *last = (*last).max(*before);
        }
        let mut dying: Vec<Vec<u32>> = vec![Vec::new(); self.ops.len() + 1];
        let mut free: Vec<u32> = Vec::new();
        let (mut slots, mut slot_of) = (0, vec![0; self.ops.len()]);
        let mut lines = Vec::with_capacity(self.ops.len() + self.effects.len());
        let mut effects = self.effects.into_iter().peekable();
        for number in 0..=self.ops.len() {
            while let Some((_, effect, value)) = effects.next_if(|(before, ..)| *before == number) {
                lines.push(Line::Effect { effect, slot: slot_of[value as usize] });
            }
            let Some(op) = self.ops.get(number) else { break };
            let op = op.renamed(|operand| slot_of[operand as usize]);
            // Operands that nothing needs after this make room for the result.
            free.append(&mut dying[number]);
            let slot = free.pop().unwrap_or_else(|| {
                slots += 1;
                slots - 1
            });
            slot_of[number] = slot;
            // A value that nothing needs at all makes room for the next one.
            dying[last_use[number].max(number + 1).min(self.ops.len())].push(slot);
            lines.push(Line::Set { slot, op });
        }
        Program { lines, slots: slots as usize }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_used_again_when_their_value_is_dead() {
        let mut builder = Builder::<u32, ()>::default();
        let [a, b] = [0, 1].map(|leaf| builder.push(Op::Leaf(leaf)));
        let sum = builder.push(Op::Add(a, b));
        assert_eq!(builder.push(Op::Add(a, b)), sum);
        let square = builder.push(Op::Mul(sum, sum));
        builder.effect((), square);
        let more = builder.push(Op::Leaf(2));
        let last = builder.push(Op::Sub(more, a));
        builder.effect((), last);
        let program = builder.finish();
        // `a` lives to the end; the others share a slot.
        assert_eq!((program.slots(), program.multiplications(), program.lines().len()), (2, 1, 8));
        let slots = program.lines().iter().map(|line| match line {
            Line::Set { slot, .. } | Line::Effect { slot, .. } => *slot,
        });
        assert_eq!(slots.collect::<Vec<_>>(), [0, 1, 1, 1, 1, 1, 1, 1]);
    }
}
