//! The kernel of a round, made for an expression.

use std::sync::Arc;

use evariste_backend::author::{Access, Binding, BindingList, BindingType, CpuArg, KernelSpec, Language};
use evariste_expression::{Expression, binding_names};
use evariste_field::{
    DeviceField,
    evaluator::lanes_of,
    source::{self, binding_type, iterations},
};

use crate::{
    draw,
    params::{Params, threads},
    program::{self, Effect, EvaluationPoints, Fold, Parts, Program, Weighing},
};

mod cpu;
mod cuda;
mod wgsl;

pub(crate) use wgsl::wgsl_lift;

/// Most points of a round for which one workgroup does the last rounds. That kernel has the expression once for each
/// point. NVRTC takes 1 s for 8 points of a power of degree 8, 7 s for 16 of degree 16, and four minutes for 32.
const MAX_TAIL_POINTS: usize = 12;

/// Multiplications from which on a kernel in WGSL has the expression once in its text for all points of a round.
/// Compilers take more than twice the time for twice the text. On Mesa's llvmpipe, 200 products of degree 6 over
/// Goldilocks took 10 to 20 s a kernel when they stood there six times.
const WGSL_PARTS: usize = 64;

/// Names of tables that have a binding of their own.
pub(crate) const TABLES: [&str; 32] = binding_names!("t");

/// Where tables lie before a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Source {
    /// Each in a buffer of its own, the first `below` with elements of the field below.
    Separate { below: usize },
    /// One after the other, with elements of the field below if that is said.
    Packed { below: bool },
}

/// Where folded tables go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Target {
    /// They are not folded.
    None,
    /// Where they are.
    InPlace,
    /// One after the other.
    Packed,
}

/// What a kernel is made for, beside its expression.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Kind {
    pub(crate) tables: usize,
    pub(crate) fold: Fold,
    /// The variable of the round is the highest one.
    pub(crate) high: bool,
    pub(crate) source: Source,
    pub(crate) target: Target,
    pub(crate) points: EvaluationPoints,
    pub(crate) weighted: bool,
    /// The challenge is drawn by the kernel, from a round that was evaluated at these points.
    pub(crate) drawn: Option<EvaluationPoints>,
    /// One workgroup does all rounds that are left.
    pub(crate) tail: bool,
}

impl Kind {
    /// The kernel in which one workgroup does this round and all behind it, unless it would take long to compile.
    pub(crate) fn tail(&self) -> Option<Self> {
        (self.points.len() <= MAX_TAIL_POINTS).then(|| Self { tail: true, ..self.clone() })
    }

    /// Whether a table has elements of the field below.
    fn is_below(&self, table: usize) -> bool {
        match self.source {
            Source::Separate { below } => table < below,
            Source::Packed { below } => below,
        }
    }

    fn is_packed(&self) -> bool {
        matches!(self.source, Source::Packed { .. })
    }

    /// Where a pair's part of a table is, in both languages; `wide` is what makes an index wide.
    fn place(&self, parts: usize, part: u32, wide: &str) -> String {
        match self.high {
            true if part == 0 => "x".into(),
            true => format!("x + {wide}now.pairs * {part}u"),
            false => format!("{wide}x * {parts}u + {part}u"),
        }
    }

    /// The tables that a round reads, and whether each has elements of the field below.
    fn sources<E: DeviceField, T: DeviceField>(&self) -> Vec<(Binding, bool)> {
        let written = self.target == Target::InPlace || self.tail;
        let source = |name, word| if written { Binding::write(name, word) } else { Binding::read(name, word) };
        let names = if self.is_packed() { &["tables"] } else { &TABLES[..self.tables] };
        let with_word = |(table, name): (usize, &&'static str)| {
            let below = self.is_below(table);
            (source(name, if below { binding_type::<T>() } else { binding_type::<E>() }), below)
        };
        names.iter().enumerate().map(with_word).collect()
    }

    /// Where folded tables go that are not folded in place.
    fn folded<E: DeviceField>(&self) -> Option<Binding> {
        (self.target == Target::Packed).then(|| Binding::write("folded", binding_type::<E>()))
    }

    /// Both.
    fn tables<E: DeviceField, T: DeviceField>(&self) -> Vec<(Binding, bool)> {
        let folded = self.folded::<E>().map(|folded| (folded, false));
        self.sources::<E, T>().into_iter().chain(folded).collect()
    }

    /// What else is bound, but for the transcript's state: weights, inputs and partial sums.
    fn others<E: DeviceField>(&self) -> (Option<Binding>, [Binding; 2]) {
        let word = binding_type::<E>();
        let eq = self.weighted.then(|| Binding::read("eq", word));
        (eq, [Binding::read("inputs", word), Binding::write("partials", word)])
    }

    /// All bindings in order, with `state` that of the transcript, if there is one.
    fn bindings<E: DeviceField, T: DeviceField, S: BindingList>(&self, state: S) -> Bindings<S> {
        let sources = self.sources::<E, T>().into_iter().map(|(binding, _)| binding).collect();
        (sources, self.folded::<E>(), self.others::<E>(), state)
    }

