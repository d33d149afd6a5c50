//! Expressions compiled into one kernel: each column is read once, and the result written once, or added up over all rows.

use std::{
    fmt::Write,
    iter,
    sync::{Arc, Mutex, PoisonError},
};

use evariste_backend::{
    Arg, Binding, BindingList, Buffer, CpuArg, Error, Kernel, KernelSpec, Language, Params as KernelParams, Result,
    Secrecy, View, ViewMut, Wiped, parallel, params,
};

use super::{
    THREADS, Vector,
    reduce::{self, Combine, Reduction},
    secrecy_of, tile_threads, variant, wgsl_kernel,
};
use crate::{
    DeviceField, Expression, Mont,
    expression::Step,
    ifma::{self, Combination},
    rows::{Rows, lanes_of},
    source::{self, binding_type, turns},
};

/// Kernels of expressions that a [`Vector`] keeps, the last used first.
const KEPT: usize = 64;

/// Multiplications up to which a kernel has each of them in its text in WGSL. Beyond, one in a loop serves all, with its
/// operands chosen by the loop's counter, since compilers take time and space for each.
const WGSL_MULTIPLICATIONS: usize = 6;

/// The same in CUDA, where beyond it multiplication is a function that is called.
const CUDA_MULTIPLICATIONS: usize = 16;

/// Rows that a CPU thread takes at a time: 16 values of 32 bytes in each fill half of the 256 KiB that it may count on.
const ROWS: usize = 256;

/// Shares of the rows that a CPU thread takes: each makes room for values once.
const PARTS: usize = 4;

macro_rules! names {
    ($($index:literal)*) => {
        [$(concat!("x", $index)),*]
    };
}

/// Names of columns that have a binding of their own.
const COLUMNS: [&str; 32] =
    names!(0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31);

params! {
    pub(super) struct Params {
        len: u32,
    }
}

/// The kernel of an expression with so many columns in bindings of their own.
pub(super) struct Fused<P> {
    digest: [u8; 32],
    direct: usize,
    kernel: Arc<Kernel<P>>,
}

/// Kernels of one kind, the last used first.
pub(super) type Kept<P> = Mutex<Vec<Fused<P>>>;

/// A step whose operands and result are slots, which are used again when their value is not needed any more.
#[derive(Clone, Copy, Debug)]
struct Instruction {
    step: Step,
    target: u32,
}

#[derive(Clone, Debug)]
struct Program {
    instructions: Vec<Instruction>,
    slots: usize,
    /// Indices of the columns that are used.
    columns: Vec<u32>,
    /// Constants that the user gives; the integers follow them.
    constants: usize,
    integers: Vec<i64>,
}

impl Program {
    fn new(expression: &Expression) -> Self {
        let tape = expression.tape();
        let mut last_use: Vec<usize> = (0..tape.steps.len()).collect();
        for (number, step) in tape.steps.iter().enumerate() {
            step.operands().for_each(|operand| last_use[operand as usize] = number);
        }
        let (columns, constants) = (tape.columns(), expression.constants());
        let (mut free, mut slots, mut integers) = (Vec::new(), 0, Vec::new());
        let mut slot_of: Vec<u32> = Vec::with_capacity(tape.steps.len());
        let mut instructions = Vec::with_capacity(tape.steps.len());
        for (number, step) in tape.steps.iter().enumerate() {
            let at = |operand: u32| slot_of[operand as usize];
            let renamed = match *step {
                Step::Column(index) => Step::Column(columns.partition_point(|column| *column < index) as u32),
                Step::Constant(index) => Step::Constant(index),
                Step::Integer(value) => {
                    integers.push(value);
                    Step::Constant((constants + integers.len() - 1) as u32)
                }
                Step::Add(a, b) => Step::Add(at(a), at(b)),
                Step::Sub(a, b) => Step::Sub(at(a), at(b)),
                Step::Mul(a, b) => Step::Mul(at(a), at(b)),
                Step::Neg(a) => Step::Neg(at(a)),
            };
            let mut freed: Vec<u32> = step.operands().filter(|a| last_use[*a as usize] == number).map(at).collect();
            freed.dedup();
            free.extend(freed);
            let target = free.pop().unwrap_or_else(|| {
                slots += 1;
                slots - 1
            });
            slot_of.push(target);
            instructions.push(Instruction { step: renamed, target });
        }
        Self { instructions, slots: slots as usize, columns, constants, integers }
    }

