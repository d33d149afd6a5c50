//! The prover.

use std::{
    any::Any,
    collections::{HashMap, HashSet},
    fmt,
    sync::{Arc, Mutex, OnceLock, PoisonError},
};

use evariste_backend::{Arg, Buffer, Device, Kernel, KernelSpec, Queue, Secrecy, View, ViewMut};
use evariste_field::{DeviceField, Expression, Mont};

use crate::{
    Error, Order, Proof, Result, Statement, Tables, Transcript, Weight,
    draw::{self, Matrix},
    polynomial::{divide, evaluate, interpolate, interpolate_with_top},
    program::{FIRST_CONSTANT, Fold, Points, integers},
    proof::complete,
    round::{self, Kind, Params, Source, TABLES, Target},
    table::{SplitEq, is_below, variables_of},
    transcript::bytes_of,
};

mod streamed;

/// Chunks of a round at most, where threads may take as many turns of loops as that needs: on a GPU of 132 multiprocessors
/// this many workgroups of 256 threads fill it twice. Each of the next round goes through the sums of all, so fewer are better.
pub(crate) const MAX_CHUNKS: u32 = 512;

/// log₂ of the pairs of a chunk at least: one for each thread, or fewer where else parts of the device would be idle.
const LOG_CHUNK: u32 = 8;
const LEAST_LOG_CHUNK: u32 = 6;

/// log₂ of the pairs from which on one workgroup does all rounds that are left in one launch.
pub(crate) const LOG_TAIL: u32 = 8;

/// How a round's polynomial is found. The proof is the same with each, to the byte.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Strategy {
    /// The weight is one more table, and the round is evaluated at 0, 1, … to its degree: the book's way.
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

/// Where the challenges of a proof are drawn. They are the same.
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

/// How a [`Sumcheck`] proves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Config {
    /// How a round's polynomial is found.
    pub strategy: Strategy,
    /// Where challenges are drawn.
    pub draw: Draw,
    /// The claim is compared with the sum before the first round.
    pub check: bool,
}

/// A proof, and what the prover goes on with.
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
/// The protocol is that of Lund, Fortnow, Karloff and Nisan, "Algebraic methods for interactive proof systems", Journal of the
/// ACM 39 (1992); [`Statement`] says what messages are.
pub struct Sumcheck<E, T = E> {
    device: Device,
    queue: Option<Queue>,
    expression: Expression,
    config: Config,
    tables: Tables<E, T>,
    kernels: Arc<Mutex<Kernels>>,
    /// What makes messages of values, once it is needed.
    matrix: Arc<OnceLock<Matrix<E>>>,
}

/// Kernels by what they are made for.
type Kernels = HashMap<(Kind, Use), Arc<Kernel<Params>>>;

/// Which of the two kernels of a kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Use {
    Round,
    Finish,
}

/// Where the tables of a proof are.
enum Place<'a, E: DeviceField, T: DeviceField> {
    /// Where the caller has them.
    Given(Vec<View<'a, Mont<T>>>),
    /// The same, which the proof may drop.
    Owned(Vec<Buffer<Mont<T>>>),
    /// One after the other, as they were given.
    Joined(Buffer<Mont<T>>),
    /// In buffers of their own, where they are folded.
    Consumed(Vec<Buffer<Mont<E>>>),
    /// One after the other, and so far apart.
    Packed(Buffer<Mont<E>>, usize),
}

/// The last rounds, which one workgroup does.
struct Tail {
    kind: Kind,
    kernel: Arc<Kernel<Params>>,
    /// The first of them.
    from: usize,
}

/// A proof under way.
struct Run<'a, 'p, E: DeviceField, T: DeviceField> {
    plan: &'p Sumcheck<E, T>,
    statement: &'p Statement<E>,
    /// The expression that kernels evaluate: with the weight as a factor, where that is a table.
    expression: Expression,
    columns: usize,
    place: Place<'a, E, T>,
    /// The weight as a table, behind the others, as long as these are not packed.
    weight: Option<Buffer<Mont<E>>>,
    eq: Option<SplitEq<E>>,
    /// The challenge, the constants and the integers; where challenges are drawn on the device, then what makes messages.
    inputs: Buffer<Mont<E>>,
    matrix_at: usize,
    drawn: bool,
    secrecy: Secrecy,
}

