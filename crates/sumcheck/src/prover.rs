//! The prover.

use std::{
    fmt,
    sync::{Arc, Mutex},
};

use evariste_backend::{Buffer, Device, Element, Queue, Secrecy, View, author::Lazy};
use evariste_expression::{Constants, Expression};
use evariste_field::{DeviceField, Mont};

use crate::{
    config::{Challenge, Strategy, SumcheckConfig},
    draw::{self, Interpolation},
    error::{Error, Result},
    polynomial::evaluate,
    program::FIRST_CONSTANT,
    proof::{Proof, complete},
    round,
    statement::{Statement, Weight, last_point},
    table::{Mle, is_below, variables_of},
    transcript::{Transcript, bytes_of},
};

mod drawn;
mod kernels;
mod messages;
mod run;
mod sharded;
mod streamed;

pub use sharded::ShardedSumcheck;

use kernels::Kernels;
use messages::{from_table, from_values, points};
use run::{ProofRun, TablePlace};

/// log₂ of the pairs of a chunk at least: one for each thread, or fewer where else parts of the device would be idle.
const LOG_CHUNK: u32 = 8;
const LEAST_LOG_CHUNK: u32 = 6;

/// How rounds get the weight, if there is one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Weighted<E> {
    /// As one more table.
    ByTable,
    /// As its factors for two groups of variables, times a constant.
    ByFactors(E),
}

/// A proof, and the claim about the rest that it leads to.
#[derive(Debug)]
pub struct ProverOutput<E: DeviceField> {
    /// The proof.
    pub proof: Proof<E>,
    /// The coordinates of the bound variables: by variable after all rounds, by round after some.
    pub point: Vec<E>,
    /// The weighted sum of the expression at these coordinates: the claim about the rest.
    pub value: E,
    /// The point of the weight, drawn from the transcript in a zero-check.
    pub weight: Option<Vec<E>>,
    /// The tables with the first variables bound, after some of the rounds.
    pub tables: Vec<Buffer<Mont<E>>>,
}

/// A prover for statements about an expression, on one device.
///
/// Each round is one launch: it binds the tables to the last challenge, evaluates the round's polynomial and adds up in
/// each workgroup.
///
/// Take n variables, k tables over a field of b bytes and an expression of degree d. Then n rounds read at most
/// 4·k·b·2ⁿ bytes and write 2·k·b·2ⁿ. The first round reads the tables once and binds nothing. Binding takes k·2ⁿ
/// multiplications. The values of the expression take d·2ⁿ times its own.
///
/// Challenges and bound tables are of `E`. The statement's tables are over `T`, which is `E` or the prime field right
/// below it.
///
/// A false claim passes with a probability of at most (n d + t + m − 1) / |`E`| in one try. [`Statement`] defines t and
/// m, and the bound below which a statement is refused.
///
/// The protocol is that of Lund, Fortnow, Karloff and Nisan, "Algebraic methods for interactive proof systems", Journal
/// of the ACM 39 (1992). [`Statement`] defines the messages.
pub struct Sumcheck<E, T = E> {
    /// The device of the kernels, which are compiled later. A queue of another device is refused.
    device: Device,
    queue: Queue,
    expression: Expression,
    config: SumcheckConfig,
    mle: Mle<E, T>,
    kernels: Arc<Mutex<Kernels>>,
    /// The matrix from values to messages, once it is needed.
    interpolation: Arc<Lazy<Interpolation<E>>>,
}

impl<E: DeviceField, T: DeviceField> Sumcheck<E, T> {
    /// Makes a prover for `expression` with the default configuration. `&device` stands for the device's default queue.
    /// Kernels are compiled when they are first needed, or all at once by [`Sumcheck::prepare`].
    ///
    /// # Errors
    /// - [`Error::Degree`] if the expression has no column, or a degree above [`MAX_DEGREE`](crate::MAX_DEGREE) or not
    ///   below the characteristic.
    /// - [`Error::UnusedColumn`] if it leaves out a column before its last one.
    /// - [`Error::Field`] if `T` is neither `E` nor the prime field right below it.
    pub fn new(queue: impl Into<Queue>, expression: &Expression) -> Result<Self> {
        Self::with_config(queue, expression, SumcheckConfig::default())
    }

