//! Rounds in CUDA.

use std::fmt::Write;

use evariste_expression::{Text, cuda_product};
use evariste_field::{DeviceField, source};

use super::{Kind, Source, TABLES, Target, returned, threads};
use crate::{
    draw,
    program::{Effect, Leaf, Program},
};

/// Registers for elements up to which two blocks find room on a multiprocessor. That leaves a thread 128 registers.
/// With more elements, it would keep some in memory.
const TWO_BLOCKS: usize = 136;

/// What comes before `pair` or `ends` in CUDA.
fn head<E: DeviceField, T: DeviceField>(kind: &Kind, degree: usize, points: usize) -> String {
    let mut text = String::new();
    let _ = write!(
        text,
        "#define THREADS {}u\n#define POINTS {points}\n#define WEIGHTED {}\n#define EXTENDED {}\n#define DRAWN {}\n\
         #define TABLES {}\n{}{}",
        threads::<E>(),
        u8::from(kind.weighted),
        u8::from(kind.is_below(0)),
        u8::from(kind.drawn.is_some()),
        kind.tables,
        evariste_cuda::sumcheck::HEADER,
        evariste_cuda::SUM,
    );
    let (parameters, names) = kind.cuda_tables::<E, T>();
    let (eq, weights) = if kind.weighted { ("const F* eq, ", "eq, ") } else { ("", "") };
    let types = kind.cuda_types::<E, T>() + if kind.weighted { "F, " } else { "" };
    let state = if kind.drawn.is_some() { ", uint32_t" } else { "" };
    let _ = writeln!(
        text,
        "#define SOURCES {parameters}{eq}\n#define SOURCE_TYPES {types}\n#define ARGUMENTS {names}\n#define WEIGHTS {weights}\n\
         #define STATE_TYPE {state}"
    );
    if let Some(previous) = &kind.drawn {
        text += &draw::cuda::<E>(degree, previous);
    }
    text
}

/// The expression that loads an input or the weight.
fn input(leaf: Leaf) -> String {
    match leaf {
        Leaf::Source { .. } => unreachable!("tables are loaded from where they are"),
        Leaf::Input(0) => "challenge".into(),
        Leaf::Input(index) => format!("f_load(inputs + {index})"),
        Leaf::Weight => "weight".into(),
    }
}

/// A round in CUDA.
pub(super) fn round<E: DeviceField, T: DeviceField>(kind: &Kind, degree: usize, program: &Program) -> String {
    let mut text = source::cuda::<E>();
    let (definition, mul) = cuda_product(program.multiplications());
    text += definition;
    let points = kind.points.len();
    let registers = (program.slots() + 2) * E::LIMBS + points * (2 * E::LIMBS + 1);
    let _ = writeln!(text, "#define BLOCKS {}", if registers <= TWO_BLOCKS { 2 } else { 1 });
    text += &head::<E, T>(kind, degree, points);
    let (parameters, _) = kind.cuda_tables::<E, T>();
    let table_at = |buffer: &str, table: u32, stride: &str, place: String| {
        format!("{buffer} + ((size_t){table} * now.{stride} + {place})")
    };
    let parts = kind.fold.count();
    let lines = Text {
        program,
        mul,
        leaf: &|leaf| match leaf {
            Leaf::Source { table, part } => {
                let place = kind.place(parts, part, "(size_t)");
                let load = if kind.is_below(table as usize) { "b_load" } else { "f_load" };
                match kind.source {
                    Source::Packed { .. } => {
                        format!("lift({load}({}))", table_at("tables", table, "source_stride", place))
                    }
                    Source::Separate { .. } => format!("lift({load}({} + ({place})))", TABLES[table as usize]),
                }
            }
            other => input(other),
        },
        effect: &|effect, slot| match effect {
            Effect::Store { table, part } => {
                let place = kind.place(2, part, "(size_t)");
                let at = match (kind.target, kind.source) {
                    (Target::InPlace, Source::Separate { .. }) => format!("{} + ({place})", TABLES[table as usize]),
                    (Target::InPlace, _) => table_at("tables", table, "source_stride", place),
                    _ => table_at("folded", table, "target_stride", place),
                };
                format!("*({at}) = r{slot};")
            }
            Effect::Sum { point } => format!("sum_add(sums.at[{point}], weight, r{slot});"),
        },
        select: &|a, b| format!("now.ones & 2 ? r{b} : r{a}"),
    };
    let _ = writeln!(
        text,
        "__device__ __forceinline__ void pair(const Params& now, {parameters}uint32_t x, const F& challenge, \
         const F& weight, const F* inputs, Sums& sums) {{"
    );
    lines.cuda(&mut text);
    text + "}\n" + evariste_cuda::sumcheck::CHUNK + evariste_cuda::sumcheck::ROUND
}

