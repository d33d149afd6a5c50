//! A proof under way: where its tables are, and the launches of its rounds.

use std::{any::Any, sync::Arc};

use evariste_backend::{
    Buffer, Error as DeviceError, Queue, Secrecy, View, ViewMut,
    author::{Arg, Kernel, Wiped},
};
use evariste_expression::Expression;
use evariste_field::{DeviceField, Mont};

use super::{LEAST_LOG_CHUNK, LOG_CHUNK, Sumcheck, messages::points};
use crate::{
    config::Challenge,
    error::{Error, Result},
    params::{LOG_TAIL, MAX_CHUNKS, Params},
    program::{EvaluationPoints, Fold},
    round::{Kind, Source, TABLES, Target},
    statement::{Order, Statement},
    table::{SplitEq, is_below},
};

/// Where the tables of a proof are.
pub(super) enum TablePlace<'a, E: DeviceField, T: DeviceField> {
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
pub(super) struct ProofRun<'a, 'p, E: DeviceField, T: DeviceField> {
    pub(super) plan: &'p Sumcheck<E, T>,
    pub(super) statement: &'p Statement<E>,
    /// The expression that kernels evaluate: with the weight as a factor, where that is a table.
    pub(super) expression: Expression,
    pub(super) columns: usize,
    pub(super) place: TablePlace<'a, E, T>,
    /// The weight as a table, behind the others, as long as these are not packed.
    pub(super) weight: Option<Buffer<Mont<E>>>,
    pub(super) eq: Option<SplitEq<E>>,
    /// The challenge, the constants and the integers; where challenges are drawn on the device, then what makes
    /// messages.
    pub(super) inputs: Buffer<Mont<E>>,
    pub(super) matrix_at: usize,
    pub(super) challenge: Challenge,
    pub(super) secrecy: Secrecy,
}

