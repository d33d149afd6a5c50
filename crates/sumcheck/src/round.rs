//! The kernel of a round, made for an expression.

use std::{fmt::Write, sync::Arc};

use bytemuck::{Pod, Zeroable};
use evariste_backend::{Access, Binding, CpuArg, KernelSpec, Language, Word, parallel};
use evariste_field::{
    DeviceField, Expression,
    ifma::{self, Combination},
    source::{self, turns, word},
};

use crate::{
    draw,
    program::{Fold, Line, Op, Points, Program, Weighing},
};

/// Threads of a workgroup.
const THREADS: u32 = 256;

/// Workgroup memory that every device has.
const TILE_BYTES: u32 = 16 << 10;

/// Multiplications up to which a kernel has each of them in its text in WGSL. Beyond, one in a loop serves all, with its
/// operands chosen by the loop's counter, since compilers take time and space for each.
const WGSL_MULTIPLICATIONS: usize = 6;

/// The same in CUDA, where beyond it multiplication is a function that is called.
const CUDA_MULTIPLICATIONS: usize = 16;

/// Registers for elements up to which two blocks find room on a multiprocessor, which leaves a thread 128: with more, it would
/// keep some in memory.
const TWO_BLOCKS: usize = 136;

/// Pairs that a CPU thread takes at a time: 16 values of 32 bytes for each fill half of the 256 KiB that it may count on.
const ROWS: usize = 256;

macro_rules! names {
    ($($index:literal)*) => {
        [$(concat!("t", $index)),*]
    };
}

/// Names of tables that have a binding of their own.
pub(crate) const TABLES: [&str; 32] =
    names!(0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31);

#[repr(C)]
#[derive(Clone, Copy, Debug, Default, Pod, Zeroable)]
pub(crate) struct Params {
    pub(crate) pairs: u32,
    pub(crate) log_chunk: u32,
    pub(crate) chunks: u32,
    /// From one table to the next, where they share a buffer.
    pub(crate) source_stride: u32,
    pub(crate) target_stride: u32,
    /// The weight of pair x is `eq[low_at + low bits of x]`, times `eq[high_at + the others]`.
    pub(crate) low_at: u32,
    pub(crate) low_bits: u32,
    pub(crate) high_at: u32,
    /// Chunks have pairs of several factors of the second kind.
    pub(crate) both: u32,
    pub(crate) partials_at: u32,
    /// Where a challenge is drawn: what the round before left, and where its message goes.
    pub(crate) previous_chunks: u32,
    pub(crate) previous_at: u32,
    /// Two sums that rounds have to have, of which one is read and the other written.
    pub(crate) claim_at: u32,
    pub(crate) parity: u32,
    /// What the first two values of a round count in its message, and the others in any round.
    pub(crate) lines_at: u32,
    pub(crate) matrix_at: u32,
    pub(crate) message_at: u32,
    /// In bit j whether the first point was 1 and not 0: of the round before, and of those of this launch.
    pub(crate) ones: u32,
    /// Rounds of this launch, if it does all that are left.
    pub(crate) rounds: u32,
}

impl Params {
    /// Those of one round of such a launch, which the CPU does like any other.
    fn of_round(&self, round: u32, degree: usize) -> Self {
        let (pairs, after) = (self.pairs >> round, u32::from(round > 0));
        let places = [self.partials_at, self.previous_at];
        Self {
            pairs,
            log_chunk: pairs.max(1).ilog2(),
            chunks: 1,
            low_at: self.low_at + pairs,
            low_bits: pairs.max(1).ilog2(),
            high_at: 1,
            both: 0,
            partials_at: places[(round & 1) as usize],
            previous_at: places[(1 - (round & 1)) as usize],
            previous_chunks: if after == 1 { 1 } else { self.previous_chunks },
            parity: self.parity + round,
            lines_at: self.lines_at + round * 4 * degree as u32,
            message_at: self.message_at + round * degree as u32,
            ones: self.ones >> round,
            ..*self
        }
    }
}

/// The same in WGSL, and those of the round that is done.
const PARAMS: &str = "struct Params {
    pairs: u32,
    log_chunk: u32,
    chunks: u32,
    source_stride: u32,
    target_stride: u32,
    low_at: u32,
    low_bits: u32,
    high_at: u32,
    both: u32,
    partials_at: u32,
    previous_chunks: u32,
    previous_at: u32,
    claim_at: u32,
    parity: u32,
    lines_at: u32,
    matrix_at: u32,
    message_at: u32,
    ones: u32,
    rounds: u32,
}
var<private> now: Params;
";

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
    pub(crate) points: Points,
    pub(crate) weighted: bool,
    /// The challenge is drawn by the kernel, from a round that was evaluated at these points.
    pub(crate) drawn: Option<Points>,
    /// One workgroup does all rounds that are left.
    pub(crate) tail: bool,
}

/// Threads of a workgroup, with one element each in workgroup memory.
pub(crate) fn threads<E: DeviceField>() -> u32 {
    let mut threads = THREADS;
    while threads > 1 && source::tile_bytes::<E>(threads) > TILE_BYTES {
        threads /= 2;
    }
    threads
}

impl Kind {
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

