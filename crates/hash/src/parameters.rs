use evariste_field::DevicePrimeField;

use crate::{
    error::{Error, Result},
    layers::Arity,
};

/// The parameters of a Poseidon2 permutation, and of the sponge and the compression over it.
///
/// [`Poseidon2Parameters::plonky3`] gives published ones, [`Poseidon2Parameters::new`] takes your own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Poseidon2Parameters<F> {
    pub(crate) width: usize,
    pub(crate) alpha: u32,
    pub(crate) initial: Vec<F>,
    pub(crate) partial: Vec<F>,
    pub(crate) terminal: Vec<F>,
    pub(crate) diagonal: Vec<F>,
    pub(crate) rate: usize,
    pub(crate) digest: usize,
    pub(crate) arity: Arity,
}

/// The widths of states.
pub(crate) const WIDTHS: [usize; 5] = [8, 12, 16, 24, 32];

/// The exponents of S-boxes.
const ALPHAS: [u32; 3] = [3, 5, 7];

/// Rounds of a kind, at most.
const MAX_ROUNDS: usize = 256;

impl<F: DevicePrimeField> Poseidon2Parameters<F> {
    /// Makes parameters of a permutation of `diagonal.len()` elements: 8, 12, 16, 24 or 32. An S-box is x^`alpha`.
    /// `initial` and `terminal` are the constants of the full rounds at the start and at the end, round by round;
    /// `partial` has one for each partial round. The matrix of partial rounds is 1 + diag(`diagonal`), with 1 the
    /// matrix of ones. That of full rounds is circ(2·M, M, …, M) with M = circ(2, 3, 1, 1).
    ///
    /// A digest has a third of the elements for widths divisible by 3, half of them otherwise. The rate is the rest.
    ///
    /// # Errors
    /// [`Error::Parameters`] for another width. Also unless `alpha` is 3, 5 or 7 and x^`alpha` a permutation, and
    /// unless there are constants for whole rounds, as many at the start as at the end, and 256 rounds of a kind at
    /// most; and if 1 + diag(`diagonal`) has no inverse. Whether constants and rounds make a secure hash is yours to
    /// know.
    pub fn new(alpha: u32, initial: Vec<F>, partial: Vec<F>, terminal: Vec<F>, diagonal: Vec<F>) -> Result<Self> {
        let refuse = |what, expected, actual: usize| Err(Error::Parameters { what, expected, actual: actual as u64 });
        let width = diagonal.len();
        if !WIDTHS.contains(&width) {
            return refuse("the width of a state", "8, 12, 16, 24 or 32", width);
        }
        if !ALPHAS.contains(&alpha) || is_multiple(F::MODULUS_MINUS_ONE_DIV_TWO.as_ref(), alpha.into()) {
            return refuse("the exponent of the S-box", "3, 5 or 7, and coprime to p − 1", alpha as usize);
        }
        if !initial.len().is_multiple_of(width) || initial.len() > width * MAX_ROUNDS {
            return refuse("the number of constants of full rounds", "a multiple of the width", initial.len());
        }
        if terminal.len() != initial.len() {
            return refuse("the number of constants of full rounds", "the same at start and end", terminal.len());
        }
        if partial.len() > MAX_ROUNDS {
            return refuse("the number of partial rounds", "at most 256", partial.len());
        }
        // The determinant of 1 + diag(d): Π d + Σ of the products without one of them.
        let (product, others) =
            diagonal.iter().fold((F::ONE, F::ZERO), |(product, others), d| (product * d, others * d + product));
        if product + others == F::ZERO {
            return refuse("the rank of the matrix of partial rounds, less than", "the width of a state", width);
        }
        let digest = if width.is_multiple_of(3) { width / 3 } else { width / 2 };
        Ok(Self { width, alpha, initial, partial, terminal, diagonal, rate: width - digest, digest, arity: Arity::Two })
    }

    /// Sets the elements that a sponge overwrites at a time, and those of a digest. A sponge's digest is the first
    /// elements of its state.
    ///
    /// # Errors
    /// [`Error::Parameters`] unless 0 < `digest` ≤ `rate` < width, and two digests fit a state.
    pub fn sponge(mut self, rate: usize, digest: usize) -> Result<Self> {
        if rate >= self.width {
            let (what, expected) = ("the rate of a sponge", "less than the width");
            return Err(Error::Parameters { what, expected, actual: rate as u64 });
        }
        if digest == 0 || digest > rate || 2 * digest > self.width {
            let (what, expected) = ("the length of a digest", "positive, at most the rate and half the width");
            return Err(Error::Parameters { what, expected, actual: digest as u64 });
        }
        (self.rate, self.digest) = (rate, digest);
        Ok(self)
    }