impl<E: DeviceField, T: DeviceField> TablePlace<'_, E, T> {
    pub(super) fn secrecy(&self) -> Secrecy {
        match self {
            TablePlace::Given(tables) => Secrecy::of(tables.iter().map(|table| table.secrecy())),
            TablePlace::Owned(tables) => Secrecy::of(tables.iter().map(Buffer::secrecy)),
            TablePlace::Joined(tables) => tables.secrecy(),
            TablePlace::Consumed(tables) => Secrecy::of(tables.iter().map(Buffer::secrecy)),
            TablePlace::Packed(tables, _) => tables.secrecy(),
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

impl<'p, E: DeviceField, T: DeviceField> ProofRun<'_, 'p, E, T> {
    fn queue(&self) -> &'p Queue {
        &self.plan.queue
    }

    /// What the next round, or the end, binds a variable to.
    pub(super) fn bind_to(&mut self, challenge: E) -> Result<()> {
        let queue = self.queue();
        Ok(queue.write(self.inputs.view_mut(..1)?, &[challenge])?)
    }

    /// Puts the tables where rounds can bind them.
    pub(super) fn settle(&mut self) -> Result<()> {
        // Beside the tables: the folded ones, the tables of eq, inputs, partial sums and the transcript's state.
        let others = 3 + usize::from(self.eq.is_some()) + usize::from(self.challenge == Challenge::Device);
        let limit = (self.plan.device.info().limits.bindings as usize).min(TABLES.len() + others);
        let fit = self.columns + others <= limit;
        let given: Vec<View<'_, Mont<T>>> = match &self.place {
            // Where all are as secret as the most secret one: no kernel writes what it makes of a secret to public
            // memory.
            TablePlace::Owned(tables)
                if fit
                    && self.statement.binding_order() == Order::MsbFirst
                    && self.weight.is_none()
                    && tables.iter().all(|table| table.secrecy() == self.secrecy) =>
            {
                let TablePlace::Owned(tables) = std::mem::replace(&mut self.place, TablePlace::Given(Vec::new()))
                else {
                    unreachable!("they were just found there")
                };
                self.place = match same::<_, Vec<Buffer<Mont<E>>>>(tables) {
                    Ok(tables) => TablePlace::Consumed(tables),
                    Err(tables) => TablePlace::Owned(tables),
                };
                return Ok(());
            }
            _ if fit => return Ok(()),
            TablePlace::Given(tables) => tables.clone(),
            TablePlace::Owned(tables) => tables.iter().map(Buffer::as_view).collect(),
            TablePlace::Joined(_) | TablePlace::Consumed(_) | TablePlace::Packed(..) => return Ok(()),
        };
        let len = 1 << self.statement.num_vars();
        let mut joined = self.plan.device.alloc_with::<Mont<T>>(self.columns * len, self.secrecy)?;
        let mut rest = joined.as_view_mut();
        for table in given {
            let (mut place, others) = rest.split_at(len)?;
            self.queue().copy(table, &mut place)?;
            rest = others;
        }
        let mut packed = same::<_, Buffer<Mont<E>>>(joined);
        if let Some(weight) = self.weight.take() {
            let Ok(packed) = &mut packed else {
                let expected = limit.saturating_sub(others);
                let what = "the tables and the weight that a kernel can bind";
                return Err(Error::length(what, expected, self.columns));
            };
            self.queue().copy(&weight, packed.view_mut((self.columns - 1) * len..)?)?;
        }
        self.place = match packed {
            Ok(packed) => TablePlace::Packed(packed, len),
            Err(joined) => TablePlace::Joined(joined),
        };
        Ok(())
    }

    /// The kind of kernel that a round takes, with the tables where they are, or where they are behind the first
    /// folding.
    pub(super) fn kind(
        &self,
        round: usize,
        first: bool,
        points: &EvaluationPoints,
        drawn: Option<EvaluationPoints>,
    ) -> Result<Kind> {
        let order = self.statement.binding_order();
        let fold = match (round, order) {
            (0, _) => Fold::No,
            (_, Order::MsbFirst) => Fold::High,
            (_, Order::LsbFirst) => Fold::Low,
        };
        let is_below = is_below::<E, T>()?;
        let source = match &self.place {
            TablePlace::Consumed(_) => Source::Separate { below: 0 },
            _ if !first => Source::Packed { below: false },
            TablePlace::Given(_) | TablePlace::Owned(_) => {
                Source::Separate { below: if is_below { self.statement.tables() } else { 0 } }
            }
            TablePlace::Joined(_) => Source::Packed { below: is_below },
            TablePlace::Packed(..) => Source::Packed { below: false },
        };
        let in_place = matches!(self.place, TablePlace::Consumed(_))
            || (order == Order::MsbFirst && (!first || matches!(self.place, TablePlace::Packed(..))));
        let target = match fold {
            Fold::No => Target::None,
            _ if in_place => Target::InPlace,
            _ => Target::Packed,
        };
        let (high, points, weighted) = (order == Order::MsbFirst, points.clone(), self.eq.is_some());
        Ok(Kind { tables: self.columns, fold, high, source, target, points, weighted, drawn, tail: false })
    }

    /// What a round takes, but for how it is divided.
    fn of_round(&self, round: usize, at_one: bool) -> Params {
        let pairs = 1usize << (self.statement.num_vars() - 1 - round);
        let full = 1 << self.statement.num_vars();
        let mut params = Params {
            pairs: pairs as u32,
            source_stride: if let TablePlace::Packed(_, stride) = &self.place { *stride } else { full } as u32,
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
    pub(super) fn layout(&self, kernel: &Kernel<Params>, round: usize, at_one: bool) -> Params {
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
    pub(super) fn launch(
        &mut self,
        kernel: &Kernel<Params>,
        kind: &Kind,
        params: &Params,
        partials: ViewMut<'_, Mont<E>>,
        state: Option<&mut Buffer<u32>>,
    ) -> Result<()> {
        let (queue, pairs) = (self.queue(), params.pairs as usize);
        let mut folded = match kind.target {
            Target::Packed => Some(self.plan.device.alloc_with::<Mont<E>>(2 * pairs * self.columns, self.secrecy)?),
            Target::None | Target::InPlace => None,
        };
        let written = kind.target == Target::InPlace || kind.tail;
        let mut args: Vec<Arg<'_>> = match &mut self.place {
            TablePlace::Given(tables) => tables.iter().map(|table| Arg::read(*table)).collect(),
            TablePlace::Owned(tables) => tables.iter().map(Arg::read).collect(),
            TablePlace::Joined(tables) => vec![Arg::read(tables)],
            TablePlace::Consumed(tables) if written => tables.iter_mut().map(Arg::write).collect(),
            TablePlace::Consumed(tables) => tables.iter().map(Arg::read).collect(),
            TablePlace::Packed(tables, _) if written => vec![Arg::write(tables)],
            TablePlace::Packed(tables, _) => vec![Arg::read(tables)],
        };
        args.extend(self.weight.as_ref().map(Arg::read));
        args.extend(folded.as_mut().map(Arg::write));
        args.extend(self.eq.as_ref().map(|eq| Arg::read(&eq.tables)));
        args.extend([Arg::read(&self.inputs), Arg::write(partials)]);
        args.extend(state.map(Arg::write));
        // SAFETY: tables have two elements for each pair, or four where they are folded, at their strides; folded ones
        // have room for two; the tables of eq have an entry for each index of a pair; the inputs have all that the
        // expression and the drawing of a challenge need; there is a partial sum for each chunk and point, and those of
        // the round before are where the parameters say. Where the launch does all rounds that are left, each has half
        // the pairs of the one before, so that tables, and folded ones in turn with them, have room for what it folds,
        // and the tables of eq have the entries of all their pairs in one group; sums of rounds stay in workgroup
        // memory, or on a CPU take both regions of partial sums in turn, which have one for each point; a line for each
        // round is among the inputs; and the message of each, and a value for each table, have room behind those of the
        // rounds before.
        unsafe { kernel.launch(queue, params.chunks.into(), params, &mut args) }?;
        if let Some(folded) = folded {
            self.place = TablePlace::Packed(folded, 2 * pairs);
            self.weight = None;
        }
        Ok(())
    }

    /// The values of a round's polynomial at these points, times the weights of the pairs; tables are folded by the
    /// challenge of the round before.
    pub(super) fn round(
        &mut self,
        round: usize,
        challenge: Option<E>,
        points: &EvaluationPoints,
        at_one: bool,
    ) -> Result<Wiped<E>> {
        if points.len() == 0 && challenge.is_none() {
            return Ok(Wiped::default());
        }
        if let Some(challenge) = challenge {
            self.bind_to(challenge)?;
        }
        let kind = self.kind(round, true, points, None)?;
        let kernel = self.plan.kernel(&self.expression, kind.clone())?;
        let params = self.layout(&kernel, round, at_one);
        let len = params.chunks as usize * points.len();
        let mut partials = self.plan.device.alloc_with::<Mont<E>>(len, self.secrecy)?;
        self.launch(&kernel, &kind, &params, partials.as_view_mut(), None)?;
        let mut values = Wiped::from(vec![E::ZERO; points.len()]);
        let sums = Wiped::from(self.queue().read(&partials)?);
        for chunk in sums.chunks_exact(points.len()) {
            values.iter_mut().zip(chunk).for_each(|(value, partial)| *value += partial);
        }
        Ok(values)
    }

    /// All rounds with their challenges drawn on the device: the messages, and the values of the tables. The
    /// transcript's state is given.
    pub(super) fn draw(
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
        self.queue().write(partials.view_mut(claim_at..claim_at + 2)?, &[claim; 2])?;
        let mut states = self.queue().upload_with::<u32>(&[state, state].concat(), self.secrecy)?;
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
            self.launch(kernel, kind, &params, partials.as_view_mut(), state)?;
            previous_chunks = params.chunks;
        }
        match tail {
            Some(Tail { kind, kernel, from }) => {
                let params = draws(from, previous_chunks, self.matrix_at, self.of_tail(from, &ones));
                self.launch(&kernel, &kind, &params, partials.as_view_mut(), Some(&mut states))?;
            }
            None => self.finish(
                draws(num_vars, previous_chunks, self.matrix_at, Params::default()),
                &points_of(num_vars - 1),
                &mut partials,
                &mut states,
            )?,
        }
        let mut elements = self.queue().read(partials.view(..claim_at)?)?;
        let values = elements.split_off(num_vars * degree);
        Ok((elements.chunks_exact(degree).map(<[E]>::to_vec).collect(), values))
    }

    /// The last rounds of all, in one workgroup, with the steps behind them. There are some if the points are few and
    /// the device's bound on loops allows it. `later` describes rounds from the third on.
    fn tail(&self, later: Option<&(Kind, Option<Arc<Kernel<Params>>>)>, ones: &[bool]) -> Result<Option<Tail>> {
        let num_vars = self.statement.num_vars();
        let Some((kind, Some(_))) = later else { return Ok(None) };
        let Some(kind) = kind.tail() else { return Ok(None) };
        let kernel = match self.plan.kernel(&self.expression, kind.clone()) {
            // Not even the last round alone.
            Err(Error::Device(DeviceError::TooLarge { .. })) => return Ok(None),
            kernel => kernel?,
        };
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
        last: &EvaluationPoints,
        partials: &mut Buffer<Mont<E>>,
        states: &mut Buffer<u32>,
    ) -> Result<()> {
        let kind = self.kind(0, true, last, None)?;
        let kernel = self.plan.finish(self.statement.degree(), kind, last)?;
        let stride =
            if let TablePlace::Packed(_, stride) = &self.place { *stride } else { 1 << self.statement.num_vars() };
        let params = Params { source_stride: stride as u32, ..params };
        let mut args: Vec<Arg<'_>> = match &self.place {
            TablePlace::Given(tables) => tables.iter().map(|table| Arg::read(*table)).collect(),
            TablePlace::Owned(tables) => tables.iter().map(Arg::read).collect(),
            TablePlace::Joined(tables) => vec![Arg::read(tables)],
            TablePlace::Consumed(tables) => tables.iter().map(Arg::read).collect(),
            TablePlace::Packed(tables, _) => vec![Arg::read(tables)],
        };
        args.extend([Arg::read(&self.inputs), Arg::write(partials), Arg::write(states)]);
        // SAFETY: each table has two elements where it starts; the partial sums of the last round are where the
        // parameters say, and there is room for its message and a value for each table behind those of the rounds
        // before.
        unsafe { kernel.launch(self.queue(), 1, &params, &mut args) }?;
        Ok(())
    }

    /// The weighted sum of the whole, before the first round.
    pub(super) fn sum(&mut self, point: Option<&[E]>) -> Result<E> {
        let [w0, w1] = self.statement.weights(point, 0);
        let values = self.round(0, None, &EvaluationPoints::ENDS, false)?;
        Ok(w0 * values[0] + w1 * values[1])
    }

    /// The value of each table, when the last variable is bound to the challenge among the inputs.
    pub(super) fn values(&self) -> Result<Vec<E>> {
        let tables = self.statement.tables();
        let mut values = self.plan.device.alloc_with::<Mont<E>>(tables, self.secrecy)?;
        for table in 0..tables {
            self.bind(table, values.view_mut(table..=table)?)?;
        }
        Ok(self.queue().read(&values)?)
    }

    /// The tables, when the variable of the last of `rounds` rounds is bound to the challenge among the inputs.
    pub(super) fn bound(&self, rounds: usize) -> Result<Vec<Buffer<Mont<E>>>> {
        let len = 1 << (self.statement.num_vars() - rounds);
        let bind = |table| -> Result<Buffer<Mont<E>>> {
            let mut bound = self.plan.device.alloc_with(len, self.secrecy)?;
            self.bind(table, bound.as_view_mut())?;
            Ok(bound)
        };
        (0..self.statement.tables()).map(bind).collect()
    }

    fn bind(&self, table: usize, target: ViewMut<'_, Mont<E>>) -> Result<()> {
        let (tables, inputs, order) = (&self.plan.mle, &self.inputs, self.statement.binding_order());
        let (len, full) = (2 * target.len(), 1 << self.statement.num_vars());
        let part = |stride: usize| table * stride..table * stride + len;
        match &self.place {
            TablePlace::Given(sources) => tables.bind_to_value(sources[table].view(..len)?, inputs, order, target),
            TablePlace::Owned(sources) => tables.bind_to_value(sources[table].view(..len)?, inputs, order, target),
            TablePlace::Joined(source) => tables.bind_to_value(source.view(part(full))?, inputs, order, target),
            TablePlace::Consumed(sources) => tables.bind_to_value(sources[table].view(..len)?, inputs, order, target),
            TablePlace::Packed(source, stride) => {
                tables.bind_to_value(source.view(part(*stride))?, inputs, order, target)
            }
        }
    }
}
