//! Expressions compiled into one kernel: it reads each column once, and stores the values or adds them up over all
//! rows.

use std::sync::{Arc, Mutex, PoisonError};

use evariste_backend::{
    Buffer, Error, Result, Secrecy, View, ViewMut,
    author::{Arg, Kernel, KernelSpec, Params as KernelParams},
};
use evariste_expression::Expression;

use super::{
    THREADS, Vector,
    reduce::{self, Reduction},
    secrecy_of,
};
use crate::{element::Mont, field::DeviceField};

mod kernel;

pub(super) use kernel::Params;
use kernel::{COLUMNS, Compiled, spec, sum_spec};

/// Kernels of expressions that a [`Vector`] keeps, the last used first.
const KEPT: usize = 64;

/// The kernel of an expression with `direct` columns in bindings of their own.
pub(super) struct Fused<P> {
    digest: [u8; 32],
    direct: usize,
    kernel: Arc<Kernel<P>>,
}

/// Kernels of one kind, the last used first.
pub(super) type Kept<P> = Mutex<Vec<Fused<P>>>;

impl<F: DeviceField> Vector<F> {
    /// `out[i]` is the value of the expression in row i of the columns. Columns and constants that the expression does
    /// not name are left alone.
    ///
    /// The kernel is compiled at the first use of an expression, known by its digest; a [`Vector`] keeps the last 64.
    /// If a kernel can bind fewer buffers than there are columns, the rest of the columns are first copied into one
    /// buffer.
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
    /// - [`Error::Length`] if columns or constants are missing, or if a column has another length than `out`.
    /// - [`Error::OutOfMemory`] if the device has no room for the constants.
    /// - [`Error::TooLarge`] for more multiplications than the loops of a thread may have
    ///   ([`Limits::loop_iterations`](evariste_backend::Limits::loop_iterations)). Over a field of 256 bits, Mesa's
    ///   llvmpipe allows 5,000.
    /// - The errors [of every operation](Vector#errors).
    pub fn evaluate_expression<'a>(
        &self,
        expression: &Expression,
        columns: &[impl Into<View<'a, Mont<F>>> + Copy],
        constants: &[F],
        out: impl Into<ViewMut<'a, Mont<F>>>,
    ) -> Result<()> {
        self.launch_rows(expression, columns, constants, out.into())
    }

    /// Returns the value of the expression in every row as a new vector, of the length of the first column, at the cost
    /// of [`Vector::evaluate_expression`]. A [`Formula`](crate::Formula) does the same with operators on vectors.
    ///
    /// # Errors
    /// - [`Error::Length`] if there are no columns, if columns or constants are missing, or if a column has another
    ///   length than the first.
    /// - [`Error::OutOfMemory`] if there is no room for the output or the constants.
    /// - [`Error::TooLarge`] for more multiplications than the loops of a thread may have.
    /// - The errors [of every operation](Vector#errors).
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

    /// Sums the expression over all rows without storing its values. The first column has an element for each row.
    /// Columns beyond the binding limit are first copied into one buffer. Columns and constants that the expression
    /// does not name are left alone. Waits for the sum.
    ///
    /// Two halves of a vector are two columns, and so are other parts of equal lengths. This sums a product at 2 in the
    /// first round of a sumcheck:
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
    /// - [`Error::Length`] if there are no columns, if columns or constants are missing, or if a named column has
    ///   another length than the first.
    /// - [`Error::OutOfMemory`] if there is no room for the constants or the sums of chunks.
    /// - [`Error::TooLarge`] for more multiplications than the loops of a thread may have.
    /// - The errors [of every operation](Vector#errors).
    pub fn sum_expression<'a>(
        &self,
        expression: &Expression,
        columns: &[impl Into<View<'a, Mont<F>>> + Copy],
        constants: &[F],
    ) -> Result<F> {
        let secrecy = secrecy_of(columns.iter().map(|column| (*column).into()));
        self.value(secrecy, |out| self.launch_sum(expression, columns, constants, out))
    }

    /// `out[0]` is the value of [`Vector::sum_expression`].
    ///
    /// # Errors
    /// - [`Error::Length`] unless `out` has one element.
    /// - The errors of [`Vector::sum_expression`].
    /// - The errors [of every operation](Vector#errors).
    pub fn sum_expression_into<'a>(
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
        let kernel = self.fused_kernel(&self.kernels.fused, &operation, spec::<F>, &Params::new(len))?;
        let operands = self.operands(&operation, constants, out.len())?;
        let mut args = operands.args();
        args.push(Arg::write(out));
        // SAFETY: columns and output have `len` elements, and threads touch only those below it; the buffer of further
        // columns has `len` for each, and the program reads no further constant.
        unsafe { kernel.launch(self.queue(), len.div_ceil(THREADS).into(), &Params::new(len), &mut args) }
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
            // SAFETY: columns have `len` elements, and chunks lie inside them; the buffer of further columns has that
            // many for each, the program reads no further constant, and the output has a place for each
            // chunk.
            unsafe { kernel.launch(self.queue(), params.chunks.into(), &params, &mut args) }
        };
        if params.chunks == 1 {
            return launch(out);
        }
        let mut sums = self.device.alloc_with(params.chunks as usize, operation.secrecy)?;
        launch(sums.as_view_mut())?;
        self.reduce_level(Reduction::Sum, sums.as_view(), None, None, params.log_chunk, out)
    }

    /// Checks the arguments of an expression over these columns, for `rows` rows and an output of this secrecy.
    fn operation<'a>(
        &self,
        expression: &Expression,
        columns: &[impl Into<View<'a, Mont<F>>> + Copy],
        constants: &[F],
        rows: usize,
        out: Secrecy,
    ) -> Result<Operation<'a, F>> {
        let program = Compiled::new(expression);
        let missing = |what, expected: usize, actual: usize| match actual < expected {
            true => Err(Error::Length { what, expected: expected as u64, actual: actual as u64 }),
            false => Ok(()),
        };
        missing(COLUMNS_OF, program.columns.last().map_or(0, |i| *i as usize + 1), columns.len())?;
        missing("the constants of an expression", program.constants.given(), constants.len())?;
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
        let mut values = constants[..program.constants.given()].to_vec();
        values.extend(program.constants.integers().iter().map(|value| F::from(*value)));
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
        spec: impl FnOnce([u8; 32], Compiled, usize) -> KernelSpec,
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

    /// Returns the kernel of an expression with a binding for each column, for tools that compile it ahead.
    #[doc(hidden)]
    pub fn expression_kernel(expression: &Expression) -> KernelSpec {
        let program = Compiled::new(expression);
        let direct = program.columns.len().min(COLUMNS.len() - 1);
        spec::<F>(expression.digest(), program, direct)
    }

    /// Returns the kernel of its sum over all rows, likewise.
    #[doc(hidden)]
    pub fn sum_expression_kernel(expression: &Expression) -> KernelSpec {
        let program = Compiled::new(expression);
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
    program: Compiled,
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
