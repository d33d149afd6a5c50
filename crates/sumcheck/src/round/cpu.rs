//! Rounds on the CPU.

use evariste_backend::{
    author::{CpuArg, Wiped},
    parallel,
};
use evariste_expression::Port;
use evariste_field::{
    DeviceField,
    evaluator::{Rows, lift},
    ifma,
};

use super::{Args, Kind, Params, Source, Target};
use crate::{
    draw,
    program::{Effect, EvaluationPoints, Leaf, Program},
};

/// Pairs that a CPU thread takes at a time. Each has 16 values of 32 bytes. They fill half of the 256 KiB that the
/// thread may count on.
const ROWS: usize = 256;

/// What one CPU task has of the tables: elements of parts, and where folded elements go.
struct Task<'a> {
    /// Parts of tables, or runs of neighbours, that are only read.
    read: Vec<&'a [u32]>,
    /// Where folded elements go, for each table both parts, or a run of neighbours. In place, they are read first.
    write: Vec<&'a mut [u32]>,
    partial: &'a mut [u32],
}

/// How the CPU goes through a launch.
struct Cpu<'a, E> {
    kind: &'a Kind,
    program: &'a Program,
    params: &'a Params,
    inputs: Vec<E>,
    eq: &'a [u32],
    /// Limbs of an element of each table.
    limbs: Vec<usize>,
    lanes: Option<&'a ifma::Montgomery52>,
}

impl<E: DeviceField> Cpu<'_, E> {
    /// The elements of a table of a task that are this part of its pairs, from pair `start` on. The result is the limbs
    /// from the first one on, and the stride from one to the next.
    fn source<'t>(&self, task: &'t Task<'_>, table: usize, part: usize, start: usize) -> (&'t [u32], usize) {
        let (parts, each) = (self.kind.fold.count(), self.limbs[table]);
        match (self.kind.high, self.kind.target) {
            (true, Target::InPlace) if part < 2 => (&task.write[2 * table + part][start * each..], each),
            (true, Target::InPlace) => (&task.read[2 * table + part - 2][start * each..], each),
            (true, _) => (&task.read[parts * table + part][start * each..], each),
            (false, _) => (&task.read[table][(parts * start + part) * each..], parts * each),
        }
    }

    /// Stores the rows of a slot as this part of the pairs from `start` on.
    fn store(
        &self,
        task: &mut Task<'_>,
        [table, part]: [usize; 2],
        start: usize,
        rows: usize,
        (all, slot): (&Rows<'_, E>, u32),
    ) {
        let (run, first, step) =
            if self.kind.high { (2 * table + part, start, 1) } else { (table, 2 * start + part, 2) };
        all.store(rows, slot, &mut task.write[run][first * E::LIMBS..], step);
    }

    fn weight(&self, x: usize) -> E {
        let at = |i: usize| E::load(&self.eq[i * E::LIMBS..]);
        let Params { low_at, low_bits, high_at, both, .. } = *self.params;
        let low = at(low_at as usize + (x & ((1 << low_bits) - 1)));
        if both == 1 { low * at(high_at as usize + (x >> low_bits)) } else { low }
    }

    /// The pairs of chunk `chunk`.
    fn run(&self, chunk: usize, task: &mut Task<'_>) {
        let size = 1usize << self.params.log_chunk;
        let first = chunk * size;
        let count = size.min(self.params.pairs as usize - first);
        let mut all = Rows::new(self.program.slots(), ROWS.min(count), self.lanes);
        let mut sums = Wiped::from(vec![E::ZERO; self.kind.points.len()]);
        for start in (0..count).step_by(ROWS) {
            let rows = ROWS.min(count - start);
            self.program.run(rows, &mut all, self.params.ones & 2 != 0, |all, port| match port {
                Port::Load(slot, leaf) => self.load(all, rows, slot, leaf, task, start, first),
                Port::Effect(Effect::Store { table, part }, slot) => {
                    self.store(task, [table as usize, part as usize], start, rows, (all, slot));
                }
                Port::Effect(Effect::Sum { point }, slot) => sums[point as usize] += all.sum(rows, slot),
            });
        }
        let scale = match self.kind.weighted && self.params.both == 0 {
            true => E::load(&self.eq[(self.params.high_at as usize + (first >> self.params.low_bits)) * E::LIMBS..]),
            false => E::ONE,
        };
        for (sum, out) in sums.iter().zip(task.partial.chunks_exact_mut(E::LIMBS)) {
            (*sum * scale).store(out);
        }
    }

    #[expect(clippy::too_many_arguments, reason = "the state of a loop")]
    fn load(
        &self,
        all: &mut Rows<'_, E>,
        rows: usize,
        slot: u32,
        leaf: Leaf,
        task: &Task<'_>,
        start: usize,
        first: usize,
    ) {
        match leaf {
            Leaf::Input(index) => all.set(slot, std::iter::repeat_n(self.inputs[index as usize], rows)),
            Leaf::Weight => all.set(slot, (0..rows).map(|row| self.weight(first + start + row))),
            Leaf::Source { table, part } => {
                let (from, step) = self.source(task, table as usize, part as usize, start);
                all.load(rows, slot, from, step, self.limbs[table as usize]);
            }
        }
    }
}

