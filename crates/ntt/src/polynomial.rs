//! What transforms are mostly for: products of polynomials, and low-degree extensions.

use std::fmt;

use ark_ff::FftField;
use evariste_backend::{Buffer, Device, Queue, Secrecy, View, ViewMut};
use evariste_field::{DeviceField, Mont};

use crate::{Error, Ntt, Order, Result};

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
/// of order n·2^`log_blowup`.
///
/// ```
/// # fn main() -> Result<(), evariste_ntt::Error> {
/// use ark_bls12_381::Fr;
/// use ark_ff::FftField;
/// use evariste_backend::Device;
/// use evariste_field::Mont;
/// use evariste_ntt::{Extension, Order};
///
/// let device = Device::best()?;
/// let extension = Extension::<Fr>::new(&device, 3, 2)?;
/// let values = device.upload::<Mont<Fr>>(&[Fr::from(5); 8])?;
/// let more = extension.extend(&values, Fr::GENERATOR, Order::Natural)?;
/// assert_eq!(more.to_vec()?, [Fr::from(5); 32]);
/// # Ok(())
/// # }
/// ```
pub struct Extension<F: DeviceField> {
    small: Ntt<F>,
    large: Ntt<F>,
}

impl<F: DeviceField + FftField> Extension<F> {
    /// Plans for 2^`log_n` values and 2^(`log_n` + `log_blowup`).
    ///
    /// # Errors
    /// As [`Ntt::new`].
    pub fn new(device: &Device, log_n: u32, log_blowup: u32) -> Result<Self> {
        let large = Ntt::new(device, log_n.saturating_add(log_blowup))?;
        Ok(Self { small: Ntt::new(device, log_n)?, large })
    }

    /// The same plans on a queue of their own, as [`Ntt::on`].
    #[must_use]
    pub fn on(&self, queue: &Queue) -> Self {
        Self { small: self.small.on(queue), large: self.large.on(queue) }
    }

    /// The values on the coset `generator`·H, |H| = n·2^`log_blowup`, in an order, of the polynomial of degree below n
    /// whose values on the subgroup of order n, in natural order, are `values`; of each polynomial, where there are
    /// several runs of n.
    ///
    /// # Errors
    /// [`Error::Length`], [`Error::TooLarge`], [`Error::ZeroCoset`], [`Error::Device`].
    pub fn extend<'a>(
        &self,
        values: impl Into<View<'a, Mont<F>>>,
        generator: F,
        order: Order,
    ) -> Result<Buffer<Mont<F>>> {
        let values = values.into();
        self.small.device().expect_same("the values of an extension", values.device())?;
        let mut coefficients = values.duplicate_on(self.small.queue())?;
        self.small.inverse(&mut coefficients)?;
        self.evaluate(&coefficients, generator, order)
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
        let device = self.small.device();
        device.expect_same("the coefficients of an extension", coefficients.device())?;
        let (n, size) = (self.small.size(), self.large.size());
        if !coefficients.len().is_multiple_of(n) {
            return Err(Error::Length { expected: n, actual: coefficients.len() });
        }
        let count = coefficients.len() / n;
        let mut values = device.alloc_with(count * size, coefficients.secrecy())?;
        for i in 0..count {
            let values = values.view_mut(i * size..(i + 1) * size)?;
            pad(self.small.queue(), coefficients.view(i * n..(i + 1) * n)?, values)?;
        }
        self.large.coset(generator).output(order).forward(&mut values)?;
        Ok(values)
    }
}

impl<F: DeviceField> fmt::Debug for Extension<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Extension").field("small", &self.small).field("large", &self.large).finish()
    }
}
