use crate::method::Method;

/// The choice among the two roots y and −y.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum RootChoice {
    /// The root that the method gives. It is the same on every device; methods differ.
    #[default]
    Any,
    /// The root with `sgn0` = 0 of RFC 9380: its lowest non-zero coefficient is even.
    Even,
    /// The lexicographically smaller root, the highest coefficient first. In a prime field it is at most (p − 1) / 2.
    Smaller,
    /// The lexicographically larger root, as encodings of points have it.
    Larger,
}

impl RootChoice {
    /// All variants.
    pub const ALL: [Self; 4] = [RootChoice::Any, RootChoice::Even, RootChoice::Smaller, RootChoice::Larger];

    /// The parity that programs make.
    pub(crate) fn parity(self) -> u32 {
        u32::from(self == RootChoice::Larger)
    }
}

/// The configuration of a [`Sqrt`](crate::Sqrt).
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct SqrtConfig<F> {
    /// The method in a prime field; `None` is the one that costs least.
    pub method: Option<Method>,
    /// The root that the plan gives.
    pub choice: RootChoice,
    /// Z of [`Sqrt::sqrt_ratio`](crate::Sqrt::sqrt_ratio); `None` is the smallest integer that is a non-residue.
    pub non_residue: Option<F>,
}

impl<F> Default for SqrtConfig<F> {
    fn default() -> Self {
        Self { method: None, choice: RootChoice::Any, non_residue: None }
    }
}

impl<F> SqrtConfig<F> {
    /// Sets [`SqrtConfig::method`]; with `None` the plan chooses.
    #[must_use]
    pub fn method(mut self, method: impl Into<Option<Method>>) -> Self {
        self.method = method.into();
        self
    }

    /// Sets [`SqrtConfig::choice`].
    #[must_use]
    pub fn choice(mut self, choice: RootChoice) -> Self {
        self.choice = choice;
        self
    }

    /// Sets [`SqrtConfig::non_residue`]; with `None` the plan takes the smallest.
    #[must_use]
    pub fn non_residue(mut self, non_residue: impl Into<Option<F>>) -> Self {
        self.non_residue = non_residue.into();
        self
    }
}