    /// Bindings in order, and whether each has elements of the field below.
    fn bindings<E: DeviceField, T: DeviceField>(&self) -> Vec<(Binding, bool)> {
        let written = self.target == Target::InPlace || self.tail;
        let source = |name, word| if written { Binding::write(name, word) } else { Binding::read(name, word) };
        let names = if self.is_packed() { &["tables"] } else { &TABLES[..self.tables] };
        let with_word = |(table, name): (usize, &&'static str)| {
            let below = self.is_below(table);
            (source(name, if below { word::<T>() } else { word::<E>() }), below)
        };
        let mut bindings: Vec<(Binding, bool)> = names.iter().enumerate().map(with_word).collect();
        if self.target == Target::Packed {
            bindings.push((Binding::write("folded", word::<E>()), false));
        }
        if self.weighted {
            bindings.push((Binding::read("eq", word::<E>()), false));
        }
        bindings.push((Binding::read("inputs", word::<E>()), false));
        bindings.push((Binding::write("partials", word::<E>()), false));
        if self.drawn.is_some() {
            bindings.push((Binding::write("state", Word::U32), false));
        }
        bindings
    }

    /// The parameters of a function in CUDA that takes the tables, and their names, with a comma after each.
    fn cuda_tables<E: DeviceField, T: DeviceField>(&self) -> (String, String) {
        let bindings = self.bindings::<E, T>();
        let tables = &bindings[..self.table_bindings()];
        let parameter = |(binding, below): &(Binding, bool)| {
            let access = if binding.access == Access::Read { "const " } else { "" };
            format!("{access}{}* {}, ", if *below { "B" } else { "F" }, binding.name)
        };
        let names = tables.iter().map(|(binding, _)| format!("{}, ", binding.name)).collect();
        (tables.iter().map(parameter).collect(), names)
    }

    /// Those of tables.
    fn table_bindings(&self) -> usize {
        let sources = if self.is_packed() { 1 } else { self.tables };
        sources + usize::from(self.target == Target::Packed)
    }
}

/// A program's text in a language.
struct Text<'a> {
    program: &'a Program,
    mul: &'a str,
    source: &'a dyn Fn(u32, u32) -> String,
    store: &'a dyn Fn(u32, u32, u32) -> String,
    sum: &'a dyn Fn(u32, u32) -> String,
    input: &'a dyn Fn(u32) -> String,
    select: &'a dyn Fn(u32, u32) -> String,
}

impl Text<'_> {
    fn line(&self, line: &Line) -> String {
        match *line {
            Line::Store { table, part, slot } => (self.store)(table, part, slot),
            Line::Sum { point, slot } => (self.sum)(point, slot),
            Line::Set { slot, op } => {
                let value = match op {
                    Op::Source { table, part } => (self.source)(table, part),
                    Op::Input(0) => "challenge".into(),
                    Op::Input(index) => (self.input)(index),
                    Op::Weight => "weight".into(),
                    Op::Add(a, b) => format!("f_add(r{a}, r{b})"),
                    Op::Sub(a, b) => format!("f_sub(r{a}, r{b})"),
                    Op::Mul(a, b) => format!("{}(r{a}, r{b})", self.mul),
                    Op::Neg(a) => format!("f_sub(f_zero(), r{a})"),
                    Op::Select(a, b) => (self.select)(a, b),
                };
                format!("r{slot} = {value};")
            }
        }
    }

    /// All lines, in CUDA or few of them in WGSL.
    fn straight(&self, lines: &[Line], text: &mut String) {
        for line in lines {
            let _ = writeln!(text, "    {}", self.line(line));
        }
    }

    /// A loop with one turn for each multiplication. Gives the lines after the last one.
    fn turns(&self, text: &mut String) -> &[Line] {
        let (mut before, mut after) = (String::new(), String::new());
        let (mut rest, mut turn) = (self.program.lines.as_slice(), 0);
        let is_product = |line: &Line| matches!(line, Line::Set { op: Op::Mul(..), .. });
        while let Some(at) = rest.iter().position(is_product) {
            let _ = write!(before, "        case {turn}u: {{");
            rest[..at].iter().for_each(|line| before.extend([" ", &self.line(line)]));
            if let Line::Set { slot, op: Op::Mul(a, b) } = rest[at] {
                let _ = writeln!(before, " a = r{a}; b = r{b}; }}");
                let _ = writeln!(after, "        case {turn}u: {{ r{slot} = product; }}");
            }
            rest = &rest[at + 1..];
            turn += 1;
        }
        let _ = write!(
            text,
            "    for (var turn = 0u; turn < {turn}u; turn++) {{\n        var a = f_zero();\n        var b = f_zero();\n        \
             switch turn {{\n{before}        default: {{}}\n        }}\n        let product = f_mul(a, b);\n        \
             switch turn {{\n{after}        default: {{}}\n        }}\n    }}\n"
        );
        rest
    }
}

/// What comes before `pair` or `ends` in CUDA.
fn cuda_head<E: DeviceField, T: DeviceField>(kind: &Kind, degree: usize, points: usize) -> String {
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
        evariste_cuda::SUMCHECK_HEADER,
        evariste_cuda::SUMCHECK_SUM,
    );
    let (parameters, names) = kind.cuda_tables::<E, T>();
    let (eq, weights) = if kind.weighted { ("const F* eq, ", "eq, ") } else { ("", "") };
    let state = if kind.drawn.is_some() { ", uint32_t* state" } else { "" };
    let _ = writeln!(
        text,
        "#define SOURCES {parameters}{eq}\n#define ARGUMENTS {names}\n#define WEIGHTS {weights}\n#define STATE {state}"
    );
    if let Some(previous) = &kind.drawn {
        text += &draw::cuda::<E>(degree, previous);
    }
    text
}

