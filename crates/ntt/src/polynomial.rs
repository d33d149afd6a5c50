//! Products of polynomials and low-degree extensions.

use std::{fmt, sync::Arc};

use ark_ff::FftField;
use evariste_backend::{Buffer, Error as DeviceError, Queue, Secrecy, View, ViewMut, author::Lazy};
use evariste_field::{DeviceField, Mont};

use crate::{
    config::NttConfig,
    error::{Error, Result},
    layout::Direction,
    order::{Order, reverse_bits},
    plan::Ntt,
    tables::unity,
    transform::{PassBuffers, Run},
};

mod pinned;

impl<F: DeviceField + FftField> Ntt<F> {
    /// Multiplies two polynomials, given by their coefficients from the constant term on. The product has
    /// `a.len() + b.len() − 1` coefficients, or none if a factor has none. It is secret if a factor is. The cost is two
    /// transforms, a multiplication and an inverse transform, all without reordering.
    ///
    /// # Errors
    /// - [`Error::TooLarge`] if the product has more coefficients than [`Ntt::size`].
    /// - [`Error::Device`] if a factor lies on another device, or if the device fails.
    /// - [`Error::Device`] if memory for two vectors of [`Ntt::size`] elements, their scratch and the product is
    ///   exhausted.
    pub fn product<'a>(
        &self,
        a: impl Into<View<'a, Mont<F>>>,
        b: impl Into<View<'a, Mont<F>>>,
    ) -> Result<Buffer<Mont<F>>> {
        let (a, b) = (a.into(), b.into());
        for factor in [a, b] {
            self.device().expect_same("a factor", factor.device())?;
        }
        if a.is_empty() || b.is_empty() {
            return Ok(self.device().alloc(0)?);
        }
        let len = a.len() + b.len() - 1;
        if len > self.size() {
            return Err(Error::TooLarge { expected: self.size() as u64, actual: len as u64 });
        }
        let secrecy = Secrecy::of([a.secrecy(), b.secrecy()]);
        let evaluate = |factor| -> Result<_> {
            let mut values = self.device().alloc_with(self.size(), secrecy)?;
            pad(self.queue(), factor, values.as_view_mut())?;
            self.transform().output(Order::BitReversed).forward(&mut values)?;
            Ok(values)
        };
        let (mut values, others) = (evaluate(a)?, evaluate(b)?);
        self.vector().mul_assign(&mut values, &others)?;
        self.transform().input(Order::BitReversed).inverse(&mut values)?;
        Ok(self.queue().duplicate(values.view(..len)?)?)
    }
}

/// Writes a copy with zeros behind.
fn pad<F: DeviceField>(queue: &Queue, x: View<'_, Mont<F>>, out: ViewMut<'_, Mont<F>>) -> Result<()> {
    let (mut copy, mut zeros) = out.split_at(x.len())?;
    queue.copy(x, &mut copy)?;
    Ok(queue.clear(&mut zeros)?)
}

/// log₂ of the most cosets transformed one after the other: a plan keeps the powers of this number.
const MAX_LOG_COSETS: u32 = 4;

/// Elements from which on more than two cosets are done so: below, launches take longer than what they save.
const MIN_COSET_LEN: usize = 1 << 10;

/// How values are computed from coefficients, with everything that it takes.
enum Evaluation<'a, F: DeviceField> {
    /// Coset by coset.
    Cosets(Vec<Run<'a, F>>),
    /// By one transform behind zeros, with its scratch.
    Whole(Option<Run<'a, F>>, Option<Buffer<Mont<F>>>),
}

/// A plan for low-degree extensions. It takes the values of a polynomial on the subgroup of order n to its values on a
/// coset of the subgroup of order n·2^`log_blowup`. Several polynomials lie one after the other, or side by side as the
/// columns of matrices.
///
/// In bit-reversed order the values form 2^`log_blowup` blocks, one for each coset of the subgroup of order n. A
/// transform of n elements computes each block from the coefficients and writes it to its place: nothing is padded or
/// moved. Only the coefficients take further memory.
///
/// In natural order, for blow-ups above 16, and for a few hundred elements, one transform of n·2^`log_blowup` elements
/// works on coefficients padded with zeros. This takes more arithmetic, and in natural order scratch of the size of the
/// values. Its plan is made at the first use.
///
/// ```
/// # fn main() -> Result<(), evariste_ntt::Error> {
/// use ark_ff::FftField;
/// use evariste_backend::Device;
/// use evariste_field::{Mont, small::BabyBear};
/// use evariste_ntt::{LowDegreeExtension, Order};
///
/// let device = Device::best()?;
/// // A trace of 8 rows and 3 columns, by rows; each column becomes the values of its polynomial at 32 points.
/// let extension = LowDegreeExtension::<BabyBear>::new(&device, 3, 2)?.columns(3);
/// let trace = device.upload::<Mont<BabyBear>>(&[BabyBear::from(5); 8 * 3])?;
/// let values = extension.extend(&trace, BabyBear::GENERATOR, Order::BitReversed)?;
/// assert_eq!(values.to_vec()?, [BabyBear::from(5); 32 * 3]);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct LowDegreeExtension<F: DeviceField> {
    small: Ntt<F>,
    log_blowup: u32,
    /// Of all values at once: for natural order, for many cosets of few elements, and for single values, from the first
    /// such use on.
    large: Arc<Lazy<Ntt<F>>>,
    config: NttConfig,
    columns: usize,
}

