//! Programs on the CPU, many rows at a time.

use crate::program::{Line, Op, Program};

/// The slots of a program, each with values for many rows. An operation concerns the first `rows` of them.
pub trait Slots {
    /// `target` = `a` + `b`, row by row. The target may be an operand, here and below.
    fn add(&mut self, rows: usize, target: u32, a: u32, b: u32);

    /// `target` = `a` − `b`.
    fn sub(&mut self, rows: usize, target: u32, a: u32, b: u32);

    /// `target` = `a` · `b`.
    fn mul(&mut self, rows: usize, target: u32, a: u32, b: u32);

    /// `target` = −`a`.
    fn negate(&mut self, rows: usize, target: u32, a: u32);

    /// `target` = `a`.
    fn copy(&mut self, rows: usize, target: u32, a: u32);
}

/// A request of a running program to its caller.
#[derive(Clone, Copy, Debug)]
pub enum Port<L, E> {
    /// Set a slot to the values of a leaf.
    Load(u32, L),
    /// Have an effect with the values of a slot.
    Effect(E, u32),
}

impl<L: Copy, E: Copy> Program<L, E> {
    /// Carries the program out over `rows` rows. `second` is the condition of [`Op::Select`]; `port` loads leaves and
    /// has effects.
    pub fn run<S: Slots>(&self, rows: usize, slots: &mut S, second: bool, mut port: impl FnMut(&mut S, Port<L, E>)) {
        for line in self.lines() {
            match *line {
                Line::Effect { effect, slot } => port(slots, Port::Effect(effect, slot)),
                Line::Set { slot, op } => match op {
                    Op::Leaf(leaf) => port(slots, Port::Load(slot, leaf)),
                    Op::Add(a, b) => slots.add(rows, slot, a, b),
                    Op::Sub(a, b) => slots.sub(rows, slot, a, b),
                    Op::Mul(a, b) => slots.mul(rows, slot, a, b),
                    Op::Neg(a) => slots.negate(rows, slot, a),
                    Op::Select(a, b) => slots.copy(rows, slot, if second { b } else { a }),
                },
            }
        }
    }
}