    fn result(&self) -> u32 {
        self.instructions.last().map_or(0, |instruction| instruction.target)
    }

    fn multiplications(&self) -> usize {
        self.instructions.iter().filter(|instruction| matches!(instruction.step, Step::Mul(..))).count()
    }

    /// The statement of an instruction, with `column` and `constant` giving the expressions that load these.
    fn statement(&self, instruction: &Instruction, load: &Load<'_>) -> String {
        let value = match instruction.step {
            Step::Column(index) => (load.column)(index as usize),
            Step::Constant(index) => (load.constant)(index as usize),
            Step::Integer(_) => unreachable!("integers are constants of a program"),
            Step::Add(a, b) => format!("f_add(r{a}, r{b})"),
            Step::Sub(a, b) => format!("f_sub(r{a}, r{b})"),
            Step::Mul(a, b) => format!("{}(r{a}, r{b})", load.mul),
            Step::Neg(a) => format!("f_sub(f_zero(), r{a})"),
        };
        format!("r{} = {value};", instruction.target)
    }

    /// The arithmetic and the value of a row in CUDA: `TERM(i)`, of buffers of the types `INPUTS`.
    fn cuda<F: DeviceField>(&self, direct: usize) -> String {
        let called = self.multiplications() > CUDA_MULTIPLICATIONS;
        let load = Load {
            column: &|index| match index.checked_sub(direct) {
                None => format!("{}[i]", COLUMNS[index]),
                Some(index) => format!("rest[(size_t){index} * params.len + i]"),
            },
            constant: &|index| format!("constants[{index}]"),
            mul: if called { "called_mul" } else { "f_mul" },
        };
        let mut text = source::cuda::<F>();
        if called {
            text += "__device__ __noinline__ F called_mul(F a, F b) {\n    return f_mul(a, b);\n}\n";
        }
        let parameters: String = self.inputs(direct).map(|name| format!(", const F* {name}")).collect();
        let _ = writeln!(text, "__device__ __forceinline__ F row_value(const Params& params, size_t i{parameters}) {{");
        for slot in 0..self.slots {
            let _ = writeln!(text, "    F r{slot};");
        }
        for instruction in &self.instructions {
            let _ = writeln!(text, "    {}", self.statement(instruction, &load));
        }
        // Their types, and the call.
        let types = vec!["F"; self.inputs(direct).count()].join(", ");
        let arguments: String = self.inputs(direct).map(|name| format!(", {name}")).collect();
        let _ = write!(
            text,
            "    return r{};\n}}\n#define INPUTS {types}\n#define TERM(i) row_value(params, i{arguments})\n",
            self.result()
        );
        text
    }