/// A round in CUDA.
fn cuda<E: DeviceField, T: DeviceField>(kind: &Kind, degree: usize, program: &Program) -> String {
    let mut text = source::cuda::<E>();
    let called = program.multiplications() > CUDA_MULTIPLICATIONS;
    if called {
        text += "__device__ __noinline__ F called_mul(F a, F b) {\n    return f_mul(a, b);\n}\n";
    }
    let registers = (program.slots + 2) * E::LIMBS + program.points * (2 * E::LIMBS + 1);
    let _ = writeln!(text, "#define BLOCKS {}", if registers <= TWO_BLOCKS { 2 } else { 1 });
    text += &cuda_head::<E, T>(kind, degree, program.points);
    let (parameters, _) = kind.cuda_tables::<E, T>();
    let table_at = |buffer: &str, table: u32, stride: &str, place: String| {
        format!("{buffer} + ((size_t){table} * now.{stride} + {place})")
    };
    let parts = kind.fold.count();
    let lines = Text {
        program,
        mul: if called { "called_mul" } else { "f_mul" },
        source: &|table, part| {
            let place = kind.place(parts, part, "(size_t)");
            let load = if kind.is_below(table as usize) { "b_load" } else { "f_load" };
            match kind.source {
                Source::Packed { .. } => format!("lift({load}({}))", table_at("tables", table, "source_stride", place)),
                Source::Separate { .. } => format!("lift({load}({} + ({place})))", TABLES[table as usize]),
            }
        },
        store: &|table, part, slot| {
            let place = kind.place(2, part, "(size_t)");
            let at = match (kind.target, kind.source) {
                (Target::InPlace, Source::Separate { .. }) => format!("{} + ({place})", TABLES[table as usize]),
                (Target::InPlace, _) => table_at("tables", table, "source_stride", place),
                _ => table_at("folded", table, "target_stride", place),
            };
            format!("*({at}) = r{slot};")
        },
        sum: &|point, slot| format!("sum_add(sums.at[{point}], weight, r{slot});"),
        input: &|index| format!("f_load(inputs + {index})"),
        select: &|a, b| format!("now.ones & 2 ? r{b} : r{a}"),
    };
    let _ = writeln!(
        text,
        "__device__ __forceinline__ void pair(const Params& now, {parameters}uint32_t x, const F& challenge, \
         const F& weight, const F* inputs, Sums& sums) {{"
    );
    for slot in 0..program.slots {
        let _ = writeln!(text, "    F r{slot};");
    }
    lines.straight(&lines.program.lines, &mut text);
    text + "}\n" + evariste_cuda::SUMCHECK_CHUNK + evariste_cuda::SUMCHECK_ROUND
}

/// All rounds that are left in CUDA: a program for each point.
fn cuda_tail<E: DeviceField, T: DeviceField>(kind: &Kind, degree: usize, programs: &[Program]) -> String {
    let mut text = source::cuda::<E>() + &cuda_head::<E, T>(kind, degree, programs.len());
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
            source: &|table, part| {
                let place = match kind.high {
                    true => format!("x + pairs * {part}"),
                    false => format!("2 * x + {part}"),
                };
                format!("f_load(table_of(now, {names}{table}, folds) + ({place}))")
            },
            store: &|_, _, _| unreachable!("nothing is folded here"),
            sum: &|_, slot| format!("return r{slot};"),
            input: &|index| format!("f_load(inputs + {index})"),
            select: &|a, b| format!("at_one ? r{b} : r{a}"),
        };
        let _ = writeln!(
            text,
            "__device__ __forceinline__ F point_{point}(const Params& now, {parameters}uint32_t x, uint32_t pairs, \
             uint32_t folds, uint32_t at_one, const F* inputs) {{"
        );
        for slot in 0..program.slots {
            let _ = writeln!(text, "    F r{slot};");
        }
        lines.straight(&lines.program.lines, &mut text);
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
    text + evariste_cuda::SUMCHECK_VALUES + evariste_cuda::SUMCHECK_TAIL
}

/// `x_lift` in WGSL: what is loaded from binding `x`, as an element of `E`.
pub(crate) fn wgsl_lift<E: DeviceField, T: DeviceField>(binding: &Binding, below: bool) -> String {
    let name = binding.name;
    if !below {
        return format!("fn {name}_lift(i: u32) -> F {{ return {name}_load(i); }}\n");
    }
    let (limbs, lanes) = (T::LIMBS, binding.word.bytes() as usize / 4);
    let mut text = format!("fn {name}_lift(i: u32) -> F {{\n");
    for word in 0..limbs / lanes {
        let _ = writeln!(text, "  let w{word} = {name}_get(i * {}u + {word}u);", limbs / lanes);
    }
    let limb = |i: usize| match lanes {
        1 => format!("w{i}"),
        _ => format!("w{}.{}", i / lanes, ["x", "y", "z", "w"][i % lanes]),
    };
    let low = (0..limbs).map(limb).collect::<Vec<_>>().join(", ");
    let zeros = ", b_zero()".repeat(E::LIMBS / limbs - 1);
    text + &format!("  return F(B({low}){zeros});\n}}\n")
}

/// What comes before everything but the accessors in WGSL, which are rendered here too.
fn wgsl_head<E: DeviceField, T: DeviceField>(kind: &Kind, degree: usize, int64: bool) -> String {
    let mut text = source::wgsl::<E>(int64) + PARAMS;
    for (binding, below) in kind.bindings::<E, T>() {
        if !below && binding.name != "state" {
            text += &source::wgsl_accessors::<E>(&binding);
        }
        if TABLES.contains(&binding.name) || binding.name == "tables" {
            text += &wgsl_lift::<E, T>(&binding, below);
        }
    }
    text += &source::wgsl_tile::<E>(threads::<E>());
    text += evariste_shaders::SUMCHECK_SUM;
    if let Some(previous) = &kind.drawn {
        text += &draw::wgsl::<E>(degree, previous);
    }
    text
}

