//! Published parameters.

use evariste_field::{
    DevicePrimeField,
    small::{BabyBear, Goldilocks, KoalaBear, Mersenne31},
};

use self::form::Published;
use crate::{
    error::{Error, Result},
    parameters::Poseidon2Parameters,
};

mod baby_bear;
mod form;
mod goldilocks;
mod koala_bear;
mod mersenne_31;

fn of_width<F: DevicePrimeField>(
    all: &[Published],
    width: usize,
    alpha: u32,
    digest: usize,
) -> Option<Poseidon2Parameters<F>> {
    all.iter().find(|published| published.width == width).map(|published| published.parameters(alpha, digest))
}

/// A field with published parameters of Poseidon2.
pub trait Poseidon2Field: DevicePrimeField {
    /// Returns the parameters that Plonky3 publishes for states of `width` elements, if it does: 16, 24 and 32 over
    /// BabyBear and KoalaBear, 16 and 24 over Mersenne31, 8, 12 and 16 over Goldilocks. The sponge's digest has 4 elements
    /// over Goldilocks and 8 over the others, and its rate is the rest of the state.
    fn plonky3(width: usize) -> Option<Poseidon2Parameters<Self>>;
}

impl Poseidon2Field for BabyBear {
    fn plonky3(width: usize) -> Option<Poseidon2Parameters<Self>> {
        of_width(&[baby_bear::WIDTH_16, baby_bear::WIDTH_24, baby_bear::WIDTH_32], width, 7, 8)
    }
}

impl Poseidon2Field for KoalaBear {
    fn plonky3(width: usize) -> Option<Poseidon2Parameters<Self>> {
        of_width(&[koala_bear::WIDTH_16, koala_bear::WIDTH_24, koala_bear::WIDTH_32], width, 3, 8)
    }
}

impl Poseidon2Field for Goldilocks {
    fn plonky3(width: usize) -> Option<Poseidon2Parameters<Self>> {
        of_width(&[goldilocks::WIDTH_8, goldilocks::WIDTH_12, goldilocks::WIDTH_16], width, 7, 4)
    }
}

impl Poseidon2Field for Mersenne31 {
    fn plonky3(width: usize) -> Option<Poseidon2Parameters<Self>> {
        of_width(&[mersenne_31::WIDTH_16, mersenne_31::WIDTH_24], width, 5, 8)
    }
}

impl<F: Poseidon2Field> Poseidon2Parameters<F> {
    /// Returns the parameters that Plonky3 publishes ([`Poseidon2Field::plonky3`]).
    ///
    /// # Errors
    /// [`Error::Parameters`] if it publishes none for this width.
    pub fn plonky3(width: usize) -> Result<Self> {
        let expected = "16, 24 or 32, but 16 or 24 over Mersenne31, and 8, 12 or 16 over Goldilocks";
        F::plonky3(width).ok_or(Error::Parameters { what: "the width of a state", expected, actual: width as u64 })
    }
}
