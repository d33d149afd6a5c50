use evariste_backend::Error as DeviceError;

/// A result of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What can go wrong with a sumcheck. Where a prover gives it, nothing was proved; the transcript has gone on only behind the
/// checks of the arguments.
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
    /// There are more or fewer tables, elements, constants, coordinates, claims or statements of a kind than the call
    /// needs.
    #[error("{what}: expected {expected}, got {actual}")]
    Length {
        /// What is counted.
        what: &'static str,
        /// How many are needed.
        expected: usize,
        /// How many were given.
        actual: usize,
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
    /// Challenges are of a field that is too small for the statement: who looks for them finds some that suit a false claim.
    /// [`Statement`](crate::Statement) has the formula, and
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
    /// The weight is 0 at a challenge, so that a strategy that has it as a table
    /// ([`Strategy::Textbook`](crate::Strategy::Textbook), [`Strategy::FromClaim`](crate::Strategy::FromClaim)) learns
    /// nothing more. A challenge that is drawn at random is such a one with a probability of one in the size of the
    /// field.
    #[error("the weight is 0 at the challenge of round {round}")]
    Degenerate {
        /// The round of the challenge, from 0 on.
        round: usize,
    },
    /// Less device memory is allowed than the smallest pieces of tables in host memory take.
    #[error("pieces of the tables take {expected} bytes at least, {actual} are allowed")]
    InsufficientMemory {
        /// The least, in bytes.
        expected: u64,
        /// What was allowed.
        actual: u64,
    },
    /// The device refused the arguments, ran out of memory or failed, as the error inside says.
    #[error(transparent)]
    Device(#[from] DeviceError),
}

/// What is wrong with a statement or its claim, whoever finds it.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Fault {
    Length { what: &'static str, expected: usize, actual: usize },
    ZeroCheckClaim,
    SmallChallenges { expected: u32, actual: u32 },
}

impl From<Fault> for Error {
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::Length { what, expected, actual } => Self::Length { what, expected, actual },
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

/// Says why a proof is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refused {
    /// The proof has not the rounds, elements, values or bytes that the statement asks for, or the statement lacks
    /// constants or coordinates itself.
    #[error("{what}: expected {expected}, got {actual}")]
    Shape {
        /// The part at fault.
        what: &'static str,
        /// What the statement asks for.
        expected: usize,
        /// What the proof has.
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
    /// After all rounds, the expression of the values of the tables is not what the rounds lead to: the claim is false,
    /// or the transcript is in another state than the prover's was.
    #[error("the values of the tables do not lead to the claimed sum")]
    Final,
}