    /// The buffers that the value is computed from: the columns, what else there is of them, and the constants.
    fn inputs(&self, direct: usize) -> impl Iterator<Item = &'static str> {
        let rest = (direct < self.columns.len()).then_some("rest");
        COLUMNS[..direct].iter().copied().chain(rest).chain(["constants"])
    }

    /// The value of a row in WGSL, `term(i)`, after the arithmetic and the accessors.
    fn wgsl(&self, direct: usize) -> String {
        let load = Load {
            column: &|index| match index.checked_sub(direct) {
                None => format!("{}_load(i)", COLUMNS[index]),
                Some(index) => format!("rest_load({index}u * params.len + i)"),
            },
            constant: &|index| format!("constants_load({index}u)"),
            mul: "f_mul",
        };
        let mut text = String::from("fn term(i: u32) -> F {\n");
        for slot in 0..self.slots {
            let _ = writeln!(text, "    var r{slot} = f_zero();");
        }
        let mut rest = self.instructions.as_slice();
        if self.multiplications() > WGSL_MULTIPLICATIONS {
            rest = self.wgsl_loop(&mut text, &load);
        }
        for instruction in rest {
            let _ = writeln!(text, "    {}", self.statement(instruction, &load));
        }
        let _ = writeln!(text, "    return r{};\n}}", self.result());
        text
    }

    /// A loop with one turn for each multiplication. Gives the instructions after the last one.
    fn wgsl_loop(&self, text: &mut String, load: &Load<'_>) -> &[Instruction] {
        let (mut before, mut after) = (String::new(), String::new());
        let (mut rest, mut turn) = (self.instructions.as_slice(), 0);
        let is_product = |instruction: &Instruction| matches!(instruction.step, Step::Mul(..));
        while let Some(at) = rest.iter().position(is_product) {
            let _ = write!(before, "        case {turn}u: {{");
            for instruction in &rest[..at] {
                let _ = write!(before, " {}", self.statement(instruction, load));
            }
            if let Instruction { step: Step::Mul(a, b), target } = rest[at] {
                let _ = writeln!(before, " a = r{a}; b = r{b}; }}");
                let _ = writeln!(after, "        case {turn}u: {{ r{target} = product; }}");
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

    /// Room for the values that one thread has at a time of so many rows.
    fn rows<'a, F: DeviceField>(&self, rows: usize, lanes: Option<&'a ifma::Field>) -> Rows<'a, F> {
        Rows::new(self.slots, ROWS.min(rows), lanes)
    }

    /// Computes the values of `rows` rows from `first` on, at most [`ROWS`]: those of the result's slot.
    fn run<F: DeviceField>(&self, inputs: &Inputs<'_, F>, first: usize, rows: usize, values: &mut Rows<'_, F>) {
        for Instruction { step, target } in &self.instructions {
            let target = *target;
            match *step {
                Step::Column(index) => {
                    let limbs = &inputs.column(index as usize)[first * F::LIMBS..];
                    values.load(rows, target, limbs, F::LIMBS, F::LIMBS);
                }
                Step::Constant(index) => {
                    values.set(target, iter::repeat_n(inputs.constants[index as usize], rows));
                }
                Step::Integer(_) => unreachable!("integers are constants of a program"),
                Step::Add(a, b) => values.combine(rows, target, [a, b], Combination::Sum),
                Step::Sub(a, b) => values.combine(rows, target, [a, b], Combination::Difference),
                Step::Mul(a, b) => values.combine(rows, target, [a, b], Combination::Product),
                Step::Neg(a) => values.negate(rows, target, a),
            }
        }
    }
}

/// How a language loads inputs and multiplies.
struct Load<'a> {
    column: &'a dyn Fn(usize) -> String,
    constant: &'a dyn Fn(usize) -> String,
    mul: &'a str,
}

/// The inputs of a run on the CPU.
struct Inputs<'a, F> {
    direct: Vec<&'a [u32]>,
    rest: &'a [u32],
    rest_limbs: usize,
    constants: Vec<F>,
}

impl<F> Inputs<'_, F> {
    fn column(&self, index: usize) -> &[u32] {
        match self.direct.get(index) {
            Some(column) => column,
            None => &self.rest[(index - self.direct.len()) * self.rest_limbs..],
        }
    }
}

