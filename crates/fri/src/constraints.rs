//! Constraints on the rows of a trace, and their quotients by the polynomial that vanishes there.

use std::collections::HashMap;

use evariste_field::DevicePrimeField;

mod cpu;
mod plan;
mod program;
mod spec;

pub use plan::{ConstraintProgram, ConstraintQuotients};
#[cfg(test)]
pub(crate) use {program::Program, spec::constraint_slots};

/// A value that constraints are made of, by the [`Constraints`] that it comes from. Others would take it for a value of
/// their own with the same number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Term(u32);

/// A polynomial that is not 0 in some rows only.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Selector {
    /// Z(x) / (x − 1), with Z the polynomial that vanishes on the rows: not 0 in the first row only.
    FirstRow,
    /// Z(x) / (x − 1/h), with h the generator of the rows: not 0 in the last row only.
    LastRow,
    /// x − 1/h: 0 in the last row only.
    Transition,
}

/// How a value comes about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Node {
    /// A column's element in the row, or in the next one.
    Column {
        index: u32,
        next: bool,
    },
    Constant(u32),
    Public(u32),
    Selector(Selector),
    Add(u32, u32),
    Sub(u32, u32),
    Mul(u32, u32),
}

impl Node {
    /// The values that it is computed from.
    fn operands(self) -> Option<[u32; 2]> {
        match self {
            Node::Column { .. } | Node::Constant(_) | Node::Public(_) | Node::Selector(_) => None,
            Node::Add(a, b) | Node::Sub(a, b) | Node::Mul(a, b) => Some([a, b]),
        }
    }
}

/// Polynomials in a row of a trace and the next one that are 0 in all rows: the constraints of an AIR. The row after the
/// last one is the first.
///
/// Equal values are one, so that whatever constraints share is computed once.
///
/// ```
/// use evariste_field::small::BabyBear;
/// use evariste_fri::{Constraints, Selector};
///
/// // The elements of a column double from row to row.
/// let mut constraints = Constraints::<BabyBear>::default();
/// let (value, next) = (constraints.column(0), constraints.next(0));
/// let double = constraints.add(value, value);
/// let difference = constraints.sub(next, double);
/// let transition = constraints.selector(Selector::Transition);
/// let constraint = constraints.mul(transition, difference);
/// constraints.assert_zero(constraint);
///
/// let [row, next, selectors] = [[3], [7], [9]].map(|[x]: [u64; 1]| BabyBear::from(x));
/// assert_eq!(constraints.values([&[row], &[next]], &[], [selectors; 3]), [BabyBear::from(9u64)]);
/// ```
#[derive(Clone, Debug)]
pub struct Constraints<B> {
    /// Operands come before what is computed from them.
    nodes: Vec<Node>,
    known: HashMap<Node, u32>,
    constants: Vec<B>,
    constant_of: HashMap<B, u32>,
    /// One more than the highest index.
    columns: usize,
    publics: usize,
    zeros: Vec<u32>,
}

impl<B> Default for Constraints<B> {
    fn default() -> Self {
        let (nodes, known, constants, zeros) = (Vec::new(), HashMap::new(), Vec::new(), Vec::new());
        Self { nodes, known, constants, constant_of: HashMap::new(), columns: 0, publics: 0, zeros }
    }
}

impl<B: DevicePrimeField> Constraints<B> {
    /// Returns the element of column `index` in the row.
    pub fn column(&mut self, index: u32) -> Term {
        self.columns = self.columns.max(index as usize + 1);
        self.push(Node::Column { index, next: false })
    }

    /// Returns the element of column `index` in the next row.
    pub fn next(&mut self, index: u32) -> Term {
        self.columns = self.columns.max(index as usize + 1);
        self.push(Node::Column { index, next: true })
    }

    /// Returns public value number `index`. You give the values when you compute quotients.
    pub fn public(&mut self, index: u32) -> Term {
        self.publics = self.publics.max(index as usize + 1);
        self.push(Node::Public(index))
    }

    /// Returns a constant.
    pub fn constant(&mut self, value: B) -> Term {
        let index = *self.constant_of.entry(value).or_insert_with(|| {
            self.constants.push(value);
            self.constants.len() as u32 - 1
        });
        self.push(Node::Constant(index))
    }

    /// Returns the value of a selector.
    pub fn selector(&mut self, selector: Selector) -> Term {
        self.push(Node::Selector(selector))
    }

    /// Adds two values.
    ///
    /// # Panics
    /// If there are fewer values than the number of one of them says: it is another's. So it is for other operations.
    pub fn add(&mut self, a: Term, b: Term) -> Term {
        self.push(Node::Add(a.0.min(b.0), a.0.max(b.0)))
    }

    /// Subtracts the second value from the first.
    pub fn sub(&mut self, a: Term, b: Term) -> Term {
        self.push(Node::Sub(a.0, b.0))
    }

    /// Multiplies two values.
    pub fn mul(&mut self, a: Term, b: Term) -> Term {
        self.push(Node::Mul(a.0.min(b.0), a.0.max(b.0)))
    }

    /// Negates a value.
    pub fn neg(&mut self, a: Term) -> Term {
        let zero = self.constant(B::ZERO);
        self.sub(zero, a)
    }

    /// Adds the constraint that a value is 0 in every row.
    ///
    /// # Panics
    /// If there are fewer values than its number says: it is another's.
    pub fn assert_zero(&mut self, value: Term) {
        self.expect_own(value.0);
        self.zeros.push(value.0);
    }

    /// Counts the constraints.
    pub fn len(&self) -> usize {
        self.zeros.len()
    }

    /// Returns whether there are no constraints.
    pub fn is_empty(&self) -> bool {
        self.zeros.is_empty()
    }

    /// Counts the columns of a row: one more than the highest index, or 0 without a column.
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// Counts the public values: one more than the highest index, or 0 without one.
    pub fn publics(&self) -> usize {
        self.publics
    }

    /// Evaluates all constraints on the host: in a row and the one after it, with these public values and selectors, the
    /// latter in the order in which [`Selector`] declares them.
    ///
    /// # Panics
    /// If a column or a public value is missing.
    pub fn values(&self, [row, next]: [&[B]; 2], public: &[B], selectors: [B; 3]) -> Vec<B> {
        let mut values: Vec<B> = Vec::with_capacity(self.nodes.len());
        for node in &self.nodes {
            let at = |number: u32| values[number as usize];
            values.push(match *node {
                Node::Column { index, next: false } => row[index as usize],
                Node::Column { index, next: true } => next[index as usize],
                Node::Constant(index) => self.constants[index as usize],
                Node::Public(index) => public[index as usize],
                Node::Selector(selector) => selectors[selector as usize],
                Node::Add(a, b) => at(a) + at(b),
                Node::Sub(a, b) => at(a) - at(b),
                Node::Mul(a, b) => at(a) * at(b),
            });
        }
        self.zeros.iter().map(|zero| values[*zero as usize]).collect()
    }

    fn expect_own(&self, number: u32) {
        assert!(
            (number as usize) < self.nodes.len(),
            "value {number} is of other constraints: there are {}",
            self.nodes.len()
        );
    }

    fn push(&mut self, node: Node) -> Term {
        node.operands().into_iter().flatten().for_each(|operand| self.expect_own(operand));
        if let Some(number) = self.known.get(&node) {
            return Term(*number);
        }
        let number = self.nodes.len() as u32;
        self.nodes.push(node);
        self.known.insert(node, number);
        Term(number)
    }
}
