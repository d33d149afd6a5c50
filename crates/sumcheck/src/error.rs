use evariste_backend::Error as DeviceError;

/// A result of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What can go wrong with a sumcheck. Where a prover gives it, nothing was proved; the transcript has gone on only behind the
/// checks of the arguments.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// There is nothing to sum over, or more than tables can have.
    #[error("a sumcheck has between 1 and {expected} variables, got {actual}")]
    Variables {
        /// The most variables.
        expected: usize,
        /// The number given.
        actual: usize,
    },
    /// An expression that does not depend on a table, or of a degree that is too large.
    #[error("the degree of an expression lies between 1 and {expected}, got {actual}")]
    Degree {
        /// The largest degree: what is supported, and less than the characteristic.
        expected: u64,
        /// That of the expression.
        actual: u64,
    },
    /// An expression that leaves out a table before its last one: any value of that table would be accepted.
    #[error("the expression has {columns} columns and does not use column {column}")]
    UnusedColumn {
        /// The first column that it does not use.
        column: usize,
        /// The columns up to the last one that it uses.
        columns: usize,
    },
    /// A number of things or a length that does not fit the statement.
    #[error("{what}: expected {expected}, got {actual}")]
    Length {
        /// The argument at fault.
        what: &'static str,
        /// What the statement needs.
        expected: usize,
        /// What was given.
        actual: usize,
    },
    /// A statement about another expression than that of the prover.
    #[error("the statement is about another expression than the prover's")]
    OtherExpression,
    /// The sum is not what is claimed. Found where a check was asked for.
    #[error("the claim is false")]
    FalseClaim,
    /// The elements of tables are neither of the field of challenges nor of its prime field.
    #[error("tables have elements of the field of challenges, or of the prime field right below it")]
    Field,
    /// A challenge at which the weight is 0, so that a strategy that has it as a table learns nothing more. Challenges that are
    /// drawn at random are none of these.
    #[error("the weight is 0 at the challenge of round {round}")]
    Degenerate {
        /// The round.
        round: usize,
    },
    /// Less device memory is allowed than the smallest pieces of tables in host memory take.
    #[error("pieces of the tables take {expected} bytes at least, {actual} are allowed")]
    TooLittle {
        /// The least, in bytes.
        expected: u64,
        /// What was allowed.
        actual: u64,
    },
    /// The device refused or failed.
    #[error(transparent)]
    Device(#[from] DeviceError),
}

/// Why a proof is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refused {
    /// The proof has not the shape that the statement asks for.
    #[error("{what}: expected {expected}, got {actual}")]
    Shape {
        /// The part at fault.
        what: &'static str,
        /// What the statement asks for.
        expected: usize,
        /// What the proof has.
        actual: usize,
    },
    /// Bytes that are not the one encoding of an element.
    #[error("element {index} of the proof is not in canonical form")]
    NotCanonical {
        /// The number of the element.
        index: usize,
    },
    /// The expression of the values of the tables is not what the rounds lead to.
    #[error("the values of the tables do not lead to the claimed sum")]
    Final,
}