impl<F: DeviceField + FftField> LowDegreeExtension<F> {
    /// Makes a plan that extends 2^`log_n` values to 2^(`log_n` + `log_blowup`), on a queue; `&device` stands for its
    /// default queue.
    ///
    /// # Errors
    /// - [`Error::TwoAdicity`] if the field has no root of unity of order 2^(`log_n` + `log_blowup`).
    /// - [`Error::TooLarge`] if that sum is above 31.
    /// - [`Error::Device`] if the tables for 2^`log_n` elements do not fit the device's memory, if a kernel does not
    ///   compile, or if the device fails.
    pub fn new(queue: impl Into<Queue>, log_n: u32, log_blowup: u32) -> Result<Self> {
        Self::with_config(queue, log_n, log_blowup, NttConfig::default())
    }

    /// Makes a plan as [`LowDegreeExtension::new`] does. `config` is that of its transforms of 2^`log_n` elements, and
    /// of those of 2^(`log_n` + `log_blowup`) if they are needed.
    ///
    /// # Errors
    /// Fails under the conditions of [`LowDegreeExtension::new`].
    pub fn with_config(queue: impl Into<Queue>, log_n: u32, log_blowup: u32, config: NttConfig) -> Result<Self> {
        let queue = queue.into();
        Ntt::<F>::required_bytes(queue.device(), log_n.saturating_add(log_blowup), 1, config)?;
        let small = Ntt::with_config(queue, log_n, config)?;
        Ok(Self { small, log_blowup, large: Arc::default(), config, columns: 1 })
    }

    /// Extends the columns of matrices of n rows and `count` columns, stored by rows; the default is runs of n
    /// elements. An extension-field element of d coefficients is d columns of [`View::flattened`].
    #[must_use]
    pub fn columns(mut self, count: usize) -> Self {
        self.columns = count;
        self
    }

    /// Returns the same plan on another queue of its device.
    #[must_use]
    pub fn on(&self, queue: &Queue) -> Self {
        Self { small: self.small.on(queue), ..self.clone() }
    }

    /// Compiles the kernels of extensions to an order, side by side, and computes the tables of the coset of
    /// `generator`. Later calls compile nothing, except the first extension of a few hundred elements.
    ///
    /// # Errors
    /// [`Error::ZeroCoset`] if `generator` is 0; [`Error::Device`] if memory is exhausted, if a kernel does not
    /// compile, or if the device fails.
    pub fn prepare(&self, generator: F, order: Order) -> Result<()> {
        let columns = self.columns;
        self.small.transform().columns(columns).prepare()?;
        if order == Order::BitReversed && self.small.size() > 1 && self.log_blowup <= MAX_LOG_COSETS {
            let cosets = (0..1u32 << self.log_blowup).map(|i| self.coset(generator, i));
            return cosets
                .into_iter()
                .try_for_each(|coset| self.small.coset(coset?).columns(columns).output(Order::BitReversed).prepare());
        }
        self.large()?.coset(generator).columns(columns).output(order).prepare()
    }

    /// The generator of the `i`-th coset of the small subgroup, in the order of blocks of values.
    fn coset(&self, generator: F, i: u32) -> Result<F> {
        let root = unity::<F>(self.small.size().ilog2() + self.log_blowup)?;
        Ok(generator * root.pow([u64::from(reverse_bits(i, self.log_blowup))]))
    }