/// The body for the CPU.
pub(super) fn body<E: DeviceField, T: DeviceField>(
    kind: &Kind,
    degree: usize,
    program: &Program,
    lanes: Option<&ifma::Montgomery52>,
    params: &Params,
    (tables, folded, (eq, [inputs, partials]), state): Args<'_, '_, Option<&mut CpuArg<'_>>>,
) {
    let limbs: Vec<usize> =
        (0..kind.tables).map(|table| if kind.is_below(table) { T::LIMBS } else { E::LIMBS }).collect();
    let eq: &[u32] = eq.map_or(&[], |eq| eq.read());
    let mut inputs: Vec<E> = inputs.read::<u32>().chunks_exact(E::LIMBS).map(E::load).collect();
    if let (Some(previous), Some(state)) = (&kind.drawn, state) {
        inputs[0] = draw::body(params, degree, previous, &inputs, partials.write(), state.write());
    }

    let (pairs, parts) = (params.pairs as usize, kind.fold.count());
    let chunks = params.chunks as usize;
    let partials = &mut partials.write::<u32>()[params.partials_at as usize * E::LIMBS..];
    let points = kind.points.len();
    let partials = partials[..chunks * points * E::LIMBS].chunks_mut(points * E::LIMBS);
    let mut tasks: Vec<Task<'_>> =
        partials.map(|partial| Task { read: Vec::new(), write: Vec::new(), partial }).collect();

    // Each table, wherever it is, in the pieces that tasks have of it.
    let source_stride = params.source_stride as usize * limbs[0];
    if kind.target == Target::InPlace {
        let wholes: Vec<&mut [u32]> = match kind.source {
            Source::Packed { .. } => tables[0].write::<u32>().chunks_mut(source_stride).take(kind.tables).collect(),
            Source::Separate { .. } => tables.iter_mut().map(|table| table.write::<u32>()).collect(),
        };
        let limbs = E::LIMBS;
        for whole in wholes {
            let (near, far) = whole[..pairs * parts * limbs].split_at_mut(2 * pairs * limbs);
            give(&mut tasks, near, pairs * limbs, limbs << params.log_chunk, |task, piece| task.write.push(piece));
            for part in far.chunks(pairs * limbs) {
                let pieces = part.chunks(limbs << params.log_chunk);
                tasks.iter_mut().zip(pieces).for_each(|(task, piece)| task.read.push(piece));
            }
        }
    } else {
        let wholes: Vec<&[u32]> = match kind.source {
            Source::Packed { .. } => tables[0].read::<u32>().chunks(source_stride).take(kind.tables).collect(),
            Source::Separate { .. } => tables.iter().map(|table| table.read::<u32>()).collect(),
        };
        let (each, piece) = if kind.high { (pairs, 1) } else { (pairs * parts, parts) };
        for (whole, limbs) in wholes.into_iter().zip(&limbs) {
            for part in whole[..pairs * parts * limbs].chunks(each * limbs) {
                let pieces = part.chunks((piece * limbs) << params.log_chunk);
                tasks.iter_mut().zip(pieces).for_each(|(task, piece)| task.read.push(piece));
            }
        }
        if let Some(folded) = folded {
            let stride = params.target_stride as usize * E::LIMBS;
            let (each, piece) = if kind.high { (pairs, 1) } else { (pairs * 2, 2) };
            for whole in folded.write::<u32>().chunks_mut(stride).take(kind.tables) {
                let whole = &mut whole[..2 * pairs * E::LIMBS];
                let size = (piece * E::LIMBS) << params.log_chunk;
                give(&mut tasks, whole, each * E::LIMBS, size, |task, piece| task.write.push(piece));
            }
        }
    }
    let cpu = Cpu::<E> { kind, program, params, inputs, eq, limbs, lanes };
    parallel::chunks(&mut tasks, 1, &|chunk, task| cpu.run(chunk, &mut task[0]));
}

