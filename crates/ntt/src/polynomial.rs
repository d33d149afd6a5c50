//! What transforms are mostly for: products of polynomials, and low-degree extensions.

use std::{
    fmt,
    sync::{Arc, OnceLock},
};

use ark_ff::FftField;
use evariste_backend::{Buffer, Device, Queue, Secrecy, View, ViewMut};
use evariste_field::{DeviceField, Mont};

use crate::{Config, Error, Ntt, Order, Result, reverse_bits, tables::unity};

impl<F: DeviceField + FftField> Ntt<F> {
    /// The product of two polynomials, given by their coefficients from the constant term on, as `a.len() + b.len() − 1`
    /// coefficients; none if one of them has none. Secret if one of them is. Two transforms, a multiplication and a transform back, none of which
    /// reorders.
    ///
    /// # Errors
    /// [`Error::TooLarge`] if the product has more coefficients than [`Ntt::size`], [`Error::Device`].
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
            return Err(Error::TooLarge { expected: self.size().ilog2(), actual: len as u64 });
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
        Ok(values.view(..len)?.duplicate_on(self.queue())?)
    }
}

/// Writes a copy with zeros behind.
fn pad<F: DeviceField>(queue: Option<&Queue>, x: View<'_, Mont<F>>, out: ViewMut<'_, Mont<F>>) -> Result<()> {
    let (mut copy, mut zeros) = out.split_at(x.len())?;
    copy.copy_from_on(queue, x)?;
    Ok(zeros.clear_on(queue)?)
}

/// Low-degree extensions: from the values of a polynomial on the subgroup of order n to those on a coset of the subgroup
/// of order n·2^`log_blowup`, of several polynomials one after the other, or side by side as the columns of matrices.
///
/// In bit-reversed order the values are those on 2^`log_blowup` cosets of the subgroup of order n, one after the other: they take
/// as many transforms of n elements as these are, each of which reads the coefficients and writes where the values belong, so
/// that nothing is padded or moved. Beside the values, the coefficients take memory. In natural order one transform of
/// n·2^`log_blowup` elements is done, behind zeros, which takes more arithmetic and scratch as long as the values.
///
/// ```
/// # fn main() -> Result<(), evariste_ntt::Error> {
/// use ark_ff::FftField;
/// use evariste_backend::Device;
/// use evariste_field::{Mont, small::BabyBear};
/// use evariste_ntt::{Extension, Order};
///
/// let device = Device::best()?;
/// // A trace of 8 rows and 3 columns, by rows; each column becomes the values of its polynomial at 32 points.
/// let extension = Extension::<BabyBear>::new(&device, 3, 2)?.columns(3);
/// let trace = device.upload::<Mont<BabyBear>>(&[BabyBear::from(5); 8 * 3])?;
/// let values = extension.extend(&trace, BabyBear::GENERATOR, Order::BitReversed)?;
/// assert_eq!(values.to_vec()?, [BabyBear::from(5); 32 * 3]);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Extension<F: DeviceField> {
    small: Ntt<F>,
    log_blowup: u32,
    /// For natural order, from the first use on.
    large: Arc<OnceLock<Ntt<F>>>,
    columns: usize,
}

impl<F: DeviceField + FftField> Extension<F> {
    /// Plans for 2^`log_n` values and 2^(`log_n` + `log_blowup`).
    ///
    /// # Errors
    /// As [`Ntt::new`].
    pub fn new(device: &Device, log_n: u32, log_blowup: u32) -> Result<Self> {
        Ntt::<F>::required_bytes(device, log_n.saturating_add(log_blowup), 1, Config::default())?;
        Ok(Self { small: Ntt::new(device, log_n)?, log_blowup, large: Arc::default(), columns: 1 })
    }

    /// Extends the columns of matrices of n rows and `count` columns, stored by rows (unless set, runs of n elements). An element
    /// of an extension field is as many columns as it has coefficients: [`View::flattened`].
    #[must_use]
    pub fn columns(mut self, count: usize) -> Self {
        self.columns = count;
        self
    }

    /// The same plans on a queue of their own, as [`Ntt::on`].
    #[must_use]
    pub fn on(&self, queue: &Queue) -> Self {
        Self { small: self.small.on(queue), ..self.clone() }
    }

    /// The values on the coset `generator`·H, |H| = n·2^`log_blowup`, in an order, of the polynomial of degree below n
    /// whose values on the subgroup of order n, in natural order, are `values`; of each polynomial, where there are
    /// several runs of n or several columns. The values of each run, or the matrix of those of each matrix, follow each other.
    ///
    /// # Errors
    /// [`Error::Length`], [`Error::TooLarge`] for 2^32 values or more, [`Error::ZeroCoset`], [`Error::Device`].
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