impl<E: DeviceField, T: DeviceField> Sumcheck<E, T> {
    /// A prover for `expression`. Kernels are compiled when they are first needed and kept.
    ///
    /// # Errors
    /// [`Error::Degree`] as [`Statement::new`], [`Error::Field`].
    pub fn new(device: &Device, expression: &Expression, config: Config) -> Result<Self> {
        is_below::<E, T>()?;
        Statement::<E>::new(1, expression)?;
        let (expression, tables) = (expression.clone(), Tables::new(device));
        Ok(Self {
            device: device.clone(),
            queue: None,
            expression,
            config,
            tables,
            kernels: Arc::default(),
            matrix: Arc::default(),
        })
    }

    /// The same prover, with the same kernels, on a queue of its own. What it shares with work of other queues, such as tables,
    /// is ordered by events ([`Device::record`], [`Device::wait_for`]).
    #[must_use]
    pub fn on(&self, queue: &Queue) -> Self {
        self.with(Some(queue.clone()), self.config)
    }

    /// The same prover, with the same kernels, on this queue and with this configuration.
    fn with(&self, queue: Option<Queue>, config: Config) -> Self {
        let (device, expression) = (self.device.clone(), self.expression.clone());
        let tables = queue.as_ref().map_or_else(|| self.tables.clone(), |queue| self.tables.on(queue));
        let (kernels, matrix) = (Arc::clone(&self.kernels), Arc::clone(&self.matrix));
        Self { device, queue, expression, config, tables, kernels, matrix }
    }

    /// The kernels of an expression, for compiling them ahead: without a weight, with one, and of a zero-check, for tables in
    /// buffers of their own unless there are too many, with challenges drawn on the device. None of what
    /// [`Sumcheck::new`] refuses.
    pub fn kernels(expression: &Expression) -> Vec<KernelSpec> {
        let (Ok(below), Ok(_)) = (is_below::<E, T>(), Statement::<E>::new(1, expression)) else { return Vec::new() };
        let (tables, degree) = (expression.columns(), expression.degree());
        let separate = match tables <= TABLES.len() {
            true => Source::Separate { below: if below { tables } else { 0 } },
            false => Source::Packed { below },
        };
        let packed = Source::Packed { below: false };
        let (mut kinds, mut last) = (Vec::new(), Vec::new());
        for (weighted, zero) in [(false, false), (true, false), (true, true)] {
            let [first, then] = [zero, false].map(|zero| points(Strategy::ZeroCheck, degree, zero));
            let kind = |fold, source, target, points: &Points, drawn: Option<&Points>| Kind {
                tables,
                fold,
                high: fold != Fold::Low,
                source,
                target,
                points: points.clone(),
                weighted,
                drawn: drawn.cloned(),
                tail: false,
            };
            let start = kind(Fold::No, separate, Target::None, &first, None);
            kinds.extend([
                start.clone(),
                Kind { high: false, ..start.clone() },
                kind(Fold::High, separate, Target::Packed, &then, Some(&first)),
                kind(Fold::Low, separate, Target::Packed, &then, Some(&first)),
            ]);
            let mut then_on = vec![
                kind(Fold::High, packed, Target::InPlace, &then, Some(&then)),
                kind(Fold::Low, packed, Target::Packed, &then, Some(&then)),
            ];
            if !below {
                let in_place = |drawn| kind(Fold::High, separate, Target::InPlace, &then, Some(drawn));
                kinds.push(in_place(&first));
                then_on.push(in_place(&then));
            }
            kinds.extend(then_on.into_iter().flat_map(|kind| [Kind { tail: true, ..kind.clone() }, kind]));
            if !zero {
                kinds.push(Kind { points: Points::ENDS, ..start.clone() });
            }
            last.extend([(start, first), (kind(Fold::No, packed, Target::None, &then, None), then)]);
        }
        kinds.retain(|kind| kind.points.len() > 0);
        let mut specs: Vec<KernelSpec> = kinds.iter().map(|kind| round::spec::<E, T>(expression, kind)).collect();
        specs.extend(last.iter().map(|(kind, points)| round::finish_spec::<E, T>(degree as usize, kind, points)));
        specs.extend(Tables::<E, T>::kernels());
        let mut seen = HashSet::new();
        specs.retain(|spec| seen.insert((spec.name, spec.variant.clone())));
        specs
    }

