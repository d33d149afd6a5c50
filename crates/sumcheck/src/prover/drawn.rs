//! Rounds whose challenges are drawn where the tables are.
//!
//! Each launch adds up the partial sums of the round before, makes its message of them, draws its challenge, binds the
//! tables to that, and leaves partial sums of its own. Where several devices have parts of the tables, each draws the
//! challenge from the partial sums of all.

use std::{ops::Range, sync::Arc};

use evariste_backend::{
    Buffer, Error as DeviceError, Queue, Secrecy,
    author::{Arg, Kernel},
};
use evariste_field::{DeviceField, Mont};

use super::{
    messages::points,
    run::{ProofRun, TablePlace, chunks_of_round},
};
use crate::{
    error::{Error, Result},
    params::{LOG_TAIL, Params},
    program::EvaluationPoints,
    round::Kind,
    statement::Statement,
    table::SplitEq,
};

/// What rounds leave on a device: messages and values, and what the next one draws its challenge from.
pub(super) struct Drawn<E: DeviceField> {
    num_vars: usize,
    degree: usize,
    tables: usize,
    /// The partial sums of a round at most.
    most: usize,
    /// The messages of all rounds and the value of each table, the sums that two rounds have to have, and the partial
    /// sums of two rounds.
    pub(super) partials: Buffer<Mont<E>>,
    /// The transcript's state before two rounds.
    states: Buffer<u32>,
    /// Chunks of the round before, on all devices.
    previous_chunks: u32,
}

/// What the rounds of a proof take.
pub(super) struct Steps {
    /// Kernels of the first three rounds: later ones are smaller rounds of the third's kind. A round that needs no
    /// value has none.
    kernels: Vec<(Kind, Option<Arc<Kernel<Params>>>)>,
    /// Whether the first point of a round is 1 and not 0.
    ones: Vec<bool>,
}

/// The last rounds, which one workgroup does.
struct Tail {
    kind: Kind,
    kernel: Arc<Kernel<Params>>,
    /// The first of them.
    from: usize,
}

impl<E: DeviceField> Drawn<E> {
    /// Makes room for a proof of a statement with `claim`, whose transcript is in this state. Rounds have up to `most`
    /// partial sums.
    pub(super) fn new(
        queue: &Queue,
        statement: &Statement<E>,
        most: usize,
        claim: E,
        state: [u32; 8],
        secrecy: Secrecy,
    ) -> Result<Self> {
        let (num_vars, degree, tables) = (statement.num_vars(), statement.degree(), statement.tables());
        let claim_at = num_vars * degree + tables;
        let mut partials = queue.device().alloc_with::<Mont<E>>(claim_at + 2 + 2 * most, secrecy)?;
        queue.write(partials.view_mut(claim_at..claim_at + 2)?, &[claim; 2])?;
        let states = queue.upload_with::<u32>(&[state, state].concat(), secrecy)?;
        Ok(Self { num_vars, degree, tables, most, partials, states, previous_chunks: 0 })
    }

    fn claim_at(&self) -> usize {
        self.num_vars * self.degree + self.tables
    }

    /// Where the partial sums of a round are.
    pub(super) fn partials_at(&self, round: usize) -> usize {
        self.claim_at() + 2 + (round & 1) * self.most
    }

    /// Lets the next round draw its challenge from these chunks.
    pub(super) fn left(&mut self, chunks: u32) {
        self.previous_chunks = chunks;
    }

    /// Adds to the parameters of a round where it finds what it draws from, and where it leaves what it makes.
    fn params(&self, round: usize, matrix_at: usize, ones: &[bool], params: Params) -> Params {
        let before = round.saturating_sub(1);
        Params {
            partials_at: self.partials_at(round) as u32,
            previous_chunks: self.previous_chunks,
            previous_at: self.partials_at(round + 1) as u32,
            claim_at: self.claim_at() as u32,
            parity: (round & 1) as u32,
            lines_at: (matrix_at + 2 * self.degree * (self.degree - 1) + 4 * self.degree * before) as u32,
            matrix_at: matrix_at as u32,
            message_at: (before * self.degree) as u32,
            ones: params.ones | u32::from(round > 0 && ones[before]),
            ..params
        }
    }

    /// The messages, and the values of the tables, behind the last round.
    pub(super) fn read(&self, queue: &Queue) -> Result<(Vec<Vec<E>>, Vec<E>)> {
        let mut elements = queue.read(self.partials.view(..self.claim_at())?)?;
        let values = elements.split_off(self.num_vars * self.degree);
        Ok((elements.chunks_exact(self.degree).map(<[E]>::to_vec).collect(), values))
    }
}

impl Steps {
    /// The values that a round evaluates: each makes a partial sum of a chunk.
    pub(super) fn values(&self, round: usize) -> usize {
        self.kernels[round.min(2)].0.points.len()
    }
}

impl<E: DeviceField, T: DeviceField> ProofRun<'_, '_, E, T> {
    /// All rounds: the messages, and the values of the tables. The transcript's state is given.
    pub(super) fn draw(&mut self, claim: E, state: [u32; 8], point: Option<&[E]>) -> Result<(Vec<Vec<E>>, Vec<E>)> {
        let steps = self.steps(self.statement, point)?;
        let most = self.most_partials(&steps, self.statement, 0..self.statement.num_vars());
        let mut drawn = Drawn::new(&self.plan.queue, self.statement, most, claim, state, self.secrecy)?;
        self.draw_rest(0, &steps, &mut drawn)?;
        drawn.read(&self.plan.queue)
    }