/// A whole kernel in WGSL.
fn wgsl<E: DeviceField, T: DeviceField>(kind: &Kind, degree: usize, program: &Program, int64: bool) -> String {
    let mut text = wgsl_head::<E, T>(kind, degree, int64);
    text += match kind.drawn {
        Some(_) => {
            "fn challenge_of(thread: u32, chief: bool) -> F {\n    previous_values(thread);\n    \
             return draw(thread, 0u, chief);\n}\n"
        }
        None => "fn challenge_of(thread: u32, chief: bool) -> F { return inputs_load(0u); }\n",
    };
    let points = program.points;
    let list = |item: &dyn Fn(usize) -> String| (0..points).map(item).collect::<Vec<_>>().join(", ");
    let _ = write!(
        text,
        "const POINTS = {points}u;\nstruct Sums {{ {} }}\nfn sums_zero() -> Sums {{ return Sums({}); }}\n\
         fn sum_at(sums: Sums, p: u32) -> F {{\n    switch p {{\n",
        list(&|i| format!("s{i}: F")),
        list(&|_| "f_zero()".into()),
    );
    for point in 0..points {
        let _ = writeln!(text, "        case {point}u: {{ return sums.s{point}; }}");
    }
    text += "        default: { return f_zero(); }\n    }\n}\n";
    text += match kind.weighted {
        true => {
            "fn scaled(total: F, first: u32) -> F {\n    if (now.both != 0u) { return total; }\n    \
             return f_mul(total, eq_load(now.high_at + (first >> now.low_bits)));\n}\n\
             fn weight_of(x: u32) -> F {\n    \
             let low = eq_load(now.low_at + (x & ((1u << now.low_bits) - 1u)));\n    \
             if (now.both == 0u) { return low; }\n    \
             return f_mul(low, eq_load(now.high_at + (x >> now.low_bits)));\n}\n"
        }
        false => "fn scaled(total: F, first: u32) -> F { return total; }\n",
    };
    let parts = kind.fold.count();
    let lines = Text {
        program,
        mul: "f_mul",
        source: &|table, part| {
            let place = kind.place(parts, part, "");
            match kind.source {
                Source::Packed { .. } => format!("tables_lift({table}u * now.source_stride + {place})"),
                Source::Separate { .. } => format!("{}_lift({place})", TABLES[table as usize]),
            }
        },
        store: &|table, part, slot| {
            let place = kind.place(2, part, "");
            match (kind.target, kind.source) {
                (Target::InPlace, Source::Separate { .. }) => {
                    format!("{}_store({place}, r{slot});", TABLES[table as usize])
                }
                (Target::InPlace, _) => format!("tables_store({table}u * now.source_stride + {place}, r{slot});"),
                _ => format!("folded_store({table}u * now.target_stride + {place}, r{slot});"),
            }
        },
        sum: &|point, slot| format!("sums.s{point} = f_add(sums.s{point}, r{slot});"),
        input: &|index| format!("inputs_load({index}u)"),
        select: &|a, b| format!("pick(r{a}, r{b})"),
    };
    text += "fn pick(a: F, b: F) -> F {\n    if ((now.ones & 2u) != 0u) { return b; }\n    return a;\n}\n";
    text += "fn pair(x: u32, challenge: F, before: Sums) -> Sums {\n    var sums = before;\n";
    if kind.weighted {
        text += "    let weight = weight_of(x);\n";
    }
    for slot in 0..program.slots {
        let _ = writeln!(text, "    var r{slot} = f_zero();");
    }
    let many = program.multiplications() > WGSL_MULTIPLICATIONS;
    let rest = if many { lines.turns(&mut text) } else { &lines.program.lines };
    lines.straight(rest, &mut text);
    text + "    return sums;\n}\n" + evariste_shaders::SUMCHECK_CHUNK + evariste_shaders::SUMCHECK_ROUND
}

