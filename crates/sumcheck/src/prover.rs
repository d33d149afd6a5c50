//! The prover.

use std::{
    collections::{HashMap, HashSet},
    fmt,
    sync::{Arc, Mutex, PoisonError},
};

use evariste_backend::{Buffer, Device, Kernel, KernelSpec, Lazy, Queue, View, Wiped};
use evariste_field::{DeviceField, Expression, Mont};

use crate::{
    Error, Order, Proof, Result, Statement, Tables, Transcript, Weight,
    draw::{self, Matrix},
    params::Params,
    polynomial::{divide, evaluate, interpolate, interpolate_with_top},
    program::{FIRST_CONSTANT, Fold, Points, integers},
    proof::complete,
    round::{self, Kind, Source, TABLES, Target},
    statement::last_point,
    table::{is_below, variables_of},
    transcript::bytes_of,
};

mod run;
mod streamed;

use run::{Place, Run};

/// log₂ of the pairs of a chunk at least: one for each thread, or fewer where else parts of the device would be idle.
const LOG_CHUNK: u32 = 8;
const LEAST_LOG_CHUNK: u32 = 6;

/// Says how a round's polynomial is found. The proof is the same with each, to the byte.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Strategy {
    /// The weight is one more table, and the round is evaluated at 0, 1, … to its degree: the book's way. Where the field has no
    /// element for one degree more than the expression's, a weighted sum is found as by [`Strategy::SplitEq`].
    Textbook,
    /// As [`Strategy::Textbook`], but what the round is at 1 follows from what it is at 0 and from the claim.
    FromClaim,
    /// The weight is never a table: its factors for two groups of variables are, which have about 2^(n/2) elements, and the
    /// factor of the variable of the round is left out (Gruen). With the value at infinity instead of the highest one, and that
    /// at 1 from the claim.
    SplitEq,
    /// As [`Strategy::SplitEq`], and in the first round of a zero-check the value at 0 is known to be 0.
    #[default]
    ZeroCheck,
}

/// Says where the challenges of a proof are drawn. They are the same.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Draw {
    /// On the device, by the kernel of the next round, so that a whole proof is read at once: of all rounds, by
    /// [`Strategy::SplitEq`] or [`Strategy::ZeroCheck`], with the [`Blake3Transcript`](crate::Blake3Transcript) and over primes
    /// of up to 384 bits. Else on the host.
    #[default]
    Device,
    /// On the host, which reads the sums of each round.
    Host,
}

/// How rounds have the weight, where there is one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Weighted {
    /// As one more table.
    ByTable,
    /// As its factors for two groups of variables.
    ByFactors,
}

/// Says how a [`Sumcheck`] proves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Config {
    /// How a round's polynomial is found.
    pub strategy: Strategy,
    /// Where challenges are drawn.
    pub draw: Draw,
    /// Whether the claim is compared with the sum before the first round.
    pub check: bool,
}

/// Holds a proof, and what the prover goes on with.
#[derive(Debug)]
pub struct Proved<E: DeviceField> {
    /// The proof.
    pub proof: Proof<E>,
    /// The coordinates that were bound: that of each variable after all rounds, and those of the variables of the first rounds,
    /// in the order of these, after some.
    pub point: Vec<E>,
    /// What the weighted sum of the expression is at these coordinates: the claim about what is left.
    pub value: E,
    /// The point of the weight, drawn from the transcript in a zero-check.
    pub weight: Option<Vec<E>>,
    /// The tables with the first variables bound, after some of the rounds.
    pub tables: Vec<Buffer<Mont<E>>>,
}

