//! Proofs about tables in host memory that the device does not hold.
//!
//! The first rounds are two at a time. A pass over the tables, in pieces, folds each piece by the challenges so far. It
//! finds Σ w(x) e(T(X, Y, x)) for all X and Y up to the degree, which make both rounds' polynomials. Enough variables
//! are bound so that the folded tables fit. One more pass makes these, and the other rounds are those of tables on the
//! device.

use std::ops::Range;

use evariste_backend::{
    Buffer, Element, Error as DeviceError, HostBuffer, Pending, Prefetch, Secrecy, Transfer, View, author::Wiped,
    parallel,
};
use evariste_field::{DeviceField, Mont};

use super::{LEAST_LOG_CHUNK, ProofRun, ProverOutput, Sumcheck, TablePlace, Weighted, messages::points};
use crate::{
    config::{Challenge, Strategy},
    error::{Error, Result},
    params::MAX_CHUNKS,
    polynomial::{evaluate, interpolate},
    proof::{Proof, complete},
    statement::{Order, Statement, Weight},
    transcript::{Transcript, bytes_of},
};

/// Pieces on their way at a time: one comes, one is worked on.
const STAGES: usize = 2;

/// Rounds of a pass.
const ROUNDS: usize = 2;

/// log₂ of the elements of a piece that lie side by side, at least: this run has the alignment of elements in host
/// memory.
const MIN_LOG_RUN: usize = 2;

/// How tables are divided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Division {
    /// Variables that are bound before folded tables fit.
    bound: usize,
    /// log₂ of the elements of a table that a piece has of its folded form.
    log_run: usize,
}

impl Division {
    /// The least division that fits half of the memory with tables and half with pieces. Tables that take `whole` bytes
    /// are not divided if these fit.
    fn new<E: DeviceField, T: DeviceField>(
        statement: &Statement<E>,
        whole: u128,
        device_bytes: u64,
    ) -> Result<Option<Self>> {
        if whole <= device_bytes.into() {
            return Ok(None);
        }
        let (num_vars, tables) = (statement.num_vars(), statement.tables() as u128);
        let (folded, given) = (Mont::<E>::BYTES as u128, Mont::<T>::BYTES as u128);
        // Folded tables, and where they are folded to.
        let copies = match statement.binding_order() {
            Order::MsbFirst => 1,
            Order::LsbFirst => 2,
        };
        let resident = |bound: usize| (copies * tables * folded) << (num_vars - bound);
        let pieces = |bound: usize, log_run: usize| {
            let run = (tables * given + 2 * folded) << bound;
            // Sums of a piece: of each chunk for each X and Y.
            let chunks = (1 << log_run >> LEAST_LOG_CHUNK).clamp(1, u128::from(MAX_CHUNKS));
            let sums = chunks * folded * (statement.degree() as u128 + 1).pow(2);
            STAGES as u128 * (((run + 6 * tables * folded) << log_run) + sums)
        };
        let mut least = whole;
        for bound in (ROUNDS..=num_vars.saturating_sub(MIN_LOG_RUN)).step_by(ROUNDS) {
            let needed = 2 * resident(bound).max(pieces(bound, MIN_LOG_RUN));
            least = least.min(needed);
            if needed <= device_bytes.into() {
                let fits = |log_run: &usize| 2 * pieces(bound, *log_run) <= device_bytes.into();
                let log_run = (MIN_LOG_RUN..=num_vars - bound).rev().find(fits).unwrap_or(MIN_LOG_RUN);
                return Ok(Some(Self { bound, log_run }));
            }
        }
        let needed = least.try_into().unwrap_or(u64::MAX);
        Err(DeviceError::InsufficientMemory { needed, available: device_bytes }.into())
    }
}

/// Tables in host memory. A piece has all values of their first `bits` variables.
struct Pieces<'a, T> {
    tables: &'a [&'a [T]],
    order: Order,
    bits: usize,
    log_run: usize,
}