    /// Proves that the weighted sum of a statement about this prover's expression is `claim`. The tables stay as they are.
    /// Memory beside them is half of theirs, and three quarters for [`Order::Low`], if their elements are those of challenges.
    ///
    /// # Errors
    /// [`Error::OtherExpression`], [`Error::Length`] unless there is a table for each column, of an element for each point, and
    /// as many constants and coordinates as the statement needs, [`Error::FalseClaim`] where the configuration asks for that
    /// check, [`Error::Device`].
    pub fn prove<'a>(
        &self,
        statement: &Statement<E>,
        tables: &[impl Into<View<'a, Mont<T>>> + Copy],
        claim: E,
        transcript: &mut dyn Transcript<E>,
    ) -> Result<Proved<E>> {
        self.prove_rounds(statement, statement.num_vars(), tables, claim, transcript)
    }

    /// [`Sumcheck::prove`], for the first `rounds` rounds: one at least, and all if there are fewer. What is left is the sum of
    /// the same expression over the tables that come back.
    ///
    /// # Errors
    /// As [`Sumcheck::prove`].
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

    /// [`Sumcheck::prove`] with tables that are not needed any more: they are folded where they lie, if variables are bound from
    /// the highest and elements are those of challenges, so that the proof takes hardly any more memory; else they are dropped
    /// once they are folded.
    ///
    /// # Errors
    /// As [`Sumcheck::prove`]. The tables are gone then, too.
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

