//! Proofs about tables that are divided among several devices.
//!
//! Device p of P = 2^k has the rows of the tables in which the k variables that are bound last spell p. So each of the
//! first n − k rounds is one of its own, with the challenge of all. With a weight eq, that of the whole is
//! eq(p, …)·eq(own, …), so the round's polynomial is a sum with the weights of the places:
//!
//! ```text
//! q(X) = Σ_p eq(p, last coordinates) · q_p(X)
//! ```
//!
//! Polynomials and sums of places are linear in the values that kernels compute and in the claim. So a place need not
//! know its own part of the claim: any parts do that add up to the claim, and none is computed.
//!
//! Where all devices can draw challenges themselves, they do. Each scales its tables of the weight by eq(p, …), so that
//! the partial sums of all are those of one device, and gets those of the others by copies between devices. So all draw
//! the same challenge, and the host queues the proof whole. The first device gets all tables as soon as they are short,
//! and does the last rounds alone.
//!
//! Otherwise each place is a thread whose transcript hands its messages to the caller's thread. That one adds them up,
//! absorbs the sum, and gives the challenge to all. The tables have P elements each after n − k rounds; the host does the
//! others.

use std::{
    fmt, panic,
    sync::mpsc::{Receiver, Sender, channel},
    thread,
};

use evariste_backend::{Buffer, Devices, Distribution, Error as DeviceError, Secrecy, Sharded, View, author::Wiped};
use evariste_expression::Expression;
use evariste_field::{DeviceField, Mont, Vector};

use super::{
    ProverOutput, Sumcheck, Weighted,
    drawn::{Drawn, Steps},
    run::{ProofRun, TablePlace},
};
use crate::{
    config::{Challenge, Strategy, SumcheckConfig},
    error::{Error, Result},
    polynomial::{evaluate, interpolate},
    proof::{Proof, complete},
    reference,
    statement::{Order, Statement, Weight},
    transcript::{Transcript, bytes_of, element_bytes, get},
};

/// log₂ of the rows that are few enough for one device.
const LOG_JOINED: usize = 18;

/// A prover for statements about tables that are divided among a power of two of devices.
///
/// Proofs are those of [`Sumcheck`], to the byte. Each device does its part of each round; only partial sums come
/// together, once a round. Devices that draw challenges themselves, as the configuration says, copy these to each other,
/// and the first of them does the last rounds, of about 2^18 rows and fewer. Otherwise sums come together on the host.
/// Devices that are no power of two have several places each: [`Devices::over`].
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use ark_bls12_381::Fr;
/// use evariste_backend::{Device, Devices, Sharded};
/// use evariste_field::{Expression, Mont};
/// use evariste_sumcheck::{Blake3Transcript, ShardedSumcheck, Statement};
///
/// // On a machine with two GPUs: "cuda:0,cuda:1".parse()?
/// let devices = Devices::from(&Device::best()?).over(2)?;
/// let product = Expression::column(0) * Expression::column(1);
/// let statement = Statement::<Fr>::new(2, &product)?;
/// let prover = ShardedSumcheck::<Fr>::new(&devices, &product)?;
/// let distribution = ShardedSumcheck::<Fr>::distribution(&statement);
/// let a = Sharded::<Mont<Fr>>::upload(&devices, &[1, 2, 3, 4].map(Fr::from), distribution)?;
/// let b = Sharded::<Mont<Fr>>::upload(&devices, &[5, 6, 7, 8].map(Fr::from), distribution)?;
/// let claim = Fr::from(5 + 12 + 21 + 32);
/// let proved = prover.prove(&statement, &[&a, &b], claim, &mut Blake3Transcript::new(b"an example"))?;
/// let sub = statement.verify(claim, &proved.proof, &mut Blake3Transcript::new(b"an example"))?;
/// assert_eq!(sub.point, proved.point);
/// # Ok(())
/// # }
/// ```
pub struct ShardedSumcheck<E, T = E> {
    devices: Devices,
    config: SumcheckConfig,
    plans: Vec<Sumcheck<E, T>>,
    /// The first plan on a queue of its own, for the last rounds: it gets what these take beside the first round.
    last: Sumcheck<E, T>,
    /// Operations on that queue.
    vector: Vector<E>,
    /// log₂ of the rows from which on one device goes on alone.
    log_joined: usize,
}

impl<E: DeviceField, T: DeviceField> ShardedSumcheck<E, T> {
    /// Makes a prover for `expression` with the default configuration.
    ///
    /// # Errors
    /// [`Error::Devices`] unless their number is a power of two. Otherwise it fails under the conditions of
    /// [`Sumcheck::new`].
    pub fn new(devices: &Devices, expression: &Expression) -> Result<Self> {
        Self::with_config(devices, expression, SumcheckConfig::default())
    }

