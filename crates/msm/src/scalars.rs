use ark_ff::{BigInteger, PrimeField};
use evariste_backend::{Buffer, HostBuffer, View};
use evariste_field::{Canonical, DevicePrimeField, Mont};
use rayon::prelude::*;

/// Scalars on the host or on the device, from slices, arrays, vectors, buffers and views.
#[derive(Debug)]
#[non_exhaustive]
pub enum Scalars<'a, F: DevicePrimeField> {
    /// On the host.
    Host(&'a [F]),
    /// On the device, in Montgomery form.
    Montgomery(View<'a, Mont<F>>),
    /// On the device, as integers. They may exceed the modulus.
    Canonical(View<'a, Canonical<F>>),
}

impl<F: DevicePrimeField> Clone for Scalars<'_, F> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<F: DevicePrimeField> Copy for Scalars<'_, F> {}

impl<F: DevicePrimeField> Scalars<'_, F> {
    /// Returns the number of scalars.
    pub fn len(&self) -> usize {
        match self {
            Scalars::Host(scalars) => scalars.len(),
            Scalars::Montgomery(scalars) => scalars.len(),
            Scalars::Canonical(scalars) => scalars.len(),
        }
    }

    /// Returns whether there are no scalars.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl<'a, F: DevicePrimeField> From<&'a [F]> for Scalars<'a, F> {
    fn from(scalars: &'a [F]) -> Self {
        Scalars::Host(scalars)
    }
}

impl<'a, F: DevicePrimeField, const N: usize> From<&'a [F; N]> for Scalars<'a, F> {
    fn from(scalars: &'a [F; N]) -> Self {
        Scalars::Host(scalars)
    }
}

impl<'a, F: DevicePrimeField> From<&'a Vec<F>> for Scalars<'a, F> {
    fn from(scalars: &'a Vec<F>) -> Self {
        Scalars::Host(scalars)
    }
}

impl<'a, F: DevicePrimeField> From<&'a Buffer<Mont<F>>> for Scalars<'a, F> {
    fn from(scalars: &'a Buffer<Mont<F>>) -> Self {
        Scalars::Montgomery(scalars.into())
    }
}

impl<'a, F: DevicePrimeField> From<View<'a, Mont<F>>> for Scalars<'a, F> {
    fn from(scalars: View<'a, Mont<F>>) -> Self {
        Scalars::Montgomery(scalars)
    }
}

impl<'a, F: DevicePrimeField> From<&'a Buffer<Canonical<F>>> for Scalars<'a, F> {
    fn from(scalars: &'a Buffer<Canonical<F>>) -> Self {
        Scalars::Canonical(scalars.into())
    }
}

impl<'a, F: DevicePrimeField> From<View<'a, Canonical<F>>> for Scalars<'a, F> {
    fn from(scalars: View<'a, Canonical<F>>) -> Self {
        Scalars::Canonical(scalars)
    }
}

/// The scalars of a call.
pub(crate) enum Input<'a, F: DevicePrimeField> {
    Host(&'a [F]),
    /// In device form, for one sum: empty while pieces of it are on their way.
    Pinned(HostBuffer),
    Montgomery(View<'a, Mont<F>>),
    Canonical(View<'a, Canonical<F>>),
}

impl<'a, F: DevicePrimeField> From<Scalars<'a, F>> for Input<'a, F> {
    fn from(scalars: Scalars<'a, F>) -> Self {
        match scalars {
            Scalars::Host(host) => Self::Host(host),
            Scalars::Montgomery(view) => Self::Montgomery(view),
            Scalars::Canonical(view) => Self::Canonical(view),
        }
    }
}

/// Scalars that are looked at first.
const SAMPLES: usize = 64;

/// Scalars that a thread looks at at a time.
const GRAIN: usize = 1 << 12;

/// Bits of the longest of some scalars or, if it is shorter and `halve` is set, of its opposite. All that the field has
/// if it is not much shorter, which a look at a few scalars tells of most batches.
pub(crate) fn longest<F: PrimeField>(scalars: &[F], halve: bool) -> u32 {
    let all = F::MODULUS_BIT_SIZE;
    let most = all - all / 8;
    let bits = |scalar: &F| {
        let own = scalar.into_bigint().num_bits();
        if own > most && halve { (-*scalar).into_bigint().num_bits() } else { own }
    };
    if scalars.iter().step_by((scalars.len() / SAMPLES).max(1)).any(|scalar| bits(scalar) > most) {
        return all;
    }
    let longest = |scalars: &[F]| scalars.iter().map(bits).max().filter(|bits| *bits <= most);
    scalars.par_chunks(GRAIN).map(longest).try_reduce(|| 0, |a, b| Some(a.max(b))).unwrap_or(all)
}

#[cfg(test)]
mod tests {
    use ark_bls12_381::Fr;
    use ark_ff::{AdditiveGroup, Field};

    use super::*;

    #[test]
    fn long_scalars_are_found_wherever_they_are() {
        let mut scalars = vec![Fr::from(65535); 10_000];
        assert_eq!(longest(&scalars, false), 16);
        scalars[9_999] = -Fr::from(1u64 << 40);
        assert_eq!((longest(&scalars, true), longest(&scalars, false)), (41, 255));
        scalars[77] = Fr::from(2).pow([230]);
        assert_eq!(longest(&scalars, true), 255);
        assert_eq!((longest::<Fr>(&[], true), longest(&[Fr::ZERO], true)), (0, 0));
    }
}
