//! Text on the prime field of points below the field of evaluations, in both languages.

use std::fmt::Write;

use evariste_backend::author::{Access, Binding};
use evariste_field::source::list;

use crate::field::FriField;

/// The fields of a tower from the top to the prime field: the name of each, and its degree over the next.
struct Tower {
    names: Vec<String>,
    degrees: Vec<usize>,
}

impl Tower {
    fn of<F: FriField>() -> Self {
        // Degrees over the prime field, from the top.
        let mut sizes: Vec<usize> = F::tower().iter().rev().map(Vec::len).collect();
        sizes.push(1);
        let degrees = sizes.windows(2).map(|pair| pair[0] / pair[1]).collect();
        let name = |level: usize| match level {
            0 => "F".to_owned(),
            1 => "B".to_owned(),
            _ => format!("B{level}"),
        };
        Self { names: (0..sizes.len()).map(name).collect(), degrees }
    }

    fn depth(&self) -> usize {
        self.degrees.len()
    }

    /// A function of a field, such as `b_mul`.
    fn function(&self, level: usize, name: &str) -> String {
        format!("{}_{name}", self.names[level].to_lowercase())
    }

    /// The name of a function of points on a field: without a level at the top.
    fn own(level: usize, name: &str) -> String {
        if level == 0 { format!("f_{name}") } else { format!("f_{name}{level}") }
    }
}

/// `Point`, `point_add`, `point_sub`, `point_mul`, `point_load`, `f_by` and `f_lift` in CUDA.
pub(crate) fn cuda<F: FriField>() -> String {
    let tower = Tower::of::<F>();
    let depth = tower.depth();
    let (point, add, mul) = (&tower.names[depth], tower.function(depth, "add"), tower.function(depth, "mul"));
    let (load, sub) = (tower.function(depth, "load"), tower.function(depth, "sub"));
    let inline = "__device__ __forceinline__";
    let mut text = format!(
        "typedef {point} Point;\n\
         {inline} Point point_add(const Point& x, const Point& y) {{ return {add}(x, y); }}\n\
         {inline} Point point_sub(const Point& x, const Point& y) {{ return {sub}(x, y); }}\n\
         {inline} Point point_mul(const Point& x, const Point& y) {{ return {mul}(x, y); }}\n\
         {inline} Point point_load(const Point* x) {{ return {load}(x); }}\n\
         {inline} {point} {}(const {point}& x, const Point& y) {{ return point_mul(x, y); }}\n\
         {inline} {point} {}(const Point& x) {{ return x; }}\n",
        Tower::own(depth, "by"),
        Tower::own(depth, "lift"),
    );
    for level in (0..depth).rev() {
        let (name, degree) = (&tower.names[level], tower.degrees[level]);
        let [by, lift] = ["by", "lift"].map(|name| [Tower::own(level, name), Tower::own(level + 1, name)]);
        let _ = write!(
            text,
            "{inline} {name} {}(const {name}& x, const Point& y) {{\n    {name} r;\n#pragma unroll\n\
             \x20   for (int i = 0; i < {degree}; i++) r.c[i] = {}(x.c[i], y);\n    return r;\n}}\n\
             {inline} {name} {}(const Point& x) {{\n    {name} r = {}();\n    r.c[0] = {}(x);\n    return r;\n}}\n",
            by[0],
            by[1],
            lift[0],
            tower.function(level, "zero"),
            lift[1],
        );
    }
    text
}

/// The same in WGSL, without `point_load`.
pub(crate) fn wgsl<F: FriField>() -> String {
    let tower = Tower::of::<F>();
    let depth = tower.depth();
    let (point, add, mul) = (&tower.names[depth], tower.function(depth, "add"), tower.function(depth, "mul"));
    let sub = tower.function(depth, "sub");
    let mut text = format!(
        "alias Point = {point};\nfn point_add(x: Point, y: Point) -> Point {{ return {add}(x, y); }}\n\
         fn point_sub(x: Point, y: Point) -> Point {{ return {sub}(x, y); }}\n\
         fn point_mul(x: Point, y: Point) -> Point {{ return {mul}(x, y); }}\n\
         fn {}(x: Point, y: Point) -> Point {{ return point_mul(x, y); }}\n\
         fn {}(x: Point) -> Point {{ return x; }}\n",
        Tower::own(depth, "by"),
        Tower::own(depth, "lift"),
    );
    for level in (0..depth).rev() {
        let (name, degree) = (&tower.names[level], tower.degrees[level]);
        let by = list(degree, |i| format!("{}(x.c{i}, y)", Tower::own(level + 1, "by")));
        let zero = tower.function(level + 1, "zero");
        let lift = list(degree, |i| match i {
            0 => format!("{}(x)", Tower::own(level + 1, "lift")),
            _ => format!("{zero}()"),
        });
        let _ = write!(
            text,
            "fn {}(x: {name}, y: Point) -> {name} {{ return {name}({by}); }}\n\
             fn {}(x: Point) -> {name} {{ return {name}({lift}); }}\n",
            Tower::own(level, "by"),
            Tower::own(level, "lift"),
        );
    }
    text
}

/// `x_load` in WGSL for a binding `x` of elements of the prime field of `limbs` limbs, and `x_store` if it is written.
pub(crate) fn wgsl_accessors(binding: &Binding, limbs: usize) -> String {
    let (name, lanes) = (binding.name, binding.binding_type.bytes() as usize / 4);
    let words = limbs / lanes;
    let mut text = format!("fn {name}_load(i: u32) -> Point {{\n");
    for word in 0..words {
        let _ = writeln!(text, "  let w{word} = {name}_get(i * {words}u + {word}u);");
    }
    let limb = |i: usize| match lanes {
        1 => format!("w{i}"),
        _ => format!("w{}.{}", i / lanes, ["x", "y", "z", "w"][i % lanes]),
    };
    let _ = writeln!(text, "  return Point({});\n}}", list(limbs, limb));
    if binding.access == Access::Write {
        let _ = writeln!(text, "fn {name}_store(i: u32, v: Point) {{");
        for word in 0..words {
            let value = match lanes {
                1 => format!("v.l{word}"),
                _ => format!("vec{lanes}<u32>({})", list(lanes, |lane| format!("v.l{}", word * lanes + lane))),
            };
            let _ = writeln!(text, "  {name}_set(i * {words}u + {word}u, {value});");
        }
        text += "}\n";
    }
    text
}

/// `fold_row` in WGSL, straight on: 2^`log_arity` times a row's value, for the challenge divided by the row's point.
pub(crate) fn wgsl_fold_row(log_arity: u32) -> String {
    let mut text = "fn fold_row(at: u32, challenge: F) -> F {\n  var u = challenge;\n".to_owned();
    let name = |step: u32, j: u32| format!("{}{j}", ["a", "b", "c", "d", "e"][step as usize]);
    for j in 0..1 << log_arity {
        let _ = writeln!(text, "  let a{j} = x_load(at + {j}u);");
    }
    for step in 0..log_arity {
        if step > 0 {
            text += "  u = f_mul(u, u);\n";
        }
        for j in 0..1u32 << (log_arity - 1 - step) {
            let (low, high, out) = (name(step, 2 * j), name(step, 2 * j + 1), name(step + 1, j));
            let difference = format!("f_sub({low}, {high})");
            let difference = match j {
                0 => difference,
                _ => format!("f_by({difference}, points_load(HALVES + {j}u))"),
            };
            let _ = writeln!(text, "  let {out} = f_add(f_add({low}, {high}), f_mul(u, {difference}));");
        }
    }
    text + &format!("  return {};\n}}\n", name(log_arity, 0))
}
