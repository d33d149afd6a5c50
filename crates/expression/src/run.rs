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

#[cfg(test)]
mod tests {
    use ark_bls12_381::Fr;

    use super::*;
    use crate::{constants::Constants, expression::Expression, program::Builder, steps::Step};

    /// One list of values for each slot.
    struct Lists(Vec<Vec<Fr>>);

    impl Lists {
        fn set(&mut self, rows: usize, target: u32, value: impl Fn(&Self, usize) -> Fr) {
            for row in 0..rows {
                self.0[target as usize][row] = value(self, row);
            }
        }

        fn at(&self, slot: u32, row: usize) -> Fr {
            self.0[slot as usize][row]
        }
    }

    impl Slots for Lists {
        fn add(&mut self, rows: usize, target: u32, a: u32, b: u32) {
            self.set(rows, target, |lists, row| lists.at(a, row) + lists.at(b, row));
        }

        fn sub(&mut self, rows: usize, target: u32, a: u32, b: u32) {
            self.set(rows, target, |lists, row| lists.at(a, row) - lists.at(b, row));
        }

        fn mul(&mut self, rows: usize, target: u32, a: u32, b: u32) {
            self.set(rows, target, |lists, row| lists.at(a, row) * lists.at(b, row));
        }

        fn negate(&mut self, rows: usize, target: u32, a: u32) {
            self.set(rows, target, |lists, row| -lists.at(a, row));
        }

        fn copy(&mut self, rows: usize, target: u32, a: u32) {
            self.set(rows, target, |lists, row| lists.at(a, row));
        }
    }

    /// A leaf is the step itself; the effect at the end has the value.
    fn program(expression: &Expression) -> Program<Step, ()> {
        let mut builder = Builder::default();
        let value = builder.evaluate(expression.steps(), |builder, step| builder.push(Op::Leaf(step)));
        builder.effect((), value);
        builder.finish()
    }

    #[test]
    fn programs_compute_the_value_of_their_expression() {
        const ROWS: usize = 3;
        let [a, b, c] = [0, 1, 2].map(Expression::column);
        let r = Expression::constant(1);
        // Operands that die in either order, and one that is used again.
        let shared = &a + 3;
        let expression = &shared * (&b - &shared) - -(&c * &r).pow(5) + (&b - 3) * (&a + &b) * 7;
        let columns: Vec<[Fr; 3]> = (0..ROWS as u64).map(|row| [2 * row + 1, 5, row * row].map(Fr::from)).collect();
        let constants = [1u64, 11].map(Fr::from);
        let program = program(&expression);
        assert!(program.slots() < expression.steps().len() / 2, "{} slots", program.slots());

        let mut lists = Lists(vec![vec![Fr::from(0); ROWS]; program.slots()]);
        let mut values = Vec::new();
        program.run(ROWS, &mut lists, false, |lists, port| match port {
            Port::Load(slot, step) => lists.set(ROWS, slot, |_, row| match step {
                Step::Column(index) => columns[row][index as usize],
                Step::Constant(index) => constants[index as usize],
                Step::Integer(value) => Fr::from(value),
                _ => unreachable!("no leaf"),
            }),
            Port::Effect((), slot) => values = lists.0[slot as usize].clone(),
        });
        let expected: Vec<Fr> = columns.iter().map(|row| expression.value(row, &constants)).collect();
        assert_eq!(values, expected);
    }

    #[test]
    fn selections_go_by_the_condition() {
        let mut builder = Builder::<u32, ()>::default();
        let [a, b] = [7, 9].map(|leaf| builder.push(Op::Leaf(leaf)));
        let chosen = builder.push(Op::Select(a, b));
        builder.effect((), chosen);
        let program = builder.finish();
        for (second, expected) in [(false, 7u32), (true, 9)] {
            let mut lists = Lists(vec![vec![Fr::from(0)]; program.slots()]);
            let mut value = Fr::from(0);
            program.run(1, &mut lists, second, |lists, port| match port {
                Port::Load(slot, leaf) => lists.0[slot as usize][0] = Fr::from(leaf),
                Port::Effect((), slot) => value = lists.0[slot as usize][0],
            });
            assert_eq!(value, Fr::from(expected));
        }
    }

    #[test]
    fn constants_are_those_given_and_then_the_integers() {
        let expression = Expression::column(0) * 5 + Expression::constant(2) - 5 + Expression::integer(-3);
        let constants = Constants::of(&expression);
        assert_eq!((constants.given(), constants.integers()), (3, &[5, -3][..]));
        let indices = [Step::Constant(1), Step::Integer(5), Step::Integer(-3), Step::Integer(4), Step::Column(0)];
        assert_eq!(indices.map(|step| constants.index(step)), [Some(1), Some(3), Some(4), None, None]);
    }
}
