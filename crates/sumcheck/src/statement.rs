//! Statements: the common input of prover and verifier.

use ark_ff::{BigInteger, PrimeField};
use evariste_expression::{Expression, Step};
use evariste_field::DeviceField;

use crate::{
    error::{Error, Fault, Result},
    transcript::{Transcript, bytes_of, put, put_coefficient},
};

/// The most variables of a statement: kernels count elements by 32 bits.
pub const MAX_VARIABLES: usize = 31;

/// The largest degree of an expression.
pub const MAX_DEGREE: u64 = 1 << 12;

/// The bits of soundness that a statement has at least, unless [`Statement::allow_small_challenges`] asks for fewer.
pub const MIN_SOUNDNESS_BITS: u32 = 100;

/// The variable that is bound first. Variable j is bit j of the index into a table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Order {
    /// The highest: the first half of a table and the second are joined. Tables can be folded where they lie.
    #[default]
    MsbFirst,
    /// The lowest: neighbours are joined.
    LsbFirst,
}

impl Order {
    /// Returns the variable that round `round` binds. Rounds and variables are numbered from 0 on.
    pub fn variable(self, num_vars: usize, round: usize) -> usize {
        match self {
            Order::MsbFirst => num_vars - 1 - round,
            Order::LsbFirst => round,
        }
    }
}

/// The weight of each point of the sum.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Weight<E> {
    /// Each point has the weight 1.
    None,
    /// eq(p, x) = Π (p_j x_j + (1 − p_j)(1 − x_j)) for this point p, with a coordinate for each variable.
    Eq(Vec<E>),
    /// eq(τ, x), for τ drawn from the transcript: the claim is 0, and says that the expression is 0 everywhere.
    ZeroCheck,
}

/// A claim about a sum, without the tables and the sum itself: Σ w(x) · e(T₀(x), T₁(x), …) over all x ∈ {0, 1}ⁿ. The
/// expression e has the multilinear table T_i for column i, and w is a weight.
///
/// The verifier makes the statement itself, so that the number of variables and the degree never come from a proof.
///
/// The proof has a polynomial q of degree d for each round, where d is the degree of the expression. Let X be the
/// variable of the round. The value q(X) is the sum of the expression over the variables that are not bound yet. The
/// factor of w for these variables is its weight. The proof has the coefficients of X to X^d.
///
/// The constant one follows from the known sum. That sum is q(0) + q(1) without a weight, and (1 − p) q(0) + p q(1)
/// with eq at a point of coordinate p. The factor of eq in X itself is linear and known. It is left out, as in Gruen's
/// "Some improvements for the PIOP for ZeroCheck", 2024. The factors of the variables before are left out too: q at the
/// challenge is the sum of the next round. So a round is `degree` elements, and q has one degree less than with eq as a
/// factor.
///
/// # Soundness
/// A false claim is accepted with a probability of at most (n d + t + m − 1) / |F| if challenges are random:
///
/// - n is the number of variables, and d the degree of the expression.
/// - t = n for a zero-check, whose point is drawn, and else 0.
/// - m is the number of statements that [`Statement::batch`] joined, or 1.
/// - F is the field of challenges, `E`, with |F| elements.
///
/// A prover that computes the challenges by a hash can try once for each hash: N hashes have N times the chance. So a
/// field of 31 bits with d = 3 costs a false claim of 20 variables 2^25 hashes, which is no proof. Provers, verifiers
/// and [`Statement::batch`] refuse a statement that gives fewer bits than [`MIN_SOUNDNESS_BITS`]. Take an extension of
/// the tables' field for challenges, such as one of degree 4 over 31 bits and of degree 2 over Goldilocks. The point of
/// [`Weight::Eq`] is the caller's, and no part of the formula.
#[derive(Clone, Debug)]
pub struct Statement<E> {
    num_vars: usize,
    expression: Expression,
    columns: usize,
    constants: Vec<E>,
    weight: Weight<E>,
    order: Order,
    /// Statements that it was joined of, or 1.
    joined: usize,
    small_challenges: bool,
}

impl<E: DeviceField> Statement<E> {
    /// Makes the statement about Σ e(T(x)), without a weight, over `num_vars` variables.
    ///
    /// A verified proof says that the values of the tables give the value that the last round leads to, and nothing
    /// more. You check by its commitment that each is the value of its table. The expression depends on every column
    /// that it names: in `a * 0 + b`, any value of a is accepted.
    ///
    /// # Errors
    /// - [`Error::Variables`] for no variable or more than [`MAX_VARIABLES`].
    /// - [`Error::Degree`] if the expression has no column, or a degree above [`MAX_DEGREE`] or not below the
    ///   characteristic.
    /// - [`Error::UnusedColumn`] if it leaves out a column before its last one.
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
        let named = expression.named_columns();
        if let Some((column, _)) = (0..).zip(&named).find(|(at, column)| at != *column) {
            return Err(Error::UnusedColumn { column: column as usize, columns });
        }
        let expression = expression.clone();
        let (weight, order) = (Weight::None, Order::default());
        let constants = Vec::new();
        Ok(Self { num_vars, expression, columns, constants, weight, order, joined: 1, small_challenges: false })
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

    /// Accepts challenges of a field that is too small for [`MIN_SOUNDNESS_BITS`]. Provers and verifiers both have to
    /// ask for it. Such a proof convinces only a verifier that knows that the prover had no time to search for
    /// challenges that suit a false claim. It is for tests, for measuring, and for a round of a protocol that repeats
    /// it.
    #[must_use]
    pub fn allow_small_challenges(mut self) -> Self {
        self.small_challenges = true;
        self
    }