/// A prover for statements about an expression, on one device.
///
/// Each round is one launch: it folds the tables by the last challenge, evaluates the round's polynomial and adds up in each
/// workgroup. With n variables, k tables over a field of b bytes and an expression of degree d, n rounds read 4 k b 2ⁿ bytes and
/// write 2 k b 2ⁿ at most, the first round among them, which reads the tables once and folds nothing. Folding takes k 2ⁿ
/// multiplications, and the values of the expression d 2ⁿ times its own.
///
/// Challenges are of `E`. The tables' elements are of `T`, which is `E` or the prime field right below it; folded ones are of
/// `E`.
///
/// A false claim is proved with a probability of at most (n d + t + m − 1) / |`E`| in one try: see [`Statement`] for what these are,
/// and for what is refused.
///
/// The protocol is that of Lund, Fortnow, Karloff and Nisan, "Algebraic methods for interactive proof systems", Journal of the
/// ACM 39 (1992); [`Statement`] says what messages are.
pub struct Sumcheck<E, T = E> {
    /// Of the kernels, which are made later: a queue of another device is refused.
    device: Device,
    queue: Queue,
    expression: Expression,
    config: Config,
    tables: Tables<E, T>,
    kernels: Arc<Mutex<Kernels>>,
    /// What makes messages of values, once it is needed.
    matrix: Arc<Lazy<Matrix<E>>>,
}

/// Kernels by what they are made for.
type Kernels = HashMap<(Kind, Use), Arc<Kernel<Params>>>;

/// Which of the two kernels of a kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Use {
    Round,
    Finish,
}

impl<E: DeviceField, T: DeviceField> Sumcheck<E, T> {
    /// Makes a prover for `expression` on a queue; `&device` is its default one. Kernels are compiled when they are first needed
    /// and kept, or all at once by [`Sumcheck::prepare`].
    ///
    /// # Errors
    /// [`Error::Degree`] if the expression has no column, or a degree above [`MAX_DEGREE`](crate::MAX_DEGREE) or not
    /// below the characteristic; [`Error::UnusedColumn`] if it leaves out a column before its last one;
    /// [`Error::Field`] if `T` is neither `E` nor the prime field right below it.
    pub fn new(queue: impl Into<Queue>, expression: &Expression, config: Config) -> Result<Self> {
        let queue = queue.into();
        is_below::<E, T>()?;
        Statement::<E>::new(1, expression)?;
        let (expression, tables) = (expression.clone(), Tables::new(&queue));
        Ok(Self {
            device: queue.device().clone(),
            queue,
            expression,
            config,
            tables,
            kernels: Arc::default(),
            matrix: Arc::default(),
        })
    }

    /// Gives the same prover, with the same kernels, on a queue of its own.
    #[must_use]
    pub fn on(&self, queue: &Queue) -> Self {
        self.with(queue, self.config)
    }

    /// The same prover, with the same kernels, on this queue and with this configuration.
    fn with(&self, queue: &Queue, config: Config) -> Self {
        let (device, expression) = (self.device.clone(), self.expression.clone());
        let (queue, tables) = (queue.clone(), self.tables.on(queue));
        let (kernels, matrix) = (Arc::clone(&self.kernels), Arc::clone(&self.matrix));
        Self { device, queue, expression, config, tables, kernels, matrix }
    }

    /// Lists the kernels of an expression, for compiling them ahead: without a weight, with one, and of a zero-check,
    /// for tables in buffers of their own unless there are too many, with challenges drawn on the device. None of what
    /// [`Sumcheck::new`] refuses.
    pub fn kernels(expression: &Expression) -> Vec<KernelSpec> {
        let mut specs = Self::all_kernels(expression);
        let mut seen = HashSet::new();
        specs.retain(|spec| seen.insert((spec.name, spec.variant.clone())));
        specs
    }

    /// The same, some of them several times.
    pub(crate) fn all_kernels(expression: &Expression) -> Vec<KernelSpec> {
        let (Ok(_), Ok(_)) = (is_below::<E, T>(), Statement::<E>::new(1, expression)) else { return Vec::new() };
        let mut kinds = Vec::new();
        for (weighted, zero) in [(false, false), (true, false), (true, true)] {
            for order in [Order::MsbFirst, Order::LsbFirst] {
                kinds.extend(Self::kinds(expression, weighted, zero, order));
            }
        }
        let mut specs: Vec<KernelSpec> =
            kinds.iter().map(|(kind, finishes)| Self::spec(expression, kind, finishes.as_ref())).collect();
        specs.extend(Tables::<E, T>::kernels());
        specs
    }

    fn spec(expression: &Expression, kind: &Kind, finishes: Option<&Points>) -> KernelSpec {
        match finishes {
            Some(points) => round::finish_spec::<E, T>(expression.degree() as usize, kind, points),
            None => round::spec::<E, T>(expression, kind),
        }
    }