impl<F: DeviceField> Vector<F> {
    /// `out[i]` is the value of the expression in row i of the columns. Columns and constants beyond those that the
    /// expression needs are left alone.
    ///
    /// The kernel is compiled at the first use of an expression, known by its digest; the last 64 are kept. Where a
    /// kernel can bind fewer buffers than there are columns, those too many are first copied into one buffer.
    ///
    /// ```
    /// # fn main() -> Result<(), evariste_backend::Error> {
    /// use ark_bls12_381::Fr;
    /// use evariste_backend::Device;
    /// use evariste_field::{Expression, Mont, Vector};
    ///
    /// let device = Device::best()?;
    /// let [a, b] = [[1u64, 2, 3], [10, 20, 30]].map(|x| device.upload::<Mont<Fr>>(&x.map(Fr::from)));
    /// let (a, b) = (a?, b?);
    /// let mut out = device.alloc(3)?;
    /// let expression = Expression::column(0).pow(3) - Expression::constant(0) * Expression::column(1);
    /// Vector::new(&device).evaluate_expression(&expression, &[&a, &b], &[Fr::from(2)], &mut out)?;
    /// assert_eq!(out.to_vec()?, [1i64 - 20, 8 - 40, 27 - 60].map(Fr::from));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::Length`] if columns or constants are missing or a column has another length than `out`;
    /// [`Error::OutOfMemory`] if the device has no room for the constants; and the errors of [`Vector::add`], for the same
    /// reasons. [`Error::TooLarge`] also for more multiplications than the loops of a
    /// thread may do ([`Limits::loop_turns`](evariste_backend::Limits::loop_turns)): 5,000 over a field of 256 bits on Mesa's
    /// llvmpipe.
    pub fn evaluate_expression<'a>(
        &self,
        expression: &Expression,
        columns: &[impl Into<View<'a, Mont<F>>> + Copy],
        constants: &[F],
        out: impl Into<ViewMut<'a, Mont<F>>>,
    ) -> Result<()> {
        self.launch_rows(expression, columns, constants, out.into())
    }

    /// The value of the expression in every row, in a new vector: [`Vector::evaluate_expression`] without an output to be had
    /// before, at the same cost. There are as many rows as the first column has elements. [`Formula`](crate::Formula) is the same
    /// with the columns in their places.
    ///
    /// # Errors
    /// [`Error::Length`] also if there are no columns, [`Error::OutOfMemory`] also if there is no room for the output; and the
    /// errors of [`Vector::evaluate_expression`], for the same reasons.
    pub fn compute<'a>(
        &self,
        expression: &Expression,
        columns: &[impl Into<View<'a, Mont<F>>> + Copy],
        constants: &[F],
    ) -> Result<Buffer<Mont<F>>> {
        let secrecy = secrecy_of(columns.iter().map(|column| (*column).into()));
        let rows = rows(columns)?.len();
        self.checked_len(rows)?;
        let mut out = self.device.alloc_with(rows, secrecy)?;
        self.launch_rows(expression, columns, constants, out.as_view_mut())?;
        Ok(out)
    }

    /// The sum of the value of the expression over all rows of the columns, of which nothing is written but sums of chunks, and
    /// columns beyond those that have a binding, side by side. There are as many rows as the first column has elements. Columns
    /// and constants beyond those that the expression needs are left alone. Waits for the sum.
    ///
    /// Two halves of a vector are two columns, as other parts of equal lengths are. This is the message of a sumcheck's round about
    /// a product, at 2:
    ///
    /// ```
    /// # fn main() -> Result<(), evariste_backend::Error> {
    /// use ark_bls12_381::Fr;
    /// use evariste_backend::Device;
    /// use evariste_field::{Expression, Mont, Vector};
    ///
    /// let device = Device::best()?;
    /// let [a, b] = [[1u64, 2, 3, 4], [5, 6, 7, 8]].map(|x| device.upload::<Mont<Fr>>(&x.map(Fr::from)));
    /// let (a, b) = (a?, b?);
    /// let [a0, a1, b0, b1] = [0, 1, 2, 3].map(Expression::column);
    /// let product = (&a1 + (&a1 - &a0)) * (&b1 + (&b1 - &b0));
    /// let halves = [a.view(..2)?, a.view(2..)?, b.view(..2)?, b.view(2..)?];
    /// let sum = Vector::new(&device).sum_expression(&product, &halves, &[])?;
    /// assert_eq!(sum, Fr::from(5 * 9 + 6 * 10));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::Length`] if there are no columns, if one that is used has another length than the first, or if columns or constants
    /// are missing; and the errors of [`Vector::evaluate_expression`], for the same reasons.
    pub fn sum_expression<'a>(
        &self,
        expression: &Expression,
        columns: &[impl Into<View<'a, Mont<F>>> + Copy],
        constants: &[F],
    ) -> Result<F> {
        let secrecy = secrecy_of(columns.iter().map(|column| (*column).into()));
        self.value(secrecy, |out| self.launch_sum(expression, columns, constants, out))
    }