impl<T: DeviceField> Pieces<'_, T> {
    fn count(&self) -> usize {
        self.tables[0].len() >> (self.bits + self.log_run)
    }

    /// Elements of a table that a piece has.
    fn of_table(&self) -> usize {
        1 << (self.bits + self.log_run)
    }

    /// Elements of a piece.
    fn len(&self) -> usize {
        self.tables.len() * self.of_table()
    }

    /// Uploads all pieces, and calls `work` for each to queue its operations. `work` receives the number of the memory
    /// in which the piece is, that of the piece, and the piece.
    fn upload(
        &self,
        uploads: &mut Prefetch<Mont<T>>,
        mut work: impl FnMut(usize, usize, View<'_, Mont<T>>) -> Result<()>,
    ) -> Result<()> {
        for piece in 0..self.count() {
            let mut host = uploads.host()?;
            self.write(piece, &mut host);
            uploads.run(host, |_, data, slot| work(slot, piece, data))?;
        }
        while uploads.next()?.is_some() {}
        Ok(())
    }

    /// Writes a piece: table by table, each a table of its own that has the first variables of the whole.
    fn write(&self, piece: usize, host: &mut HostBuffer) {
        let run = 1 << self.log_run;
        parallel::chunks(host, run * Mont::<T>::BYTES, &|i, out| {
            let (table, part) = (self.tables[i >> self.bits], i & ((1 << self.bits) - 1));
            let start = match self.order {
                Order::MsbFirst => part * (table.len() >> self.bits) + piece * run,
                Order::LsbFirst => piece * self.of_table() + part * run,
            };
            Mont::<T>::encode(&table[start..][..run], out);
        });
    }
}

/// The values of Σ w(x) e(T(X, Y, x)) for X and Y from 0 to the degree.
type Grid<E> = Vec<Wiped<E>>;

impl<E: DeviceField, T: DeviceField> Sumcheck<E, T> {
    /// Proves as [`Sumcheck::prove`] does, about tables in host memory, with at most about `device_bytes` of device
    /// memory of this secrecy. From [`Sumcheck::required_bytes`] on, the tables are uploaded whole. Otherwise each two
    /// of the first rounds take a pass over the tables, and one more pass ends them. The tables pass in pieces that are
    /// uploaded while others are worked on. If the claim is true, the proof is the same, to the byte, whatever the
    /// strategy.
    ///
    /// # Errors
    /// - [`Error::Device`] with `InsufficientMemory` inside if the smallest pieces do not fit into `device_bytes`.
    /// - The errors of [`Sumcheck::prove`], about the statement, the tables, the claim and the device.
    pub fn prove_host(
        &self,
        statement: &Statement<E>,
        tables: &[&[T]],
        device_bytes: u64,
        secrecy: Secrecy,
        claim: E,
        transcript: &mut dyn Transcript<E>,
    ) -> Result<ProverOutput<E>> {
        self.check_lengths(statement, tables.iter().map(|table| table.len()))?;
        statement.check_claim(claim)?;
        let (num_vars, order) = (statement.num_vars(), statement.binding_order());
        let whole = Self::required_bytes(&self.config, statement).into();
        let Some(Division { bound, log_run }) = Division::new::<E, T>(statement, whole, device_bytes)? else {
            let upload = |table: &&[T]| self.queue.upload_with::<Mont<T>>(table, secrecy);
            let tables = tables.iter().map(upload).collect::<Result<Vec<_>, _>>()?;
            return self.prove_consuming(statement, tables, claim, transcript);
        };
        // Tables are folded where they lie, and eq is no table.
        let plan = self.with(&self.queue, self.config.strategy(Strategy::SplitEq).check(false));
        let point = statement.begin(claim, num_vars, transcript);
        let (mut value, mut messages, mut challenges) = (claim, Vec::new(), Vec::new());
        for round in (0..bound).step_by(ROUNDS) {
            let pieces = Pieces { tables, order, bits: round + ROUNDS, log_run };
            let grid = plan.grid(statement, &pieces, point.as_deref(), &challenges, secrecy)?;
            for i in 0..ROUNDS {
                let mut values = Wiped::from(vec![E::ZERO; grid.len()]);
                if i == 0 {
                    let [w0, w1] = statement.weights(point.as_deref(), round + 1);
                    values.iter_mut().zip(&grid).for_each(|(value, row)| *value = w0 * row[0] + w1 * row[1]);
                } else {
                    let mut column = Wiped::from(vec![E::ZERO; grid.len()]);
                    for (y, value) in values.iter_mut().enumerate() {
                        column.iter_mut().zip(&grid).for_each(|(x, row)| *x = row[y]);
                        *value = evaluate(&interpolate(&column), challenges[round]);
                    }
                }
                let [w0, w1] = statement.weights(point.as_deref(), round + i);
                if self.config.check && round + i == 0 && w0 * values[0] + w1 * values[1] != claim {
                    return Err(Error::FalseClaim);
                }
                let message = interpolate(&values)[1..].to_vec();
                transcript.absorb(&bytes_of(&message));
                let r = transcript.challenge();
                value = evaluate(&complete(&message, value, [w0, w1]), r);
                challenges.push(r);
                messages.push(message);
            }
        }

        let folded = plan.folded(statement, &Pieces { tables, order, bits: bound, log_run }, &challenges, secrecy)?;
        let left = match order {
            Order::MsbFirst => 0..num_vars - bound,
            Order::LsbFirst => bound..num_vars,
        };
        let rest = part_of(statement, point.as_deref(), left.clone().collect())?;
        let place = TablePlace::Packed(folded, 1 << (num_vars - bound));
        let rest_point = point.as_ref().map(|point| point[left.clone()].to_vec());
        let proved = plan.rounds(&rest, rest.num_vars(), place, value, rest_point, transcript)?;
        let mut coordinates = vec![E::ZERO; num_vars];
        challenges.iter().enumerate().for_each(|(i, r)| coordinates[order.variable(num_vars, i)] = *r);
        coordinates[left].copy_from_slice(&proved.point);
        messages.extend(proved.proof.rounds);
        let proof = Proof { rounds: messages, values: proved.proof.values };
        Ok(ProverOutput { proof, point: coordinates, value: proved.value, weight: point, tables: Vec::new() })
    }

