//! Programs in CUDA and WGSL. Slot n is the variable `rn` of type `F`.

use std::fmt::Write;

use crate::program::{Line, Op, Program};

/// Multiplications up to which a kernel has each of them in its text in WGSL. Beyond, one in a loop serves all, with
/// its operands chosen by the loop's counter, since compilers take time and space for each.
const WGSL_MULTIPLICATIONS: usize = 6;

/// The same in CUDA, where beyond it multiplication is a function that is called.
const CUDA_MULTIPLICATIONS: usize = 16;

/// Returns the definition and the name of the function by which CUDA multiplies in a program of `multiplications`
/// multiplications.
pub fn cuda_product(multiplications: usize) -> (&'static str, &'static str) {
    match multiplications > CUDA_MULTIPLICATIONS {
        true => ("__device__ __noinline__ F called_mul(F a, F b) {\n    return f_mul(a, b);\n}\n", "called_mul"),
        false => ("", "f_mul"),
    }
}

/// Names the bindings of up to 32 columns: a prefix and a number.
///
/// ```
/// const NAMES: [&str; 32] = evariste_expression::binding_names!("x");
/// assert_eq!((NAMES[0], NAMES[31]), ("x0", "x31"));
/// ```
#[macro_export]
macro_rules! binding_names {
    ($prefix:literal) => {
        $crate::binding_names!(
            $prefix, 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31
        )
    };
    ($prefix:literal, $($index:literal)*) => {
        [$(concat!($prefix, $index)),*]
    };
}

/// Writes a program in one language.
#[derive(Clone, Copy)]
#[allow(missing_debug_implementations, reason = "it is made of closures")]
pub struct Text<'a, L, E> {
    /// The program.
    pub program: &'a Program<L, E>,
    /// The function that multiplies.
    pub mul: &'a str,
    /// The expression that loads a leaf.
    pub leaf: &'a dyn Fn(L) -> String,
    /// The statement of an effect with a slot.
    pub effect: &'a dyn Fn(E, u32) -> String,
    /// The expression that chooses between two slots.
    pub select: &'a dyn Fn(u32, u32) -> String,
}

impl<L: Copy, E: Copy> Text<'_, L, E> {
    /// Appends the program in CUDA: the slots, then each line.
    pub fn cuda(&self, text: &mut String) {
        for slot in 0..self.program.slots() {
            let _ = writeln!(text, "    F r{slot};");
        }
        self.straight(self.program.lines(), text);
    }

    /// Appends the program in WGSL: the slots, then each line, with products in a loop if there are many.
    pub fn wgsl(&self, text: &mut String) {
        self.wgsl_of(self.program.multiplications(), text);
    }

    /// Appends the program in WGSL as [`Text::wgsl`] does, as one of several programs with `multiplications`
    /// multiplications in all.
    pub fn wgsl_of(&self, multiplications: usize, text: &mut String) {
        for slot in 0..self.program.slots() {
            let _ = writeln!(text, "    var r{slot} = f_zero();");
        }
        let rest = match multiplications > WGSL_MULTIPLICATIONS {
            true => self.product_loop(text),
            false => self.program.lines(),
        };
        self.straight(rest, text);
    }

    fn line(&self, line: &Line<L, E>) -> String {
        match *line {
            Line::Effect { effect, slot } => (self.effect)(effect, slot),
            Line::Set { slot, op } => {
                let value = match op {
                    Op::Leaf(leaf) => (self.leaf)(leaf),
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

    fn straight(&self, lines: &[Line<L, E>], text: &mut String) {
        for line in lines {
            let _ = writeln!(text, "    {}", self.line(line));
        }
    }

    /// Appends a loop in WGSL with one iteration for each multiplication. Returns the lines after the last one.
    fn product_loop(&self, text: &mut String) -> &[Line<L, E>] {
        let (mut before, mut after) = (String::new(), String::new());
        let (mut rest, mut turn) = (self.program.lines(), 0);
        let is_product = |line: &Line<L, E>| matches!(line, Line::Set { op: Op::Mul(..), .. });
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program::Builder;

    /// x^(2^`squarings`), stored.
    fn text(squarings: usize) -> String {
        let mut builder = Builder::<u32, ()>::default();
        let mut value = builder.push(Op::Leaf(0));
        for _ in 0..squarings {
            value = builder.push(Op::Mul(value, value));
        }
        builder.effect((), value);
        let program = builder.finish();
        let mut text = String::new();
        let lines = Text {
            program: &program,
            mul: "f_mul",
            leaf: &|leaf| format!("load({leaf})"),
            effect: &|(), slot| format!("store(r{slot});"),
            select: &|_, _| unreachable!("nothing is selected"),
        };
        lines.wgsl(&mut text);
        text
    }

    #[test]
    fn few_products_are_lines_and_many_are_a_loop() {
        assert_eq!(text(1), "    var r0 = f_zero();\n    r0 = load(0);\n    r0 = f_mul(r0, r0);\n    store(r0);\n");
        let many = text(WGSL_MULTIPLICATIONS + 1);
        assert_eq!(many.matches("f_mul").count(), 1);
        assert!(many.contains("turn < 7u") && many.contains("case 0u: { r0 = load(0); a = r0; b = r0; }"), "{many}");
        assert!(many.ends_with("    }\n    store(r0);\n"), "{many}");
    }

    #[test]
    fn many_products_are_calls_in_cuda() {
        assert_eq!(cuda_product(CUDA_MULTIPLICATIONS), ("", "f_mul"));
        let (definition, name) = cuda_product(CUDA_MULTIPLICATIONS + 1);
        assert!(definition.contains("__noinline__") && definition.contains(name));
    }
}