    /// `out[0]` = what [`Vector::sum_expression`] gives.
    ///
    /// # Errors
    /// [`Error::Length`] also unless `out` has one element; and the errors of [`Vector::sum_expression`], for the same reasons.
    pub fn sum_expression_to<'a>(
        &self,
        expression: &Expression,
        columns: &[impl Into<View<'a, Mont<F>>> + Copy],
        constants: &[F],
        out: impl Into<ViewMut<'a, Mont<F>>>,
    ) -> Result<()> {
        self.launch_sum(expression, columns, constants, out.into())
    }

    fn launch_rows<'a>(
        &self,
        expression: &Expression,
        columns: &[impl Into<View<'a, Mont<F>>> + Copy],
        constants: &[F],
        out: ViewMut<'_, Mont<F>>,
    ) -> Result<()> {
        let len = self.checked_len(out.len())?;
        let operation = self.operation(expression, columns, constants, out.len(), out.secrecy())?;
        let kernel = self.fused_kernel(&self.kernels.fused, &operation, spec::<F>, &Params { len })?;
        let operands = self.operands(&operation, constants, out.len())?;
        let mut args = operands.args();
        args.push(Arg::write(out));
        // SAFETY: columns and output have `len` elements, and threads touch only those below it; the buffer of further
        // columns has that many for each, and there are as many constants as the program reads.
        unsafe { kernel.launch(self.queue(), len.div_ceil(THREADS).into(), &Params { len }, &mut args) }
    }