    /// Makes a prover for `expression` with a configuration. Challenges are drawn on the host, whatever it says, if not
    /// all devices can draw them, or if a table has fewer than four elements for each place.
    ///
    /// # Errors
    /// Fails under the conditions of [`ShardedSumcheck::new`].
    pub fn with_config(devices: &Devices, expression: &Expression, config: SumcheckConfig) -> Result<Self> {
        if !devices.len().is_power_of_two() {
            return Err(Error::Devices { actual: devices.len() });
        }
        // A place does not know its part of the claim.
        let own = config.check(false);
        let plans = devices.iter().map(|device| {
            // Places of one device work side by side where it can.
            Sumcheck::with_config(device.queue()?, expression, own)
        });
        let plans: Vec<_> = plans.collect::<Result<_>>()?;
        let last = plans[0].on(&devices[0].queue()?);
        let vector = Vector::new(&last.queue);
        Ok(Self { devices: devices.clone(), config, plans, last, vector, log_joined: LOG_JOINED })
    }

    /// Returns the distribution of tables for a statement: that in which the variables bound last tell the place.
    pub fn distribution(statement: &Statement<E>) -> Distribution {
        match statement.binding_order() {
            Order::MsbFirst => Distribution::Cyclic,
            Order::LsbFirst => Distribution::Blocks,
        }
    }

    /// Returns the devices of the prover.
    pub fn devices(&self) -> &Devices {
        &self.devices
    }

    /// Proves that the weighted sum of a statement about this prover's expression is `claim`, as [`Sumcheck::prove`]
    /// does.
    ///
    /// # Errors
    /// - [`Error::Distribution`] if a table has another distribution than [`ShardedSumcheck::distribution`] says.
    /// - [`Error::Device`] with `Length` inside if a table has fewer than two elements for each device.
    /// - Otherwise it fails under the conditions of [`Sumcheck::prove`]. An error of a device names it.
    pub fn prove(
        &self,
        statement: &Statement<E>,
        tables: &[&Sharded<Mont<T>>],
        claim: E,
        transcript: &mut dyn Transcript<E>,
    ) -> Result<ProverOutput<E>> {
        self.check(statement, tables)?;
        if let [plan] = &self.plans[..] {
            let plan = plan.with(&plan.queue, self.config);
            return plan.prove(statement, &of_place(tables, 0), claim, transcript);
        }
        statement.check_claim(claim)?;
        let session = Session::new(statement, self.plans.len(), claim, transcript)?;
        if self.config.check {
            let part = session.checked();
            let sums = self.devices.run(|place, _| self.plans[place].sum(&part, &of_place(tables, place)))?;
            session.expect_claim(sums)?;
        }
        let mut session = session;
        if let Some((rounds, state)) = self.drawn_apart(&mut session) {
            match self.drawn(&session, rounds, state, tables) {
                // Loops that draw from the sums of all may be longer than a device allows.
                Err(Error::Device(DeviceError::TooLarge { .. })) => {}
                drawn => return drawn.map(|(messages, values)| session.replay(messages, values)),
            }
        }
        let (part, own) = (session.part.clone(), session.own.clone());
        let values = self.relayed(&part, tables, claim, own.as_deref(), |parts| session.next(parts))?;
        Ok(session.finish(&values))
    }

    /// The rounds that places do, each with its own tables, before the first device gets them all, and the state of the
    /// transcript, if all devices draw challenges themselves. One of them binds tables, so that they lie in one buffer.
    fn drawn_apart(&self, session: &mut Session<'_, E>) -> Option<(usize, [u32; 8])> {
        let (all, of_place) = (session.statement.num_vars(), session.part.num_vars());
        let by_table = matches!(self.config.strategy, Strategy::Textbook | Strategy::FromClaim);
        let may_draw = !by_table && of_place > 1 && self.plans.iter().all(|plan| plan.may_draw(&session.part));
        let state = session.transcript.blake3().filter(|_| may_draw).map(|transcript| transcript.words())?;
        Some((all.saturating_sub(self.log_joined).clamp(2, of_place), state))
    }

    /// The messages and values of a proof whose challenges devices draw. Each adds up the partial sums of all, which have
    /// the weight of their place, so that all draw the same. The first device does the rounds behind the first `rounds`
    /// alone. The host queues everything, and waits once.
    fn drawn(
        &self,
        session: &Session<'_, E>,
        rounds: usize,
        state: [u32; 8],
        tables: &[&Sharded<Mont<T>>],
    ) -> Result<(Vec<Vec<E>>, Vec<E>)> {
        let (statement, part) = (session.statement, session.part.clone());
        let (point, own, weights) = (session.point.as_deref(), session.own.as_deref(), &session.weights);
        let secrecy = Secrecy::of(tables.iter().flat_map(|table| table.parts()).map(Buffer::secrecy));
        let mut runs = self.devices.run(|place, _| {
            let given = TablePlace::Given(of_place(tables, place));
            let weight = (own, Weighted::ByFactors(weights[place]));
            let run = self.plans[place].start(&part, given, weight, Challenge::Device, secrecy)?;
            let steps = run.steps(statement, point)?;
            Ok::<_, Error>((run, steps))
        })?;
        let most: usize = runs.iter().map(|(run, steps)| run.most_partials(steps, &part, 0..rounds)).sum();
        let most = most.max(runs[0].0.most_partials(&runs[0].1, statement, rounds..statement.num_vars()));
        let room = |plan: &Sumcheck<E, T>| Drawn::new(&plan.queue, statement, most, session.claim, state, secrecy);
        let mut drawn = self.plans.iter().map(room).collect::<Result<Vec<_>>>()?;
        let mut bounds = draw_rounds(0, &mut runs, &mut drawn)?;
        // Beside the first round, which is the longest.
        let rows = 2usize << (statement.num_vars() - rounds);
        let joined = TablePlace::Packed(self.last.device.alloc_with(statement.tables() * rows, secrecy)?, rows);
        let weight = (point, Weighted::ByFactors(E::ONE));
        let mut last = self.last.start(statement, joined, weight, Challenge::Device, secrecy)?;
        for round in 1..rounds {
            self.exchange(&mut drawn, &bounds, true)?;
            bounds = draw_rounds(round, &mut runs, &mut drawn)?;
        }
        self.exchange(&mut drawn, &bounds, false)?;
        self.join(&runs, &mut last, rows)?;
        last.draw_rest(rounds, &runs[0].1, &mut drawn[0])?;
        let read = drawn[0].read(&self.last.queue);
        // A read reports what failed before it.
        for (plan, drawn) in self.plans.iter().zip(&drawn).skip(1) {
            plan.queue.read(drawn.partials.view(..1)?)?;
        }
        read
    }

