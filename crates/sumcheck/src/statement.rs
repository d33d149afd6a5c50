//! What is proved, as prover and verifier both know it.

use std::collections::BTreeSet;

use ark_ff::{BigInteger, PrimeField};
use evariste_field::{DeviceField, Expression, Step};

use crate::{
    Error, Result, Transcript,
    transcript::{bytes_of, put},
};

/// The most variables of a statement: kernels count elements by 32 bits.
pub const MAX_VARIABLES: usize = 31;

/// The largest degree of an expression.
pub const MAX_DEGREE: u64 = 1 << 12;

/// Says which variable is bound first. Variable j is bit j of the index into a table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Order {
    /// The highest: the first half of a table and the second are joined. Tables can be folded where they lie.
    #[default]
    High,
    /// The lowest: neighbours are joined.
    Low,
}

impl Order {
    /// Gives the variable that a round binds, from 0 on.
    pub fn variable(self, num_vars: usize, round: usize) -> usize {
        match self {
            Order::High => num_vars - 1 - round,
            Order::Low => round,
        }
    }
}

/// Says by what each point of the sum is weighted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Weight<E> {
    /// Each point has the weight 1.
    None,
    /// eq(p, x) = Π (p_j x_j + (1 − p_j)(1 − x_j)) for this point p, with a coordinate for each variable.
    Eq(Vec<E>),
    /// eq(τ, x), for τ drawn from the transcript: the claim is 0, and says that the expression is 0 everywhere.
    ZeroCheck,
}

/// A claim about a sum, but for the tables and the sum itself: Σ w(x) · e(T₀(x), T₁(x), …) over all x ∈ {0, 1}ⁿ, for an
/// expression e of which column i is the multilinear table T_i, and a weight w.
///
/// The verifier makes the statement itself, so that number of variables and degree are never taken from a proof.
///
/// The proof has for each round the polynomial q of the degree d of the expression that sums the expression over the variables
/// that are not bound yet, weighted by the factor of w for these, where the variable of the round is X: its coefficients of X
/// to X^d. The constant one follows from what the sum has to be: q(0) + q(1) without a weight, and (1 − p) q(0) + p q(1) with
/// eq at a point of coordinate p. The factor of eq in X itself, which is linear and known, is left out, as in Gruen's "Some
/// improvements for the PIOP for ZeroCheck", 2024, and with it the factors of the variables before: q at the challenge is the
/// sum of the next round. So a round is `degree` elements and q has one degree less than with eq as a factor.
#[derive(Clone, Debug)]
pub struct Statement<E> {
    num_vars: usize,
    expression: Expression,
    columns: usize,
    constants: Vec<E>,
    weight: Weight<E>,
    order: Order,
}

impl<E: DeviceField> Statement<E> {
    /// Makes the statement about Σ e(T(x)), without a weight, over `num_vars` variables.
    ///
    /// The values of tables in a proof have to give the value that the last round leads to, and nothing more: that each is the
    /// value of its table is for the verifier to check, by its commitment. On which columns the expression depends is told by
    /// which it names: in `a * 0 + b`, any value of a is accepted.
    ///
    /// # Errors
    /// [`Error::Variables`] for no variable or more than [`MAX_VARIABLES`]; [`Error::Degree`] if the expression has no
    /// column, or a degree above [`MAX_DEGREE`] or not below the characteristic; [`Error::UnusedColumn`] if it leaves
    /// out a column before its last one.
    pub fn new(num_vars: usize, expression: &Expression) -> Result<Self> {
        if num_vars == 0 || num_vars > MAX_VARIABLES {
            return Err(Error::Variables { expected: MAX_VARIABLES, actual: num_vars });
        }
        let (least, most) = (1, most_degree::<E>());
        let degree = expression.degree();
        if degree < least || degree > most {
            return Err(Error::Degree { expected: most, actual: degree });
        }
        let columns = expression.columns();
        let column = |step| if let Step::Column(column) = step { Some(column as usize) } else { None };
        let used: BTreeSet<usize> = expression.steps().into_iter().filter_map(column).collect();
        if let Some((column, _)) = used.iter().enumerate().find(|(at, column)| at != *column) {
            return Err(Error::UnusedColumn { column, columns });
        }
        let expression = expression.clone();
        let (weight, order) = (Weight::None, Order::default());
        Ok(Self { num_vars, expression, columns, constants: Vec::new(), weight, order })
    }