    fn launch_sum<'a>(
        &self,
        expression: &Expression,
        columns: &[impl Into<View<'a, Mont<F>>> + Copy],
        constants: &[F],
        out: ViewMut<'_, Mont<F>>,
    ) -> Result<()> {
        out.expect_len("a reduction's output", 1)?;
        let rows = rows(columns)?.len();
        let len = self.checked_len(rows)?;
        let operation = self.operation(expression, columns, constants, rows, out.secrecy())?;
        let least = reduce::Params { len, log_chunk: 0, chunks: len, reversed: 0, weights: 0 };
        let kernel = self.fused_kernel(&self.kernels.fused_sums, &operation, sum_spec::<F>, &least)?;
        let operands = self.operands(&operation, constants, rows)?;
        let params = self.chunking(&kernel, len, 0);
        let launch = |out: ViewMut<'_, Mont<F>>| {
            let mut args = operands.args();
            args.push(Arg::write(out));
            // SAFETY: columns have `len` elements, and chunks lie inside them; the buffer of further columns has that many for
            // each, there are as many constants as the program reads, and the output has a place for each chunk.
            unsafe { kernel.launch(self.queue(), params.chunks.into(), &params, &mut args) }
        };
        if params.chunks == 1 {
            return launch(out);
        }
        let mut sums = self.device.alloc_with(params.chunks as usize, operation.secrecy)?;
        launch(sums.as_view_mut())?;
        self.reduce_level(Reduction::Sum, sums.as_view(), None, None, params.log_chunk, out)
    }

    /// An expression over these columns for so many rows, and an output of some secrecy, once its arguments are checked.
    fn operation<'a>(
        &self,
        expression: &Expression,
        columns: &[impl Into<View<'a, Mont<F>>> + Copy],
        constants: &[F],
        rows: usize,
        out: Secrecy,
    ) -> Result<Operation<'a, F>> {
        let program = Program::new(expression);
        let missing = |what, expected: usize, actual: usize| match actual < expected {
            true => Err(Error::Length { what, expected: expected as u64, actual: actual as u64 }),
            false => Ok(()),
        };
        missing(COLUMNS_OF, program.columns.last().map_or(0, |i| *i as usize + 1), columns.len())?;
        missing("the constants of an expression", program.constants, constants.len())?;
        let used: Vec<View<'a, Mont<F>>> =
            program.columns.iter().map(|index| columns[*index as usize].into()).collect();
        used.iter().try_for_each(|column| column.expect_len("a column of an expression", rows))?;
        let secrecy = Secrecy::of(used.iter().map(View::secrecy).chain([out]));
        // Beside the columns, the constants and the output are bound.
        let bindings = (self.device.info().limits.bindings as usize).saturating_sub(2).clamp(1, COLUMNS.len());
        let direct = if used.len() <= bindings { used.len() } else { bindings - 1 };
        Ok(Operation { digest: expression.digest(), program, direct, columns: used, secrecy })
    }

    /// What its kernel takes beside the columns, on the device.
    fn operands<'o, 'a>(
        &self,
        operation: &'o Operation<'a, F>,
        constants: &[F],
        rows: usize,
    ) -> Result<Operands<'o, 'a, F>> {
        let Operation { program, direct, columns, secrecy, .. } = operation;
        let mut values = constants[..program.constants].to_vec();
        values.extend(program.integers.iter().map(|value| F::from(*value)));
        if values.is_empty() {
            // A kernel binds no empty buffer.
            values.push(F::ZERO);
        }
        let values = self.upload::<Mont<F>>(&values, *secrecy)?;
        let rest = self.packed(&columns[*direct..], rows, *secrecy)?;
        Ok(Operands { direct: &columns[..*direct], rest, values })
    }

    /// The columns one after the other, if there are any.
    fn packed(&self, columns: &[View<'_, Mont<F>>], len: usize, secrecy: Secrecy) -> Result<Option<Buffer<Mont<F>>>> {
        if columns.is_empty() {
            return Ok(None);
        }
        let all = columns.len().saturating_mul(len);
        self.checked_len(all)?;
        let mut packed: Buffer<Mont<F>> = self.device.alloc_with(all.max(1), secrecy)?;
        for (index, column) in columns.iter().enumerate() {
            self.queue().copy(column, packed.view_mut(index * len..(index + 1) * len)?)?;
        }
        Ok(Some(packed))
    }

    /// The kernel of an expression, unless one thread does not fit the device even with the least that is launched.
    fn fused_kernel<P: KernelParams>(
        &self,
        kept: &Kept<P>,
        operation: &Operation<'_, F>,
        spec: impl FnOnce([u8; 32], Program, usize) -> KernelSpec,
        least: &P,
    ) -> Result<Arc<Kernel<P>>> {
        let (digest, direct) = (operation.digest, operation.direct);
        let lock = || kept.lock().unwrap_or_else(PoisonError::into_inner);
        let mut known = lock();
        if let Some(at) = known.iter().position(|fused| fused.digest == digest && fused.direct == direct) {
            known[..=at].rotate_right(1);
            return Ok(Arc::clone(&known[0].kernel));
        }
        drop(known);
        let spec = spec(digest, operation.program.clone(), direct);
        // Compilers would take minutes for a text that is too long to be launched.
        spec.expect_fits(&self.device, least)?;
        let kernel = Arc::new(Kernel::new(&self.device, spec)?);
        let mut known = lock();
        // What goes may be the last of its kind, and give its code back: not under the lock.
        let kept = known.len().min(KEPT - 1);
        let oldest = known.split_off(kept);
        known.insert(0, Fused { digest, direct, kernel: Arc::clone(&kernel) });
        drop(known);
        drop(oldest);
        Ok(kernel)
    }

    /// The kernel of an expression where each column has a binding of its own, for compiling it ahead.
    pub fn expression_kernel(expression: &Expression) -> KernelSpec {
        let program = Program::new(expression);
        let direct = program.columns.len().min(COLUMNS.len() - 1);
        spec::<F>(expression.digest(), program, direct)
    }

    /// The same of its sum over all rows.
    pub fn sum_expression_kernel(expression: &Expression) -> KernelSpec {
        let program = Program::new(expression);
        let direct = program.columns.len().min(COLUMNS.len() - 1);
        sum_spec::<F>(expression.digest(), program, direct)
    }
}