    /// The parameters of a function in CUDA that takes the tables, and their names, with a comma after each.
    fn cuda_tables<E: DeviceField, T: DeviceField>(&self) -> (String, String) {
        let tables = self.tables::<E, T>();
        let parameter = |(binding, below): &(Binding, bool)| {
            let access = if binding.access == Access::Read { "const " } else { "" };
            format!("{access}{}* {}, ", if *below { "B" } else { "F" }, binding.name)
        };
        let names = tables.iter().map(|(binding, _)| format!("{}, ", binding.name)).collect();
        (tables.iter().map(parameter).collect(), names)
    }

    /// The types of tables in CUDA, each with a comma.
    fn cuda_types<E: DeviceField, T: DeviceField>(&self) -> String {
        self.tables::<E, T>().iter().map(|(_, below)| if *below { "B, " } else { "F, " }).collect()
    }
}

/// Mle, where folded ones go, weights, inputs and partial sums, the transcript's state.
type Bindings<S> = (Vec<Binding>, Option<Binding>, (Option<Binding>, [Binding; 2]), S);

/// The same in a body for the CPU.
type Args<'a, 'm, S> =
    (&'a mut [CpuArg<'m>], Option<&'a mut CpuArg<'m>>, (Option<&'a mut CpuArg<'m>>, &'a mut [CpuArg<'m>; 2]), S);

/// The state of the transcript, in kernels that draw challenges.
const STATE: Binding = Binding::write("state", BindingType::U32);

/// The statement by which a function that evaluates one point, and folds nothing, has its effect.
fn returned(_: Effect, slot: u32) -> String {
    format!("return r{slot};")
}

/// Threads that share one of `points` points, where one workgroup does all remaining rounds.
fn group<E: DeviceField>(points: usize) -> u32 {
    let mut group = threads::<E>();
    while group > 32 && group as usize * points > threads::<E>() as usize {
        group /= 2;
    }
    group
}

/// The kernel of a round, or of all that are left.
pub(crate) fn spec<E: DeviceField, T: DeviceField>(expression: &Expression, kind: &Kind) -> KernelSpec {
    let program = |weighing: Weighing| {
        let weighing = if kind.weighted { weighing } else { Weighing::None };
        Arc::new(program::round(expression, kind.tables, kind.fold, &kind.points, weighing))
    };
    let (inside, outside) = (program(Weighing::Product), program(Weighing::Sum));
    let degree = expression.degree() as usize;
    let digits = source::digits(&expression.digest());
    let points = &kind.points;
    let middle = points.integers.len();
    let variant = format!(
        "{digits} of {}, {} first, {:?}, {:?} to {:?}, {}{}, at {}{}{middle} points{} over {}",
        kind.tables,
        if kind.high { "high" } else { "low" },
        kind.fold,
        kind.source,
        kind.target,
        if kind.weighted { "weighted" } else { "plain" },
        match &kind.drawn {
            None => "",
            Some(previous) if previous.zero => ", drawn",
            Some(_) => ", drawn from a zero",
        },
        if points.zero { "0, " } else { "" },
        if points.one { "1, " } else { "" },
        if points.infinity { " and infinity" } else { "" },
        source::label::<E>(),
    );
    let each = |point: &EvaluationPoints| program::round(expression, kind.tables, Fold::No, point, Weighing::None);
    let programs: Arc<Vec<Program>> =
        Arc::new(if kind.tail { points.each().iter().map(each).collect() } else { vec![] });
    let multiplications = match kind.tail {
        true => programs.iter().map(Program::multiplications).sum(),
        false => inside.multiplications(),
    };
    let parts = (multiplications >= WGSL_PARTS).then(|| {
        let weighing = if kind.weighted && !kind.tail { Weighing::Product } else { Weighing::None };
        let fold = if kind.tail { Fold::No } else { kind.fold };
        Arc::new(Parts::new(expression, kind.tables, fold, &kind.points, weighing))
    });
    let mul = iterations::mul::<E>();
    // Each of the two choices of a turn may be a loop to a compiler.
    let of_program = move |program: &Program| iterations::repeat(program.multiplications() as u64, mul + 2) + mul;
    let below_top = kind.points.len() as u64 - u64::from(kind.points.infinity);
    let of_parts = |parts: &Parts| {
        let [ends, top] = [&parts.ends, &parts.top].map(|part| part.as_ref().map_or(0, of_program));
        // At a point the tables go some steps on, or in one loop with others one.
        let value = iterations::repeat(middle as u64 + 1, 0) + of_program(&parts.value) + 8;
        match kind.tail {
            true => value.max(top),
            false => ends + iterations::repeat(below_top, value) + top,
        }
    };
    let (threads, points) = (threads::<E>(), kind.points.len() as u64);
    let drawing = draw::iterations::<E>(degree, kind.drawn.as_ref());
    let tree = iterations::repeat(threads.ilog2().into(), 0);
    let (all, last, elements) = (kind.tail, values_iterations::<E>(kind), 2 * kind.tables as u64);
    let (pair, point) = match &parts {
        Some(parts) => (of_parts(parts), of_parts(parts)),
        None => (of_program(&inside), programs.iter().map(of_program).max().unwrap_or(0)),
    };
    let group = group::<E>(kind.points.len());
    let round = move |params: &Params| {
        let count = (1u64 << params.log_chunk).min(params.pairs.into());
        let work = match all {
            false => iterations::repeat(count.div_ceil(threads.into()), pair) + iterations::repeat(points, tree + mul),
            true => {
                let sums = iterations::repeat(u64::from(params.pairs).div_ceil(group.into()), point + mul) + tree;
                iterations::repeat((elements * u64::from(params.pairs)).div_ceil(threads.into()), mul)
                    + iterations::repeat((points * u64::from(group)).div_ceil(threads.into()), sums)
            }
        };
        work + drawing(params)
    };
    // No later round takes more than the first one of a tail.
    let iterations = move |params: &Params| match all {
        true => iterations::repeat(u64::from(params.rounds) + 1, round(params)) + last,
        false => round(params),
    };
    let (for_source, for_body, seen) = (kind.clone(), kind.clone(), Arc::clone(&inside));
    let source = move |language| match language {
        Language::Cuda if for_source.tail => cuda::tail::<E, T>(&for_source, degree, &programs),
        Language::Cuda => cuda::round::<E, T>(&for_source, degree, &outside),
        Language::Wgsl { int64 } if for_source.tail => {
            let text = match &parts {
                Some(parts) => wgsl::Programs::Parts(parts),
                None => wgsl::Programs::Each(&programs),
            };
            wgsl::tail::<E, T>(&for_source, degree, &text, int64)
        }
        Language::Wgsl { int64 } => {
            let text = match &parts {
                Some(parts) => wgsl::Programs::Parts(parts),
                None => wgsl::Programs::Each(std::slice::from_ref(&*seen)),
            };
            wgsl::round::<E, T>(&for_source, degree, &text, int64)
        }
    };
    let lanes = lanes_of::<E>();
    let spec = match kind.drawn.clone().filter(|_| kind.tail) {
        Some(previous) => {
            let run = move |params: &Params, args: Args<'_, '_, &mut CpuArg<'_>>| {
                cpu::tail::<E, T>(&for_body, degree, &inside, lanes.as_ref(), &previous, params, args);
            };
            KernelSpec::new("sumcheck_tail", variant, kind.bindings::<E, T, _>(STATE), run, source)
        }
        None => {
            let run = move |params: &Params, args: Args<'_, '_, Option<&mut CpuArg<'_>>>| {
                cpu::body::<E, T>(&for_body, degree, &inside, lanes.as_ref(), params, args);
            };
            let state = kind.drawn.as_ref().map(|_| STATE);
            KernelSpec::new("sumcheck_round", variant, kind.bindings::<E, T, _>(state), run, source)
        }
    };
    spec.threads(threads).shared_bytes(shared_bytes::<E>(degree, kind.drawn.is_some())).iterations(iterations)
}

