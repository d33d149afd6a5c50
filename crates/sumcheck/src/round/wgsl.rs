//! Rounds in WGSL.

use std::fmt::Write;

use evariste_backend::author::Binding;
use evariste_expression::Text;
use evariste_field::{DeviceField, source};

use super::{Kind, Source, TABLES, Target, group, returned, threads};
use crate::{
    draw,
    program::{Effect, EvaluationPoints, Leaf, Parts, Program},
};

/// What a kernel computes.
pub(super) enum Programs<'a> {
    /// All of a round, or in the tail each point, with the expression in the text once for each point.
    Each(&'a [Program]),
    /// The same with the expression once for all points.
    Parts(&'a Parts),
}

/// A program's text.
type Lines<'a> = Text<'a, Leaf, Effect>;

/// Appends a program in a block of its own.
fn block(lines: &Lines<'_>, text: &mut String) {
    *text += "    {\n";
    lines.wgsl(text);
    *text += "    }\n";
}

/// The expression that loads an input or the weight.
fn input(leaf: Leaf) -> String {
    match leaf {
        Leaf::Source { .. } => unreachable!("tables are loaded from where they are"),
        Leaf::Input(0) => "challenge".into(),
        Leaf::Input(index) => format!("inputs_load({index}u)"),
        Leaf::Weight => "weight".into(),
    }
}

/// The same, and a table's element at the point that is evaluated.
fn at_point(leaf: Leaf) -> String {
    match leaf {
        Leaf::Source { table, .. } => format!("c{table}"),
        other => input(other),
    }
}

/// The columns of a point, in variables `c0`, `c1`, …, from both ends of their lines and the ways between them.
struct Columns<'a> {
    points: &'a EvaluationPoints,
    count: usize,
}

impl Columns<'_> {
    /// The same statement for each.
    fn each(&self, text: &mut String, statement: impl Fn(usize) -> String) {
        (0..self.count).for_each(|t| {
            let _ = writeln!(text, "    {}", statement(t));
        });
    }

    /// Points before infinity.
    fn below_top(&self) -> usize {
        self.points.len() - usize::from(self.points.infinity)
    }

    /// Of them those before 2.
    fn ends(&self) -> usize {
        self.below_top() - self.points.integers.len()
    }

    /// `c0`, … at the first point, and `way0`, …; `pick` is 0's column, or 1's where the launch says so.
    fn declare(&self, text: &mut String, pick: impl Fn(usize) -> String) {
        self.each(text, |t| format!("let way{t} = f_sub(hi{t}, lo{t});"));
        self.each(text, |t| match (self.points.zero, self.points.one) {
            (true, true) => format!("var c{t} = lo{t};"),
            (true, false) => format!("var c{t} = {};", pick(t)),
            (false, _) => format!("var c{t} = hi{t};"),
        });
    }

    /// On to point `p`, from the one before.
    fn step(&self, text: &mut String) {
        let _ = writeln!(text, "    if (p > 0u && p <= {}u) {{", self.ends());
        self.each(text, |t| format!("    c{t} = hi{t};"));
        let _ = writeln!(text, "    }}\n    if (p >= {}u) {{", self.ends());
        self.each(text, |t| format!("    c{t} = f_add(c{t}, way{t});"));
        *text += "    }\n";
    }
}

/// The parameters of the round that is done.
const NOW: &str = "var<private> now: Params;
";