    /// The kinds of kernels that proofs take whose challenges are drawn on the device, for tables in buffers of their own unless
    /// there are too many; with the points of the round before for those that finish a proof.
    fn kinds(expression: &Expression, weighted: bool, zero: bool, order: Order) -> Vec<(Kind, Option<Points>)> {
        let below = is_below::<E, T>().unwrap_or(false);
        let (tables, degree) = (expression.columns(), expression.degree());
        let separate = match tables <= TABLES.len() {
            true => Source::Separate { below: if below { tables } else { 0 } },
            false => Source::Packed { below },
        };
        let packed = Source::Packed { below: false };
        let [first, then] = [zero, false].map(|zero| points(Strategy::ZeroCheck, degree, zero));
        let folding = if order == Order::MsbFirst { Fold::High } else { Fold::Low };
        let kind = |fold, source, target, points: &Points, drawn: Option<&Points>| Kind {
            tables,
            fold,
            high: order == Order::MsbFirst,
            source,
            target,
            points: points.clone(),
            weighted,
            drawn: drawn.cloned(),
            tail: false,
        };
        let start = kind(Fold::No, separate, Target::None, &first, None);
        let mut kinds = vec![start.clone(), kind(folding, separate, Target::Packed, &then, Some(&first))];
        let packed_target = if order == Order::MsbFirst { Target::InPlace } else { Target::Packed };
        let mut then_on = vec![kind(folding, packed, packed_target, &then, Some(&then))];
        if !below && order == Order::MsbFirst {
            let in_place = |drawn| kind(Fold::High, separate, Target::InPlace, &then, Some(drawn));
            kinds.push(in_place(&first));
            then_on.push(in_place(&then));
        }
        kinds.extend(then_on.into_iter().flat_map(|kind| kind.tail().into_iter().chain([kind])));
        if !zero {
            kinds.push(Kind { points: Points::ENDS, ..start.clone() });
        }
        kinds.retain(|kind| kind.points.len() > 0);
        let finishing = [(start, first), (kind(Fold::No, packed, Target::None, &then, None), then)];
        kinds.into_iter().map(|kind| (kind, None)).chain(finishing.map(|(kind, points)| (kind, Some(points)))).collect()
    }

    /// Compiles the kernels for proofs of a statement side by side, so that proofs of statements like it compile nothing: whose
    /// challenges are drawn where the configuration says, with tables that the caller keeps or gives away, each in a binding of its
    /// own. Strategies with the weight as a table, and transcripts on the host in spite of the configuration, still compile.
    ///
    /// # Errors
    /// [`Error::OtherExpression`] if the statement is about another expression than the prover's; [`Error::Device`] if a kernel does
    /// not compile, or if the device fails.
    pub fn prepare(&self, statement: &Statement<E>) -> Result<()> {
        if *statement.expression() != self.expression {
            return Err(Error::OtherExpression);
        }
        let weighted = *statement.weight_of() != Weight::None;
        let zero = self.is_zero_at_first(statement);
        let mut kinds = Self::kinds(&self.expression, weighted, zero, statement.binding_order());
        if !self.may_draw(statement) {
            kinds.retain(|(kind, finishes)| !kind.tail && finishes.is_none());
            kinds.iter_mut().for_each(|(kind, _)| kind.drawn = None);
        }
        let spec = |(kind, finishes): &(Kind, Option<Points>)| Self::spec(&self.expression, kind, finishes.as_ref());
        let specs: Vec<KernelSpec> = kinds.iter().map(spec).chain(Tables::<E, T>::kernels()).collect();
        let _prepared = self.device.prepare(&specs)?;
        for (kind, finishes) in kinds {
            match finishes {
                Some(points) => self.finish(self.expression.degree() as usize, kind, &points)?,
                None => self.kernel(&self.expression, kind)?,
            };
        }
        Ok(())
    }