/// All rounds that are left in WGSL: a program for each point.
fn wgsl_tail<E: DeviceField, T: DeviceField>(kind: &Kind, degree: usize, programs: &[Program], int64: bool) -> String {
    let mut text = wgsl_head::<E, T>(kind, degree, int64);
    let _ = writeln!(
        text,
        "const POINTS = {}u;\nconst GROUP = {}u;\nconst HIGH = {};",
        programs.len(),
        group::<E>(programs.len()),
        kind.high
    );
    text += match kind.weighted {
        true => "fn weighted(value: F, at: u32) -> F { return f_mul(value, eq_load(now.low_at + at)); }\n",
        false => "fn weighted(value: F, at: u32) -> F { return value; }\n",
    };
    let (mut load, mut store) = (String::new(), String::new());
    match (kind.is_packed(), kind.high) {
        (true, true) => {
            load += "    return tables_load(table * now.source_stride + i);\n";
            store += "    tables_store(table * now.source_stride + i, value);\n";
        }
        (true, false) => {
            load += "    if ((folds & 1u) != 0u) { return folded_load(table * now.target_stride + i); }\n    \
                     return tables_load(table * now.source_stride + i);\n";
            store += "    if ((folds & 1u) != 0u) {\n        folded_store(table * now.target_stride + i, value);\n    } else {\n        \
                      tables_store(table * now.source_stride + i, value);\n    }\n";
        }
        (false, _) => {
            (load, store) = ("    switch table {\n".into(), "    switch table {\n".into());
            for (table, name) in TABLES[..kind.tables].iter().enumerate() {
                let _ = writeln!(load, "        case {table}u: {{ return {name}_load(i); }}");
                let _ = writeln!(store, "        case {table}u: {{ {name}_store(i, value); }}");
            }
            load += "        default: { return f_zero(); }\n    }\n";
            store += "        default: {}\n    }\n";
        }
    }
    let _ = write!(
        text,
        "const COLUMNS = {}u;\nfn load_of(table: u32, folds: u32, i: u32) -> F {{\n{load}}}\n\
         fn store_of(table: u32, folds: u32, i: u32, value: F) {{\n{store}}}\n\
         fn end_of(table: u32, folds: u32, i: u32) -> F {{ return load_of(table, folds, i); }}\n\
         fn pick(a: F, b: F, second: bool) -> F {{\n    if (second) {{ return b; }}\n    return a;\n}}\n",
        kind.tables
    );
    let many = programs.iter().map(Program::multiplications).sum::<usize>() > WGSL_MULTIPLICATIONS;
    for (point, program) in programs.iter().enumerate() {
        let lines = Text {
            program,
            mul: "f_mul",
            source: &|table, part| {
                let place = match kind.high {
                    true => format!("x + pairs * {part}u"),
                    false => format!("2u * x + {part}u"),
                };
                format!("load_of({table}u, folds, {place})")
            },
            store: &|_, _, _| unreachable!("nothing is folded here"),
            sum: &|_, slot| format!("return r{slot};"),
            input: &|index| format!("inputs_load({index}u)"),
            select: &|a, b| format!("pick(r{a}, r{b}, at_one != 0u)"),
        };
        let _ = writeln!(text, "fn point_{point}(x: u32, pairs: u32, folds: u32, at_one: u32) -> F {{");
        for slot in 0..program.slots {
            let _ = writeln!(text, "    var r{slot} = f_zero();");
        }
        let rest = if many { lines.turns(&mut text) } else { &lines.program.lines };
        lines.straight(rest, &mut text);
        text += "}\n";
    }
    text += "fn point_at(p: u32, x: u32, pairs: u32, folds: u32, at_one: u32) -> F {\n    switch p {\n";
    for point in 0..programs.len() {
        let _ = writeln!(text, "        case {point}u: {{ return point_{point}(x, pairs, folds, at_one); }}");
    }
    text + "        default: { return f_zero(); }\n    }\n}\n"
        + evariste_shaders::SUMCHECK_VALUES
        + evariste_shaders::SUMCHECK_TAIL
}

/// Threads that share one of so many points, where one workgroup does all rounds that are left.
fn group<E: DeviceField>(points: usize) -> u32 {
    let mut group = threads::<E>();
    while group > 32 && group as usize * points > threads::<E>() as usize {
        group /= 2;
    }
    group
}

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
    lanes: Option<&'a ifma::Field>,
}

/// Constants for computing in lanes, where a processor has them and elements have the same form on it as on devices.
fn lanes_of<E: DeviceField>() -> Option<ifma::Field> {
    if E::LIMBS.is_multiple_of(2) && E::LIMBS >= 8 { ifma::Field::of::<E>() } else { None }
}

/// Values of the pairs that a CPU thread takes at a time: rows of a slot, and with lanes of one more, for sums.
struct Rows<'a, E> {
    values: Values<'a, E>,
    stride: usize,
    slots: usize,
}

enum Values<'a, E> {
    One(Vec<E>),
    /// As on devices, and computed many at a time.
    Lanes(Vec<u32>, &'a ifma::Field),
}

impl<'a, E: DeviceField> Rows<'a, E> {
    fn new(slots: usize, stride: usize, lanes: Option<&'a ifma::Field>) -> Self {
        let values = match lanes {
            None => Values::One(vec![E::ZERO; slots * stride]),
            Some(field) => Values::Lanes(vec![0; (slots + 1) * stride * E::LIMBS], field),
        };
        Self { values, stride, slots }
    }

    /// A slot may be its own operand's.
    fn combine(&mut self, rows: usize, target: u32, [a, b]: [u32; 2], how: Combination) {
        let [target, a, b] = [target, a, b].map(|slot| slot as usize * self.stride);
        match &mut self.values {
            Values::Lanes(values, field) => field.combine(how, values, [target, a, b], rows),
            Values::One(values) => {
                let mut each = |f: fn(E, E) -> E| {
                    for row in 0..rows {
                        values[target + row] = f(values[a + row], values[b + row]);
                    }
                };
                match how {
                    Combination::Sum => each(|a, b| a + b),
                    Combination::Difference => each(|a, b| a - b),
                    Combination::Product => each(|a, b| a * b),
                }
            }
        }
    }

    /// Sets the first rows of a slot.
    fn set(&mut self, target: u32, elements: impl Iterator<Item = E>) {
        let target = target as usize * self.stride;
        match &mut self.values {
            Values::One(values) => values[target..].iter_mut().zip(elements).for_each(|(value, x)| *value = x),
            Values::Lanes(values, _) => {
                let values = values[target * E::LIMBS..].chunks_exact_mut(E::LIMBS);
                values.zip(elements).for_each(|(value, x)| x.store(value));
            }
        }
    }

    fn set_one(&mut self, slot: u32, row: usize, value: E) {
        let at = slot as usize * self.stride + row;
        match &mut self.values {
            Values::One(values) => values[at] = value,
            Values::Lanes(values, _) => value.store(&mut values[at * E::LIMBS..]),
        }
    }

    fn get(&self, slot: u32, row: usize) -> E {
        let at = slot as usize * self.stride + row;
        match &self.values {
            Values::One(values) => values[at],
            Values::Lanes(values, _) => E::load(&values[at * E::LIMBS..]),
        }
    }

    fn copy(&mut self, rows: usize, target: u32, from: u32) {
        let [target, from] = [target, from].map(|slot| slot as usize * self.stride);
        match &mut self.values {
            Values::One(values) => values.copy_within(from..from + rows, target),
            Values::Lanes(values, _) => {
                values.copy_within(from * E::LIMBS..(from + rows) * E::LIMBS, target * E::LIMBS);
            }
        }
    }