const COLUMNS_OF: &str = "the columns of an expression";

/// The column that tells how many rows there are.
fn rows<'a, F: DeviceField>(columns: &[impl Into<View<'a, Mont<F>>> + Copy]) -> Result<View<'a, Mont<F>>> {
    let missing = Error::Length { what: COLUMNS_OF, expected: 1, actual: 0 };
    columns.first().map(|column| (*column).into()).ok_or(missing)
}

/// An expression over columns.
struct Operation<'a, F: DeviceField> {
    digest: [u8; 32],
    program: Program,
    /// Columns with a binding of their own.
    direct: usize,
    columns: Vec<View<'a, Mont<F>>>,
    secrecy: Secrecy,
}

/// What the kernel of an expression is launched with, but for the output.
struct Operands<'o, 'a, F: DeviceField> {
    direct: &'o [View<'a, Mont<F>>],
    rest: Option<Buffer<Mont<F>>>,
    values: Buffer<Mont<F>>,
}

impl<F: DeviceField> Operands<'_, '_, F> {
    fn args(&self) -> Vec<Arg<'_>> {
        let mut args: Vec<Arg<'_>> = self.direct.iter().map(|column| Arg::read(*column)).collect();
        args.extend(self.rest.iter().map(Arg::read));
        args.push(Arg::read(&self.values));
        args
    }
}

/// The expression kernel in CUDA, after the value of a row.
const CUDA_ROWS: &str = "extern \"C\" __global__ void expression(const Params params, BUFFERS(INPUTS, F)) {
    wait_for_previous();
    size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < params.len) out[i] = TERM(i);
}
";

/// The same in WGSL.
const WGSL_ROWS: &str = "@compute @workgroup_size(THREADS)
fn expression(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
              @builtin(local_invocation_index) thread: u32) {
    let i = (group.x + group.y * groups.x) * THREADS + thread;
    if (i < params.len) {
        out_store(i, term(i));
    }
}
";

impl Program {
    fn bindings<F: DeviceField>(&self, direct: usize) -> (Vec<Binding>, Option<Binding>, Binding, Binding) {
        let word = binding_type::<F>();
        let columns = COLUMNS[..direct].iter().map(|name| Binding::read(name, word)).collect();
        let rest = (direct < self.columns.len()).then(|| Binding::read("rest", word));
        (columns, rest, Binding::read("constants", word), Binding::write("out", word))
    }

    /// Turns of loops that the value of a row takes in WGSL at most.
    fn turns<F: DeviceField>(&self) -> u64 {
        // Each of the two choices of a turn may be a loop to a compiler.
        turns::repeat(self.multiplications() as u64, turns::mul::<F>() + 2)
    }
}

/// What a body for the CPU gets: columns, others that lie behind each other, constants, the output.
type Args<'a, 'm> = (&'a mut [CpuArg<'m>], Option<&'a mut CpuArg<'m>>, &'a mut CpuArg<'m>, &'a mut CpuArg<'m>);

/// The inputs, of columns of `rest_limbs` limbs, and the output.
fn inputs_and_output<'a, F: DeviceField>(
    (columns, rest, constants, out): Args<'a, '_>,
    rest_limbs: usize,
) -> (Inputs<'a, F>, &'a mut [u32]) {
    let inputs = Inputs::<F> {
        direct: columns.iter().map(|column| column.read()).collect(),
        rest: rest.map_or(&[], |rest| rest.read()),
        rest_limbs,
        constants: constants.read::<u32>().chunks_exact(F::LIMBS).map(F::load).collect(),
    };
    (inputs, out.write())
}