    /// [`Extension::extend`] into `out`, which has 2^`log_blowup` times as many elements as `values`.
    ///
    /// # Errors
    /// As [`Extension::extend`]; [`Error::Device`] also for an output of another length. Nothing has been written then, unless
    /// the device failed.
    pub fn extend_into<'a, 'b>(
        &self,
        values: impl Into<View<'a, Mont<F>>>,
        generator: F,
        order: Order,
        out: impl Into<ViewMut<'b, Mont<F>>>,
    ) -> Result<()> {
        let (values, mut out) = (values.into(), out.into());
        let len = self.expect(values, generator)?;
        let device = self.small.device();
        device.expect_same("the output of an extension", out.device())?;
        out.expect_len("the output of an extension", len)?;
        if values.is_empty() {
            return Ok(());
        }
        let secrecy = Secrecy::of([values.secrecy(), out.secrecy()]);
        let mut coefficients = device.alloc_with(values.len(), secrecy)?;
        let inverse = self.small.transform().columns(self.columns);
        // What the values will lie in is free until then.
        inverse.inverse_by(values, coefficients.as_view_mut(), out.view_mut(..values.len())?)?;
        self.evaluate_on(coefficients.as_view(), generator, order, out)
    }

    /// [`Extension::extend`] for polynomials given by their n coefficients, from the constant term on.
    ///
    /// # Errors
    /// As [`Extension::extend`].
    pub fn evaluate<'a>(
        &self,
        coefficients: impl Into<View<'a, Mont<F>>>,
        generator: F,
        order: Order,
    ) -> Result<Buffer<Mont<F>>> {
        let coefficients = coefficients.into();
        let len = self.expect(coefficients, generator)?;
        let mut out = self.small.device().alloc_with(len, coefficients.secrecy())?;
        if !coefficients.is_empty() {
            self.evaluate_on(coefficients, generator, order, out.as_view_mut())?;
        }
        Ok(out)
    }

    /// Checks what is extended, and tells how many values that gives.
    fn expect(&self, given: View<'_, Mont<F>>, generator: F) -> Result<usize> {
        let device = self.small.device();
        device.expect_same("what is extended", given.device())?;
        let unit = self.small.size().saturating_mul(self.columns);
        if if unit == 0 { !given.is_empty() } else { !given.len().is_multiple_of(unit) } {
            return Err(Error::Length { expected: unit, actual: given.len() });
        }
        let len = (given.len() as u64).saturating_mul(1 << self.log_blowup);
        if u32::try_from(len).is_err() {
            return Err(Error::TooLarge { expected: 32, actual: len });
        }
        if generator.is_zero() {
            return Err(Error::ZeroCoset);
        }
        Ok(len as usize)
    }

    fn evaluate_on(
        &self,
        coefficients: View<'_, Mont<F>>,
        generator: F,
        order: Order,
        mut out: ViewMut<'_, Mont<F>>,
    ) -> Result<()> {
        let unit = self.small.size() * self.columns;
        let log_n = self.small.size().ilog2();
        if order == Order::Natural || log_n == 0 {
            for (i, start) in (0..out.len()).step_by(unit << self.log_blowup).enumerate() {
                let values = out.view_mut(start..start + (unit << self.log_blowup))?;
                pad(self.small.queue(), coefficients.view(i * unit..(i + 1) * unit)?, values)?;
            }
            let large = self.large()?.coset(generator).columns(self.columns).output(order);
            return match self.small.queue() {
                Some(queue) => large.on(queue).forward(out),
                None => large.forward(out),
            };
        }
        let root = unity::<F>(log_n + self.log_blowup)?;
        for i in 0..1u32 << self.log_blowup {
            let coset = generator * root.pow([u64::from(reverse_bits(i, self.log_blowup))]);
            let transform = self.small.coset(coset).columns(self.columns).output(Order::BitReversed);
            transform.spread(coefficients, out.view_mut(i as usize * unit..)?, self.log_blowup)?;
        }
        Ok(())
    }

    fn large(&self) -> Result<&Ntt<F>> {
        if let Some(large) = self.large.get() {
            return Ok(large);
        }
        let large = Ntt::new(self.small.device(), self.small.size().ilog2() + self.log_blowup)?;
        Ok(self.large.get_or_init(|| large))
    }
}

impl<F: DeviceField> fmt::Debug for Extension<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { small, log_blowup, columns, .. } = self;
        f.debug_struct("Extension")
            .field("small", small)
            .field("log_blowup", log_blowup)
            .field("columns", columns)
            .finish_non_exhaustive()
    }
}