    /// Brings the partial sums of a round, which have these bounds by place, to the first device, and those of all
    /// `to_all`.
    fn exchange(&self, drawn: &mut [Drawn<E>], bounds: &[usize], to_all: bool) -> Result<()> {
        let Some((first, others)) = drawn.split_first_mut() else { return Ok(()) };
        for (other, part) in others.iter().zip(bounds.windows(2).skip(1)) {
            let part = part[0]..part[1];
            self.plans[0].queue.receive(other.partials.view(part.clone())?, first.partials.view_mut(part)?)?;
        }
        if !to_all {
            return Ok(());
        }
        let all = bounds[0]..bounds[bounds.len() - 1];
        for (other, plan) in others.iter_mut().zip(&self.plans[1..]) {
            plan.queue.receive(first.partials.view(all.clone())?, other.partials.view_mut(all.clone())?)?;
        }
        Ok(())
    }

    /// Brings the tables of all places to the run of the last rounds, where one has `rows` rows.
    fn join(
        &self,
        runs: &[(ProofRun<'_, '_, E, T>, Steps)],
        last: &mut ProofRun<'_, '_, E, T>,
        rows: usize,
    ) -> Result<()> {
        let (queue, places, of_place) = (&self.last.queue, runs.len(), rows / runs.len());
        let (order, tables) = (last.statement.binding_order(), last.columns);
        let joined = last.packed_mut();
        // The lowest bits of a row tell its place if variables are bound from the highest.
        let by_place = order == Order::MsbFirst;
        let mut blocks =
            if by_place { Some(self.last.device.alloc_with(joined.len(), joined.secrecy())?) } else { None };
        let target = blocks.as_mut().unwrap_or(joined);
        for (place, (run, _)) in runs.iter().enumerate() {
            let (source, stride) = run.packed();
            for table in 0..tables {
                let block = if by_place { place * tables + table } else { table * places + place };
                let part = source.view(table * stride..table * stride + of_place)?;
                queue.receive(part, target.view_mut(block * of_place..(block + 1) * of_place)?)?;
            }
        }
        match blocks {
            Some(blocks) => Ok(self.vector.transpose(&blocks, places, joined)?),
            None => Ok(()),
        }
    }

    /// The values that the tables of each place are left with behind its last round, where `next` gives the challenge
    /// for the messages of a round.
    fn relayed(
        &self,
        part: &Statement<E>,
        tables: &[&Sharded<Mont<T>>],
        claim: E,
        own: Option<&[E]>,
        mut next: impl FnMut(&[Wiped<E>]) -> E,
    ) -> Result<Vec<Wiped<E>>> {
        let (mut outputs, failed) = thread::scope(|scope| {
            let start = |(place, plan): (usize, &'_ Sumcheck<E, T>)| {
                let ((sent, messages), (challenges, received)) = (channel(), channel());
                let plan = plan.on(&plan.queue);
                let work = move || {
                    let claim = part_of_claim(claim, own.is_some(), place);
                    let mut relay = Relay { message: Wiped::default(), sent, received };
                    let tables = TablePlace::Given(of_place(tables, place));
                    let own = own.map(<[E]>::to_vec);
                    let output = plan.rounds(part, part.num_vars(), tables, claim, own, &mut relay)?;
                    Ok(Wiped::from(output.proof.values))
                };
                (scope.spawn(work), messages, challenges)
            };
            let mut threads = Vec::with_capacity(self.plans.len());
            let (mut messages, mut challenges) = (Vec::new(), Vec::new());
            for place in self.plans.iter().enumerate() {
                let (thread, of_place, to_place): (_, Receiver<Wiped<E>>, Sender<E>) = start(place);
                threads.push(thread);
                messages.push(of_place);
                challenges.push(to_place);
            }
            let mut failed = None;
            for _ in 0..part.num_vars() {
                let mut round = Vec::with_capacity(messages.len());
                for (place, messages) in messages.iter().enumerate() {
                    match messages.recv() {
                        Ok(message) => round.push(message),
                        Err(_) => failed = failed.or(Some(place)),
                    }
                }
                // A place has failed, and the others go on alone to their end.
                if failed.is_some() {
                    break;
                }
                let challenge = next(&round);
                challenges.iter().for_each(|place| _ = place.send(challenge));
            }
            drop((messages, challenges));
            let end = |done: thread::Result<_>| done.unwrap_or_else(|panicked| panic::resume_unwind(panicked));
            let outputs: Vec<Result<Wiped<E>>> = threads.into_iter().map(|thread| end(thread.join())).collect();
            (outputs, failed)
        });
        // The error of the place that failed first: without a challenge, others may end with one of their own.
        if let Some(place) = failed {
            outputs.swap(0, place);
        }
        outputs.into_iter().collect()
    }