    /// The values that make the polynomials of the two rounds after `challenges`.
    fn grid(
        &self,
        statement: &Statement<E>,
        pieces: &Pieces<'_, T>,
        point: Option<&[E]>,
        challenges: &[E],
        secrecy: Secrecy,
    ) -> Result<Grid<E>> {
        let (num_vars, order, tables) = (statement.num_vars(), statement.binding_order(), statement.tables());
        let (round, run) = (challenges.len(), 1usize << pieces.log_run);
        let degree = statement.degree();
        // The variables of a piece's tables behind the first of both rounds, and those of its number.
        let (inner, outer): (Vec<usize>, Range<usize>) = match order {
            Order::MsbFirst => {
                let second = num_vars - 2 - round;
                ((0..pieces.log_run).chain([second]).collect(), pieces.log_run..second)
            }
            Order::LsbFirst => {
                let end = round + 2 + pieces.log_run;
                ((round + 1..end).collect(), end..num_vars)
            }
        };
        let own = part_of(statement, point, inner.clone())?;
        let own_point: Option<Vec<E>> = point.map(|point| inner.iter().map(|j| point[*j]).collect());
        let mut uploads = Prefetch::new(&self.device, pieces.len(), STAGES, secrecy)?;
        let plans: Vec<Self> = uploads.queues().map(|queue| self.with(queue, self.config)).collect();
        let challenges = self.constants(challenges, secrecy)?;
        let places = self.constants(&(0..=degree as u64).map(E::from).collect::<Vec<_>>(), secrecy)?;
        let ready = self.queue.record()?;

        struct Stage<'p, E: DeviceField, T: DeviceField> {
            run: ProofRun<'p, 'p, E, T>,
            folded: Folded<E>,
            /// Partial sums of a piece on their way: its number, where they are, and where they come to.
            sums: Option<(usize, Buffer<Mont<E>>, Pending)>,
        }
        let values = points(Strategy::Textbook, degree as u64, false);
        let mut stages = Vec::with_capacity(STAGES);
        for plan in &plans {
            plan.queue.wait_for(&ready)?;
            let packed = self.device.alloc_with::<Mont<E>>(tables * 2 * run, secrecy)?;
            let run = plan.start(
                &own,
                TablePlace::Packed(packed, 2 * run),
                (own_point.as_deref(), Weighted::ByFactors(E::ONE)),
                Challenge::Host,
                Secrecy::Public,
            )?;
            stages.push(Stage { run, folded: Folded::new(plan, pieces, round, secrecy)?, sums: None });
        }
        let mut grid: Grid<E> = (0..=degree).map(|_| vec![E::ZERO; degree + 1].into()).collect();
        let mut add = |sums: Option<(usize, Buffer<Mont<E>>, Pending)>| -> Result<()> {
            let Some((piece, partials, pending)) = sums else { return Ok(()) };
            let mut sums = Wiped::from(vec![E::ZERO; partials.len()]);
            Mont::<E>::decode(&pending.wait()?, &mut sums)?;
            let weight: E = point.map_or(E::ONE, |point| {
                let factor = |(i, p): (usize, &E)| if piece >> i & 1 == 1 { *p } else { E::ONE - p };
                point[outer.clone()].iter().enumerate().map(factor).product()
            });
            for (row, sums) in grid.iter_mut().zip(sums.chunks_exact(partials.len() / (degree + 1))) {
                for values in sums.chunks_exact(degree + 1) {
                    row.iter_mut().zip(values).for_each(|(sum, value)| *sum += weight * value);
                }
            }
            Ok(())
        };
        pieces.upload(&mut uploads, |i, piece, data| {
            let Stage { run, folded, sums } = &mut stages[i];
            add(sums.take())?;
            let plan = run.plan;
            let kind = run.kind(0, true, &values, None)?;
            let kernel = plan.kernel(&run.expression, kind.clone())?;
            let params = run.layout(&kernel, 0, false);
            let len = params.chunks as usize * values.len();
            let mut partials = self.device.alloc_with::<Mont<E>>((degree + 1) * len, secrecy)?;
            folded.fold(plan, data, &challenges, pieces, order)?;
            for (at, place) in places.iter().enumerate() {
                let TablePlace::Packed(packed, stride) = &mut run.place else { unreachable!("it was made so") };
                for (table, target) in (0..tables).map(|table| (table, table * *stride..(table + 1) * *stride)) {
                    let target = packed.view_mut(target)?;
                    let part = table * 2 * *stride..(table + 1) * 2 * *stride;
                    match &folded.tables {
                        None => plan.mle.bind_to_value(data.view(part)?, place, order, target)?,
                        Some(tables) => plan.mle.bind_to_value(tables.view(part)?, place, order, target)?,
                    }
                }
                run.launch(&kernel, &kind, &params, partials.view_mut(at * len..(at + 1) * len)?, None)?;
            }
            let host = self.device.host_buffer(partials.len() * Mont::<E>::BYTES, Transfer::Download, secrecy)?;
            let pending = plan.queue.read_pinned(&partials, host)?;
            *sums = Some((piece, partials, pending));
            Ok(())
        })?;
        stages.into_iter().try_for_each(|stage| add(stage.sums))?;
        Ok(grid)
    }

    /// The tables with their first variables bound, one after the other.
    fn folded(
        &self,
        statement: &Statement<E>,
        pieces: &Pieces<'_, T>,
        challenges: &[E],
        secrecy: Secrecy,
    ) -> Result<Buffer<Mont<E>>> {
        let (left, run) = (1usize << (statement.num_vars() - challenges.len()), 1usize << pieces.log_run);
        let (last, before) = (challenges.len() - 1, &challenges[..challenges.len() - 1]);
        let last = self.constants(&challenges[last..], secrecy)?;
        let before = self.constants(before, secrecy)?;
        let mut out = self.device.alloc_with::<Mont<E>>(statement.tables() * left, secrecy)?;
        let ready = self.queue.record()?;
        let mut uploads = Prefetch::new(&self.device, pieces.len(), STAGES, secrecy)?;
        let plans: Vec<Self> = uploads.queues().map(|queue| self.with(queue, self.config)).collect();
        let mut stages = Vec::with_capacity(STAGES);
        for plan in &plans {
            plan.queue.wait_for(&ready)?;
            stages.push(Folded::new(plan, pieces, before.len(), secrecy)?);
        }
        pieces.upload(&mut uploads, |i, piece, data| {
            let (plan, folded, order) = (&plans[i], &mut stages[i], statement.binding_order());
            folded.fold(plan, data, &before, pieces, order)?;
            for table in 0..statement.tables() {
                let target = out.view_mut(table * left + piece * run..table * left + (piece + 1) * run)?;
                let part = table * 2 * run..(table + 1) * 2 * run;
                match &folded.tables {
                    None => plan.mle.bind_to_value(data.view(part)?, &last[0], order, target)?,
                    Some(tables) => plan.mle.bind_to_value(tables.view(part)?, &last[0], order, target)?,
                }
            }
            Ok(())
        })?;
        for queue in uploads.queues() {
            self.queue.wait_for(&queue.record()?)?;
        }
        Ok(out)
    }

    /// Each element in a buffer of its own, to fold by.
    fn constants(&self, elements: &[E], secrecy: Secrecy) -> Result<Vec<Buffer<Mont<E>>>> {
        let upload = |element: &E| Ok(self.queue.upload_with::<Mont<E>>(std::slice::from_ref(element), secrecy)?);
        elements.iter().map(upload).collect()
    }
}

