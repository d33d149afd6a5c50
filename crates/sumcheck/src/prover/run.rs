//! A proof under way: where its tables are, and the launches of its rounds.

use std::any::Any;

use evariste_backend::{
    Buffer, Device, Queue, Secrecy, View, ViewMut,
    author::{Arg, Kernel, Wiped},
};
use evariste_expression::Expression;
use evariste_field::{DeviceField, Mont};

use super::{LEAST_LOG_CHUNK, LOG_CHUNK, Sumcheck};
use crate::{
    config::Challenge,
    error::{Error, Result},
    params::{MAX_CHUNKS, Params},
    program::{EvaluationPoints, Fold},
    round::{Kind, Source, TABLES, Target},
    statement::{Order, Statement},
    table::{SplitEq, WeightPlace, is_below},
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

    /// The buffer that has all tables, and how far apart they are in it. Rounds bind them there from the second on.
    pub(super) fn packed(&self) -> (&Buffer<Mont<E>>, usize) {
        match &self.place {
            TablePlace::Packed(tables, stride) => (tables, *stride),
            _ => unreachable!("a round has bound them"),
        }
    }

    /// The same, to be written.
    pub(super) fn packed_mut(&mut self) -> &mut Buffer<Mont<E>> {
        match &mut self.place {
            TablePlace::Packed(tables, _) => tables,
            _ => unreachable!("the proof has begun with it"),
        }
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
    pub(super) fn of_round(&self, round: usize, at_one: bool) -> Params {
        let full = 1 << self.statement.num_vars();
        let stride = if let TablePlace::Packed(_, stride) = &self.place { *stride } else { full };
        Params {
            source_stride: stride as u32,
            ones: u32::from(at_one) << 1,
            ..pairs_of_round(self.statement, self.eq.is_some(), round)
        }
    }

    /// What a round takes, divided among workgroups.
    pub(super) fn layout(&self, kernel: &Kernel<Params>, round: usize, at_one: bool) -> Params {
        divided(&self.plan.device, kernel, self.of_round(round, at_one))
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

/// The pairs of a round, and where their weights are.
fn pairs_of_round<E: DeviceField>(statement: &Statement<E>, is_weighted: bool, round: usize) -> Params {
    let pairs = 1u32 << (statement.num_vars() - 1 - round);
    let params = Params { pairs, target_stride: 2 * pairs, ..Params::default() };
    if !is_weighted {
        return params;
    }
    let place = WeightPlace::of_round(statement.num_vars(), statement.binding_order(), round);
    Params { low_at: place.low_at, low_bits: place.low_bits, high_at: place.high_at, ..params }
}

/// Divides the pairs of a round among workgroups.
fn divided(device: &Device, kernel: &Kernel<Params>, params: Params) -> Params {
    let pairs = params.pairs;
    let log_pairs = pairs.ilog2();
    let with = |log_chunk: u32| Params {
        log_chunk,
        chunks: pairs >> log_chunk,
        both: u32::from(log_chunk > params.low_bits),
        ..params
    };
    let parallelism = device.info().parallelism.max(1).ilog2();
    let least = log_pairs.saturating_sub(parallelism).clamp(LEAST_LOG_CHUNK, LOG_CHUNK);
    let mut log_chunk = log_pairs.saturating_sub(MAX_CHUNKS.ilog2()).max(least).min(log_pairs);
    while log_chunk > 0 && !kernel.fits(&with(log_chunk)) {
        log_chunk -= 1;
    }
    with(log_chunk)
}

/// The chunks of a round of a statement, weighted or not.
pub(super) fn chunks_of_round<E: DeviceField>(
    device: &Device,
    kernel: &Kernel<Params>,
    statement: &Statement<E>,
    is_weighted: bool,
    round: usize,
) -> u32 {
    divided(device, kernel, pairs_of_round(statement, is_weighted, round)).chunks
}
