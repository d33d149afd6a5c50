//! The moduli of a plan: on the host, and what kernels need of them on the device.

use std::fmt;

use crypto_bigint::BoxedUint;
use evariste_backend::{Device, Queue, Secrecy, author::Ready};
use zeroize::Zeroizing;

use crate::{
    error::{Error, Result},
    kernel::Constants,
};

/// Moduli of the same number of limbs.
pub(crate) struct Moduli {
    values: Vec<Zeroizing<BoxedUint>>,
    pub(crate) constants: Constants,
    /// Of the longest one.
    pub(crate) bits: u32,
    /// When all that was uploaded before is on the device, too.
    pub(crate) ready: Ready,
}

impl Moduli {
    /// With `words` for the device, the same number for each modulus.
    pub(crate) fn new<'a>(
        queue: &Queue,
        values: impl Iterator<Item = &'a BoxedUint>,
        words: &[u32],
        secrecy: Secrecy,
    ) -> Result<Self> {
        let values: Vec<_> = values.map(|value| Zeroizing::new(value.clone())).collect();
        let constants = Constants {
            words: queue.upload_with(words, secrecy)?,
            moduli: values.len() as u32,
            stride: (words.len() / values.len()) as u32,
        };
        let bits = values.iter().map(|value| value.bits()).max().unwrap_or(0);
        Ok(Self { values, constants, bits, ready: Ready::behind(queue)? })
    }

    pub(crate) fn len(&self) -> usize {
        self.values.len()
    }

    pub(crate) fn secrecy(&self) -> Secrecy {
        self.constants.words.secrecy()
    }

    /// The modulus where there is one.
    pub(crate) fn one(&self) -> Result<&BoxedUint> {
        match &self.values[..] {
            [one] => Ok(one),
            several => Err(Error::Indices { moduli: several.len() }),
        }
    }

    /// Refuses values that are not below the one modulus.
    pub(crate) fn expect_below(&self, values: &[BoxedUint]) -> Result<()> {
        let modulus = self.one()?;
        values.iter().position(|value| value >= modulus).map_or(Ok(()), |index| Err(Error::NotReduced { index }))
    }

    /// A plan for these without their values, which may be secret.
    pub(crate) fn describe(
        &self,
        f: &mut fmt::Formatter<'_>,
        plan: &str,
        what: &str,
        (device, limbs): (&Device, usize),
    ) -> fmt::Result {
        f.debug_struct(plan)
            .field("device", device)
            .field("limbs", &limbs)
            .field(what, &self.len())
            .finish_non_exhaustive()
    }
}

/// The number of limbs that all moduli have.
///
/// # Errors
/// [`Error::NoModulus`] without a modulus, [`Error::ModulusLimbs`] for another number than the first has.
pub(crate) fn same_limbs(all: impl IntoIterator<Item = usize>) -> Result<usize> {
    let mut all = all.into_iter();
    let expected = all.next().ok_or(Error::NoModulus)?;
    match (1..).zip(all).find(|(_, actual)| *actual != expected) {
        Some((index, actual)) => Err(Error::ModulusLimbs { index, expected, actual }),
        None => Ok(expected),
    }
}