/// Workgroup memory.
pub(crate) fn shared_bytes<E: DeviceField>(degree: usize, drawn: bool) -> u32 {
    source::tile_bytes::<E>(threads::<E>()) + if drawn { draw::shared_bytes::<E>(degree) } else { 0 }
}

/// The kernel behind the last round, for tables at the same place.
pub(crate) fn finish_spec<E: DeviceField, T: DeviceField>(
    degree: usize,
    kind: &Kind,
    previous: &EvaluationPoints,
) -> KernelSpec {
    let kind =
        Kind { drawn: Some(previous.clone()), weighted: false, fold: Fold::No, target: Target::None, ..kind.clone() };
    let bindings = kind.bindings::<E, T, _>(STATE);
    let zero = if previous.zero { "" } else { ", from a zero" };
    let variant = format!("{} of degree {degree}, {:?}{zero} over {}", kind.tables, kind.source, source::label::<E>());
    let (for_source, for_body, for_iterations, before) = (kind.clone(), kind.clone(), kind, previous.clone());
    let source = move |language| match language {
        Language::Cuda => cuda::finish::<E, T>(&for_source, degree),
        Language::Wgsl { int64 } => wgsl::finish::<E, T>(&for_source, degree, int64),
    };
    let body = move |params: &Params, (tables, _, (_, sums), state): Args<'_, '_, &mut CpuArg<'_>>| {
        cpu::values::<E, T>(&for_body, degree, &before, params, tables, sums, state);
    };
    let (drawing, last) =
        (draw::iterations::<E>(degree, for_iterations.drawn.as_ref()), values_iterations::<E>(&for_iterations));
    KernelSpec::new("sumcheck_finish", variant, bindings, body, source)
        .threads(threads::<E>())
        .shared_bytes(shared_bytes::<E>(degree, true))
        .iterations(move |params: &Params| drawing(params) + last)
}

/// Loop iterations of the loop over these values.
fn values_iterations<E: DeviceField>(kind: &Kind) -> u64 {
    iterations::repeat((kind.tables as u64).div_ceil(threads::<E>().into()), iterations::mul::<E>())
}