    /// Sets the digests that a compression takes, two unless said. Four are the start of a state that is permuted, if it
    /// has room for them, as in Plonky3's `TruncatedPermutation`. Otherwise the sponge hashes them, as in its
    /// `CompressionFunctionFromHasher`.
    #[must_use]
    pub fn with_arity(mut self, arity: Arity) -> Self {
        self.arity = arity;
        self
    }
}

impl<F> Poseidon2Parameters<F> {
    /// Returns the number of elements of a state.
    pub fn width(&self) -> usize {
        self.width
    }

    /// Returns the number of elements that a sponge overwrites before each permutation.
    pub fn rate(&self) -> usize {
        self.rate
    }

    /// Returns the number of elements of a digest.
    pub fn digest(&self) -> usize {
        self.digest
    }

    /// Whether a compression is one permutation of a state that has room for all digests.
    pub(crate) fn is_truncated(&self) -> bool {
        self.arity.children() * self.digest <= self.width
    }

    /// Returns the zeros that stand for digests behind `count` of them.
    pub(crate) fn missing_elements(&self, count: usize) -> usize {
        self.arity.children().saturating_sub(count) * self.digest
    }

    /// Returns the number of full rounds at the start, which is that at the end.
    pub(crate) fn half(&self) -> usize {
        self.initial.len() / self.width
    }
}

/// Whether `divisor` divides the integer of these little-endian limbs.
pub(crate) fn is_multiple(limbs: &[u64], divisor: u64) -> bool {
    limbs.iter().rev().fold(0, |rest, limb| ((u128::from(rest) << 64 | u128::from(*limb)) % u128::from(divisor)) as u64)
        == 0
}

#[cfg(test)]
mod tests {
    use evariste_field::small::{BabyBear, Goldilocks, KoalaBear};

    use super::*;

    /// With zeros for constants, and an invertible matrix of partial rounds.
    fn zeros<F: DevicePrimeField>(alpha: u32, lens: [usize; 4]) -> Result<Poseidon2Parameters<F>> {
        let [initial, partial, terminal, mut diagonal] = lens.map(|len| vec![F::ZERO; len]);
        diagonal.iter_mut().skip(1).for_each(|d| *d = F::ONE);
        Poseidon2Parameters::new(alpha, initial, partial, terminal, diagonal)
    }

    #[test]
    fn parameters_are_checked() {
        let refused = |result: Result<Poseidon2Parameters<BabyBear>>| matches!(result, Err(Error::Parameters { .. }));
        assert!(zeros::<BabyBear>(7, [64, 13, 64, 16]).is_ok());
        assert!(refused(zeros(7, [64, 13, 64, 15])));
        // 3 and 5 divide p − 1.
        assert!(refused(zeros(3, [64, 13, 64, 16])) && refused(zeros(5, [64, 13, 64, 16])));
        assert!(zeros::<KoalaBear>(3, [64, 13, 64, 16]).is_ok());
        assert!(zeros::<Goldilocks>(7, [0, 0, 0, 8]).is_ok());
        assert!(refused(zeros(9, [64, 13, 64, 16])));
        assert!(refused(zeros(7, [63, 13, 63, 16])));
        assert!(refused(zeros(7, [64, 13, 48, 16])));
        assert!(refused(zeros(7, [64, 257, 64, 16])));
        // Of rank 1; with two zeros; and 1 + Σ 1 / d = 0.
        let singular = [vec![0; 16], [vec![0; 2], vec![3; 14]].concat(), vec![-16; 16]];
        for diagonal in singular {
            let diagonal = diagonal.into_iter().map(BabyBear::from).collect();
            assert!(refused(Poseidon2Parameters::new(7, Vec::new(), Vec::new(), Vec::new(), diagonal)));
        }
        let parameters = zeros::<BabyBear>(7, [64, 13, 64, 16]).unwrap();
        assert!(parameters.clone().sponge(15, 8).is_ok());
        assert!(refused(parameters.clone().sponge(16, 8)));
        assert!(refused(parameters.clone().sponge(8, 0)));
        assert!(refused(parameters.clone().sponge(4, 5)));
        assert!(refused(parameters.sponge(15, 9)));
    }
}