/// Where pieces are folded.
struct Folded<E: DeviceField> {
    /// For every other step on the way.
    steps: [Option<Buffer<Mont<E>>>; 2],
    /// Behind the last step: none if there is no step.
    tables: Option<Buffer<Mont<E>>>,
}

impl<E: DeviceField> Folded<E> {
    /// For `steps` steps.
    fn new<T: DeviceField>(
        plan: &Sumcheck<E, T>,
        pieces: &Pieces<'_, T>,
        steps: usize,
        secrecy: Secrecy,
    ) -> Result<Self> {
        let alloc = |wanted: bool, len: usize| -> Result<Option<Buffer<Mont<E>>>> {
            Ok(if wanted { Some(plan.device.alloc_with(len, secrecy)?) } else { None })
        };
        let len = pieces.of_table();
        let first = alloc(steps > 1, len / 2)?;
        let second = alloc(steps > 2, len / 4)?;
        let tables = alloc(steps > 0, (pieces.tables.len() * len) >> steps)?;
        Ok(Self { steps: [first, second], tables })
    }

    /// Folds the tables of a piece by these challenges.
    fn fold<T: DeviceField>(
        &mut self,
        plan: &Sumcheck<E, T>,
        data: View<'_, Mont<T>>,
        challenges: &[Buffer<Mont<E>>],
        pieces: &Pieces<'_, T>,
        order: Order,
    ) -> Result<()> {
        let (Some(folded), Some(last)) = (&mut self.tables, challenges.len().checked_sub(1)) else { return Ok(()) };
        let (len, whole) = (folded.len() / pieces.tables.len(), pieces.of_table());
        for table in 0..pieces.tables.len() {
            let given = data.view(table * whole..(table + 1) * whole)?;
            let mut out = folded.view_mut(table * len..(table + 1) * len)?;
            for (step, challenge) in challenges.iter().enumerate() {
                let [even, odd] = &mut self.steps;
                let (source, target) = if step % 2 == 0 { (odd, even) } else { (even, odd) };
                let half = whole >> (step + 1);
                let target = match target {
                    _ if step == last => out.reborrow(),
                    Some(target) => target.view_mut(..half)?,
                    None => unreachable!("there is room for every step but the last"),
                };
                match source {
                    _ if step == 0 => plan.mle.bind_to_value(given, challenge, order, target)?,
                    Some(source) => plan.mle.bind_to_value(source.view(..2 * half)?, challenge, order, target)?,
                    None => unreachable!("the step before was done there"),
                }
            }
        }
        Ok(())
    }
}

/// The statement about these variables, with the point's coordinates of them.
fn part_of<E: DeviceField>(
    statement: &Statement<E>,
    point: Option<&[E]>,
    variables: Vec<usize>,
) -> Result<Statement<E>> {
    let weight = match point {
        None => Weight::None,
        Some(point) => Weight::Eq(variables.iter().map(|j| point[*j]).collect()),
    };
    let part = Statement::new(variables.len(), statement.expression())?.constants(statement.constants_of());
    Ok(part.weight(weight).order(statement.binding_order()))
}