    /// Makes a prover for `expression` as [`Sumcheck::new`] does, with a configuration.
    ///
    /// # Errors
    /// Those of [`Sumcheck::new`], about the expression and the fields.
    pub fn with_config(queue: impl Into<Queue>, expression: &Expression, config: SumcheckConfig) -> Result<Self> {
        let queue = queue.into();
        is_below::<E, T>()?;
        Statement::<E>::new(1, expression)?;
        let (expression, mle) = (expression.clone(), Mle::new(&queue));
        let (device, kernels, interpolation) = (queue.device().clone(), Arc::default(), Arc::default());
        Ok(Self { device, queue, expression, config, mle, kernels, interpolation })
    }

    /// Returns the same prover, with the same kernels, on another queue of its device. Proofs on a queue of another
    /// device are refused.
    #[must_use]
    pub fn on(&self, queue: &Queue) -> Self {
        self.with(queue, self.config)
    }

    /// The same prover, with the same kernels, on this queue and with this configuration.
    fn with(&self, queue: &Queue, config: SumcheckConfig) -> Self {
        let (device, expression) = (self.device.clone(), self.expression.clone());
        let (queue, mle) = (queue.clone(), self.mle.on(queue));
        let (kernels, interpolation) = (Arc::clone(&self.kernels), Arc::clone(&self.interpolation));
        Self { device, queue, expression, config, mle, kernels, interpolation }
    }

    /// Counts the bytes of device memory that a proof takes: the statement's tables, and room for the tables that
    /// rounds bind. [`Sumcheck::prove_host`] uploads the tables whole if it may use this much.
    pub fn required_bytes(config: &SumcheckConfig, statement: &Statement<E>) -> u64 {
        let by_table = matches!(config.strategy, Strategy::Textbook | Strategy::FromClaim);
        let weights = if by_table && *statement.weight_of() != Weight::None { 2 * Mont::<E>::BYTES } else { 0 };
        let of_row = statement.tables() * (Mont::<T>::BYTES + Mont::<E>::BYTES) + weights;
        u64::try_from((of_row as u128) << statement.num_vars()).unwrap_or(u64::MAX)
    }

    /// Proves that the weighted sum of a statement about this prover's expression is `claim`. The tables stay as they
    /// are. Beside them the proof takes half of their memory, and three quarters for
    /// [`Order::LsbFirst`](crate::Order::LsbFirst), if `T` is `E`.
    ///
    /// # Errors
    /// - [`Error::OtherExpression`] if the statement is about another expression than the prover's.
    /// - [`Error::ZeroCheckClaim`] for a zero-check with a claim that is not 0.
    /// - [`Error::SmallChallenges`] if challenges give the statement fewer bits of soundness than
    ///   [`MIN_SOUNDNESS_BITS`](crate::MIN_SOUNDNESS_BITS), unless it allows that.
    /// - [`Error::FalseClaim`] if the configuration asks for that check and the sum is another.
    /// - [`Error::Degenerate`] by [`Strategy::Textbook`] and [`Strategy::FromClaim`], if the weight is 0 at a
    ///   challenge.
    /// - [`Error::Device`] with `Length` inside unless there is a table for each column and an element for each point.
    ///   Also unless the statement's numbers of constants and coordinates match.
    /// - [`Error::Device`] with `Length` inside if a weight as a table over a prime field below makes more tables than
    ///   a kernel can bind.
    /// - [`Error::Device`] with `WrongDevice` inside if a table or the queue belongs to another device.
    /// - [`Error::Device`] with `OutOfMemory`, `Compile` or a failure of the device inside.
    pub fn prove<'a>(
        &self,
        statement: &Statement<E>,
        tables: &[impl Into<View<'a, Mont<T>>> + Copy],
        claim: E,
        transcript: &mut dyn Transcript<E>,
    ) -> Result<ProverOutput<E>> {
        self.prove_rounds(statement, statement.num_vars(), tables, claim, transcript)
    }