    /// The weighted sum itself, at the point that is given for a weight. In one pass over the tables.
    ///
    /// # Errors
    /// As [`Sumcheck::prove`]. A statement of a zero-check has no point: [`Error::Length`].
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
        let mut run = self.start(statement, Place::Given(tables), point, false, false)?;
        run.sum(point)
    }

    /// Workgroup memory that kernels may count on: a CPU has as much as it likes.
    fn shared_limit(&self) -> u32 {
        let limits = &self.device.info().limits;
        if limits.workgroup_threads > 1 { limits.workgroup_bytes } else { u32::MAX }
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

    /// The tables where rounds find them; `table` makes the weight a table.
    fn start<'a, 'p>(
        &'p self,
        statement: &'p Statement<E>,
        place: Place<'a, E, T>,
        point: Option<&[E]>,
        table: bool,
        drawn: bool,
    ) -> Result<Run<'a, 'p, E, T>> {
        let secrecy = place.secrecy();
        let mut expression = self.expression.clone();
        let mut columns = statement.tables();
        let split = match point {
            Some(point) if !table => Some(self.tables.split_eq(point, statement.binding_order(), secrecy)?),
            _ => None,
        };
        if table && point.is_some() {
            expression = Expression::column(columns as u32) * expression;
            columns += 1;
        }
        let mut inputs = vec![E::ZERO];
        debug_assert_eq!(inputs.len(), FIRST_CONSTANT);
        inputs.extend_from_slice(statement.constants_of());
        inputs.extend(integers(&expression.steps()).into_iter().map(E::from));
        let matrix_at = inputs.len();
        if drawn {
            let matrix = self.matrix.get_or_init(|| Matrix::new(statement.degree()));
            let weights: Vec<[E; 2]> = (0..statement.num_vars()).map(|round| statement.weights(point, round)).collect();
            matrix.others(&mut inputs);
            matrix.lines(&weights, self.is_zero_at_first(statement), &mut inputs);
        }
        let inputs = self.device.upload_on::<Mont<E>>(self.queue.as_ref(), &inputs, secrecy)?;
        let weight = match point {
            Some(point) if table => Some(self.tables.eq(point)?),
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
            drawn,
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
        let strategy = self.config.strategy;
        let table = matches!(strategy, Strategy::Textbook | Strategy::FromClaim);
        let drawn = self.config.draw == Draw::Device
            && !table
            && rounds == statement.num_vars()
            && draw::can::<E>(statement.degree())
            && round::shared_bytes::<E>(statement.degree(), true) <= self.shared_limit()
            && transcript.blake3().is_some();
        let mut run = self.start(statement, place, point.as_deref(), table, drawn)?;
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

    /// Whether the first round need not evaluate at 0 and 1.
    fn is_zero_at_first(&self, statement: &Statement<E>) -> bool {
        self.config.strategy == Strategy::ZeroCheck && *statement.weight_of() == Weight::ZeroCheck
    }

    /// The kernel of a kind. That with the weight as a table has one table more, which tells it from the others.
    fn kernel(&self, expression: &Expression, kind: Kind) -> Result<Arc<Kernel<Params>>> {
        self.kept((kind, Use::Round), |kind| round::spec::<E, T>(expression, kind))
    }

    /// The kernel behind the last round, for tables where `kind` has them, after one that was evaluated at these points.
    fn finish(&self, degree: usize, kind: Kind, previous: &Points) -> Result<Arc<Kernel<Params>>> {
        let kind = Kind { drawn: Some(previous.clone()), ..kind };
        self.kept((kind, Use::Finish), |kind| round::finish_spec::<E, T>(degree, kind, previous))
    }

    fn kept(&self, key: (Kind, Use), spec: impl FnOnce(&Kind) -> KernelSpec) -> Result<Arc<Kernel<Params>>> {
        let lock = || self.kernels.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(kernel) = lock().get(&key) {
            return Ok(Arc::clone(kernel));
        }
        let kernel = Arc::new(Kernel::new(&self.device, spec(&key.0))?);
        lock().insert(key, Arc::clone(&kernel));
        Ok(kernel)
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

impl<E: DeviceField, T: DeviceField> Place<'_, E, T> {
    fn secrecy(&self) -> Secrecy {
        match self {
            Place::Given(tables) => Secrecy::of(tables.iter().map(|table| table.secrecy())),
            Place::Owned(tables) => Secrecy::of(tables.iter().map(Buffer::secrecy)),
            Place::Joined(tables) => tables.secrecy(),
            Place::Consumed(tables) => Secrecy::of(tables.iter().map(Buffer::secrecy)),
            Place::Packed(tables, _) => tables.secrecy(),
        }
    }
}

/// The same buffers, if both fields are the same.
fn same<A: 'static, B: 'static>(value: A) -> std::result::Result<B, A> {
    let value: Box<dyn Any> = Box::new(value);
    match value.downcast::<B>() {
        Ok(same) => Ok(*same),
        Err(value) => match value.downcast::<A>() {
            Ok(value) => Err(*value),
            Err(_) => unreachable!("a value has its own type"),
        },
    }
}

impl<'p, E: DeviceField, T: DeviceField> Run<'_, 'p, E, T> {
    fn queue(&self) -> Option<&'p Queue> {
        self.plan.queue.as_ref()
    }

    /// What the next round, or the end, binds a variable to.
    fn bind_to(&mut self, challenge: E) -> Result<()> {
        let queue = self.queue();
        Ok(self.inputs.view_mut(..1)?.write_on(queue, &[challenge])?)
    }

    /// Puts the tables where rounds can bind them.
    fn settle(&mut self) -> Result<()> {
        // Beside the tables: the folded ones, the tables of eq, inputs, partial sums and the transcript's state.
        let others = 3 + usize::from(self.eq.is_some()) + usize::from(self.drawn);
        let limit = (self.plan.device.info().limits.bindings as usize).min(TABLES.len() + others);
        let fit = self.columns + others <= limit;
        let given: Vec<View<'_, Mont<T>>> = match &self.place {
            Place::Owned(_) if fit && self.statement.binding_order() == Order::High && self.weight.is_none() => {
                let Place::Owned(tables) = std::mem::replace(&mut self.place, Place::Given(Vec::new())) else {
                    unreachable!("they were just found there")
                };
                self.place = match same::<_, Vec<Buffer<Mont<E>>>>(tables) {
                    Ok(tables) => Place::Consumed(tables),
                    Err(tables) => Place::Owned(tables),
                };
                return Ok(());
            }
            _ if fit => return Ok(()),
            Place::Given(tables) => tables.clone(),
            Place::Owned(tables) => tables.iter().map(Buffer::as_view).collect(),
            Place::Joined(_) | Place::Consumed(_) | Place::Packed(..) => return Ok(()),
        };
        let len = 1 << self.statement.num_vars();
        let mut joined = self.plan.device.alloc_with::<Mont<T>>(self.columns * len, self.secrecy)?;
        let mut rest = joined.as_view_mut();
        for table in given {
            let (mut place, others) = rest.split_at(len)?;
            place.copy_from_on(self.queue(), table)?;
            rest = others;
        }
        let mut packed = same::<_, Buffer<Mont<E>>>(joined);
        if let Some(weight) = self.weight.take() {
            let Ok(packed) = &mut packed else {
                let (what, expected) = ("the tables and the weight that a kernel can bind", limit - others);
                return Err(Error::Length { what, expected, actual: self.columns });
            };
            packed.view_mut((self.columns - 1) * len..)?.copy_from_on(self.queue(), &weight)?;
        }
        self.place = match packed {
            Ok(packed) => Place::Packed(packed, len),
            Err(joined) => Place::Joined(joined),
        };
        Ok(())
    }

    /// The kind of kernel that a round takes, with the tables where they are, or where they are behind the first folding.
    fn kind(&self, round: usize, first: bool, points: &Points, drawn: Option<Points>) -> Result<Kind> {
        let order = self.statement.binding_order();
        let fold = match (round, order) {
            (0, _) => Fold::No,
            (_, Order::High) => Fold::High,
            (_, Order::Low) => Fold::Low,
        };
        let is_below = is_below::<E, T>()?;
        let source = match &self.place {
            Place::Consumed(_) => Source::Separate { below: 0 },
            _ if !first => Source::Packed { below: false },
            Place::Given(_) | Place::Owned(_) => {
                Source::Separate { below: if is_below { self.statement.tables() } else { 0 } }
            }
            Place::Joined(_) => Source::Packed { below: is_below },
            Place::Packed(..) => Source::Packed { below: false },
        };
        let in_place = matches!(self.place, Place::Consumed(_))
            || (order == Order::High && (!first || matches!(self.place, Place::Packed(..))));
        let target = match fold {
            Fold::No => Target::None,
            _ if in_place => Target::InPlace,
            _ => Target::Packed,
        };
        let (high, points, weighted) = (order == Order::High, points.clone(), self.eq.is_some());
        Ok(Kind { tables: self.columns, fold, high, source, target, points, weighted, drawn, tail: false })
    }

    /// What a round takes, but for how it is divided.
    fn of_round(&self, round: usize, at_one: bool) -> Params {
        let pairs = 1usize << (self.statement.num_vars() - 1 - round);
        let full = 1 << self.statement.num_vars();
        let mut params = Params {
            pairs: pairs as u32,
            source_stride: if let Place::Packed(_, stride) = &self.place { *stride } else { full } as u32,
            target_stride: 2 * pairs as u32,
            ones: u32::from(at_one) << 1,
            ..Params::default()
        };
        if let Some(eq) = &self.eq {
            let place = eq.of_round(round);
            (params.low_at, params.low_bits, params.high_at) = (place.low_at, place.low_bits, place.high_at);
        }
        params
    }

    /// How a round is divided among workgroups.
    fn layout(&self, kernel: &Kernel<Params>, round: usize, at_one: bool) -> Params {
        let params = self.of_round(round, at_one);
        let pairs = params.pairs;
        let log_pairs = pairs.ilog2();
        let with = |log_chunk: u32| Params {
            log_chunk,
            chunks: pairs >> log_chunk,
            both: u32::from(log_chunk > params.low_bits),
            ..params
        };
        let parallelism = self.plan.device.info().parallelism.max(1).ilog2();
        let least = log_pairs.saturating_sub(parallelism).clamp(LEAST_LOG_CHUNK, LOG_CHUNK);
        let mut log_chunk = log_pairs.saturating_sub(MAX_CHUNKS.ilog2()).max(least).min(log_pairs);
        while log_chunk > 0 && !kernel.fits(&with(log_chunk)) {
            log_chunk -= 1;
        }
        with(log_chunk)
    }

    /// Launches a round, with its sums to `partials`.
    fn launch(
        &mut self,
        kernel: &Kernel<Params>,
        kind: &Kind,
        params: &Params,
        partials: &mut Buffer<Mont<E>>,
        state: Option<&mut Buffer<u32>>,
    ) -> Result<()> {
        let (queue, pairs) = (self.queue(), params.pairs as usize);
        let mut folded = match kind.target {
            Target::Packed => Some(self.plan.device.alloc_with::<Mont<E>>(2 * pairs * self.columns, self.secrecy)?),
            Target::None | Target::InPlace => None,
        };
        let written = kind.target == Target::InPlace || kind.tail;
        let mut args: Vec<Arg<'_>> = match &mut self.place {
            Place::Given(tables) => tables.iter().map(|table| Arg::read(*table)).collect(),
            Place::Owned(tables) => tables.iter().map(Arg::read).collect(),
            Place::Joined(tables) => vec![Arg::read(tables)],
            Place::Consumed(tables) if written => tables.iter_mut().map(Arg::write).collect(),
            Place::Consumed(tables) => tables.iter().map(Arg::read).collect(),
            Place::Packed(tables, _) if written => vec![Arg::write(tables)],
            Place::Packed(tables, _) => vec![Arg::read(tables)],
        };
        args.extend(self.weight.as_ref().map(Arg::read));
        args.extend(folded.as_mut().map(Arg::write));
        args.extend(self.eq.as_ref().map(|eq| Arg::read(&eq.tables)));
        args.extend([Arg::read(&self.inputs), Arg::write(partials)]);
        args.extend(state.map(Arg::write));
        // SAFETY: tables have two elements for each pair, or four where they are folded, at their strides; folded ones have
        // room for two; the tables of eq have an entry for each index of a pair; the inputs have all that the expression and
        // the drawing of a challenge need; there is a partial sum for each chunk and point, and those of the round before
        // are where the parameters say. Where the launch does all rounds that are left, each has half the pairs of the one
        // before, so that tables, and folded ones in turn with them, have room for what it folds, and the tables of eq have the
        // entries of all their pairs in one group; sums of rounds stay in workgroup memory, or on a CPU take both regions of
        // partial sums in turn, which have one for each point; a line for each round is among the inputs; and the message of
        // each, and a value for each table, have room behind those of the rounds before.
        unsafe { kernel.launch(queue, params.chunks.into(), params, &mut args) }?;
        if let Some(folded) = folded {
            self.place = Place::Packed(folded, 2 * pairs);
            self.weight = None;
        }
        Ok(())
    }

    /// The values of a round's polynomial at these points, times the weights of the pairs; tables are folded by the challenge
    /// of the round before.
    fn round(&mut self, round: usize, challenge: Option<E>, points: &Points, at_one: bool) -> Result<Vec<E>> {
        if points.len() == 0 && challenge.is_none() {
            return Ok(Vec::new());
        }
        if let Some(challenge) = challenge {
            self.bind_to(challenge)?;
        }
        let kind = self.kind(round, true, points, None)?;
        let kernel = self.plan.kernel(&self.expression, kind.clone())?;
        let params = self.layout(&kernel, round, at_one);
        let len = params.chunks as usize * points.len();
        let mut partials = self.plan.device.alloc_with::<Mont<E>>(len, self.secrecy)?;
        self.launch(&kernel, &kind, &params, &mut partials, None)?;
        let mut values = vec![E::ZERO; points.len()];
        for chunk in partials.as_view().read_on(self.queue())?.wait()?.chunks_exact(points.len()) {
            values.iter_mut().zip(chunk).for_each(|(value, partial)| *value += partial);
        }
        Ok(values)
    }

    /// All rounds with their challenges drawn on the device: the messages, and the values of the tables. The transcript's state
    /// is given.
    fn draw(
        &mut self,
        claim: E,
        state: [u32; 8],
        point: Option<&[E]>,
        zero_check: bool,
    ) -> Result<(Vec<Vec<E>>, Vec<E>)> {
        let (num_vars, degree) = (self.statement.num_vars(), self.statement.degree());
        let strategy = self.plan.config.strategy;
        let points_of = |round: usize| points(strategy, degree as u64, zero_check && round == 0);
        let at_one = |round: usize| self.statement.weights(point, round)[1] == E::ZERO;
        // What each round takes: rounds behind the third are smaller ones of its kind.
        let mut kernels = Vec::with_capacity(num_vars.min(3));
        let mut most = 1;
        for round in 0..num_vars.min(3) {
            let drawn = (round > 0).then(|| points_of(round - 1));
            let kind = self.kind(round, round < 2, &points_of(round), drawn)?;
            let params = if kind.points.len() > 0 {
                let kernel = self.plan.kernel(&self.expression, kind.clone())?;
                let params = self.layout(&kernel, round, false);
                kernels.push((kind, Some(kernel)));
                params
            } else {
                kernels.push((kind, None));
                Params::default()
            };
            most = most.max(params.chunks as usize * points_of(round).len());
        }
        // The messages and values, the two sums that rounds have to have, and the partial sums of two rounds.
        let claim_at = num_vars * degree + self.statement.tables();
        let partials_at = |round: usize| claim_at + 2 + (round & 1) * most;
        let mut partials = self.plan.device.alloc_with::<Mont<E>>(partials_at(1) + most, self.secrecy)?;
        partials.view_mut(claim_at..claim_at + 2)?.write_on(self.queue(), &[claim; 2])?;
        let mut states = self.plan.device.upload_on::<u32>(self.queue(), &[state, state].concat(), self.secrecy)?;
        let ones: Vec<bool> = (0..num_vars).map(at_one).collect();
        let mut previous_chunks = 0;
        let draws = |round: usize, previous_chunks: u32, matrix_at: usize, params: Params| Params {
            partials_at: partials_at(round) as u32,
            previous_chunks,
            previous_at: partials_at(round + 1) as u32,
            claim_at: claim_at as u32,
            parity: (round & 1) as u32,
            lines_at: (matrix_at + 2 * degree * (degree - 1) + 4 * degree * round.saturating_sub(1)) as u32,
            matrix_at: matrix_at as u32,
            message_at: (round.saturating_sub(1) * degree) as u32,
            ones: params.ones | u32::from(round > 0 && ones[round - 1]),
            ..params
        };
        let tail = self.tail(kernels.get(2), &ones)?;
        for round in 0..tail.as_ref().map_or(num_vars, |tail| tail.from) {
            let (kind, kernel) = &kernels[round.min(2)];
            let Some(kernel) = kernel else { continue };
            let params = draws(round, previous_chunks, self.matrix_at, self.layout(kernel, round, ones[round]));
            let state = (round > 0).then_some(&mut states);
            self.launch(kernel, kind, &params, &mut partials, state)?;
            previous_chunks = params.chunks;
        }
        match tail {
            Some(Tail { kind, kernel, from }) => {
                let params = draws(from, previous_chunks, self.matrix_at, self.of_tail(from, &ones));
                self.launch(&kernel, &kind, &params, &mut partials, Some(&mut states))?;
            }
            None => self.finish(
                draws(num_vars, previous_chunks, self.matrix_at, Params::default()),
                &points_of(num_vars - 1),
                &mut partials,
                &mut states,
            )?,
        }
        let mut elements = partials.view(..claim_at)?.read_on(self.queue())?.wait()?;
        let values = elements.split_off(num_vars * degree);
        Ok((elements.chunks_exact(degree).map(<[E]>::to_vec).collect(), values))
    }

    /// The last rounds of all, which one workgroup does with what comes behind them, if there are any and the device's loops turn
    /// often enough; `later` is how rounds from the third on are done.
    fn tail(&self, later: Option<&(Kind, Option<Arc<Kernel<Params>>>)>, ones: &[bool]) -> Result<Option<Tail>> {
        let num_vars = self.statement.num_vars();
        let Some((kind, Some(_))) = later else { return Ok(None) };
        let kind = Kind { tail: true, ..kind.clone() };
        let kernel = self.plan.kernel(&self.expression, kind.clone())?;
        let first = num_vars.saturating_sub(1 + LOG_TAIL as usize).max(2);
        let from = (first..num_vars).find(|from| kernel.fits(&self.of_tail(*from, ones)));
        Ok(from.map(|from| Tail { kind, kernel, from }))
    }

    /// What all rounds from one on take together.
    fn of_tail(&self, from: usize, ones: &[bool]) -> Params {
        let num_vars = self.statement.num_vars();
        Params {
            chunks: 1,
            low_at: self.eq.as_ref().map_or(0, SplitEq::of_tail),
            rounds: (num_vars - from) as u32,
            ones: ones[from..].iter().rev().fold(0, |bits, one| (bits | u32::from(*one)) << 1),
            ..self.of_round(from, ones[from])
        }
    }

    /// Draws the last challenge and finds the values of the tables.
    fn finish(
        &self,
        params: Params,
        last: &Points,
        partials: &mut Buffer<Mont<E>>,
        states: &mut Buffer<u32>,
    ) -> Result<()> {
        let kind = self.kind(0, true, last, None)?;
        let kernel = self.plan.finish(self.statement.degree(), kind, last)?;
        let stride = if let Place::Packed(_, stride) = &self.place { *stride } else { 1 << self.statement.num_vars() };
        let params = Params { source_stride: stride as u32, ..params };
        let mut args: Vec<Arg<'_>> = match &self.place {
            Place::Given(tables) => tables.iter().map(|table| Arg::read(*table)).collect(),
            Place::Owned(tables) => tables.iter().map(Arg::read).collect(),
            Place::Joined(tables) => vec![Arg::read(tables)],
            Place::Consumed(tables) => tables.iter().map(Arg::read).collect(),
            Place::Packed(tables, _) => vec![Arg::read(tables)],
        };
        args.extend([Arg::read(&self.inputs), Arg::write(partials), Arg::write(states)]);
        // SAFETY: each table has two elements where it starts; the partial sums of the last round are where the parameters
        // say, and there is room for its message and a value for each table behind those of the rounds before.
        unsafe { kernel.launch(self.queue(), 1, &params, &mut args) }?;
        Ok(())
    }

    /// The weighted sum of the whole, before the first round.
    fn sum(&mut self, point: Option<&[E]>) -> Result<E> {
        let [w0, w1] = self.statement.weights(point, 0);
        let values = self.round(0, None, &Points::ENDS, false)?;
        Ok(w0 * values[0] + w1 * values[1])
    }

    /// The value of each table, when the last variable is bound to the challenge among the inputs.
    fn values(&self) -> Result<Vec<E>> {
        let tables = self.statement.tables();
        let mut values = self.plan.device.alloc_with::<Mont<E>>(tables, self.secrecy)?;
        for table in 0..tables {
            self.bind(table, values.view_mut(table..=table)?)?;
        }
        Ok(values.as_view().read_on(self.queue())?.wait()?)
    }

    /// The tables, when the variable of the last of `rounds` rounds is bound to the challenge among the inputs.
    fn bound(&self, rounds: usize) -> Result<Vec<Buffer<Mont<E>>>> {
        let len = 1 << (self.statement.num_vars() - rounds);
        let bind = |table| -> Result<Buffer<Mont<E>>> {
            let mut bound = self.plan.device.alloc_with(len, self.secrecy)?;
            self.bind(table, bound.as_view_mut())?;
            Ok(bound)
        };
        (0..self.statement.tables()).map(bind).collect()
    }

    fn bind(&self, table: usize, target: ViewMut<'_, Mont<E>>) -> Result<()> {
        let (tables, inputs, order) = (&self.plan.tables, &self.inputs, self.statement.binding_order());
        let (len, full) = (2 * target.len(), 1 << self.statement.num_vars());
        let part = |stride: usize| table * stride..table * stride + len;
        match &self.place {
            Place::Given(sources) => tables.fold_to(sources[table].view(..len)?, inputs, order, target),
            Place::Owned(sources) => tables.fold_to(sources[table].view(..len)?, inputs, order, target),
            Place::Joined(source) => tables.fold_to(source.view(part(full))?, inputs, order, target),
            Place::Consumed(sources) => tables.fold_to(sources[table].view(..len)?, inputs, order, target),
            Place::Packed(source, stride) => tables.fold_to(source.view(part(*stride))?, inputs, order, target),
        }
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
fn from_values<E: DeviceField>(values: &[E], points: &Points, sum: E, [w0, w1]: [E; 2]) -> Vec<E> {
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
    let mut known = ends.to_vec();
    known.extend(points.middle.clone().map(|_| next()));
    match points.top {
        true => interpolate_with_top(&known, next()),
        false => interpolate(&known),
    }
}

/// The same from the values of the polynomial with the weight as a factor, if there is one: that of the variables bound so far,
/// and the line from w₀ to w₁.
fn from_table<E: DeviceField>(values: &[E], points: &Points, sum: E, [w0, w1]: [E; 2], scale: Option<E>) -> Vec<E> {
    let mut known = values.to_vec();
    if !points.one {
        known.insert(1, sum * scale.unwrap_or(E::ONE) - values[0]);
    }
    let polynomial = interpolate(&known);
    match scale {
        Some(scale) => divide(&polynomial, [scale * w0, scale * (w1 - w0)]),
        None => polynomial,
    }
}
