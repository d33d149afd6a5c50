//! Expressions over columns. Every backend evaluates them, and a proof can be bound to one by its digest.

use std::{
    collections::HashMap,
    fmt,
    iter::{Product, Sum},
    ops::{Add, Mul, Neg, Sub},
    sync::{Arc, OnceLock},
};

use ark_ff::Field;

use crate::steps::{CONTEXT, Step, Tape, Writer};

/// A polynomial in columns, which have a value in each row, and in constants, which are the same in all rows. You build
/// it by `+`, `−`, `·` and powers from [`Expression::column`], [`Expression::constant`] and integers. It names no
/// field.
///
/// Clones are cheap and share their parts, and equal parts are computed once. An expression computes its steps at their
/// first use and keeps them.
///
/// ```
/// use ark_bls12_381::Fr;
/// use evariste_expression::Expression;
///
/// let [a, b, c] = [0, 1, 2].map(Expression::column);
/// let r = Expression::constant(0);
/// let gate = &a * &b - &c + r * (a.clone() * (&a - 1));
/// assert_eq!((gate.columns(), gate.constants(), gate.degree()), (3, 1, 2));
///
/// let row = [1u64, 5, 5].map(Fr::from);
/// assert_eq!(gate.value(&row, &[Fr::from(9)]), Fr::from(0));
/// ```
#[derive(Clone)]
pub struct Expression(Arc<Node>);

#[derive(Debug)]
struct Node {
    kind: Kind,
    degree: u64,
    /// One more than the highest index of a column, or 0 without a column; the same of constants.
    columns: u64,
    constants: u64,
    /// Once they were asked for.
    tape: OnceLock<Box<Tape>>,
}

#[derive(Clone, Debug)]
enum Kind {
    Column(u32),
    Constant(u32),
    Integer(i64),
    Add(Expression, Expression),
    Sub(Expression, Expression),
    Mul(Expression, Expression),
    Neg(Expression),
    Pow(Expression, u32),
}

impl Expression {
    /// Makes the value of column `index` in the row.
    pub fn column(index: u32) -> Self {
        Self::new(Kind::Column(index), 1)
    }

    /// Makes constant number `index`. You give its value when you evaluate the expression.
    pub fn constant(index: u32) -> Self {
        Self::new(Kind::Constant(index), 0)
    }

    /// Makes the integer `value`.
    pub fn integer(value: i64) -> Self {
        Self::new(Kind::Integer(value), 0)
    }

    /// Raises the expression to the power `exponent`; 0⁰ is 1.
    #[must_use]
    pub fn pow(&self, exponent: u32) -> Self {
        match exponent {
            0 => Self::integer(1),
            1 => self.clone(),
            _ => Self::new(Kind::Pow(self.clone(), exponent), self.degree().saturating_mul(exponent.into())),
        }
    }

    /// Returns an upper bound of the degree in the columns, from the way in which the expression is built. Terms that
    /// cancel count as well.
    pub fn degree(&self) -> u64 {
        self.0.degree
    }

    /// Counts the columns of a row: one more than the highest index, or 0 without a column.
    pub fn columns(&self) -> usize {
        self.0.columns as usize
    }

    /// Counts the constants: one more than the highest index, or 0 without a constant.
    pub fn constants(&self) -> usize {
        self.0.constants as usize
    }

    /// Evaluates the expression on the host, in one row with these columns and constants.
    ///
    /// # Panics
    /// If a column or a constant is missing.
    pub fn value<F: Field>(&self, columns: &[F], constants: &[F]) -> F {
        self.tape().value(columns, constants)
    }

    /// Hashes the expression, so that a proof can be bound to it. The digest is the BLAKE3 hash of the steps, with
    /// [`Expression::CONTEXT`] as the context of its key derivation. Steps are in the order of a walk through the
    /// expression, operands from left to right before their operation, equal steps once.
    ///
    /// A step is five bytes or more:
    ///
    /// - 0 and a column's index, or 1 and a constant's;
    /// - 2 and an integer of eight bytes;
    /// - 3, 4 or 5 for a sum, a difference or a product, and the numbers of both steps (the lower one first where order
    ///   is free);
    /// - 6 and the number of the step that is negated.
    ///
    /// Numbers count steps from 0, and have four bytes in little-endian order. A power is the multiplications of its
    /// binary digits, from the highest digit down. The result is squared, and multiplied by the base if the digit is
    /// one.
    pub fn digest(&self) -> [u8; 32] {
        *self.tape().digest()
    }