fn spec<F: DeviceField>(digest: [u8; 32], program: Program, direct: usize) -> KernelSpec {
    let (bindings, turns, program) = (program.bindings::<F>(direct), program.turns::<F>(), Arc::new(program));
    let (seen, rendered) = (bindings.list(), Arc::clone(&program));
    let source = move |language| match language {
        Language::Cuda => rendered.cuda::<F>(direct) + CUDA_ROWS,
        Language::Wgsl { int64 } => wgsl_kernel::<F>(int64, &seen, &rendered.wgsl(direct), WGSL_ROWS),
    };
    let lanes = lanes_of::<F>();
    let body = move |params: &Params, args: Args<'_, '_>| {
        let limbs = params.len as usize * F::LIMBS;
        let (inputs, out) = inputs_and_output::<F>(args, limbs);
        let each = (params.len as usize).div_ceil(PARTS * rayon::current_num_threads()).max(1);
        let each = each.next_multiple_of(ROWS);
        parallel::chunks(&mut out[..limbs], each * F::LIMBS, &|run, out| {
            let mut values = program.rows(out.len() / F::LIMBS, lanes.as_ref());
            for (first, out) in (run * each..).step_by(ROWS).zip(out.chunks_mut(ROWS * F::LIMBS)) {
                let rows = out.len() / F::LIMBS;
                program.run(&inputs, first, rows, &mut values);
                values.store(rows, program.result(), out, 1);
            }
        });
    };
    KernelSpec::new("expression", variant::<F>(&source::digits(&digest)), bindings, body, source)
        .threads(THREADS)
        .turns(move |_: &Params| turns)
}

/// The kernel `reduce` with the values of an expression for elements.
fn sum_spec<F: DeviceField>(digest: [u8; 32], program: Program, direct: usize) -> KernelSpec {
    let (bindings, term, program) = (program.bindings::<F>(direct), program.turns::<F>(), Arc::new(program));
    let (seen, rendered) = (bindings.list(), Arc::clone(&program));
    let source = move |language| match language {
        Language::Cuda => reduce::cuda::<F>(&rendered.cuda::<F>(direct), Combine::Sum),
        Language::Wgsl { int64 } => reduce::wgsl::<F>(int64, &seen, &rendered.wgsl(direct), Combine::Sum),
    };
    let lanes = lanes_of::<F>();
    let body = move |params: &reduce::Params, args: Args<'_, '_>| {
        let (len, chunks) = (params.len as usize, params.chunks as usize);
        let (inputs, out) = inputs_and_output::<F>(args, len * F::LIMBS);
        // Threads share chunks where these are few.
        let chunk_len = 1usize << params.log_chunk;
        let each = len.div_ceil(PARTS * rayon::current_num_threads()).next_multiple_of(ROWS).clamp(1, chunk_len);
        let parts = chunk_len.div_ceil(each);
        let mut sums = Wiped::from(vec![F::ZERO; chunks * parts]);
        parallel::chunks(&mut sums, 1, &|task, sum| {
            let chunk_end = len.min((task / parts + 1) << params.log_chunk);
            let start = ((task / parts) << params.log_chunk) + task % parts * each;
            let end = chunk_end.min(start + each);
            if start >= end {
                return;
            }
            let mut values = program.rows(end - start, lanes.as_ref());
            for first in (start..end).step_by(ROWS) {
                let rows = ROWS.min(end - first);
                program.run(&inputs, first, rows, &mut values);
                sum[0] += values.sum(rows, program.result());
            }
        });
        let out = out[..chunks * F::LIMBS].chunks_exact_mut(F::LIMBS);
        out.zip(sums.chunks(parts)).for_each(|(out, sums)| sums.iter().sum::<F>().store(out));
    };
    let threads = tile_threads::<F>();
    KernelSpec::new("reduce", variant::<F>(&format!("sum of {}", source::digits(&digest))), bindings, body, source)
        .threads(threads)
        .shared_bytes(source::tile_bytes::<F>(threads))
        .turns(reduce::turns(threads, term, 0))
}