    /// Sets the first rows of a slot to elements of so many limbs, the first of each `step` limbs.
    fn load(&mut self, rows: usize, target: u32, limbs: &[u32], step: usize, each: usize) {
        let start = target as usize * self.stride;
        match &mut self.values {
            Values::Lanes(values, _) if each == E::LIMBS => {
                let values = &mut values[start * E::LIMBS..][..rows * E::LIMBS];
                match step == each {
                    true => values.copy_from_slice(&limbs[..rows * each]),
                    false => values
                        .chunks_exact_mut(each)
                        .zip(limbs.chunks(step))
                        .for_each(|(value, limbs)| value.copy_from_slice(&limbs[..each])),
                }
            }
            _ => self.set(target, limbs.chunks(step).take(rows).map(|limbs| lift(&limbs[..each]))),
        }
    }

    /// Stores the first rows of a slot, each at the start of a `step` elements.
    fn store(&self, rows: usize, slot: u32, out: &mut [u32], step: usize) {
        let start = slot as usize * self.stride;
        let out = out.chunks_mut(step * E::LIMBS);
        match &self.values {
            Values::One(values) => values[start..][..rows].iter().zip(out).for_each(|(value, out)| value.store(out)),
            Values::Lanes(values, _) => {
                let values = values[start * E::LIMBS..][..rows * E::LIMBS].chunks_exact(E::LIMBS);
                values.zip(out).for_each(|(value, out)| out[..E::LIMBS].copy_from_slice(value));
            }
        }
    }

    fn sum(&mut self, mut rows: usize, slot: u32) -> E {
        let spare = self.slots * self.stride;
        if let Values::Lanes(values, field) = &mut self.values {
            // Halves are added while there are so many that lanes are full.
            let mut from = slot as usize * self.stride;
            while rows >= 2 * ifma::STEP && rows.is_multiple_of(2) {
                rows /= 2;
                field.combine(Combination::Sum, values, [spare, from, from + rows], rows);
                from = spare;
            }
            let left = values[from * E::LIMBS..][..rows * E::LIMBS].chunks_exact(E::LIMBS);
            return left.map(E::load).sum();
        }
        (0..rows).map(|row| self.get(slot, row)).sum()
    }
}

/// An element of the field below, or the same, as one of `E`: the coefficients that follow are 0.
pub(crate) fn lift<E: DeviceField>(limbs: &[u32]) -> E {
    if limbs.len() >= E::LIMBS {
        return E::load(limbs);
    }
    let mut whole = vec![0; E::LIMBS];
    whole[..limbs.len()].copy_from_slice(limbs);
    E::load(&whole)
}

impl<E: DeviceField> Cpu<'_, E> {
    /// The elements of a table of a task that are this part of its pairs, from pair `start` on: the limbs from the first one on,
    /// and how many lie from one to the next.
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
        let mut all = Rows::new(self.program.slots, ROWS.min(count), self.lanes);
        let mut sums = vec![E::ZERO; self.program.points];
        for start in (0..count).step_by(ROWS) {
            let rows = ROWS.min(count - start);
            for line in &self.program.lines {
                match *line {
                    Line::Set { slot, op } => self.set(&mut all, rows, slot, op, task, start, first),
                    Line::Store { table, part, slot } => {
                        self.store(task, [table as usize, part as usize], start, rows, (&all, slot));
                    }
                    Line::Sum { point, slot } => sums[point as usize] += all.sum(rows, slot),
                }
            }
        }
        let scale = match self.kind.weighted && self.params.both == 0 {
            true => E::load(&self.eq[(self.params.high_at as usize + (first >> self.params.low_bits)) * E::LIMBS..]),
            false => E::ONE,
        };
        for (sum, out) in sums.into_iter().zip(task.partial.chunks_exact_mut(E::LIMBS)) {
            (sum * scale).store(out);
        }
    }

    #[expect(clippy::too_many_arguments, reason = "the state of a loop")]
    fn set(&self, all: &mut Rows<'_, E>, rows: usize, slot: u32, op: Op, task: &Task<'_>, start: usize, first: usize) {
        match op {
            Op::Add(a, b) => all.combine(rows, slot, [a, b], Combination::Sum),
            Op::Sub(a, b) => all.combine(rows, slot, [a, b], Combination::Difference),
            Op::Mul(a, b) => all.combine(rows, slot, [a, b], Combination::Product),
            Op::Neg(a) => (0..rows).for_each(|row| all.set_one(slot, row, -all.get(a, row))),
            Op::Select(a, b) => all.copy(rows, slot, if self.params.ones & 2 != 0 { b } else { a }),
            Op::Input(index) => all.set(slot, std::iter::repeat_n(self.inputs[index as usize], rows)),
            Op::Weight => all.set(slot, (0..rows).map(|row| self.weight(first + start + row))),
            Op::Source { table, part } => {
                let (from, step) = self.source(task, table as usize, part as usize, start);
                all.load(rows, slot, from, step, self.limbs[table as usize]);
            }
        }
    }
}

