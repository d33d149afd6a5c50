use evariste_backend::{Distribution, Error as DeviceError};

/// A result of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// An error of a sumcheck. A prover that returns it has proved nothing; it leaves the transcript as it was if it
/// refuses an argument.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A statement or a point has no variable, or more than tables can have.
    #[error("a sumcheck has between 1 and {expected} variables, got {actual}")]
    Variables {
        /// The most variables that there may be.
        expected: usize,
        /// The number of variables given.
        actual: usize,
    },
    /// The expression depends on no table, or its degree is too large.
    #[error("the degree of an expression lies between 1 and {expected}, got {actual}")]
    Degree {
        /// The largest degree: [`MAX_DEGREE`](crate::MAX_DEGREE), or one less than the characteristic if that is
        /// smaller.
        expected: u64,
        /// The degree of the expression.
        actual: u64,
    },
    /// The expression leaves out a table before its last one: any value of that table would be accepted.
    #[error("the expression has {columns} columns and does not use column {column}")]
    UnusedColumn {
        /// The first column that it does not use.
        column: usize,
        /// The columns up to the last one that it uses.
        columns: usize,
    },
    /// The statement is about another expression than the prover was made for.
    #[error("the statement is about another expression than the prover's")]
    OtherExpression,
    /// The sum is not what is claimed, and the configuration asks for that check.
    #[error("the claim is false")]
    FalseClaim,
    /// The claim of a zero-check is not 0.
    #[error("the claim of a zero-check: expected 0, got another element")]
    ZeroCheckClaim,
    /// Challenges are of a field that is too small for the statement: a prover can search for challenges that suit a
    /// false claim. [`Statement`](crate::Statement) has the formula, and
    /// [`Statement::allow_small_challenges`](crate::Statement::allow_small_challenges) takes them all the same.
    #[error("challenges from too small a field: expected {expected} bits of soundness, got {actual}")]
    SmallChallenges {
        /// The bits of soundness that are asked for: [`MIN_SOUNDNESS_BITS`](crate::MIN_SOUNDNESS_BITS).
        expected: u32,
        /// The bits that challenges of this field give the statement.
        actual: u32,
    },
    /// The elements of tables are neither of the field of challenges nor of the prime field right below it.
    #[error("tables have elements of the field of challenges, or of the prime field right below it")]
    Field,
    /// The weight is 0 at a challenge, so that the remaining rounds of a strategy with the weight as a table
    /// ([`Strategy::Textbook`](crate::Strategy::Textbook), [`Strategy::FromClaim`](crate::Strategy::FromClaim))
    /// determine nothing. A random challenge is a zero of the weight with probability 1 / |F|.
    #[error("the weight is 0 at the challenge of round {round}")]
    Degenerate {
        /// The round of the challenge, from 0 on.
        round: usize,
    },
    /// A sumcheck over several devices takes a power of two of them.
    #[error("a sumcheck over several devices takes a power of two of them, got {actual}")]
    Devices {
        /// The number of devices given.
        actual: usize,
    },
    /// A table on several devices is distributed otherwise than the statement's order of variables asks for.
    #[error("a table has the distribution {actual:?}, expected {expected:?}")]
    Distribution {
        /// The distribution for the statement's order.
        expected: Distribution,
        /// The distribution given.
        actual: Distribution,
    },
    /// The device refused the arguments, has too little memory or failed, as the error inside says.
    ///
    /// Numbers of tables, elements, constants, coordinates, claims and statements are [`DeviceError::Length`] too.
    #[error(transparent)]
    Device(#[from] DeviceError),
}

impl Error {
    pub(crate) fn length(what: &'static str, expected: usize, actual: usize) -> Self {
        Self::Device(DeviceError::length(what, expected, actual))
    }
}

/// A fault of a statement or its claim, for provers and verifiers.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Fault {
    Length { what: &'static str, expected: usize, actual: usize },
    ZeroCheckClaim,
    SmallChallenges { expected: u32, actual: u32 },
}

impl From<Fault> for Error {
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::Length { what, expected, actual } => Self::length(what, expected, actual),
            Fault::ZeroCheckClaim => Self::ZeroCheckClaim,
            Fault::SmallChallenges { expected, actual } => Self::SmallChallenges { expected, actual },
        }
    }
}

impl From<Fault> for Refused {
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::Length { what, expected, actual } => Self::Shape { what, expected, actual },
            Fault::ZeroCheckClaim => Self::ZeroCheckClaim,
            Fault::SmallChallenges { expected, actual } => Self::SmallChallenges { expected, actual },
        }
    }
}

/// The reason why a proof is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refused {
    /// The proof does not match the statement's shape, or the statement has another number of constants or coordinates
    /// than its expression and weight need.
    #[error("{what}: expected {expected}, got {actual}")]
    Shape {
        /// The part at fault.
        what: &'static str,
        /// The number that the statement needs.
        expected: usize,
        /// The number given.
        actual: usize,
    },
    /// The claim of a zero-check is not 0.
    #[error("the claim of a zero-check: expected 0, got another element")]
    ZeroCheckClaim,
    /// Challenges are of a field that is too small for the statement, which does not
    /// [allow that](crate::Statement::allow_small_challenges).
    #[error("challenges from too small a field: expected {expected} bits of soundness, got {actual}")]
    SmallChallenges {
        /// The bits of soundness that are asked for: [`MIN_SOUNDNESS_BITS`](crate::MIN_SOUNDNESS_BITS).
        expected: u32,
        /// The bits that challenges of this field give the statement.
        actual: u32,
    },
    /// Bytes of the proof are an integer that is not below the prime: not the one encoding of an element.
    #[error("element {index} of the proof is not in canonical form")]
    NotCanonical {
        /// The number of the element, from 0 on.
        index: usize,
    },
    /// The values of the tables do not give the value that the rounds lead to. Either the claim is false, or the
    /// transcript is in another state than the prover's was.
    #[error("the values of the tables do not lead to the claimed sum")]
    Final,
}