    /// Proves the first `rounds` rounds as [`Sumcheck::prove`] does: one at least, and all if there are fewer. The rest
    /// of the claim is the sum of the same expression over the returned tables.
    ///
    /// # Errors
    /// Those of [`Sumcheck::prove`], about the statement, the tables, the claim and the device.
    pub fn prove_rounds<'a>(
        &self,
        statement: &Statement<E>,
        rounds: usize,
        tables: &[impl Into<View<'a, Mont<T>>> + Copy],
        claim: E,
        transcript: &mut dyn Transcript<E>,
    ) -> Result<ProverOutput<E>> {
        let tables = self.given(statement, tables)?;
        self.run(statement, rounds, TablePlace::Given(tables), claim, transcript)
    }

    /// Proves as [`Sumcheck::prove`] does, with tables that are not needed any more. They are folded where they lie, if
    /// variables are bound from the highest and elements are those of challenges. The proof then takes hardly any more
    /// memory. Else they are dropped once they are folded.
    ///
    /// # Errors
    /// Those of [`Sumcheck::prove`], about the statement, the tables, the claim and the device. The tables are dropped
    /// then, too.
    pub fn prove_consuming(
        &self,
        statement: &Statement<E>,
        tables: Vec<Buffer<Mont<T>>>,
        claim: E,
        transcript: &mut dyn Transcript<E>,
    ) -> Result<ProverOutput<E>> {
        self.check(statement, tables.iter().map(Buffer::as_view))?;
        self.run(statement, statement.num_vars(), TablePlace::Owned(tables), claim, transcript)
    }