    /// Refuses another expression, and tables that are none of the statement's on these devices.
    fn check(&self, statement: &Statement<E>, tables: &[&Sharded<Mont<T>>]) -> Result<()> {
        if *statement.expression() != self.plans[0].expression {
            return Err(Error::OtherExpression);
        }
        statement.check()?;
        if tables.len() != statement.tables() {
            return Err(Error::length("the tables of a statement", statement.tables(), tables.len()));
        }
        let (expected, least) = (1 << statement.num_vars(), 2 * self.plans.len());
        if expected < least {
            return Err(Error::length("the elements of a table on several devices, at least", least, expected));
        }
        for table in tables {
            table.expect_on("a table", &self.devices)?;
            if table.len() != expected {
                return Err(Error::length("the elements of a table", expected, table.len()));
            }
            let (expected, actual) = (Self::distribution(statement), table.distribution());
            if actual != expected && self.plans.len() > 1 {
                return Err(Error::Distribution { expected, actual });
            }
        }
        Ok(())
    }
}

impl<E, T> fmt::Debug for ShardedSumcheck<E, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ShardedSumcheck").field("plans", &self.plans).finish_non_exhaustive()
    }
}

impl<E: DeviceField, T: DeviceField> Sumcheck<E, T> {
    /// Does the part of place number `place` of `places` in a proof as [`ShardedSumcheck`] makes it, where other
    /// processes have the other places. All of them call this with the same statement and claim, and with transcripts in
    /// the same state. All get the same proof.
    ///
    /// `gather` takes elements of this place, and returns those of all places, by place. It is called once a round, and
    /// once behind the last one. The configuration's check of the claim is not made.
    ///
    /// # Errors
    /// - [`Error::Devices`] unless `places` is a power of two.
    /// - Those of [`Sumcheck::prove`], about a statement with log₂ `places` variables less.
    /// - The error of `gather`.
    pub fn prove_part<'a>(
        &self,
        statement: &Statement<E>,
        [place, places]: [usize; 2],
        tables: &[impl Into<View<'a, Mont<T>>> + Copy],
        claim: E,
        transcript: &mut dyn Transcript<E>,
        mut gather: impl FnMut(&[E]) -> Result<Vec<Vec<E>>>,
    ) -> Result<ProverOutput<E>> {
        if !places.is_power_of_two() || place >= places {
            return Err(Error::Devices { actual: places });
        }
        let least = 2 * places;
        if 1 << statement.num_vars() < least {
            let (what, actual) = ("the elements of a table on several devices, at least", 1 << statement.num_vars());
            return Err(Error::length(what, least, actual));
        }
        if *statement.expression() != self.expression {
            return Err(Error::OtherExpression);
        }
        statement.check()?;
        statement.check_claim(claim)?;
        let own = Statement::new(statement.num_vars() - places.ilog2() as usize, statement.expression())?;
        let tables = self.given(&own.constants(statement.constants_of()), tables)?;
        let mut session = Session::new(statement, places, claim, transcript)?;
        let (part, own) = (session.part.clone(), session.own.clone());
        let claim = part_of_claim(claim, own.is_some(), place);
        let plan = self.with(&self.queue, self.config.check(false));
        let mut relay = Gather { message: Wiped::default(), session: &mut session, gather: &mut gather, failed: None };
        let output = plan.rounds(&part, part.num_vars(), TablePlace::Given(tables), claim, own, &mut relay);
        // Where others cannot be reached, nothing that came after is worth anything.
        if let Some(error) = relay.failed {
            return Err(error);
        }
        let values = gathered(&mut gather, &Wiped::from(output?.proof.values), places)?;
        Ok(session.finish(&values))
    }
}

/// A round of each place. Returns the bounds of their partial sums.
fn draw_rounds<E: DeviceField, T: DeviceField>(
    round: usize,
    runs: &mut [(ProofRun<'_, '_, E, T>, Steps)],
    drawn: &mut [Drawn<E>],
) -> Result<Vec<usize>> {
    let (mut chunks, mut bounds) = (0, Vec::with_capacity(1 + runs.len()));
    for ((run, steps), drawn) in runs.iter_mut().zip(&mut *drawn) {
        let before = chunks as usize * steps.values(round);
        bounds.push(drawn.partials_at(round) + before);
        chunks += run.draw_round(round, before, steps, drawn)?;
    }
    drawn.iter_mut().for_each(|drawn| drawn.left(chunks));
    let values = runs.first().map_or(0, |(_, steps)| steps.values(round));
    bounds.extend(bounds.first().map(|first| first + chunks as usize * values));
    Ok(bounds)
}