    /// Proves that the weighted sum of a statement about this prover's expression is `claim`. The tables stay as they are. Memory
    /// beside them is half of theirs, and three quarters for [`Order::LsbFirst`](crate::Order::LsbFirst), if their elements are those of
    /// challenges.
    ///
    /// # Errors
    /// [`Error::OtherExpression`] if the statement is about another expression than the prover's; [`Error::Length`]
    /// unless there is a table for each column, of an element for each point, and as many constants and coordinates as
    /// the statement needs, and, where a weight is a table over a prime field below, if these are more tables than a
    /// kernel can bind; [`Error::ZeroCheckClaim`] for a zero-check with a claim that is not 0; [`Error::SmallChallenges`] if
    /// challenges give the statement fewer bits of soundness than [`MIN_SOUNDNESS_BITS`](crate::MIN_SOUNDNESS_BITS), unless it
    /// allows that; [`Error::FalseClaim`] if the configuration asks for that check and the sum is another;
    /// [`Error::Degenerate`] by [`Strategy::Textbook`] and [`Strategy::FromClaim`], if the weight is 0 at a challenge;
    /// [`Error::Device`] if a table lies on another device, if memory is exhausted, if a kernel does not compile at its
    /// first use, or if the device fails.
    pub fn prove<'a>(
        &self,
        statement: &Statement<E>,
        tables: &[impl Into<View<'a, Mont<T>>> + Copy],
        claim: E,
        transcript: &mut dyn Transcript<E>,
    ) -> Result<Proved<E>> {
        self.prove_rounds(statement, statement.num_vars(), tables, claim, transcript)
    }

    /// Proves the first `rounds` rounds as [`Sumcheck::prove`] does: one at least, and all if there are fewer. What is
    /// left is the sum of the same expression over the tables that come back.
    ///
    /// # Errors
    /// Returns the errors of [`Sumcheck::prove`], for the same reasons.
    pub fn prove_rounds<'a>(
        &self,
        statement: &Statement<E>,
        rounds: usize,
        tables: &[impl Into<View<'a, Mont<T>>> + Copy],
        claim: E,
        transcript: &mut dyn Transcript<E>,
    ) -> Result<Proved<E>> {
        let tables = self.given(statement, tables)?;
        self.run(statement, rounds, Place::Given(tables), claim, transcript)
    }

    /// Proves as [`Sumcheck::prove`] does, with tables that are not needed any more: they are folded where they lie, if
    /// variables are bound from the highest and elements are those of challenges, so that the proof takes hardly any
    /// more memory; else they are dropped once they are folded.
    ///
    /// # Errors
    /// Returns the errors of [`Sumcheck::prove`], for the same reasons. The tables are gone then, too.
    pub fn prove_consuming(
        &self,
        statement: &Statement<E>,
        tables: Vec<Buffer<Mont<T>>>,
        claim: E,
        transcript: &mut dyn Transcript<E>,
    ) -> Result<Proved<E>> {
        self.check(statement, tables.iter().map(Buffer::as_view))?;
        self.run(statement, statement.num_vars(), Place::Owned(tables), claim, transcript)
    }

