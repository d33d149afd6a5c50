use p3_fri::FriProverError;

/// The errors of proving.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ProverError {
    /// FRI cannot fold matrices of this height.
    #[error(transparent)]
    Parameters(#[from] FriProverError),
    /// A matrix has another number of rows than its domain has points, or than a codeword has.
    #[error("a matrix has {actual} rows, expected {expected}")]
    Rows {
        /// The points.
        expected: usize,
        /// The rows.
        actual: usize,
    },
    /// A commitment is to be opened at points for another number of matrices than it has.
    #[error("points for {actual} matrices, expected {expected}")]
    Points {
        /// The matrices of the commitment.
        expected: usize,
        /// Those that there are points for.
        actual: usize,
    },
    /// There are no matrices to commit to, or to open.
    #[error("there are no matrices")]
    NoMatrices,
    /// [`prove`](crate::prove) does not take an AIR like this.
    #[error("an AIR with {what} is not proved on a device")]
    Unsupported {
        /// What it has.
        what: &'static str,
    },
    /// The device has no memory for a codeword, or failed.
    #[error(transparent)]
    Transform(#[from] evariste_ntt::Error),
    /// The device has no memory for a tree, for quotients or for a commit phase, or failed. A point in the domain of a
    /// matrix cannot be opened.
    #[error(transparent)]
    Fri(#[from] evariste_fri::Error),
}

impl From<evariste_hash::Error> for ProverError {
    fn from(error: evariste_hash::Error) -> Self {
        ProverError::Fri(error.into())
    }
}

impl From<evariste_backend::Error> for ProverError {
    fn from(error: evariste_backend::Error) -> Self {
        ProverError::Fri(error.into())
    }
}