/// What `gather` returns, of each place as many elements as are given.
fn gathered<E: DeviceField>(
    gather: &mut impl FnMut(&[E]) -> Result<Vec<Vec<E>>>,
    own: &[E],
    places: usize,
) -> Result<Vec<Wiped<E>>> {
    let all: Vec<Wiped<E>> = gather(own)?.into_iter().map(Wiped::from).collect();
    if all.len() != places {
        return Err(Error::length("the places of a proof", places, all.len()));
    }
    match all.iter().find(|part| part.len() != own.len()) {
        Some(part) => Err(Error::length("the elements of a place", own.len(), part.len())),
        None => Ok(all),
    }
}

/// The claim of a place. With a weight, those of the places add up to 1. Without one, the first has all of the claim.
fn part_of_claim<E: DeviceField>(claim: E, is_weighted: bool, place: usize) -> E {
    if is_weighted || place == 0 { claim } else { E::ZERO }
}

/// A proof on its way, as the one knows it who draws the challenges.
struct Session<'a, E: DeviceField> {
    statement: &'a Statement<E>,
    transcript: &'a mut dyn Transcript<E>,
    /// log₂ of the number of places.
    log_places: usize,
    claim: E,
    /// What a place proves, and the coordinates of the weight for that.
    part: Statement<E>,
    own: Option<Vec<E>>,
    /// All coordinates of the weight, and those that tell the place.
    point: Option<Vec<E>>,
    last: Option<Vec<E>>,
    /// The weight of each place.
    weights: Vec<E>,
    value: E,
    messages: Vec<Vec<E>>,
    challenges: Vec<E>,
}

impl<'a, E: DeviceField> Session<'a, E> {
    /// Binds the transcript. The statement and the claim were checked.
    fn new(
        statement: &'a Statement<E>,
        places: usize,
        claim: E,
        transcript: &'a mut dyn Transcript<E>,
    ) -> Result<Self> {
        let (num_vars, order) = (statement.num_vars(), statement.binding_order());
        let log_places = places.ilog2() as usize;
        let rounds = num_vars - log_places;
        let part = Statement::new(rounds, statement.expression())?
            .constants(statement.constants_of())
            .order(order)
            .allow_small_challenges();
        let point = statement.begin(claim, num_vars, transcript);
        let (own, last) = match &point {
            None => (None, None),
            Some(point) => {
                let (low, high) = point.split_at(if order == Order::MsbFirst { log_places } else { rounds });
                let (own, last) = if order == Order::MsbFirst { (high, low) } else { (low, high) };
                (Some(own.to_vec()), Some(last.to_vec()))
            }
        };
        let part = part.weight(match (statement.weight_of(), &own) {
            (Weight::ZeroCheck, _) => Weight::ZeroCheck,
            (_, Some(own)) => Weight::Eq(own.clone()),
            (_, None) => Weight::None,
        });
        let weights = last.as_ref().map_or_else(|| vec![E::ONE; places], |last| reference::eq(last));
        let (messages, challenges) = (Vec::with_capacity(num_vars), Vec::with_capacity(num_vars));
        let value = claim;
        Ok(Self {
            statement,
            transcript,
            log_places,
            claim,
            part,
            own,
            point,
            last,
            weights,
            value,
            messages,
            challenges,
        })
    }

    /// What a place sums for the check of the claim.
    fn checked(&self) -> Statement<E> {
        self.part.clone().weight(self.own.clone().map_or(Weight::None, Weight::Eq))
    }

    /// Refuses the claim unless the sums of places make it.
    fn expect_claim(&self, sums: Vec<E>) -> Result<()> {
        let sum: E = Wiped::from(sums).iter().zip(&self.weights).map(|(sum, weight)| *sum * weight).sum();
        if sum == self.claim { Ok(()) } else { Err(Error::FalseClaim) }
    }

    /// The challenge for the messages of all places.
    fn next(&mut self, parts: &[Wiped<E>]) -> E {
        let mut message = vec![E::ZERO; self.statement.degree()];
        for (part, weight) in parts.iter().zip(&self.weights) {
            message.iter_mut().zip(&**part).for_each(|(sum, coefficient)| *sum += *coefficient * weight);
        }
        self.draw(message)
    }

    fn draw(&mut self, message: Vec<E>) -> E {
        self.transcript.absorb(&bytes_of(&message));
        let challenge = self.transcript.challenge();
        let weights = self.statement.weights(self.point.as_deref(), self.messages.len());
        self.value = evaluate(&complete(&message, self.value, weights), challenge);
        self.messages.push(message);
        self.challenges.push(challenge);
        challenge
    }