    /// Computes the weighted sum itself, at the point that is given for a weight, in one pass over the tables.
    ///
    /// # Errors
    /// [`Error::Length`] for a zero-check, whose weight has no point before its proof; and the errors of
    /// [`Sumcheck::prove`], for the same reasons, but for those of claims and challenges.
    pub fn sum<'a>(&self, statement: &Statement<E>, tables: &[impl Into<View<'a, Mont<T>>> + Copy]) -> Result<E> {
        let tables = self.given(statement, tables)?;
        let point = match statement.weight_of() {
            Weight::None => None,
            Weight::Eq(point) => Some(point.as_slice()),
            Weight::ZeroCheck => {
                let (what, expected) = ("the coordinates of the weight's point", statement.num_vars());
                return Err(Error::Length { what, expected, actual: 0 });
            }
        };
        let mut run = self.start(statement, Place::Given(tables), point, Weighted::ByFactors, Draw::Host)?;
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

    /// Refuses another expression, and tables of other lengths or another number than the statement has.
    fn check_lengths(&self, statement: &Statement<E>, lengths: impl IntoIterator<Item = usize>) -> Result<()> {
        if *statement.expression() != self.expression {
            return Err(Error::OtherExpression);
        }
        statement.check()?;
        let mut count = 0;
        for actual in lengths {
            if actual != 1 << statement.num_vars() {
                let (what, expected) = ("the elements of a table", 1 << statement.num_vars());
                return Err(Error::Length { what, expected, actual });
            }
            variables_of(actual)?;
            count += 1;
        }
        match count == statement.tables() {
            true => Ok(()),
            false => {
                Err(Error::Length { what: "the tables of a statement", expected: statement.tables(), actual: count })
            }
        }
    }

    /// The tables where rounds find them, with the weight and what the device needs to draw challenges.
    fn start<'a, 'p>(
        &'p self,
        statement: &'p Statement<E>,
        place: Place<'a, E, T>,
        point: Option<&[E]>,
        weighted: Weighted,
        draw: Draw,
    ) -> Result<Run<'a, 'p, E, T>> {
        let secrecy = place.secrecy();
        let mut expression = self.expression.clone();
        let mut columns = statement.tables();
        let split = match point {
            Some(point) if weighted == Weighted::ByFactors => {
                Some(self.tables.split_eq(point, statement.binding_order(), secrecy)?)
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
        inputs.extend(integers(&expression.steps()).into_iter().map(E::from));
        let matrix_at = inputs.len();
        if draw == Draw::Device {
            let matrix = self.matrix.get_or_make(|| Ok::<_, Error>(Matrix::new(statement.degree())))?;
            let weights: Vec<[E; 2]> = (0..statement.num_vars()).map(|round| statement.weights(point, round)).collect();
            matrix.others(&mut inputs);
            matrix.lines(&weights, self.is_zero_at_first(statement), &mut inputs);
        }
        let inputs = self.queue.upload_with::<Mont<E>>(&inputs, secrecy)?;
        let weight = match point {
            Some(point) if weighted == Weighted::ByTable => Some(self.tables.eq(point)?),
            _ => None,
        };
        let mut run = Run {
            plan: self,
            statement,
            expression,
            columns,
            place,
            weight,
            eq: split,
            inputs,
            matrix_at,
            draw,
            secrecy,
        };
        run.settle()?;
        Ok(run)
    }

    fn run<'a>(
        &self,
        statement: &Statement<E>,
        rounds: usize,
        place: Place<'a, E, T>,
        claim: E,
        transcript: &mut dyn Transcript<E>,
    ) -> Result<Proved<E>> {
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
        place: Place<'a, E, T>,
        claim: E,
        point: Option<Vec<E>>,
        transcript: &mut dyn Transcript<E>,
    ) -> Result<Proved<E>> {
        let by_table = matches!(self.config.strategy, Strategy::Textbook | Strategy::FromClaim);
        let table = by_table && (point.is_none() || (statement.degree() as u64) < last_point::<E>());
        let strategy = if by_table && !table { Strategy::SplitEq } else { self.config.strategy };
        let drawn =
            self.may_draw(statement) && !by_table && rounds == statement.num_vars() && transcript.blake3().is_some();
        let weighted = if table { Weighted::ByTable } else { Weighted::ByFactors };
        let draw = if drawn { Draw::Device } else { Draw::Host };
        let mut run = self.start(statement, place, point.as_deref(), weighted, draw)?;
        if self.config.check && run.sum(if table { None } else { point.as_deref() })? != claim {
            return Err(Error::FalseClaim);
        }
        let (num_vars, order, degree) = (statement.num_vars(), statement.binding_order(), statement.degree() as u64);
        let zero_check = self.is_zero_at_first(statement);
        if let Some(state) = transcript.blake3().filter(|_| drawn).map(|transcript| transcript.words()) {
            let (messages, values) = run.draw(claim, state, point.as_deref(), zero_check)?;
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
            return Ok(Proved { proof, point: bound, value, weight: point, tables: Vec::new() });
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
        Ok(Proved { proof: Proof { rounds: messages, values }, point: bound, value, weight: point, tables })
    }

    /// Whether challenges are drawn on the device where the transcript and the strategy allow it.
    fn may_draw(&self, statement: &Statement<E>) -> bool {
        self.config.draw == Draw::Device
            && draw::can::<E>(statement.degree())
            && round::shared_bytes::<E>(statement.degree(), true) <= self.shared_limit()
    }

    /// Whether the first round need not evaluate at 0 and 1.
    fn is_zero_at_first(&self, statement: &Statement<E>) -> bool {
        self.config.strategy == Strategy::ZeroCheck && *statement.weight_of() == Weight::ZeroCheck
    }

    /// The kernel of a kind. That with the weight as a table has one table more, which tells it from the others.
    fn kernel(&self, expression: &Expression, kind: Kind) -> Result<Arc<Kernel<Params>>> {
        // One pair of a round, or the last round alone.
        let least = Params { pairs: 1, chunks: 1, rounds: 1, ..Params::default() };
        self.kept((kind, Use::Round), |kind| round::spec::<E, T>(expression, kind), &least)
    }

    /// The kernel behind the last round, for tables where `kind` has them, after one that was evaluated at these points.
    fn finish(&self, degree: usize, kind: Kind, previous: &Points) -> Result<Arc<Kernel<Params>>> {
        let kind = Kind { drawn: Some(previous.clone()), ..kind };
        self.kept((kind, Use::Finish), |kind| round::finish_spec::<E, T>(degree, kind, previous), &Params::default())
    }

    /// A kernel, unless one thread does not fit the device even with the least that is launched: compilers would take minutes for
    /// a text that is too long for that.
    fn kept(
        &self,
        key: (Kind, Use),
        spec: impl FnOnce(&Kind) -> KernelSpec,
        least: &Params,
    ) -> Result<Arc<Kernel<Params>>> {
        let lock = || self.kernels.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(kernel) = lock().get(&key) {
            return Ok(Arc::clone(kernel));
        }
        let spec = spec(&key.0);
        spec.expect_fits(&self.device, least)?;
        let kernel = Arc::new(Kernel::new(&self.device, spec)?);
        // Where another thread was faster, this one's goes when the lock is free again.
        Ok(Arc::clone(lock().entry(key).or_insert_with(|| Arc::clone(&kernel))))
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

/// The points at which a round of a polynomial of this degree is evaluated. `zero`: it is known to be 0 at 0 and at 1.
fn points(strategy: Strategy, degree: u64, zero: bool) -> Points {
    let degree = degree as u32;
    match strategy {
        Strategy::Textbook => Points { first: true, one: true, middle: 2..(degree + 1).max(2), top: false },
        Strategy::FromClaim => Points { first: true, one: false, middle: 2..(degree + 1).max(2), top: false },
        Strategy::SplitEq | Strategy::ZeroCheck => {
            Points { first: !zero, one: false, middle: 2..degree.max(2), top: degree > 1 }
        }
    }
}

/// The round's polynomial from its values, for which w₀ q(0) + w₁ q(1) is `sum`.
fn from_values<E: DeviceField>(values: &[E], points: &Points, sum: E, [w0, w1]: [E; 2]) -> Wiped<E> {
    let mut values = values.iter().copied();
    let mut next = || values.next().unwrap_or(E::ZERO);
    let ends = match (points.first, w1.inverse()) {
        (false, _) => [E::ZERO; 2],
        (true, Some(inverse)) => {
            let zero = next();
            [zero, (sum - w0 * zero) * inverse]
        }
        // It was evaluated at 1, and w₀ is 1.
        (true, None) => [sum, next()],
    };
    let mut known = Wiped::with_capacity(ends.len() + points.middle.len());
    known.extend(ends);
    known.extend(points.middle.clone().map(|_| next()));
    match points.top {
        true => interpolate_with_top(&known, next()),
        false => interpolate(&known),
    }
}

/// The same from the values of the polynomial with the weight as a factor, if there is one: that of the variables bound so far,
/// and the line from w₀ to w₁.
fn from_table<E: DeviceField>(values: &[E], points: &Points, sum: E, [w0, w1]: [E; 2], scale: Option<E>) -> Wiped<E> {
    let mut known = Wiped::with_capacity(values.len() + 1);
    known.extend_from_slice(values);
    if !points.one {
        known.insert(1, sum * scale.unwrap_or(E::ONE) - values[0]);
    }
    let polynomial = interpolate(&known);
    match scale {
        Some(scale) => divide(&polynomial, [scale * w0, scale * (w1 - w0)]),
        None => polynomial,
    }
}