    /// The context for key derivation in [`Expression::digest`].
    pub const CONTEXT: &str = CONTEXT;

    /// Returns the steps that compute the expression, as [`Expression::digest`] orders them; the last one is the
    /// result.
    pub fn steps(&self) -> &[Step] {
        &self.tape().steps
    }

    /// Lists the indices of the columns that the expression names, in ascending order.
    pub fn named_columns(&self) -> Vec<u32> {
        let column = |step: &Step| if let Step::Column(index) = step { Some(*index) } else { None };
        let mut columns: Vec<u32> = self.steps().iter().filter_map(column).collect();
        columns.sort_unstable();
        columns
    }

    fn new(kind: Kind, degree: u64) -> Self {
        let most =
            |of: fn(&Node) -> u64| kind.operands().iter().flatten().map(|operand| of(&operand.0)).max().unwrap_or(0);
        let columns = if let Kind::Column(index) = kind { u64::from(index) + 1 } else { most(|node| node.columns) };
        let constants =
            if let Kind::Constant(index) = kind { u64::from(index) + 1 } else { most(|node| node.constants) };
        Self(Arc::new(Node { kind, degree, columns, constants, tape: OnceLock::new() }))
    }

    /// Returns the expression with column i replaced by column `columns[i]`, and constant i by constant `constants[i]`.
    ///
    /// # Panics
    /// If the index of a column or of a constant is missing.
    #[must_use]
    pub fn renumbered(&self, columns: &[u32], constants: &[u32]) -> Self {
        let same = |numbers: &[u32]| numbers.iter().zip(0..).all(|(number, i)| *number == i);
        if same(columns) && same(constants) {
            return self.clone();
        }
        // Node by node, as it was built: steps have lost which of two operands was the left one, which the digest
        // depends on.
        self.fold(|node, at: &dyn Fn(&Self) -> Self| {
            let kind = match &node.kind {
                Kind::Column(index) => Kind::Column(columns[*index as usize]),
                Kind::Constant(index) => Kind::Constant(constants[*index as usize]),
                Kind::Integer(value) => Kind::Integer(*value),
                Kind::Add(a, b) => Kind::Add(at(a), at(b)),
                Kind::Sub(a, b) => Kind::Sub(at(a), at(b)),
                Kind::Mul(a, b) => Kind::Mul(at(a), at(b)),
                Kind::Neg(a) => Kind::Neg(at(a)),
                Kind::Pow(a, exponent) => Kind::Pow(at(a), *exponent),
            };
            Self::new(kind, node.degree)
        })
    }

    fn tape(&self) -> &Tape {
        self.0.tape.get_or_init(|| Box::new(self.written()))
    }

    fn written(&self) -> Tape {
        #[cfg(test)]
        tests::WRITTEN.set(tests::WRITTEN.get() + 1);
        let mut tape = Writer::default();
        self.fold(|node, at: &dyn Fn(&Self) -> u32| match &node.kind {
            Kind::Column(index) => tape.push(Step::Column(*index)),
            Kind::Constant(index) => tape.push(Step::Constant(*index)),
            Kind::Integer(value) => tape.push(Step::Integer(*value)),
            Kind::Add(a, b) => tape.push(Step::Add(at(a), at(b))),
            Kind::Sub(a, b) => tape.push(Step::Sub(at(a), at(b))),
            Kind::Mul(a, b) => tape.push(Step::Mul(at(a), at(b))),
            Kind::Neg(a) => tape.push(Step::Neg(at(a))),
            Kind::Pow(a, exponent) => {
                let base = at(a);
                (0..exponent.ilog2()).rev().fold(base, |power, bit| {
                    let square = tape.push(Step::Mul(power, power));
                    if exponent >> bit & 1 == 1 { tape.push(Step::Mul(square, base)) } else { square }
                })
            }
        });
        tape.finish()
    }

    /// What `part` makes of the whole: of each node once, from what it has made of the operands, those from the left
    /// before. Without recursion: expressions may be as deep as memory allows.
    fn fold<T: Clone>(&self, mut part: impl FnMut(&Node, &dyn Fn(&Self) -> T) -> T) -> T {
        // By the address of a node, which this borrow keeps alive.
        let mut done: HashMap<*const Node, T> = HashMap::new();
        let mut todo = vec![(self, false)];
        while let Some((expression, ready)) = todo.pop() {
            let key = Arc::as_ptr(&expression.0);
            if done.contains_key(&key) {
                continue;
            }
            let operands = expression.0.kind.operands();
            if !ready && operands.iter().any(Option::is_some) {
                todo.push((expression, true));
                todo.extend(operands.iter().rev().flatten().map(|operand| (*operand, false)));
                continue;
            }
            let made = part(&expression.0, &|operand| done[&Arc::as_ptr(&operand.0)].clone());
            done.insert(key, made);
        }
        done[&Arc::as_ptr(&self.0)].clone()
    }
}