    /// What the rounds of a proof of `statement` take: the one of this run, or the whole that it is a part of. The tables
    /// are where the first round finds them.
    pub(super) fn steps(&self, statement: &Statement<E>, point: Option<&[E]>) -> Result<Steps> {
        let (num_vars, degree) = (statement.num_vars(), statement.degree() as u64);
        let zero = self.plan.is_zero_at_first(statement);
        let points_of = |round: usize| points(self.plan.config.strategy, degree, zero && round == 0);
        let kernel = |round: usize| {
            let drawn = (round > 0).then(|| points_of(round - 1));
            let kind = self.kind(round, round < 2, &points_of(round), drawn)?;
            let needed = kind.points.len() > 0;
            let kernel = needed.then(|| self.plan.kernel(&self.expression, kind.clone())).transpose()?;
            Ok((kind, kernel))
        };
        let kernels = (0..num_vars.min(3)).map(kernel).collect::<Result<_>>()?;
        let at_one = |round| statement.weights(point, round)[1] == E::ZERO;
        Ok(Steps { kernels, ones: (0..num_vars).map(at_one).collect() })
    }

    /// The most partial sums that one of these rounds of a proof of `statement` leaves here.
    pub(super) fn most_partials(&self, steps: &Steps, statement: &Statement<E>, rounds: Range<usize>) -> usize {
        let of_round = |round: usize| {
            let device = &self.plan.device;
            let chunks = |kernel: &Arc<Kernel<Params>>| {
                chunks_of_round(device, kernel, statement, self.eq.is_some(), round) as usize
            };
            steps.kernels[round.min(2)].1.as_ref().map_or(0, chunks) * steps.values(round)
        };
        rounds.map(of_round).max().unwrap_or(0).max(1)
    }

    /// One round, whose partial sums come behind `before` others. Returns the number of its chunks.
    pub(super) fn draw_round(
        &mut self,
        round: usize,
        before: usize,
        steps: &Steps,
        drawn: &mut Drawn<E>,
    ) -> Result<u32> {
        let (kind, kernel) = &steps.kernels[round.min(2)];
        let Some(kernel) = kernel else { return Ok(0) };
        let params = drawn.params(round, self.matrix_at, &steps.ones, self.layout(kernel, round, steps.ones[round]));
        let params = Params { partials_at: params.partials_at + before as u32, ..params };
        assert!(before + params.chunks as usize * steps.values(round) <= drawn.most, "room for partial sums");
        let states = (round > 0).then_some(&mut drawn.states);
        self.launch(kernel, kind, &params, drawn.partials.as_view_mut(), states)?;
        Ok(params.chunks)
    }

    /// The rounds from one on, and the values of the tables.
    pub(super) fn draw_rest(&mut self, from: usize, steps: &Steps, drawn: &mut Drawn<E>) -> Result<()> {
        let num_vars = self.statement.num_vars();
        let tail = self.tail(from, steps)?;
        for round in from..tail.as_ref().map_or(num_vars, |tail| tail.from) {
            let chunks = self.draw_round(round, 0, steps, drawn)?;
            drawn.left(chunks);
        }
        match tail {
            Some(Tail { kind, kernel, from }) => {
                let params = drawn.params(from, self.matrix_at, &steps.ones, self.of_tail(from, &steps.ones));
                self.launch(&kernel, &kind, &params, drawn.partials.as_view_mut(), Some(&mut drawn.states))
            }
            None => {
                let params = drawn.params(num_vars, self.matrix_at, &steps.ones, Params::default());
                self.finish(params, &steps.kernels[(num_vars - 1).min(2)].0.points, drawn)
            }
        }
    }

    /// The last rounds of all, in one workgroup, with the steps behind them. There are some if the points are few and
    /// the device's bound on loops allows it. None of them is before round `start`.
    fn tail(&self, start: usize, steps: &Steps) -> Result<Option<Tail>> {
        let num_vars = self.statement.num_vars();
        let Some((kind, Some(_))) = steps.kernels.get(2) else { return Ok(None) };
        let Some(kind) = kind.tail() else { return Ok(None) };
        let kernel = match self.plan.kernel(&self.expression, kind.clone()) {
            // Not even the last round alone.
            Err(Error::Device(DeviceError::TooLarge { .. })) => return Ok(None),
            kernel => kernel?,
        };
        let first = num_vars.saturating_sub(1 + LOG_TAIL as usize).max(start).max(2);
        let from = (first..num_vars).find(|from| kernel.fits(&self.of_tail(*from, &steps.ones)));
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
    fn finish(&self, params: Params, last: &EvaluationPoints, drawn: &mut Drawn<E>) -> Result<()> {
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
        args.extend([Arg::read(&self.inputs), Arg::write(&mut drawn.partials), Arg::write(&mut drawn.states)]);
        // SAFETY: each table has two elements where it starts; the partial sums of the last round are where the
        // parameters say, and there is room for its message and a value for each table behind those of the rounds
        // before.
        unsafe { kernel.launch(&self.plan.queue, 1, &params, &mut args) }?;
        Ok(())
    }
}