    /// The proof of these messages and values, whose challenges were drawn elsewhere.
    fn replay(mut self, messages: Vec<Vec<E>>, values: Vec<E>) -> ProverOutput<E> {
        for message in messages {
            self.draw(message);
        }
        self.transcript.absorb(&bytes_of(&values));
        self.output(values)
    }

    /// The last rounds, from the values that the tables of each place are left with, and the proof.
    fn finish(mut self, values: &[Wiped<E>]) -> ProverOutput<E> {
        let order = self.statement.binding_order();
        let table = |table: usize| {
            let mut bound = Wiped::with_capacity(values.len());
            bound.extend(values.iter().map(|values| values[table]));
            bound
        };
        let mut bound: Vec<Wiped<E>> = (0..self.statement.tables()).map(table).collect();
        for round in 0..self.log_places {
            let behind = self.last.as_ref().map(|last| match order {
                Order::MsbFirst => &last[..self.log_places - 1 - round],
                Order::LsbFirst => &last[round + 1..],
            });
            let message = message(self.statement, &bound, behind);
            let challenge = self.draw(message);
            bound.iter_mut().for_each(|table| *table = Wiped::from(reference::bind(table, challenge, order)));
        }
        let values: Vec<E> = bound.iter().map(|table| table[0]).collect();
        self.transcript.absorb(&bytes_of(&values));
        self.output(values)
    }

    /// The proof with the values of the tables behind its last round.
    fn output(self, values: Vec<E>) -> ProverOutput<E> {
        let (num_vars, order) = (self.statement.num_vars(), self.statement.binding_order());
        let mut point = self.challenges.clone();
        (0..num_vars).for_each(|round| point[order.variable(num_vars, round)] = self.challenges[round]);
        let proof = Proof { rounds: self.messages, values };
        ProverOutput { proof, point, value: self.value, weight: self.point, tables: Vec::new() }
    }
}

/// The transcript of a place that gathers the messages of all itself.
struct Gather<'a, 'b, E: DeviceField, G> {
    /// The last message.
    message: Wiped<E>,
    session: &'a mut Session<'b, E>,
    gather: &'a mut G,
    failed: Option<Error>,
}

impl<E: DeviceField, G: FnMut(&[E]) -> Result<Vec<Vec<E>>>> Transcript<E> for Gather<'_, '_, E, G> {
    fn absorb(&mut self, message: &[u8]) {
        self.message = elements_of(message);
    }

    fn challenge(&mut self) -> E {
        if self.failed.is_some() {
            return E::ONE;
        }
        match gathered(self.gather, &self.message, self.session.weights.len()) {
            Ok(parts) => self.session.next(&parts),
            Err(error) => {
                self.failed = Some(error);
                E::ONE
            }
        }
    }
}

/// The elements of a message.
fn elements_of<E: DeviceField>(message: &[u8]) -> Wiped<E> {
    let mut elements = Wiped::with_capacity(message.len() / element_bytes::<E>());
    elements.extend(message.chunks(element_bytes::<E>()).map(|bytes| get::<E>(bytes).unwrap_or(E::ZERO)));
    elements
}

/// The tables of a place.
fn of_place<'a, T: DeviceField>(tables: &[&'a Sharded<Mont<T>>], place: usize) -> Vec<View<'a, Mont<T>>> {
    tables.iter().map(|table| table.parts()[place].as_view()).collect()
}

/// The message of a round about tables on the host, with the coordinates of the weight for the variables behind it.
fn message<E: DeviceField>(statement: &Statement<E>, tables: &[Wiped<E>], behind: Option<&[E]>) -> Vec<E> {
    let half = tables[0].len() / 2;
    let weights = behind.map_or_else(|| vec![E::ONE; half], reference::eq);
    let value = |x: u64| {
        let bind = |table: &Wiped<E>| Wiped::from(reference::bind(table, E::from(x), statement.binding_order()));
        let bound: Vec<Wiped<E>> = tables.iter().map(bind).collect();
        let row = |i: usize| Wiped::from(bound.iter().map(|table| table[i]).collect::<Vec<E>>());
        let term = |(i, weight): (usize, &E)| *weight * statement.expression().value(&row(i), statement.constants_of());
        weights.iter().enumerate().map(term).sum()
    };
    let values = Wiped::from((0..=statement.degree() as u64).map(value).collect::<Vec<E>>());
    interpolate(&values)[1..].to_vec()
}

/// The transcript of a place: its messages go to the thread that knows those of all, and challenges come from there.
struct Relay<E: Copy> {
    /// The last message.
    message: Wiped<E>,
    sent: Sender<Wiped<E>>,
    received: Receiver<E>,
}

impl<E: DeviceField> Transcript<E> for Relay<E> {
    fn absorb(&mut self, message: &[u8]) {
        self.message = elements_of(message);
    }

    fn challenge(&mut self) -> E {
        let challenge = self.sent.send(std::mem::take(&mut self.message)).ok().and_then(|()| self.received.recv().ok());
        // Another place has failed, and whatever comes of this one is dropped.
        challenge.unwrap_or(E::ONE)
    }
}

