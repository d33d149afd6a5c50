//! Published parameters.

use evariste_field::{
    DevicePrimeField,
    small::{BabyBear, Goldilocks, KoalaBear},
};

use super::parameters::Poseidon2Parameters;

mod baby_bear;
mod goldilocks;
mod koala_bear;

/// One width of a field.
struct Published {
    width: usize,
    /// Round constants of the full rounds at the start, row by row.
    initial: &'static [u64],
    /// Those of partial rounds.
    partial: &'static [u64],
    /// Those of the full rounds at the end.
    terminal: &'static [u64],
    diagonal: Diagonal,
}

/// The diagonal of the matrix of partial rounds, less the identity's place in it: the matrix is 1 + diag(V), with 1 the
/// matrix of ones.
enum Diagonal {
    /// n / 2^e for each pair (n, e).
    Small(&'static [(i64, u32)]),
    /// Integers.
    Words(&'static [u64]),
}

impl Published {
    fn parameters<F: DevicePrimeField>(&self, alpha: u32, digest: usize) -> Poseidon2Parameters<F> {
        let all = |words: &[u64]| words.iter().map(|word| F::from(*word)).collect();
        let diagonal = match self.diagonal {
            Diagonal::Small(pairs) => pairs.iter().map(|(n, e)| F::from(*n) / F::from(1u64 << e)).collect(),
            Diagonal::Words(words) => all(words),
        };
        Poseidon2Parameters {
            width: self.width,
            alpha,
            initial: all(self.initial),
            partial: all(self.partial),
            terminal: all(self.terminal),
            diagonal,
            rate: self.width - digest,
            digest,
        }
    }
}

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
    /// Returns the parameters that Plonky3 publishes for states of `width` elements, if it does: 16 and 24 over
    /// BabyBear and KoalaBear, 8 and 12 over Goldilocks. The sponge's digest has 8 elements over the first two and 4
    /// over Goldilocks, and its rate is the rest of the state.
    fn plonky3(width: usize) -> Option<Poseidon2Parameters<Self>>;
}

impl Poseidon2Field for BabyBear {
    fn plonky3(width: usize) -> Option<Poseidon2Parameters<Self>> {
        of_width(&[baby_bear::WIDTH_16, baby_bear::WIDTH_24], width, 7, 8)
    }
}

impl Poseidon2Field for KoalaBear {
    fn plonky3(width: usize) -> Option<Poseidon2Parameters<Self>> {
        of_width(&[koala_bear::WIDTH_16, koala_bear::WIDTH_24], width, 3, 8)
    }
}

impl Poseidon2Field for Goldilocks {
    fn plonky3(width: usize) -> Option<Poseidon2Parameters<Self>> {
        of_width(&[goldilocks::WIDTH_8, goldilocks::WIDTH_12], width, 7, 4)
    }
}
