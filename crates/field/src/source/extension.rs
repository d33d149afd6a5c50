//! Source text of an extension `F` over a base `B`, whose own text comes before.

use std::fmt::Write;

use super::{constructor, cuda_words, list};
use crate::field::arithmetic::{Arithmetic, Coefficient, Extended, Kind};

/// What differs between the languages in the functions that are rendered for both.
struct Syntax {
    /// The head of a function of this name from `B` to `B`.
    function: fn(&str) -> String,
    /// The start of a declaration of a variable of type `B`.
    variable: &'static str,
    /// An element of `B` in device form, where `B` is the field number `level` of its tower.
    constant: fn(&Arithmetic, usize, &[u32]) -> String,
}

const CUDA: Syntax = Syntax {
    function: |name| format!("__device__ __forceinline__ B {name}(const B& x)"),
    variable: "B",
    constant: |base, _, limbs| format!("B{}", cuda_initialiser(base, limbs)),
};

const WGSL: Syntax = Syntax {
    function: |name| format!("fn {name}(x: B) -> B"),
    variable: "var",
    constant: |base, level, limbs| constructor(base, level, 0, &|i| format!("{}u", limbs[i])),
};

fn cuda_initialiser(field: &Arithmetic, limbs: &[u32]) -> String {
    let parts = match &field.0 {
        Kind::Prime { .. } => cuda_words(limbs),
        Kind::Extension(extended) => {
            let parts = limbs.chunks(extended.base.limbs()).map(|limbs| cuda_initialiser(&extended.base, limbs));
            parts.collect::<Vec<_>>().join(", ")
        }
    };
    format!("{{{{{parts}}}}}")
}

/// The functions that multiply by the constants of the field, and the names under which expressions call them.
struct Multipliers<'a> {
    syntax: &'a Syntax,
    base: &'a Arithmetic,
    /// The number of the base in its tower.
    level: usize,
    /// By the absolute value of a small integer, or the limbs of a constant.
    known: Vec<(Coefficient, String)>,
    text: String,
}

impl<'a> Multipliers<'a> {
    fn new(syntax: &'a Syntax, base: &'a Arithmetic, level: usize) -> Self {
        Self { syntax, base, level, known: Vec::new(), text: String::new() }
    }

    /// `x` times the absolute value of `coefficient`, which is not zero.
    fn times(&mut self, coefficient: &Coefficient, x: &str) -> String {
        let coefficient = match coefficient {
            Coefficient::Small { value: 1, .. } => return x.to_owned(),
            Coefficient::Small { value, .. } => Coefficient::Small { negative: false, value: *value },
            other => other.clone(),
        };
        let name = match self.known.iter().find(|(known, _)| *known == coefficient) {
            Some((_, name)) => name.clone(),
            None => self.declare(coefficient),
        };
        format!("{name}({x})")
    }

    fn declare(&mut self, coefficient: Coefficient) -> String {
        let name = format!("f_times{}", self.known.len());
        let body = match &coefficient {
            // From the highest binary digit down, after the first.
            Coefficient::Small { value, .. } => {
                let mut body = format!("{} r = x;", self.syntax.variable);
                for bit in (0..value.ilog2()).rev() {
                    body += " r = b_add(r, r);";
                    if value >> bit & 1 == 1 {
                        body += " r = b_add(r, x);";
                    }
                }
                body + " return r;"
            }
            Coefficient::General(limbs) => {
                format!("return b_mul(x, {});", (self.syntax.constant)(self.base, self.level, limbs))
            }
            Coefficient::Zero => "return b_zero();".into(),
        };
        let _ = writeln!(self.text, "{} {{ {body} }}", (self.syntax.function)(&name));
        self.known.push((coefficient, name.clone()));
        name
    }

    /// `sum + coefficient · x`, or without `sum` if that is none.
    fn accumulate(&mut self, sum: Option<String>, coefficient: &Coefficient, x: &str) -> Option<String> {
        if *coefficient == Coefficient::Zero {
            return sum;
        }
        let product = self.times(coefficient, x);
        let negative = matches!(coefficient, Coefficient::Small { negative: true, .. });
        let function = if negative { "b_sub" } else { "b_add" };
        match sum {
            None if negative => Some(format!("b_sub(b_zero(), {product})")),
            None => Some(product),
            Some(sum) => Some(format!("{function}({sum}, {product})")),
        }
    }

    /// The coefficients of a ↦ a^q for a = Σ c_i x^i, as expressions of the c_i named by `coefficient`.
    fn frobenius(&mut self, field: &Extended, coefficient: impl Fn(usize) -> String) -> Vec<String> {
        (0..field.frobenius.len())
            .map(|row| {
                let columns = field.frobenius.iter().enumerate();
                let sum = columns.fold(None, |sum, (i, column)| self.accumulate(sum, &column[row], &coefficient(i)));
                sum.unwrap_or_else(|| "b_zero()".into())
            })
            .collect()
    }
}

/// Whether the extension is of degree 2, by a root of −1.
pub(super) fn is_imaginary(field: &Extended) -> bool {
    matches!(&field.reduction[..], [Coefficient::Small { negative: true, value: 1 }, Coefficient::Zero])
}

