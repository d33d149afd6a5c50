use std::collections::HashMap;

use crate::{expression::Expression, steps::Step};

/// The constants that a kernel of an expression receives: first those that the caller gives, then the expression's
/// integers, each once.
#[derive(Clone, Debug)]
pub struct Constants {
    given: usize,
    integers: Vec<i64>,
    index_of: HashMap<i64, u32>,
}

impl Constants {
    /// Numbers the constants of an expression.
    pub fn of(expression: &Expression) -> Self {
        let given = expression.constants();
        let integer = |step: &Step| if let Step::Integer(value) = step { Some(*value) } else { None };
        let integers: Vec<i64> = expression.steps().iter().filter_map(integer).collect();
        let index_of = integers.iter().copied().zip(given as u32..).collect();
        Self { given, integers, index_of }
    }

    /// Counts the constants that the caller gives.
    pub fn given(&self) -> usize {
        self.given
    }

    /// Lists the integers, which follow the given constants.
    pub fn integers(&self) -> &[i64] {
        &self.integers
    }

    /// Returns the index of a step that is a constant or an integer of the expression; `None` for every other step.
    pub fn index(&self, step: Step) -> Option<u32> {
        match step {
            Step::Constant(index) => Some(index),
            Step::Integer(value) => self.index_of.get(&value).copied(),
            _ => None,
        }
    }
}