    /// Sets the constants of the expression.
    #[must_use]
    pub fn constants(mut self, constants: &[E]) -> Self {
        self.constants = constants.to_vec();
        self
    }

    /// Sets the weight.
    #[must_use]
    pub fn weight(mut self, weight: Weight<E>) -> Self {
        self.weight = weight;
        self
    }

    /// Sets the order in which variables are bound.
    #[must_use]
    pub fn order(mut self, order: Order) -> Self {
        self.order = order;
        self
    }

    /// Counts the variables.
    pub fn num_vars(&self) -> usize {
        self.num_vars
    }

    /// Gives the expression that is summed.
    pub fn expression(&self) -> &Expression {
        &self.expression
    }

    /// Counts the tables.
    pub fn tables(&self) -> usize {
        self.columns
    }

    /// Counts the elements of a round: the degree of the expression, without the weight.
    pub fn degree(&self) -> usize {
        self.expression.degree() as usize
    }

    /// Gives the order in which variables are bound.
    pub fn binding_order(&self) -> Order {
        self.order
    }

    pub(crate) fn weight_of(&self) -> &Weight<E> {
        &self.weight
    }

    pub(crate) fn constants_of(&self) -> &[E] {
        &self.constants
    }

    /// Refuses constants or a point of the wrong number.
    pub(crate) fn check(&self) -> Result<()> {
        let length = |what, expected, actual| Err(Error::Length { what, expected, actual });
        let needed = self.expression.constants();
        if self.constants.len() != needed {
            return length("the constants of the expression", needed, self.constants.len());
        }
        match &self.weight {
            Weight::Eq(point) if point.len() != self.num_vars => {
                length("the coordinates of the weight's point", self.num_vars, point.len())
            }
            _ => Ok(()),
        }
    }

    /// Binds the transcript to the statement and the claim, and gives the point of the weight, drawn from the transcript for a
    /// zero-check.
    ///
    /// The message is: the expression's digest; the numbers of variables, of tables, of rounds and the degree, 0 or 1 for
    /// [`Order::High`] or [`Order::Low`], and 0, 1 or 2 for the weight, each as 4 bytes in little-endian order; the degree of
    /// the field over its prime field, as 4 bytes, and the prime; the number of constants, as 4 bytes, and these; the point of
    /// the weight, if one is given; and the claim.
    pub(crate) fn begin(&self, claim: E, rounds: usize, transcript: &mut dyn Transcript<E>) -> Option<Vec<E>> {
        transcript.absorb(&self.message(claim, rounds));
        match &self.weight {
            Weight::None => None,
            Weight::Eq(point) => Some(point.clone()),
            Weight::ZeroCheck => Some((0..self.num_vars).map(|_| transcript.challenge()).collect()),
        }
    }

    /// See [`Statement::begin`].
    fn message(&self, claim: E, rounds: usize) -> Vec<u8> {
        let mut message = self.expression.digest().to_vec();
        let weight = match &self.weight {
            Weight::None => 0,
            Weight::Eq(_) => 1,
            Weight::ZeroCheck => 2,
        };
        let numbers = [self.num_vars, self.columns, rounds, self.degree(), self.order as usize, weight];
        let degree = E::extension_degree() as usize;
        for number in numbers.into_iter().chain([degree]) {
            message.extend_from_slice(&(number as u32).to_le_bytes());
        }
        message.extend_from_slice(&<E::BasePrimeField as PrimeField>::MODULUS.to_bytes_le());
        message.extend_from_slice(&(self.constants.len() as u32).to_le_bytes());
        message.extend_from_slice(&bytes_of(&self.constants));
        if let Weight::Eq(point) = &self.weight {
            message.extend_from_slice(&bytes_of(point));
        }
        put(&mut message, &claim);
        message
    }

