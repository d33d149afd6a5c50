//! Rounds in WGSL.

use std::fmt::Write;

use evariste_backend::Binding;
use evariste_field::{DeviceField, source};

use super::{Kind, Source, TABLES, Target, Text, group, threads};
use crate::{draw, program::Program};

/// Multiplications up to which a kernel has each of them in its text. Beyond, one in a loop serves all, with its
/// operands chosen by the loop's counter, since compilers take time and space for each.
const WGSL_MULTIPLICATIONS: usize = 6;

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
    text += evariste_shaders::SUMCHECK_SUM;
    if let Some(previous) = &kind.drawn {
        text += &draw::wgsl::<E>(degree, previous);
    }
    text
}

/// A whole kernel in WGSL.
pub(super) fn round<E: DeviceField, T: DeviceField>(
    kind: &Kind,
    degree: usize,
    program: &Program,
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
pub(super) fn tail<E: DeviceField, T: DeviceField>(
    kind: &Kind,
    degree: usize,
    programs: &[Program],
    int64: bool,
) -> String {
    let mut text = head::<E, T>(kind, degree, int64);
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

pub(super) fn finish<E: DeviceField, T: DeviceField>(kind: &Kind, degree: usize, int64: bool) -> String {
    head::<E, T>(kind, degree, int64) + &ends(kind) + evariste_shaders::SUMCHECK_FINISH
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
    text + evariste_shaders::SUMCHECK_VALUES
}
