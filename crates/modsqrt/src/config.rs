use evariste_backend::Secrecy;

/// The choice among the two roots y and p − y.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum RootChoice {
    /// The root that the method gives. It is the same on every device.
    #[default]
    Any,
    /// The even one.
    Even,
    /// The smaller one, at most (p − 1) / 2.
    Smaller,
    /// The larger one. The only root of 0 is 0.
    Larger,
}

/// The configuration of [`ModSqrt`](crate::ModSqrt).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct ModSqrtConfig {
    /// The root that the plan gives.
    pub choice: RootChoice,
    /// The secrecy of the primes. With [`Secrecy::Secret`] the device zeroes its copies of them, and the scratch of
    /// every call.
    pub secrecy: Secrecy,
}

impl ModSqrtConfig {
    /// Sets [`ModSqrtConfig::choice`].
    #[must_use]
    pub fn choice(mut self, choice: RootChoice) -> Self {
        self.choice = choice;
        self
    }

    /// Sets [`ModSqrtConfig::secrecy`].
    #[must_use]
    pub fn secrecy(mut self, secrecy: Secrecy) -> Self {
        self.secrecy = secrecy;
        self
    }
}

/// The configuration of [`Jacobi`](crate::Jacobi).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct JacobiConfig {
    /// The secrecy of the moduli. With [`Secrecy::Secret`] the device zeroes its copies of them, and the scratch of
    /// every call.
    pub secrecy: Secrecy,
}

impl JacobiConfig {
    /// Sets [`JacobiConfig::secrecy`].
    #[must_use]
    pub fn secrecy(mut self, secrecy: Secrecy) -> Self {
        self.secrecy = secrecy;
        self
    }
}