/// The body for the CPU.
fn body<E: DeviceField, T: DeviceField>(
    kind: &Kind,
    degree: usize,
    program: &Program,
    lanes: Option<&ifma::Field>,
    params: &Params,
    args: &mut [CpuArg<'_>],
) {
    let limbs: Vec<usize> =
        (0..kind.tables).map(|table| if kind.is_below(table) { T::LIMBS } else { E::LIMBS }).collect();
    let (tables, rest) = args.split_at_mut(kind.table_bindings());
    let (eq, rest) = rest.split_at_mut(usize::from(kind.weighted));
    let eq: &[u32] = eq.first().map_or(&[], |eq| eq.read());
    let [inputs, partials, state @ ..] = rest else { unreachable!("the launch checks the number of buffers") };
    let mut inputs: Vec<E> = inputs.read::<u32>().chunks_exact(E::LIMBS).map(E::load).collect();
    if let (Some(previous), [state]) = (&kind.drawn, state) {
        inputs[0] = draw::body(params, degree, previous, &inputs, partials.write(), state.write());
    }

    let (pairs, parts) = (params.pairs as usize, kind.fold.count());
    let chunks = params.chunks as usize;
    let partials = &mut partials.write::<u32>()[params.partials_at as usize * E::LIMBS..];
    let partials = partials[..chunks * program.points * E::LIMBS].chunks_mut(program.points * E::LIMBS);
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
        let sources = kind.table_bindings() - usize::from(kind.target == Target::Packed);
        let (sources, folded) = tables.split_at_mut(sources);
        let wholes: Vec<&[u32]> = match kind.source {
            Source::Packed { .. } => sources[0].read::<u32>().chunks(source_stride).take(kind.tables).collect(),
            Source::Separate { .. } => sources.iter().map(|table| table.read::<u32>()).collect(),
        };
        let (each, piece) = if kind.high { (pairs, 1) } else { (pairs * parts, parts) };
        for (whole, limbs) in wholes.into_iter().zip(&limbs) {
            for part in whole[..pairs * parts * limbs].chunks(each * limbs) {
                let pieces = part.chunks((piece * limbs) << params.log_chunk);
                tasks.iter_mut().zip(pieces).for_each(|(task, piece)| task.read.push(piece));
            }
        }
        if let Some(folded) = folded.first_mut() {
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

/// Cuts parts of so many limbs into pieces and gives each task its one of each part.
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
fn tail<E: DeviceField, T: DeviceField>(
    kind: &Kind,
    degree: usize,
    program: &Program,
    lanes: Option<&ifma::Field>,
    previous: &Points,
    params: &Params,
    args: &mut [CpuArg<'_>],
) {
    for round in 0..params.rounds {
        let now = params.of_round(round, degree);
        body::<E, T>(kind, degree, program, lanes, &now, args);
        if let (Target::Packed, [tables, folded, ..]) = (kind.target, &mut *args) {
            let (from, to) = (folded.read::<u32>(), tables.write::<u32>());
            for table in 0..kind.tables {
                let [from_at, to_at] =
                    [now.target_stride, now.source_stride].map(|stride| table * stride as usize * E::LIMBS);
                let limbs = 2 * now.pairs as usize * E::LIMBS;
                to[to_at..][..limbs].copy_from_slice(&from[from_at..][..limbs]);
            }
        }
    }
    values::<E, T>(kind, degree, previous, &params.of_round(params.rounds, degree), args);
}

/// The kernel of a round, or of all that are left.
pub(crate) fn spec<E: DeviceField, T: DeviceField>(expression: &Expression, kind: &Kind) -> KernelSpec {
    let program = |weighing: Weighing| {
        let weighing = if kind.weighted { weighing } else { Weighing::None };
        Arc::new(Program::new(expression, kind.tables, kind.fold, &kind.points, weighing))
    };
    let (inside, outside) = (program(Weighing::Product), program(Weighing::Sum));
    let degree = expression.degree() as usize;
    let bindings: Vec<Binding> = kind.bindings::<E, T>().into_iter().map(|(binding, _)| binding).collect();
    let digits: String = expression.digest()[..4].iter().map(|byte| format!("{byte:02x}")).collect();
    let points = &kind.points;
    let middle = points.middle.len();
    let variant = format!(
        "{digits} of {}, {:?}, {:?} to {:?}, {}{}, at {}{}{middle} points{} over {}",
        kind.tables,
        kind.fold,
        kind.source,
        kind.target,
        if kind.weighted { "weighted" } else { "plain" },
        match &kind.drawn {
            None => "",
            Some(previous) if previous.first => ", drawn",
            Some(_) => ", drawn from a zero",
        },
        if points.first { "0, " } else { "" },
        if points.one { "1, " } else { "" },
        if points.top { " and infinity" } else { "" },
        source::label::<E>(),
    );
    let each = |point: &Points| Program::new(expression, kind.tables, Fold::No, point, Weighing::None);
    let programs: Arc<Vec<Program>> =
        Arc::new(if kind.tail { points.each().iter().map(each).collect() } else { vec![] });
    let mul = turns::mul::<E>();
    // Each of the two choices of a turn may be a loop to a compiler.
    let of_program = move |program: &Program| turns::repeat(program.multiplications() as u64, mul + 2) + mul;
    let (threads, points) = (threads::<E>(), inside.points as u64);
    let drawing = draw::turns::<E>(degree, kind.drawn.as_ref());
    let tree = turns::repeat(threads.ilog2().into(), 0);
    let (all, last, elements) = (kind.tail, values_turns::<E>(kind), 2 * kind.tables as u64);
    let (pair, point) = (of_program(&inside), programs.iter().map(of_program).max().unwrap_or(0));
    let group = group::<E>(inside.points);
    let round = move |params: &Params| {
        let count = (1u64 << params.log_chunk).min(params.pairs.into());
        let work = match all {
            false => turns::repeat(count.div_ceil(threads.into()), pair) + turns::repeat(points, tree + mul),
            true => {
                let sums = turns::repeat(u64::from(params.pairs).div_ceil(group.into()), point + mul) + tree;
                turns::repeat((elements * u64::from(params.pairs)).div_ceil(threads.into()), mul)
                    + turns::repeat((points * u64::from(group)).div_ceil(threads.into()), sums)
            }
        };
        work + drawing(params)
    };
    // No later round takes more than the first one of a tail.
    let turns = move |params: &Params| match all {
        true => turns::repeat(u64::from(params.rounds) + 1, round(params)) + last,
        false => round(params),
    };
    let (for_source, for_body, seen) = (kind.clone(), kind.clone(), Arc::clone(&inside));
    let source = move |language| match language {
        Language::Cuda if for_source.tail => cuda_tail::<E, T>(&for_source, degree, &programs),
        Language::Cuda => cuda::<E, T>(&for_source, degree, &outside),
        Language::Wgsl { int64 } if for_source.tail => wgsl_tail::<E, T>(&for_source, degree, &programs, int64),
        Language::Wgsl { int64 } => wgsl::<E, T>(&for_source, degree, &seen, int64),
    };
    let (previous, lanes) = (kind.drawn.clone().filter(|_| kind.tail), lanes_of::<E>());
    let run = move |params: &Params, args: &mut [CpuArg<'_>]| match &previous {
        Some(previous) => tail::<E, T>(&for_body, degree, &inside, lanes.as_ref(), previous, params, args),
        None => body::<E, T>(&for_body, degree, &inside, lanes.as_ref(), params, args),
    };
    let name = if kind.tail { "sumcheck_tail" } else { "sumcheck_round" };
    KernelSpec::new(name, variant, bindings, run, source)
        .threads(threads)
        .shared_bytes(shared_bytes::<E>(degree, kind.drawn.is_some()))
        .turns(turns)
}

/// Workgroup memory.
pub(crate) fn shared_bytes<E: DeviceField>(degree: usize, drawn: bool) -> u32 {
    source::tile_bytes::<E>(threads::<E>()) + if drawn { draw::shared_bytes::<E>(degree) } else { 0 }
}

/// The kernel behind the last round, for tables at the same place.
pub(crate) fn finish_spec<E: DeviceField, T: DeviceField>(degree: usize, kind: &Kind, previous: &Points) -> KernelSpec {
    let kind =
        Kind { drawn: Some(previous.clone()), weighted: false, fold: Fold::No, target: Target::None, ..kind.clone() };
    let bindings: Vec<Binding> = kind.bindings::<E, T>().into_iter().map(|(binding, _)| binding).collect();
    let zero = if previous.first { "" } else { ", from a zero" };
    let variant = format!("{} of degree {degree}, {:?}{zero} over {}", kind.tables, kind.source, source::label::<E>());
    let (for_source, for_body, for_turns, before) = (kind.clone(), kind.clone(), kind, previous.clone());
    let source = move |language| match language {
        Language::Cuda => finish_cuda::<E, T>(&for_source, degree),
        Language::Wgsl { int64 } => finish_wgsl::<E, T>(&for_source, degree, int64),
    };
    let body = move |params: &Params, args: &mut [CpuArg<'_>]| values::<E, T>(&for_body, degree, &before, params, args);
    let (drawing, last) = (draw::turns::<E>(degree, for_turns.drawn.as_ref()), values_turns::<E>(&for_turns));
    KernelSpec::new("sumcheck_finish", variant, bindings, body, source)
        .threads(threads::<E>())
        .shared_bytes(shared_bytes::<E>(degree, true))
        .turns(move |params: &Params| drawing(params) + last)
}

/// The last challenge and the values of the tables on the CPU.
fn values<E: DeviceField, T: DeviceField>(
    kind: &Kind,
    degree: usize,
    previous: &Points,
    params: &Params,
    args: &mut [CpuArg<'_>],
) {
    let (tables, rest) = args.split_at_mut(kind.table_bindings());
    let [inputs, partials, state] = &mut rest[usize::from(kind.weighted)..] else {
        unreachable!("the launch checks the number of buffers")
    };
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

/// Turns of the loop over these values.
fn values_turns<E: DeviceField>(kind: &Kind) -> u64 {
    turns::repeat((kind.tables as u64).div_ceil(threads::<E>().into()), turns::mul::<E>())
}

fn finish_cuda<E: DeviceField, T: DeviceField>(kind: &Kind, degree: usize) -> String {
    source::cuda::<E>()
        + &cuda_head::<E, T>(kind, degree, 1)
        + &cuda_ends::<E, T>(kind)
        + evariste_cuda::SUMCHECK_FINISH
}

/// `ends` in CUDA, and what uses it.
fn cuda_ends<E: DeviceField, T: DeviceField>(kind: &Kind) -> String {
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
    text + "}\n" + evariste_cuda::SUMCHECK_VALUES
}

fn finish_wgsl<E: DeviceField, T: DeviceField>(kind: &Kind, degree: usize, int64: bool) -> String {
    wgsl_head::<E, T>(kind, degree, int64) + &wgsl_ends(kind) + evariste_shaders::SUMCHECK_FINISH
}

/// `end_of` in WGSL, and what uses it.
fn wgsl_ends(kind: &Kind) -> String {
    let mut text = String::new();
    let _ = writeln!(text, "const COLUMNS = {}u;\nfn end_of(table: u32, folds: u32, i: u32) -> F {{", kind.tables);
    match kind.is_packed() {
        true => text += "    return tables_lift(table * now.source_stride + i);\n}\n",
        false => {
            text += "    switch table {\n";
            for (table, name) in TABLES[..kind.tables].iter().enumerate() {
                let _ = writeln!(text, "        case {table}u: {{ return {name}_lift(i); }}");
            }
            text += "        default: { return f_zero(); }\n    }\n}\n";
        }
    }
    text + evariste_shaders::SUMCHECK_VALUES
}