    /// Extends polynomials of degree below n. `values` are their values on the subgroup of order n, in natural order.
    /// The result is their values on the coset `generator`·H, |H| = n·2^`log_blowup`, in `order`. The results of runs,
    /// or of matrices, follow each other.
    ///
    /// # Errors
    /// - [`Error::TooLarge`] for 2^32 results or more.
    /// - [`Error::ZeroCoset`] if `generator` is 0.
    /// - [`Error::Device`] unless the length is a multiple of n, times the number of columns.
    /// - [`Error::Device`] if the values lie on another device, or if memory is exhausted.
    /// - [`Error::Device`] if a kernel does not compile at its first use, or if the device fails.
    pub fn extend<'a>(
        &self,
        values: impl Into<View<'a, Mont<F>>>,
        generator: F,
        order: Order,
    ) -> Result<Buffer<Mont<F>>> {
        let values = values.into();
        let len = self.expect(values, generator)?;
        let mut out = self.small.device().alloc_with(len, values.secrecy())?;
        self.extend_into(values, generator, order, &mut out)?;
        Ok(out)
    }

    /// Extends polynomials as [`LowDegreeExtension::extend`] does, into `out`, which has 2^`log_blowup` times the
    /// length of `values`.
    ///
    /// # Errors
    /// [`Error::Device`] if `out` has another length. Otherwise it fails under the conditions of
    /// [`LowDegreeExtension::extend`]. Nothing is written then, unless the device failed.
    pub fn extend_into<'a, 'b>(
        &self,
        values: impl Into<View<'a, Mont<F>>>,
        generator: F,
        order: Order,
        out: impl Into<ViewMut<'b, Mont<F>>>,
    ) -> Result<()> {
        let (values, mut out) = (values.into(), out.into());
        self.expect_out(self.expect(values, generator)?, values, &out)?;
        let device = self.small.device();
        if values.is_empty() {
            return Ok(());
        }
        let secrecy = Secrecy::of([values.secrecy(), out.secrecy()]);
        let mut coefficients = device.alloc_with(values.len(), secrecy)?;
        let inverse = self.small.transform().columns(self.columns).ready(values, Direction::Inverse, Some(0))?;
        let evaluation = self.ready(values, out.as_view(), secrecy, generator, order)?;
        match inverse {
            None => self.small.queue().copy(values, &mut coefficients)?,
            Some(inverse) => {
                // What the values will lie in is free until then.
                let scratch = Some(out.view_mut(..values.len())?);
                let data = coefficients.as_view_mut();
                inverse.launch_all(values.len(), PassBuffers { source: Some(values), data, scratch })?;
            }
        }
        self.evaluate_by(evaluation, coefficients.as_view(), out)
    }

    /// Evaluates polynomials on the coset, as [`LowDegreeExtension::extend`] does, from their n coefficients, the
    /// constant term first.
    ///
    /// # Errors
    /// Fails under the conditions of [`LowDegreeExtension::extend`].
    pub fn evaluate<'a>(
        &self,
        coefficients: impl Into<View<'a, Mont<F>>>,
        generator: F,
        order: Order,
    ) -> Result<Buffer<Mont<F>>> {
        let coefficients = coefficients.into();
        let len = self.expect(coefficients, generator)?;
        let mut out = self.small.device().alloc_with(len, coefficients.secrecy())?;
        self.evaluate_into(coefficients, generator, order, &mut out)?;
        Ok(out)
    }

    /// Evaluates polynomials as [`LowDegreeExtension::evaluate`] does, into `out`.
    ///
    /// # Errors
    /// Fails under the conditions of [`LowDegreeExtension::extend_into`].
    pub fn evaluate_into<'a, 'b>(
        &self,
        coefficients: impl Into<View<'a, Mont<F>>>,
        generator: F,
        order: Order,
        out: impl Into<ViewMut<'b, Mont<F>>>,
    ) -> Result<()> {
        let (coefficients, out) = (coefficients.into(), out.into());
        self.expect_out(self.expect(coefficients, generator)?, coefficients, &out)?;
        if coefficients.is_empty() {
            return Ok(());
        }
        let secrecy = Secrecy::of([coefficients.secrecy(), out.secrecy()]);
        let evaluation = self.ready(coefficients, out.as_view(), secrecy, generator, order)?;
        self.evaluate_by(evaluation, coefficients, out)
    }

    fn expect_out(&self, len: usize, given: View<'_, Mont<F>>, out: &ViewMut<'_, Mont<F>>) -> Result<()> {
        const OUTPUT: &str = "the output of an extension";

        self.small.device().expect_same(OUTPUT, out.device())?;
        out.expect_len(OUTPUT, len)?;
        Ok(given.secrecy().expect_to(out.secrecy(), "extension", ["what is extended", OUTPUT])?)
    }

    /// Checks what is extended, and tells how many values that gives.
    fn expect(&self, given: View<'_, Mont<F>>, generator: F) -> Result<usize> {
        let device = self.small.device();
        device.expect_same("the queue of an extension", self.small.queue().device())?;
        device.expect_same("what is extended", given.device())?;
        let unit = self.small.size().saturating_mul(self.columns);
        if if unit == 0 { !given.is_empty() } else { !given.len().is_multiple_of(unit) } {
            return Err(DeviceError::length("what is extended, a multiple of", unit, given.len()).into());
        }
        let len = (given.len() as u64).saturating_mul(1 << self.log_blowup);
        if u32::try_from(len).is_err() {
            return Err(Error::TooLarge { expected: u32::MAX.into(), actual: len });
        }
        if generator.is_zero() {
            return Err(Error::ZeroCoset);
        }
        Ok(len as usize)
    }

    /// Prepares the evaluation of polynomials with the coefficients `given`, so that no launch fails while others are
    /// queued.
    fn ready(
        &self,
        given: View<'_, Mont<F>>,
        out: View<'_, Mont<F>>,
        secrecy: Secrecy,
        generator: F,
        order: Order,
    ) -> Result<Evaluation<'_, F>> {
        let (log_n, log_blowup) = (self.small.size().ilog2(), self.log_blowup);
        let few = log_blowup <= 1 || log_blowup <= MAX_LOG_COSETS && given.len() >= MIN_COSET_LEN;
        if order == Order::BitReversed && log_n > 0 && few {
            let run = |i: u32| {
                let transform =
                    self.small.coset(self.coset(generator, i)?).columns(self.columns).output(Order::BitReversed);
                transform.ready(given, Direction::Forward, Some(log_blowup))
            };
            let runs = (0..1u32 << log_blowup).map(run).collect::<Result<Option<Vec<_>>>>()?;
            return Ok(Evaluation::Cosets(runs.unwrap_or_default()));
        }
        let transform = self.large()?.coset(generator).columns(self.columns).output(order);
        let run = transform.clone().on(self.small.queue()).ready(out, Direction::Forward, None)?;
        let scratch = run.as_ref().map(|run| run.scratch(out.len(), secrecy)).transpose()?.flatten();
        Ok(Evaluation::Whole(run, scratch))
    }

    fn evaluate_by(
        &self,
        evaluation: Evaluation<'_, F>,
        coefficients: View<'_, Mont<F>>,
        mut out: ViewMut<'_, Mont<F>>,
    ) -> Result<()> {
        let unit = self.small.size() * self.columns;
        match evaluation {
            Evaluation::Cosets(runs) => runs.iter().enumerate().try_for_each(|(i, run)| {
                let data = out.view_mut(i * unit..)?;
                run.launch_all(coefficients.len(), PassBuffers { source: Some(coefficients), data, scratch: None })
            }),
            Evaluation::Whole(run, mut scratch) => {
                for (i, start) in (0..out.len()).step_by(unit << self.log_blowup).enumerate() {
                    let values = out.view_mut(start..start + (unit << self.log_blowup))?;
                    pad(self.small.queue(), coefficients.view(i * unit..(i + 1) * unit)?, values)?;
                }
                let Some(run) = run else { return Ok(()) };
                let scratch = scratch.as_mut().map(Buffer::as_view_mut);
                run.launch_all(out.len(), PassBuffers { source: None, data: out, scratch })
            }
        }
    }

    fn large(&self) -> Result<&Ntt<F>> {
        let new =
            || Ntt::with_config(&self.small.shared.queue, self.small.size().ilog2() + self.log_blowup, self.config);
        self.large.get_or_make(new)
    }
}

impl<F: DeviceField> fmt::Debug for LowDegreeExtension<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { small, log_blowup, columns, .. } = self;
        f.debug_struct("LowDegreeExtension")
            .field("small", small)
            .field("log_blowup", log_blowup)
            .field("columns", columns)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use ark_bls12_381::Fr;
    use evariste_backend::Device;

    use super::*;
    use crate::config::Twiddles;

    #[test]
    fn both_plans_of_an_extension_have_its_configuration() {
        let config = NttConfig::default().twiddles(Twiddles::TwoLevel);
        let extension = LowDegreeExtension::<Fr>::with_config(&Device::cpu(), 6, 2, config).unwrap();
        assert_eq!(extension.small.shared.layout.twiddles, Twiddles::TwoLevel);
        assert_eq!(extension.large().unwrap().shared.layout.twiddles, Twiddles::TwoLevel);
        let extension = LowDegreeExtension::<Fr>::new(&Device::cpu(), 6, 2).unwrap();
        assert_eq!(extension.small.shared.layout.twiddles, Twiddles::Stored);
    }
}