#[cfg(test)]
mod tests {
    use ark_bls12_381::Fr;
    use ark_ff::{AdditiveGroup, UniformRand};
    use evariste_backend::{Device, Secrecy};
    use evariste_field::small::{BabyBear, BabyBear4};

    use super::*;
    use crate::{config::Strategy, transcript::Blake3Transcript};

    fn group(places: usize) -> Devices {
        let devices: Vec<Device> = (0..places).map(|_| Device::another_cpu()).collect();
        Devices::new(devices).unwrap()
    }

    /// a · b − c.
    fn gate() -> Expression {
        let [a, b, c] = [0, 1, 2].map(Expression::column);
        a * b - c
    }

    fn transcript() -> Blake3Transcript {
        Blake3Transcript::new(b"several devices")
    }

    /// Proofs of one device, and of several.
    fn check<E: DeviceField, T: DeviceField>(
        devices: &Devices,
        statement: &Statement<E>,
        tables: &[Vec<T>],
        strategy: Strategy,
    ) {
        let config = SumcheckConfig::default().strategy(strategy).check(true);
        let device = Device::cpu();
        let one = Sumcheck::<E, T>::with_config(&device, statement.expression(), config).unwrap();
        let whole: Vec<_> = tables.iter().map(|table| device.upload::<Mont<T>>(table).unwrap()).collect();
        let whole: Vec<_> = whole.iter().collect();
        let claim = match statement.weight_of() {
            Weight::ZeroCheck => E::ZERO,
            _ => one.sum(statement, &whole).unwrap(),
        };
        let expected = one.prove(statement, &whole, claim, &mut transcript()).unwrap();

        let case = format!("{} over {}: {statement:?}, {strategy:?}", statement.num_vars(), devices.len());
        let mut prover = ShardedSumcheck::<E, T>::with_config(devices, statement.expression(), config).unwrap();
        let distribution = ShardedSumcheck::<E, T>::distribution(statement);
        let upload = |table| Sharded::upload_with(devices, table, distribution, Secrecy::Secret).unwrap();
        let parts: Vec<_> = tables.iter().map(|table| upload(table)).collect();
        let parts: Vec<_> = parts.iter().collect();
        let (mut ours, mut theirs) = (transcript(), transcript());
        let proved = prover.prove(statement, &parts, claim, &mut ours).unwrap();
        assert_eq!(proved.proof.to_bytes(), expected.proof.to_bytes(), "{case}");
        let of = |output: &ProverOutput<E>| (output.point.clone(), output.value, output.weight.clone());
        assert_eq!(of(&proved), of(&expected));
        assert_eq!(statement.verify(claim, &proved.proof, &mut theirs).unwrap().value, expected.value);
        assert_eq!(ours.state(), theirs.state(), "{case}");
        // Never on one device alone, and at other rounds than from the second on.
        for log_joined in [0, 2, 3] {
            prover.log_joined = log_joined;
            let mut ours = transcript();
            let proved = prover.prove(statement, &parts, claim, &mut ours).unwrap();
            assert_eq!(proved.proof, expected.proof, "{case}, on one device from 2^{log_joined} rows on");
            assert_eq!(of(&proved), of(&expected), "{case}");
            assert_eq!(ours.state(), theirs.state(), "{case}");
        }
        // The rounds before the first device goes on alone: none where weights are tables, or a place has one round.
        if devices.len() > 1 {
            let mut transcript = transcript();
            let mut session = Session::new(statement, devices.len(), claim, &mut transcript).unwrap();
            let of_place = session.part.num_vars();
            let by_table = matches!(strategy, Strategy::Textbook | Strategy::FromClaim);
            let before = (!by_table && of_place > 1).then(|| statement.num_vars().saturating_sub(3).clamp(2, of_place));
            assert_eq!(prover.drawn_apart(&mut session).map(|(rounds, _)| rounds), before, "{case}");
        }
        let apart = apart(devices.len(), statement, &parts, claim);
        assert!(apart.iter().all(|proof| *proof == expected.proof), "{case}, places apart");
        let refused = prover.prove(statement, &parts, claim + E::ONE, &mut transcript()).err();
        assert!(matches!(refused, Some(Error::FalseClaim | Error::ZeroCheckClaim)), "{case}: {refused:?}");
    }

    /// Proofs of places that know nothing of each other but what they gather.
    fn apart<E: DeviceField, T: DeviceField>(
        places: usize,
        statement: &Statement<E>,
        tables: &[&Sharded<Mont<T>>],
        claim: E,
    ) -> Vec<Proof<E>> {
        let (all, barrier) = (std::sync::Mutex::new(vec![Vec::new(); places]), std::sync::Barrier::new(places));
        let prove = |place: usize| {
            let tables = of_place(tables, place);
            let prover = Sumcheck::<E, T>::new(tables[0].device(), statement.expression()).unwrap();
            let gather = |own: &[E]| {
                all.lock().unwrap()[place] = own.to_vec();
                barrier.wait();
                let gathered = all.lock().unwrap().clone();
                barrier.wait();
                Ok(gathered)
            };
            prover.prove_part(statement, [place, places], &tables, claim, &mut transcript(), gather).unwrap().proof
        };
        let prove = &prove;
        thread::scope(|scope| {
            let threads: Vec<_> = (0..places).map(|place| scope.spawn(move || prove(place))).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        })
    }

