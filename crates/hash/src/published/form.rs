//! How published parameters are written down.

use evariste_field::DevicePrimeField;

use crate::{layers::Arity, parameters::Poseidon2Parameters};

/// One width of a field.
pub(super) struct Published {
    pub(super) width: usize,
    /// Round constants of the full rounds at the start, row by row.
    pub(super) initial: &'static [u64],
    /// Those of partial rounds.
    pub(super) partial: &'static [u64],
    /// Those of the full rounds at the end.
    pub(super) terminal: &'static [u64],
    pub(super) diagonal: Diagonal,
}

/// The diagonal of the matrix of partial rounds, less the identity's place in it: the matrix is 1 + diag(V), with 1 the
/// matrix of ones.
pub(super) enum Diagonal {
    /// n / 2^e for each pair (n, e).
    Small(&'static [(i64, u32)]),
    /// Integers.
    Words(&'static [u64]),
}

impl Published {
    pub(super) fn parameters<F: DevicePrimeField>(&self, alpha: u32, digest: usize) -> Poseidon2Parameters<F> {
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
            arity: Arity::Two,
        }
    }
}