/// Cuts parts of `part` limbs into pieces of `piece` limbs, and gives each task one piece of each part.
fn give<'a>(
    tasks: &mut [Task<'a>],
    whole: &'a mut [u32],
    part: usize,
    piece: usize,
    mut to: impl FnMut(&mut Task<'a>, &'a mut [u32]),
) {
    for part in whole.chunks_mut(part) {
        tasks.iter_mut().zip(part.chunks_mut(piece)).for_each(|(task, piece)| to(task, piece));
    }
}

/// The body for the CPU of all rounds that are left.
pub(super) fn tail<E: DeviceField, T: DeviceField>(
    kind: &Kind,
    degree: usize,
    program: &Program,
    lanes: Option<&ifma::Montgomery52>,
    previous: &EvaluationPoints,
    params: &Params,
    (tables, mut folded, (mut eq, sums), state): Args<'_, '_, &mut CpuArg<'_>>,
) {
    for round in 0..params.rounds {
        let now = params.of_round(round, degree);
        let others = (eq.as_deref_mut(), &mut *sums);
        body::<E, T>(kind, degree, program, lanes, &now, (tables, folded.as_deref_mut(), others, Some(&mut *state)));
        if let Some(folded) = &folded {
            let (from, to) = (folded.read::<u32>(), tables[0].write::<u32>());
            for table in 0..kind.tables {
                let [from_at, to_at] =
                    [now.target_stride, now.source_stride].map(|stride| table * stride as usize * E::LIMBS);
                let limbs = 2 * now.pairs as usize * E::LIMBS;
                to[to_at..][..limbs].copy_from_slice(&from[from_at..][..limbs]);
            }
        }
    }
    values::<E, T>(kind, degree, previous, &params.of_round(params.rounds, degree), tables, sums, state);
}

/// The last challenge and the values of the tables on the CPU.
pub(super) fn values<E: DeviceField, T: DeviceField>(
    kind: &Kind,
    degree: usize,
    previous: &EvaluationPoints,
    params: &Params,
    tables: &[CpuArg<'_>],
    [inputs, partials]: &mut [CpuArg<'_>; 2],
    state: &mut CpuArg<'_>,
) {
    let inputs: Vec<E> = inputs.read::<u32>().chunks_exact(E::LIMBS).map(E::load).collect();
    let challenge = draw::body(params, degree, previous, &inputs, partials.write(), state.write());
    for table in 0..kind.tables {
        let limbs = if kind.is_below(table) { T::LIMBS } else { E::LIMBS };
        let (buffer, start) = match kind.is_packed() {
            true => (&tables[0], table * params.source_stride as usize),
            false => (&tables[table], 0),
        };
        let [a, b] = [0, 1].map(|i| lift::<E>(&buffer.read::<u32>()[(start + i) * limbs..][..limbs]));
        let at = (params.message_at as usize + degree + table) * E::LIMBS;
        (a + (b - a) * challenge).store(&mut partials.write::<u32>()[at..]);
    }
}