/// Constants and what depends on them, then `field/extension.cuh`, for the field number `level` of a tower.
pub(super) fn cuda(field: &Extended, level: usize) -> String {
    let degree = field.reduction.len();
    let mut multipliers = Multipliers::new(&CUDA, &field.base, level + 1);
    // Folding x^(n+k) into the lower coefficients: d[k + i] += r_i · d[n + k].
    let mut fold = String::new();
    for (i, coefficient) in field.reduction.iter().enumerate() {
        if let Some(sum) = multipliers.accumulate(Some(format!("low[{i}]")), coefficient, "high")
            && *coefficient != Coefficient::Zero
        {
            let _ = write!(fold, " low[{i}] = {sum};");
        }
    }
    let frobenius = multipliers.frobenius(field, |i| format!("a.c[{i}]")).join(", ");
    format!(
        "#define F_DEGREE {degree}\n#define F_IMAGINARY {}\n#define F_LIMBS {}\n{}#define F_FOLD(low, high){fold}\n\
         #define F_FROBENIUS(a) {frobenius}\n{}",
        u8::from(is_imaginary(field)),
        degree * field.base.limbs(),
        multipliers.text,
        evariste_cuda::field::EXTENSION,
    )
}

/// The whole arithmetic but for inversion.
pub(super) fn wgsl(field: &Extended, level: usize) -> String {
    let n = field.reduction.len();

    let mut multipliers = Multipliers::new(&WGSL, &field.base, level + 1);
    let frobenius = multipliers.frobenius(field, |i| format!("a.c{i}")).join(", ");
    let mul = if n == 2 { mul_quadratic(field, &mut multipliers) } else { mul(field, &mut multipliers) };

    let mut text = format!("struct F {{ {} }}\n", list(n, |i| format!("c{i}: B")));
    text += &format!("fn f_zero() -> F {{ return F({}); }}\n", list(n, |_| "b_zero()".into()));
    let one = list(n, |i| if i == 0 { "b_one()".into() } else { "b_zero()".into() });
    text += &format!("fn f_one() -> F {{ return F({one}); }}\n");
    let zero = (0..n).map(|i| format!("b_is_zero(a.c{i})")).collect::<Vec<_>>().join(" && ");
    text += &format!("fn f_is_zero(a: F) -> bool {{ return {zero}; }}\n");
    for operation in ["add", "sub"] {
        let parts = list(n, |i| format!("b_{operation}(a.c{i}, b.c{i})"));
        text += &format!("fn f_{operation}(a: F, b: F) -> F {{ return F({parts}); }}\n");
    }
    text += &multipliers.text;
    text += &mul;
    text + &format!("fn f_frobenius(a: F) -> F {{ return F({frobenius}); }}\n")
}

/// `f_inverse`. The product of all conjugates of a is the norm, which lies in the base. The product of all but a itself
/// is the cofactor. See Itoh and Tsujii, "A fast algorithm for computing multiplicative inverses in GF(2^m) using
/// normal bases", Information and Computation 78 (1988).
pub(super) fn wgsl_inverse(field: &Extended) -> String {
    let n = field.reduction.len();
    let scaled = list(n, |i| format!("b_mul(cofactor.c{i}, inverse)"));
    format!(
        "fn f_inverse(a: F) -> F {{\n  var conjugate = f_frobenius(a);\n  var cofactor = conjugate;\n  \
         var norm = cofactor;\n  for (var i = 2u; i <= {n}u; i++) {{\n    cofactor = norm;\n    \
         conjugate = f_frobenius(conjugate);\n    norm = f_mul(cofactor, conjugate);\n  }}\n  \
         let inverse = b_inverse(norm.c0);\n  return F({scaled});\n}}\n"
    )
}

/// Three products instead of four, by one multiplication in a loop over rotating operands. Karatsuba and Ofman,
/// "Multiplication of multidigit numbers on automata", Soviet Physics Doklady 7 (1963).
fn mul_quadratic(field: &Extended, multipliers: &mut Multipliers<'_>) -> String {
    let low = multipliers.accumulate(Some("m0".into()), &field.reduction[0], "m1").unwrap_or_default();
    let cross = "b_sub(b_sub(m2, m0), m1)";
    let high = multipliers.accumulate(Some("cross".into()), &field.reduction[1], "m1").unwrap_or_default();
    format!(
        "fn f_mul(a: F, b: F) -> F {{\n  var x0 = a.c0; var x1 = a.c1; var x2 = b_add(a.c0, a.c1);\n  \
         var y0 = b.c0; var y1 = b.c1; var y2 = b_add(b.c0, b.c1);\n  var m0 = x0; var m1 = x0; var m2 = x0;\n  \
         for (var i = 0u; i < 3u; i++) {{\n    m0 = m1; m1 = m2; m2 = b_mul(x0, y0);\n    \
         x0 = x1; x1 = x2; y0 = y1; y1 = y2;\n  }}\n  let cross = {cross};\n  return F({low}, {high});\n}}\n"
    )
}

/// From the highest coefficient of `a` down: t = t · x + a_i · b.
fn mul(field: &Extended, multipliers: &mut Multipliers<'_>) -> String {
    let n = field.reduction.len();
    let top = n - 1;
    let mut text = String::from("fn f_mul(a: F, b: F) -> F {\n");
    for i in 0..n {
        let _ = writeln!(text, "  var a{i} = a.c{i};\n  var t{i} = b_zero();");
    }
    let _ = writeln!(text, "  for (var i = 0u; i < {n}u; i++) {{\n    let high = t{top};");
    for i in (0..n).rev() {
        let product = format!("b_mul(a{top}, b.c{i})");
        let shifted = if i == 0 { product } else { format!("b_add(t{}, {product})", i - 1) };
        let sum = multipliers.accumulate(Some(shifted), &field.reduction[i], "high").unwrap_or_default();
        let _ = writeln!(text, "    t{i} = {sum};");
    }
    let rotate = (1..n).rev().map(|i| format!("a{i} = a{};", i - 1)).collect::<Vec<_>>().join(" ");
    let _ = writeln!(text, "    {rotate}\n  }}\n  return F({});\n}}", list(n, |i| format!("t{i}")));
    text
}