    /// What q(0) and q(1) are multiplied with in a round, for their sum to be that of the round before.
    pub(crate) fn weights(&self, point: Option<&[E]>, round: usize) -> [E; 2] {
        match point {
            None => [E::ONE, E::ONE],
            Some(point) => {
                let p = point[self.order.variable(self.num_vars, round)];
                [E::ONE - p, p]
            }
        }
    }

    /// Joins statements about tables of their own into one: Σ αⁱ · statement i, whose tables are those of the first, then those
    /// of the second and so on, with α from `transcript` after one message that binds it to all statements, points and claims:
    /// what each would begin a proof of its own with, one after the other. Gives the sum's claim as well. All must have the same
    /// number of variables, weight and order.
    ///
    /// # Errors
    /// [`Error::Length`] if there is no statement or another number of claims, if a statement has another number of
    /// variables, another weight or another order than the first, or if constants or coordinates of one are missing or
    /// too many.
    pub fn batch(statements: &[Self], claims: &[E], transcript: &mut dyn Transcript<E>) -> Result<(Self, E)> {
        let length = |what, expected, actual| Error::Length { what, expected, actual };
        let first =
            statements.first().ok_or_else(|| length("statements of a batch, of which there is one at least", 1, 0))?;
        if claims.len() != statements.len() {
            return Err(length("claims of a batch", statements.len(), claims.len()));
        }
        for statement in statements {
            statement.check()?;
            if statement.num_vars != first.num_vars {
                return Err(length("variables of a statement in a batch", first.num_vars, statement.num_vars));
            }
        }
        let same = |other: &&Self| other.weight == first.weight && other.order == first.order;
        let alike = statements.iter().filter(same).count();
        if alike != statements.len() {
            return Err(length("statements of one weight and order in a batch", statements.len(), alike));
        }
        let mut message = Vec::new();
        for (statement, claim) in statements.iter().zip(claims) {
            message.extend(statement.message(*claim, statement.num_vars));
        }
        transcript.absorb(&message);
        let alpha = transcript.challenge();
        let (mut columns, mut constants) = (0, Vec::new());
        let (mut power, mut sum) = (E::ONE, E::ZERO);
        let mut terms = Vec::with_capacity(statements.len());
        for (statement, claim) in statements.iter().zip(claims) {
            let own = shifted(&statement.expression, columns, constants.len() as u32);
            constants.extend_from_slice(&statement.constants);
            terms.push(own * Expression::constant(constants.len() as u32));
            constants.push(power);
            columns += statement.columns as u32;
            sum += power * claim;
            power *= alpha;
        }
        let joined = Self::new(first.num_vars, &terms.into_iter().sum())?;
        let joined = Self { columns: columns as usize, ..joined };
        Ok((joined.constants(&constants).weight(first.weight.clone()).order(first.order), sum))
    }
}

/// The largest degree over a field: the points 0 to degree are different.
fn most_degree<E: DeviceField>() -> u64 {
    MAX_DEGREE.min(last_point::<E>())
}

/// The last of the points 0, 1, … that are different.
pub(crate) fn last_point<E: DeviceField>() -> u64 {
    match E::characteristic() {
        [low, high @ ..] if high.iter().all(|limb| *limb == 0) => low - 1,
        _ => u64::MAX,
    }
}

/// The expression with other numbers for its columns and constants.
fn shifted(expression: &Expression, columns: u32, constants: u32) -> Expression {
    let mut values: Vec<Expression> = Vec::new();
    for step in expression.steps() {
        let at = |number: u32| &values[number as usize];
        let value = match step {
            Step::Column(index) => Expression::column(columns + index),
            Step::Constant(index) => Expression::constant(constants + index),
            Step::Integer(value) => Expression::integer(value),
            Step::Add(a, b) => at(a) + at(b),
            Step::Sub(a, b) => at(a) - at(b),
            Step::Mul(a, b) => at(a) * at(b),
            Step::Neg(a) => -at(a),
        };
        values.push(value);
    }
    values.pop().unwrap_or_else(|| Expression::integer(0))
}