    /// Computes the weighted sum itself in one pass over the tables.
    ///
    /// # Errors
    /// - [`Error::OtherExpression`] if the statement is about another expression than the prover's.
    /// - [`Error::Device`] with `Length` inside for a zero-check, whose weight has no point before its proof.
    /// - [`Error::Device`] with `Length` inside if the number or length of tables, constants or coordinates does not
    ///   match the statement.
    /// - [`Error::Device`] with `WrongDevice` inside if a table or the queue belongs to another device.
    /// - [`Error::Device`] with a failure of the device inside.
    pub fn sum<'a>(&self, statement: &Statement<E>, tables: &[impl Into<View<'a, Mont<T>>> + Copy]) -> Result<E> {
        let tables = self.given(statement, tables)?;
        let point = match statement.weight_of() {
            Weight::None => None,
            Weight::Eq(point) => Some(point.as_slice()),
            Weight::ZeroCheck => {
                let (what, expected) = ("the coordinates of the weight's point", statement.num_vars());
                return Err(Error::length(what, expected, 0));
            }
        };
        let (given, weight) = (TablePlace::Given(tables), (point, Weighted::ByFactors(E::ONE)));
        let mut run = self.start(statement, given, weight, Challenge::Host, Secrecy::Public)?;
        run.sum(point)
    }

    /// Workgroup memory that kernels may count on: a CPU has as much as it likes.
    fn shared_limit(&self) -> u32 {
        let info = self.device.info();
        if info.is_processor() { u32::MAX } else { info.limits.workgroup_bytes }
    }

    /// Tables of the caller's that a statement can be about.
    fn given<'a>(
        &self,
        statement: &Statement<E>,
        tables: &[impl Into<View<'a, Mont<T>>> + Copy],
    ) -> Result<Vec<View<'a, Mont<T>>>> {
        let tables: Vec<View<'a, Mont<T>>> = tables.iter().map(|table| (*table).into()).collect();
        self.check(statement, tables.iter().copied())?;
        Ok(tables)
    }

    fn check<'b>(&self, statement: &Statement<E>, tables: impl IntoIterator<Item = View<'b, Mont<T>>>) -> Result<()> {
        let lengths = tables.into_iter().map(|table| {
            self.device.expect_same("a table", table.device())?;
            Ok(table.len())
        });
        self.check_lengths(statement, lengths.collect::<Result<Vec<_>>>()?)
    }

    /// Refuses a queue of another device, another expression, and tables of other lengths or another number than the
    /// statement has.
    fn check_lengths(&self, statement: &Statement<E>, lengths: impl IntoIterator<Item = usize>) -> Result<()> {
        self.device.expect_same("the queue of a sumcheck", self.queue.device())?;
        if *statement.expression() != self.expression {
            return Err(Error::OtherExpression);
        }
        statement.check()?;
        let mut count = 0;
        for actual in lengths {
            if actual != 1 << statement.num_vars() {
                let (what, expected) = ("the elements of a table", 1 << statement.num_vars());
                return Err(Error::length(what, expected, actual));
            }
            variables_of(actual)?;
            count += 1;
        }
        match count == statement.tables() {
            true => Ok(()),
            false => Err(Error::length("the tables of a statement", statement.tables(), count)),
        }
    }

    /// The tables where rounds find them, with the weight and what the device needs to draw challenges. What rounds make
    /// is as secret as the tables, and at least as secret as said.
    fn start<'a, 'p>(
        &'p self,
        statement: &'p Statement<E>,
        place: TablePlace<'a, E, T>,
        (point, weighted): (Option<&[E]>, Weighted<E>),
        challenge: Challenge,
        secrecy: Secrecy,
    ) -> Result<ProofRun<'a, 'p, E, T>> {
        let secrecy = Secrecy::of([place.secrecy(), secrecy]);
        let mut expression = self.expression.clone();
        let mut columns = statement.tables();
        let split = match (point, weighted) {
            (Some(point), Weighted::ByFactors(scale)) => {
                Some(self.mle.split_eq(point, scale, statement.binding_order(), secrecy)?)
            }
            _ => None,
        };
        if weighted == Weighted::ByTable && point.is_some() {
            expression = Expression::column(columns as u32) * expression;
            columns += 1;
        }
        let mut inputs = vec![E::ZERO];
        debug_assert_eq!(inputs.len(), FIRST_CONSTANT);
        inputs.extend_from_slice(statement.constants_of());
        inputs.extend(Constants::of(&expression).integers().iter().map(|value| E::from(*value)));
        let matrix_at = inputs.len();
        if challenge == Challenge::Device {
            let matrix = self.interpolation.get_or_make(|| Ok::<_, Error>(Interpolation::new(statement.degree())))?;
            let weights: Vec<[E; 2]> = (0..statement.num_vars()).map(|round| statement.weights(point, round)).collect();
            matrix.others(&mut inputs);
            matrix.lines(&weights, self.is_zero_at_first(statement), &mut inputs);
        }
        let inputs = self.queue.upload_with::<Mont<E>>(&inputs, secrecy)?;
        let weight = match point {
            Some(point) if weighted == Weighted::ByTable => Some(self.mle.eq(point)?),
            _ => None,
        };
        let mut run = ProofRun {
            plan: self,
            statement,
            expression,
            columns,
            place,
            weight,
            eq: split,
            inputs,
            matrix_at,
            challenge,
            secrecy,
        };
        run.settle()?;
        Ok(run)
    }

    fn run<'a>(
        &self,
        statement: &Statement<E>,
        rounds: usize,
        place: TablePlace<'a, E, T>,
        claim: E,
        transcript: &mut dyn Transcript<E>,
    ) -> Result<ProverOutput<E>> {
        statement.check_claim(claim)?;
        let rounds = rounds.clamp(1, statement.num_vars());
        let point = statement.begin(claim, rounds, transcript);
        self.rounds(statement, rounds, place, claim, point, transcript)
    }

    /// The rounds of a proof whose transcript is bound to the statement and the claim, with `point` that of the weight.
    fn rounds<'a>(
        &self,
        statement: &Statement<E>,
        rounds: usize,
        place: TablePlace<'a, E, T>,
        claim: E,
        point: Option<Vec<E>>,
        transcript: &mut dyn Transcript<E>,
    ) -> Result<ProverOutput<E>> {
        let by_table = matches!(self.config.strategy, Strategy::Textbook | Strategy::FromClaim);
        let table = by_table && (point.is_none() || (statement.degree() as u64) < last_point::<E>());
        let strategy = if by_table && !table { Strategy::SplitEq } else { self.config.strategy };
        let drawn =
            self.may_draw(statement) && !by_table && rounds == statement.num_vars() && transcript.blake3().is_some();
        let weighted = if table { Weighted::ByTable } else { Weighted::ByFactors(E::ONE) };
        let challenge = if drawn { Challenge::Device } else { Challenge::Host };
        let mut run = self.start(statement, place, (point.as_deref(), weighted), challenge, Secrecy::Public)?;
        if self.config.check && run.sum(if table { None } else { point.as_deref() })? != claim {
            return Err(Error::FalseClaim);
        }
        let (num_vars, order, degree) = (statement.num_vars(), statement.binding_order(), statement.degree() as u64);
        let zero_check = self.is_zero_at_first(statement);
        if let Some(state) = transcript.blake3().filter(|_| drawn).map(|transcript| transcript.words()) {
            let (messages, values) = run.draw(claim, state, point.as_deref())?;
            let mut value = claim;
            let mut bound = vec![E::ZERO; rounds];
            for (round, message) in messages.iter().enumerate() {
                transcript.absorb(&bytes_of(message));
                let r = transcript.challenge();
                value = evaluate(&complete(message, value, statement.weights(point.as_deref(), round)), r);
                bound[order.variable(num_vars, round)] = r;
            }
            transcript.absorb(&bytes_of(&values));
            let proof = Proof { rounds: messages, values };
            return Ok(ProverOutput { proof, point: bound, value, weight: point, tables: Vec::new() });
        }
        // What the factors of the weight for bound variables make, where it is a table.
        let mut scale = E::ONE;
        let (mut value, mut challenge) = (claim, None);
        let (mut messages, mut challenges) = (Vec::with_capacity(rounds), Vec::with_capacity(rounds));
        for round in 0..rounds {
            let weights = statement.weights(point.as_deref(), round);
            let degree_of_round = if table && point.is_some() { degree + 1 } else { degree };
            let points = points(strategy, degree_of_round, zero_check && round == 0);
            let at_one = !table && weights[1] == E::ZERO;
            let values = run.round(round, challenge, &points, at_one)?;
            let polynomial = match table {
                true => from_table(&values, &points, value, weights, point.is_some().then_some(scale)),
                false => from_values(&values, &points, value, weights),
            };
            let message = polynomial[1..].to_vec();
            transcript.absorb(&bytes_of(&message));
            let r = transcript.challenge();
            value = evaluate(&complete(&message, value, weights), r);
            if table && point.is_some() {
                scale *= weights[0] + r * (weights[1] - weights[0]);
            }
            if scale == E::ZERO && round + 1 < rounds {
                return Err(Error::Degenerate { round });
            }
            challenge = Some(r);
            challenges.push(r);
            messages.push(message);
        }
        let whole = rounds == num_vars;
        let (mut values, mut tables) = (Vec::new(), Vec::new());
        if let Some(challenge) = challenge {
            run.bind_to(challenge)?;
        }
        if whole {
            values = run.values()?;
            transcript.absorb(&bytes_of(&values));
        } else {
            tables = run.bound(rounds)?;
        }
        let mut bound = challenges.clone();
        if whole {
            (0..rounds).for_each(|round| bound[order.variable(num_vars, round)] = challenges[round]);
        }
        Ok(ProverOutput { proof: Proof { rounds: messages, values }, point: bound, value, weight: point, tables })
    }

    /// Whether challenges are drawn on the device where the transcript and the strategy allow it.
    fn may_draw(&self, statement: &Statement<E>) -> bool {
        self.config.challenge == Challenge::Device
            && draw::can::<E>(statement.degree())
            && round::shared_bytes::<E>(statement.degree(), true) <= self.shared_limit()
    }

    /// Whether the first round need not evaluate at 0 and 1.
    fn is_zero_at_first(&self, statement: &Statement<E>) -> bool {
        self.config.strategy == Strategy::ZeroCheck && *statement.weight_of() == Weight::ZeroCheck
    }
}

impl<E, T> fmt::Debug for Sumcheck<E, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { device, expression, config, .. } = self;
        f.debug_struct("Sumcheck")
            .field("device", device)
            .field("expression", expression)
            .field("config", config)
            .finish_non_exhaustive()
    }
}