/// All rounds that are left in CUDA: a program for each point.
pub(super) fn tail<E: DeviceField, T: DeviceField>(kind: &Kind, degree: usize, programs: &[Program]) -> String {
    let mut text = source::cuda::<E>() + &head::<E, T>(kind, degree, programs.len());
    let (parameters, names) = kind.cuda_tables::<E, T>();
    let _ = writeln!(
        text,
        "#define HIGH {}\n__device__ __forceinline__ F* table_of(const Params& params, {parameters}uint32_t table, \
         uint32_t folds) {{",
        u8::from(kind.high)
    );
    match (kind.is_packed(), kind.high) {
        (true, true) => text += "    return tables + (size_t)table * params.source_stride;\n}\n",
        (true, false) => {
            text += "    return folds & 1 ? folded + (size_t)table * params.target_stride : tables + (size_t)table * \
                     params.source_stride;\n}\n";
        }
        (false, _) => {
            for (table, name) in TABLES[1..kind.tables].iter().enumerate() {
                let _ = writeln!(text, "    if (table == {}) return {name};", table + 1);
            }
            text += "    return t0;\n}\n";
        }
    }
    for (point, program) in programs.iter().enumerate() {
        let lines = Text {
            program,
            mul: "draw_f_mul",
            leaf: &|leaf| match leaf {
                Leaf::Source { table, part } => {
                    let place = match kind.high {
                        true => format!("x + pairs * {part}"),
                        false => format!("2 * x + {part}"),
                    };
                    format!("f_load(table_of(now, {names}{table}, folds) + ({place}))")
                }
                other => input(other),
            },
            effect: &returned,
            select: &|a, b| format!("at_one ? r{b} : r{a}"),
        };
        let _ = writeln!(
            text,
            "__device__ __forceinline__ F point_{point}(const Params& now, {parameters}uint32_t x, uint32_t pairs, \
             uint32_t folds, uint32_t at_one, const F* inputs) {{"
        );
        lines.cuda(&mut text);
        text += "}\n";
    }
    let _ = writeln!(
        text,
        "__device__ __forceinline__ F point_at(const Params& now, {parameters}uint32_t p, uint32_t x, uint32_t pairs, \
         uint32_t folds, uint32_t at_one, const F* inputs) {{"
    );
    for point in 1..programs.len() {
        let _ =
            writeln!(text, "    if (p == {point}) return point_{point}(now, {names}x, pairs, folds, at_one, inputs);");
    }
    let _ = writeln!(
        text,
        "    return point_0(now, {names}x, pairs, folds, at_one, inputs);\n}}\n\
         __device__ __forceinline__ void ends(const Params& params, {parameters}uint32_t table, uint32_t folds, F& a, F& b) \
         {{\n    const F* from = table_of(params, {names}table, folds);\n    a = f_load(from);\n    b = f_load(from + 1);\n}}"
    );
    text + evariste_cuda::sumcheck::VALUES + evariste_cuda::sumcheck::TAIL
}

pub(super) fn finish<E: DeviceField, T: DeviceField>(kind: &Kind, degree: usize) -> String {
    source::cuda::<E>() + &head::<E, T>(kind, degree, 1) + &ends::<E, T>(kind) + evariste_cuda::sumcheck::FINISH
}

/// `ends` in CUDA, and what uses it.
fn ends<E: DeviceField, T: DeviceField>(kind: &Kind) -> String {
    let (parameters, _) = kind.cuda_tables::<E, T>();
    let mut text = String::new();
    let _ = writeln!(
        text,
        "__device__ __forceinline__ void ends(const Params& params, {parameters}uint32_t table, uint32_t, F& a, F& b) {{"
    );
    let load = |table: usize| if kind.is_below(table) { "b_load" } else { "f_load" };
    match kind.is_packed() {
        true => {
            let load = load(0);
            let _ = writeln!(
                text,
                "    a = lift({load}(tables + (size_t)table * params.source_stride));\n    \
                 b = lift({load}(tables + ((size_t)table * params.source_stride + 1)));"
            );
        }
        false => {
            for (table, name) in TABLES[..kind.tables].iter().enumerate() {
                let load = load(table);
                let _ = writeln!(
                    text,
                    "    if (table == {table}) {{\n        a = lift({load}({name}));\n        \
                     b = lift({load}({name} + 1));\n    }}"
                );
            }
        }
    }
    text + "}\n" + evariste_cuda::sumcheck::VALUES
}