    /// Counts the bits of soundness: −log₂ of the probability that [`Statement`] tells, rounded down.
    pub fn soundness_bits(&self) -> u32 {
        let tau = if self.weight == Weight::ZeroCheck { self.num_vars } else { 0 };
        let failures = self.num_vars as u128 * u128::from(self.expression.degree()) + (tau + self.joined - 1) as u128;
        let prime = <E::BasePrimeField as PrimeField>::MODULUS;
        let value = prime.as_ref().iter().rev().fold(0f64, |value, limb| value * 2f64.powi(64) + *limb as f64);
        // Primes of more than 1,024 bits are no floats.
        let bits = f64::from(<E::BasePrimeField as PrimeField>::MODULUS_BIT_SIZE);
        let log_field = value.log2().min(bits) * E::extension_degree() as f64;
        // Floats err by far less than that.
        (log_field * (1.0 - 1e-12) - (failures as f64).log2()).max(0.0) as u32
    }

    /// Counts the variables.
    pub fn num_vars(&self) -> usize {
        self.num_vars
    }

    /// Returns the expression that is summed.
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

    /// Returns the order in which variables are bound.
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
    pub(crate) fn check(&self) -> Result<(), Fault> {
        let length = |what, expected, actual| Err(Fault::Length { what, expected, actual });
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

    /// Refuses what no proof of a claim would show: a zero-check of something else than 0, and challenges of a field
    /// that is too small.
    pub(crate) fn check_claim(&self, claim: E) -> Result<(), Fault> {
        if self.weight == Weight::ZeroCheck && claim != E::ZERO {
            return Err(Fault::ZeroCheckClaim);
        }
        let actual = self.soundness_bits();
        match self.small_challenges || actual >= MIN_SOUNDNESS_BITS {
            true => Ok(()),
            false => Err(Fault::SmallChallenges { expected: MIN_SOUNDNESS_BITS, actual }),
        }
    }

    /// Binds the transcript to the statement and the claim, and gives the point of the weight, drawn from the
    /// transcript for a zero-check.
    ///
    /// The message has these parts, one after the other:
    ///
    /// - the expression's digest;
    /// - the numbers of variables, of tables, of rounds and the degree, each as 4 bytes in little-endian order;
    /// - 0 or 1 for [`Order::MsbFirst`] or [`Order::LsbFirst`], and 0, 1 or 2 for the weight, in the same form;
    /// - the degree of the field over its prime field, as 4 bytes, and the prime;
    /// - for each field of the tower above that, from the lowest on, its degree over the prime field, as 4 bytes, and
    ///   X^n ([`DeviceField::tower`]);
    /// - the number of constants, as 4 bytes, and these;
    /// - the point of the weight, if one is given;
    /// - the claim.
    ///
    /// Elements are as in proofs, and coefficients as in elements.
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
        for floor in E::tower() {
            message.extend_from_slice(&(floor.len() as u32).to_le_bytes());
            floor.iter().for_each(|coefficient| put_coefficient::<E>(&mut message, coefficient));
        }
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

    /// Joins statements about tables of their own into one: Σ αⁱ · statement i. Its tables are those of the first, then
    /// those of the second and so on. Gives the sum's claim as well.
    ///
    /// α comes from `transcript` after one message that binds it to all statements, points and claims. The message is
    /// those with which each would begin a proof of its own, one after the other. All statements must have the same
    /// number of variables, weight and order. The sum allows small challenges if all statements do.
    ///
    /// # Errors
    /// - [`Error::Device`] with `Length` inside if there is no statement or another number of claims.
    /// - [`Error::Device`] with `Length` inside if a statement has another number of variables, another weight or
    ///   another order than the first.
    /// - [`Error::Device`] with `Length` inside if a statement has another number of constants or coordinates than it
    ///   needs.
    /// - [`Error::ZeroCheckClaim`] for a zero-check with a claim that is not 0.
    /// - [`Error::SmallChallenges`] if challenges give a statement or the sum too few bits of soundness.
    ///
    /// The transcript is as it was then.
    pub fn batch(statements: &[Self], claims: &[E], transcript: &mut dyn Transcript<E>) -> Result<(Self, E)> {
        let first = statements.first().ok_or_else(|| Error::length("statements of a batch, at least", 1, 0))?;
        if claims.len() != statements.len() {
            return Err(Error::length("claims of a batch", statements.len(), claims.len()));
        }
        for statement in statements {
            statement.check()?;
            if statement.num_vars != first.num_vars {
                return Err(Error::length("variables of a statement in a batch", first.num_vars, statement.num_vars));
            }
        }
        let same = |other: &&Self| other.weight == first.weight && other.order == first.order;
        let alike = statements.iter().filter(same).count();
        if alike != statements.len() {
            return Err(Error::length("statements of one weight and order in a batch", statements.len(), alike));
        }
        statements.iter().zip(claims).try_for_each(|(statement, claim)| statement.check_claim(*claim))?;
        let degree = statements.iter().map(|statement| statement.expression.degree()).max().unwrap_or(0);
        let joined = statements.iter().map(|statement| statement.joined).sum();
        let small_challenges = statements.iter().all(|statement| statement.small_challenges);
        // What it is joined to has the largest of their degrees.
        if let Some(largest) = statements.iter().find(|statement| statement.expression.degree() == degree) {
            Self { joined, small_challenges, ..largest.clone() }.check_claim(E::ZERO)?;
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
        let sum_of_all = Self::new(first.num_vars, &terms.into_iter().sum())?;
        let sum_of_all = Self { columns: columns as usize, joined, small_challenges, ..sum_of_all };
        Ok((sum_of_all.constants(&constants).weight(first.weight.clone()).order(first.order), sum))
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
        let value = match *step {
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