impl Kind {
    fn operands(&self) -> [Option<&Expression>; 2] {
        match self {
            Kind::Column(_) | Kind::Constant(_) | Kind::Integer(_) => [None, None],
            Kind::Neg(a) | Kind::Pow(a, _) => [Some(a), None],
            Kind::Add(a, b) | Kind::Sub(a, b) | Kind::Mul(a, b) => [Some(a), Some(b)],
        }
    }
}

impl Drop for Expression {
    /// Without recursion, as expressions may be deep.
    fn drop(&mut self) {
        let mut todo = Vec::new();
        let take = |expression: &mut Expression, todo: &mut Vec<Expression>| {
            // An expression that others share stays as it is.
            if let Some(node) = Arc::get_mut(&mut expression.0) {
                match std::mem::replace(&mut node.kind, Kind::Integer(0)) {
                    Kind::Column(_) | Kind::Constant(_) | Kind::Integer(_) => {}
                    Kind::Neg(a) | Kind::Pow(a, _) => todo.push(a),
                    Kind::Add(a, b) | Kind::Sub(a, b) | Kind::Mul(a, b) => todo.extend([a, b]),
                }
            }
        };
        if !matches!(self.0.kind, Kind::Column(_) | Kind::Constant(_) | Kind::Integer(_)) {
            take(self, &mut todo);
        }
        while let Some(mut expression) = todo.pop() {
            take(&mut expression, &mut todo);
        }
    }
}

impl fmt::Debug for Expression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let steps = self.tape().steps.len();
        f.debug_struct("Expression").field("degree", &self.degree()).field("steps", &steps).finish_non_exhaustive()
    }
}

impl PartialEq for Expression {
    /// Whether they have the same digest.
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || self.tape().steps == other.tape().steps
    }
}

impl Eq for Expression {}

impl From<i64> for Expression {
    fn from(value: i64) -> Self {
        Self::integer(value)
    }
}

macro_rules! operators {
    ($($operator:ident $function:ident $degree:expr),*) => {$(
        impl $operator for &Expression {
            type Output = Expression;

            fn $function(self, other: &Expression) -> Expression {
                let degree: fn(u64, u64) -> u64 = $degree;
                let degree = degree(self.degree(), other.degree());
                Expression::new(Kind::$operator(self.clone(), other.clone()), degree)
            }
        }

        impl $operator for Expression {
            type Output = Expression;

            fn $function(self, other: Expression) -> Expression {
                (&self).$function(&other)
            }
        }

        impl $operator<&Expression> for Expression {
            type Output = Expression;

            fn $function(self, other: &Expression) -> Expression {
                (&self).$function(other)
            }
        }

        impl $operator<Expression> for &Expression {
            type Output = Expression;

            fn $function(self, other: Expression) -> Expression {
                self.$function(&other)
            }
        }

        impl $operator<i64> for &Expression {
            type Output = Expression;

            fn $function(self, other: i64) -> Expression {
                self.$function(&Expression::integer(other))
            }
        }

        impl $operator<i64> for Expression {
            type Output = Expression;

            fn $function(self, other: i64) -> Expression {
                (&self).$function(&Expression::integer(other))
            }
        }
    )*};
}

operators!(Add add u64::max, Sub sub u64::max, Mul mul u64::saturating_add);

impl Neg for &Expression {
    type Output = Expression;

    fn neg(self) -> Expression {
        Expression::new(Kind::Neg(self.clone()), self.degree())
    }
}

impl Neg for Expression {
    type Output = Expression;

    fn neg(self) -> Expression {
        -&self
    }
}

impl Sum for Expression {
    fn sum<I: Iterator<Item = Self>>(terms: I) -> Self {
        terms.reduce(Add::add).unwrap_or_else(|| Self::integer(0))
    }
}

impl Product for Expression {
    fn product<I: Iterator<Item = Self>>(factors: I) -> Self {
        factors.reduce(Mul::mul).unwrap_or_else(|| Self::integer(1))
    }
}

#[cfg(test)]
mod tests {
    use ark_bls12_381::Fr;

