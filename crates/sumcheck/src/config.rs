//! How a prover works. Proofs are the same, to the byte, whatever is set here.

/// How the polynomial of a round is computed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Strategy {
    /// The textbook's way: the weight is one more table, and the prover evaluates the round at 0, 1, …, d for the
    /// degree d. If the field has no element for one degree more than the expression's, a weighted sum is computed as
    /// by [`Strategy::SplitEq`].
    Textbook,
    /// As [`Strategy::Textbook`], but the value at 1 follows from the value at 0 and from the claim.
    FromClaim,
    /// The weight is never a table. Its factors for two groups of variables are, of about 2^(n/2) elements, and the
    /// factor of the round's variable is left out (Gruen). The value at infinity replaces the value at d, and the value
    /// at 1 follows from the claim.
    SplitEq,
    /// As [`Strategy::SplitEq`]; in the first round of a zero-check the value at 0 is known to be 0.
    #[default]
    ZeroCheck,
}

/// Where the challenges of a proof are drawn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Challenge {
    /// On the device, by the kernel of the next round, so that the host reads a whole proof at once. This takes a proof
    /// of all rounds by [`Strategy::SplitEq`] or [`Strategy::ZeroCheck`], the
    /// [`Blake3Transcript`](crate::Blake3Transcript), and a prime of up to 384 bits. Otherwise challenges are drawn on
    /// the host.
    #[default]
    Device,
    /// On the host, which reads the sums of each round.
    Host,
}

/// How a [`Sumcheck`](crate::Sumcheck) proves.
///
/// ```
/// use evariste_sumcheck::{Challenge, SumcheckConfig};
///
/// let config = SumcheckConfig::default().challenge(Challenge::Host).check(true);
/// assert!(config.check);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SumcheckConfig {
    /// How the polynomial of a round is computed.
    pub strategy: Strategy,
    /// Where challenges are drawn.
    pub challenge: Challenge,
    /// Whether the prover compares the claim with the sum before the first round.
    pub check: bool,
}

impl SumcheckConfig {
    /// Sets how the polynomial of a round is computed.
    #[must_use]
    pub fn strategy(mut self, strategy: Strategy) -> Self {
        self.strategy = strategy;
        self
    }

    /// Sets where challenges are drawn.
    #[must_use]
    pub fn challenge(mut self, challenge: Challenge) -> Self {
        self.challenge = challenge;
        self
    }

    /// Sets whether the prover compares the claim with the sum before the first round.
    #[must_use]
    pub fn check(mut self, check: bool) -> Self {
        self.check = check;
        self
    }
}