/// `x_lift` in WGSL: what is loaded from binding `x`, as an element of `E`.
pub(crate) fn wgsl_lift<E: DeviceField, T: DeviceField>(binding: &Binding, below: bool) -> String {
    let name = binding.name;
    if !below {
        return format!("fn {name}_lift(i: u32) -> F {{ return {name}_load(i); }}\n");
    }
    let (limbs, lanes) = (T::LIMBS, binding.binding_type.bytes() as usize / 4);
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
fn head<E: DeviceField, T: DeviceField>(kind: &Kind, degree: usize, int64: bool) -> String {
    let mut text = source::wgsl::<E>(int64) + NOW;
    for (binding, below) in kind.sources::<E, T>() {
        if !below {
            text += &source::wgsl_accessors::<E>(&binding);
        }
        text += &wgsl_lift::<E, T>(&binding, below);
    }
    let (eq, [inputs, partials]) = kind.others::<E>();
    text.extend(kind.folded::<E>().iter().chain(&eq).chain([&inputs, &partials]).map(source::wgsl_accessors::<E>));
    text += &source::wgsl_tile::<E>(threads::<E>());
    text += evariste_shaders::sumcheck::SUM;
    if let Some(previous) = &kind.drawn {
        text += &draw::wgsl::<E>(degree, previous);
    }
    text
}

/// A whole kernel in WGSL.
pub(super) fn round<E: DeviceField, T: DeviceField>(
    kind: &Kind,
    degree: usize,
    programs: &Programs<'_>,
    int64: bool,
) -> String {
    let mut text = head::<E, T>(kind, degree, int64);
    text += match kind.drawn {
        Some(_) => {
            "fn challenge_of(thread: u32, chief: bool) -> F {\n    previous_values(thread);\n    \
             return draw(thread, 0u, chief);\n}\n"
        }
        None => "fn challenge_of(thread: u32, chief: bool) -> F { return inputs_load(0u); }\n",
    };
    let points = kind.points.len();
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
    let none = Program::EMPTY;
    let lines = Text {
        program: &none,
        mul: "f_mul",
        leaf: &|leaf| match leaf {
            Leaf::Source { table, part } => {
                let place = kind.place(parts, part, "");
                match kind.source {
                    Source::Packed { .. } => format!("tables_lift({table}u * now.source_stride + {place})"),
                    Source::Separate { .. } => format!("{}_lift({place})", TABLES[table as usize]),
                }
            }
            other => input(other),
        },
        effect: &|effect, slot| match effect {
            Effect::Store { table, part } => {
                let place = kind.place(2, part, "");
                match (kind.target, kind.source) {
                    (Target::InPlace, Source::Separate { .. }) => {
                        format!("{}_store({place}, r{slot});", TABLES[table as usize])
                    }
                    (Target::InPlace, _) => format!("tables_store({table}u * now.source_stride + {place}, r{slot});"),
                    _ => format!("folded_store({table}u * now.target_stride + {place}, r{slot});"),
                }
            }
            Effect::Sum { point } => format!("sums.s{point} = f_add(sums.s{point}, r{slot});"),
        },
        select: &|a, b| format!("pick(r{a}, r{b})"),
    };
    text += "fn pick(a: F, b: F) -> F {\n    if ((now.ones & 2u) != 0u) { return b; }\n    return a;\n}\n";
    text += "fn pair(x: u32, challenge: F, before: Sums) -> Sums {\n    var sums = before;\n";
    if kind.weighted {
        text += "    let weight = weight_of(x);\n";
    }
    match programs {
        Programs::Each(programs) => {
            for program in *programs {
                Text { program, ..lines }.wgsl(&mut text);
            }
        }
        Programs::Parts(parts) => pair_in_parts(kind, parts, &lines, &mut text),
    }
    text + "    return sums;\n}\n" + evariste_shaders::sumcheck::CHUNK + evariste_shaders::sumcheck::ROUND
}

/// The body of `pair` with the expression once for all points. `lines` says how sources are loaded, and folded ones
/// stored.
fn pair_in_parts(kind: &Kind, parts: &Parts, lines: &Lines<'_>, text: &mut String) {
    let columns = Columns { points: &kind.points, count: kind.tables };
    match &parts.ends {
        None => columns.each(text, |t| {
            let [lo, hi] = [0, 1].map(|part| (lines.leaf)(Leaf::Source { table: t as u32, part }));
            format!("let lo{t} = {lo}; let hi{t} = {hi};")
        }),
        Some(program) => {
            columns.each(text, |t| format!("var lo{t} = f_zero(); var hi{t} = f_zero();"));
            let effect = |effect, slot| match effect {
                Effect::Store { table, part } => {
                    let end = ["lo", "hi"][part as usize];
                    format!("{end}{table} = r{slot}; {}", (lines.effect)(effect, slot))
                }
                Effect::Sum { .. } => (lines.effect)(effect, slot),
            };
            block(&Text { program, effect: &effect, ..*lines }, text);
        }
    }
    columns.declare(text, |t| format!("pick(lo{t}, hi{t})"));
    let value = |program: &Program, text: &mut String| {
        let effect = |_, slot| format!("term = r{slot};");
        block(&Text { program, leaf: &at_point, effect: &effect, ..*lines }, text);
    };
    *text += "    var term = f_zero();\n";
    let below_top = columns.below_top();
    if below_top > 0 {
        let _ = writeln!(text, "    for (var p = 0u; p < {below_top}u; p++) {{");
        columns.step(text);
        value(&parts.value, text);
        *text += "    switch p {\n";
        for point in 0..below_top {
            let _ = writeln!(text, "    case {point}u: {{ sums.s{point} = f_add(sums.s{point}, term); }}");
        }
        *text += "    default: {}\n    }\n    }\n";
    }
    if let Some(top) = &parts.top {
        columns.each(text, |t| format!("c{t} = way{t};"));
        value(top, text);
        let _ = writeln!(text, "    sums.s{below_top} = f_add(sums.s{below_top}, term);");
    }
}

/// All rounds that are left in WGSL.
pub(super) fn tail<E: DeviceField, T: DeviceField>(
    kind: &Kind,
    degree: usize,
    programs: &Programs<'_>,
    int64: bool,
) -> String {
    let mut text = head::<E, T>(kind, degree, int64);
    let _ = writeln!(
        text,
        "const POINTS = {}u;\nconst GROUP = {}u;\nconst HIGH = {};",
        kind.points.len(),
        group::<E>(kind.points.len()),
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
    let none = Program::EMPTY;
    let lines = Text {
        program: &none,
        mul: "f_mul",
        leaf: &|leaf| match leaf {
            Leaf::Source { table, part } => {
                let place = match kind.high {
                    true => format!("x + pairs * {part}u"),
                    false => format!("2u * x + {part}u"),
                };
                format!("load_of({table}u, folds, {place})")
            }
            other => input(other),
        },
        effect: &returned,
        select: &|a, b| format!("pick(r{a}, r{b}, at_one != 0u)"),
    };
    match programs {
        Programs::Each(programs) => {
            let multiplications = programs.iter().map(Program::multiplications).sum();
            for (point, program) in programs.iter().enumerate() {
                let _ = writeln!(text, "fn point_{point}(x: u32, pairs: u32, folds: u32, at_one: u32) -> F {{");
                Text { program, ..lines }.wgsl_of(multiplications, &mut text);
                text += "}\n";
            }
            text += "fn point_at(p: u32, x: u32, pairs: u32, folds: u32, at_one: u32) -> F {\n    switch p {\n";
            for point in 0..programs.len() {
                let _ = writeln!(text, "        case {point}u: {{ return point_{point}(x, pairs, folds, at_one); }}");
            }
            text += "        default: { return f_zero(); }\n    }\n}\n";
        }
        Programs::Parts(parts) => {
            text += "fn point_at(point: u32, x: u32, pairs: u32, folds: u32, at_one: u32) -> F {\n";
            let columns = Columns { points: &kind.points, count: kind.tables };
            columns.each(&mut text, |t| {
                let [lo, hi] = [0, 1].map(|part| (lines.leaf)(Leaf::Source { table: t as u32, part }));
                format!("let lo{t} = {lo}; let hi{t} = {hi};")
            });
            columns.declare(&mut text, |t| format!("pick(lo{t}, hi{t}, at_one != 0u)"));
            let value = |program: &Program, text: &mut String| {
                block(&Text { program, leaf: &at_point, ..lines }, text);
            };
            if let Some(top) = &parts.top {
                let _ = writeln!(text, "    if (point == {}u) {{", columns.below_top());
                columns.each(&mut text, |t| format!("c{t} = way{t};"));
                value(top, &mut text);
                text += "    }\n";
            }
            text += "    for (var p = 0u; p <= point; p++) {\n";
            columns.step(&mut text);
            text += "    }\n";
            value(&parts.value, &mut text);
            text += "}\n";
        }
    }
    text + evariste_shaders::sumcheck::VALUES + evariste_shaders::sumcheck::TAIL
}

pub(super) fn finish<E: DeviceField, T: DeviceField>(kind: &Kind, degree: usize, int64: bool) -> String {
    head::<E, T>(kind, degree, int64) + &ends(kind) + evariste_shaders::sumcheck::FINISH
}

/// `end_of` in WGSL, and what uses it.
fn ends(kind: &Kind) -> String {
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
    text + evariste_shaders::sumcheck::VALUES
}