    use std::cell::Cell;

    use super::*;

    thread_local! {
        /// Tapes that this thread has written.
        pub(super) static WRITTEN: Cell<usize> = const { Cell::new(0) };
    }

    fn columns() -> [Expression; 3] {
        [0, 1, 2].map(Expression::column)
    }

    #[test]
    fn values_are_those_of_the_operators() {
        let [a, b, c] = columns();
        let r = Expression::constant(1);
        let expression = (&a + &b) * (&a - &c).pow(11) - &r * 7 + -(b.clone() * -3) + c.pow(0) + c.pow(1);
        let [x, y, z, s] = [3u64, 5, 11, 100].map(Fr::from);
        let expected = (x + y) * (x - z).pow([11]) - s * Fr::from(7) + y * Fr::from(3) + Fr::from(1) + z;
        assert_eq!(expression.value(&[x, y, z], &[Fr::from(0), s]), expected);
        assert_eq!((expression.columns(), expression.constants(), expression.degree()), (3, 2, 12));
        assert_eq!([a, b].into_iter().sum::<Expression>().value(&[x, y], &[]), x + y);
        assert_eq!(std::iter::empty::<Expression>().product::<Expression>().value::<Fr>(&[], &[]), Fr::from(1));
    }

    #[test]
    fn equal_parts_are_one_step() {
        let [a, b, _] = columns();
        let first = (&a + &b) * (&b + &a);
        assert_eq!(first.tape().steps.len(), 4);
        let mut doubled = a.clone();
        for _ in 0..100 {
            doubled = &doubled + &doubled;
        }
        assert_eq!(doubled.tape().steps.len(), 101);
    }

    #[test]
    fn digests_are_stable_and_tell_expressions_apart() {
        let [a, b, c] = columns();
        let gate = |a: &Expression, b: &Expression, c: &Expression| a * b - c;
        assert_eq!(gate(&a, &b, &c).digest(), gate(&columns()[0], &b.clone(), &c).digest());
        let hex: String = gate(&a, &b, &c).digest().iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(hex, "6246c37fa3b45b047bdc34668ca647de30ba5f52b39dfbb07e15710346852992");
        let others =
            [gate(&b, &c, &a), gate(&a, &b, &c) + 0, &a * &b + &c, &a * &b, gate(&a, &b, &Expression::constant(2))];
        for (i, other) in others.iter().enumerate() {
            assert_ne!(other.digest(), gate(&a, &b, &c).digest(), "{i}");
            assert_ne!(*other, gate(&a, &b, &c));
        }
    }

    #[test]
    fn deep_expressions_need_no_stack() {
        let mut deep = Expression::column(0);
        for _ in 0..1_000_000 {
            deep = deep + Expression::column(0);
        }
        assert_eq!(deep.tape().steps.len(), 1_000_001);
    }

    #[test]
    fn steps_are_found_once() {
        let chain = || (0..1_000_000).fold(Expression::column(0), |power, _| power * Expression::column(0));
        let (first, second) = (chain(), chain());
        let before = WRITTEN.get();
        assert_eq!((first.columns(), first.constants(), first.degree()), (1, 0, 1_000_001));
        assert_eq!(WRITTEN.get(), before);
        for _ in 0..10 {
            assert_eq!(first.digest(), first.clone().digest());
            assert_eq!(first, first.clone());
            assert!(format!("{first:?}").contains("steps: 1000001"));
            assert_eq!(first.steps().len(), 1_000_001);
        }
        assert_eq!(first.value::<Fr>(&[-Fr::from(1)], &[]), -Fr::from(1));
        assert_eq!(WRITTEN.get(), before + 1);
        for _ in 0..10 {
            assert_eq!(first, second);
        }
        assert_eq!(WRITTEN.get(), before + 2);
    }

    #[test]
    fn columns_and_constants_are_those_of_the_steps() {
        let [a, b, _] = columns();
        let last = [u32::MAX, u32::MAX - 1];
        let expressions = [
            (Expression::integer(3), 0, 0),
            (Expression::column(7).pow(0), 0, 0),
            (Expression::column(last[0]) - &a, 1 << 32, 0),
            (-(&b * Expression::constant(last[1])).pow(3) + Expression::constant(4), 2, (1 << 32) - 1),
        ];
        for (expression, columns, constants) in expressions {
            assert_eq!((expression.columns(), expression.constants()), (columns, constants));
            assert_eq!(expression.named_columns().last().map_or(0, |index| *index as usize + 1), columns);
        }
    }
}
