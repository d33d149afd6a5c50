#![doc = include_str!("../README.md")]

mod constraints;
mod error;
mod field;
mod fold;
mod kernels;
mod plan;
mod points;
mod quotients;
pub mod reference;
mod text;
mod verifier;

pub use constraints::{ConstraintProgram, ConstraintQuotients, Constraints, Selector, Term};
pub use error::{Error, Result};
pub use field::FriField;
pub use fold::Fold;
pub use plan::{Fri, FriCommitment, FriConfig, FriRound, QueryStep, log_arities};
pub use quotients::{Opened, Quotients};
pub use verifier::verify_query;

#[cfg(test)]
mod tests;