    fn check_weights<E: DeviceField, T: DeviceField>(
        devices: &Devices,
        num_vars: usize,
        order: Order,
        strategy: Strategy,
    ) {
        let mut rng = ark_std::test_rng();
        let mut random = || (0..1 << num_vars).map(|_| T::rand(&mut rng)).collect::<Vec<T>>();
        let (a, b, c) = (random(), random(), random());
        let product = a.iter().zip(&b).map(|(a, b)| *a * b).collect();
        let mut point: Vec<E> = (0..num_vars).map(|_| E::rand(&mut rng)).collect();
        let statement = Statement::<E>::new(num_vars, &gate()).unwrap().order(order);
        check(devices, &statement.clone().weight(Weight::ZeroCheck), &[a.clone(), b.clone(), product], strategy);
        let tables = [a, b, c];
        check(devices, &statement, &tables, strategy);
        check(devices, &statement.clone().weight(Weight::Eq(point.clone())), &tables, strategy);
        // Weights that are 0, of places and of rows.
        (point[0], point[num_vars - 1]) = (E::ZERO, E::ONE);
        check(devices, &statement.weight(Weight::Eq(point)), &tables, strategy);
    }

    #[test]
    fn proofs_are_those_of_one_device() {
        for order in [Order::MsbFirst, Order::LsbFirst] {
            for (places, sizes) in [(1, 1..4), (2, 2..7), (4, 3..6), (8, 4..5)] {
                for num_vars in sizes {
                    check_weights::<Fr, Fr>(&group(places), num_vars, order, Strategy::ZeroCheck);
                }
            }
            for strategy in [Strategy::Textbook, Strategy::FromClaim, Strategy::SplitEq] {
                check_weights::<BabyBear4, BabyBear>(&group(2), 5, order, strategy);
            }
            check_weights::<BabyBear4, BabyBear>(&group(3).over(4).unwrap(), 6, order, Strategy::ZeroCheck);
        }
    }

    /// A zero-check of degree 1 evaluates nothing in its first round. Rounds of 2^9 pairs have several chunks a place.
    #[test]
    fn rounds_may_have_no_value_or_several_chunks() {
        let mut rng = ark_std::test_rng();
        let difference = Expression::column(0) - Expression::column(1);
        for (places, num_vars) in [(2, 3), (2, 10), (4, 11)] {
            let table: Vec<Fr> = (0..1 << num_vars).map(|_| Fr::rand(&mut rng)).collect();
            let statement = Statement::<Fr>::new(num_vars, &difference).unwrap().weight(Weight::ZeroCheck);
            check(&group(places), &statement, &[table.clone(), table], Strategy::ZeroCheck);
        }
        check_weights::<Fr, Fr>(&group(2), 11, Order::MsbFirst, Strategy::ZeroCheck);
        check_weights::<Fr, Fr>(&group(2), 11, Order::LsbFirst, Strategy::SplitEq);
    }

    #[test]
    fn what_does_not_suit_is_refused() {
        let devices = group(2);
        let new = |devices: &Devices| ShardedSumcheck::<Fr>::new(devices, &gate());
        assert_eq!(new(&group(3)).err(), Some(Error::Devices { actual: 3 }));
        let (prover, statement) = (new(&devices).unwrap(), Statement::<Fr>::new(2, &gate()).unwrap());
        let table = |devices, len: u64, distribution| {
            let host: Vec<Fr> = (0..len).map(Fr::from).collect();
            Sharded::<Mont<Fr>>::upload(devices, &host, distribution).unwrap()
        };
        let right = table(&devices, 4, Distribution::Cyclic);
        let prove = |statement: &Statement<Fr>, table: &Sharded<Mont<Fr>>| {
            prover.prove(statement, &[&right, &right, table], Fr::ZERO, &mut transcript()).err()
        };
        let (expected, actual) = (Distribution::Cyclic, Distribution::Blocks);
        let refused = prove(&statement, &table(&devices, 4, actual));
        assert_eq!(refused, Some(Error::Distribution { expected, actual }));
        let refused = prove(&statement, &table(&devices, 8, expected));
        assert_eq!(refused, Some(Error::length("the elements of a table", 4, 8)));
        let refused = prove(&statement, &table(&group(2), 4, expected));
        assert!(
            matches!(refused, Some(Error::Device(DeviceError::WrongDevice { what: "a table", .. }))),
            "{refused:?}"
        );
        let short = Statement::new(1, &gate()).unwrap();
        let refused = prove(&short, &right);
        assert_eq!(refused, Some(Error::length("the elements of a table on several devices, at least", 4, 2)));
        let other = Statement::new(2, &Expression::column(0)).unwrap();
        assert_eq!(prove(&other, &right), Some(Error::OtherExpression));
        let few = prover.prove(&statement, &[&right], Fr::ZERO, &mut transcript()).err();
        assert_eq!(few, Some(Error::length("the tables of a statement", 3, 1)));
    }
}
