#![doc = include_str!("../README.md")]

mod config;
mod draw;
mod error;
mod params;
mod polynomial;
mod program;
mod proof;
mod prover;
pub mod reference;
mod round;
mod statement;
mod table;
#[cfg(test)]
mod tests;
mod transcript;

pub use config::{Challenge, Strategy, SumcheckConfig};
pub use error::{Error, Refused, Result};
pub use proof::{Proof, SubClaim};
pub use prover::{ProverOutput, ShardedSumcheck, Sumcheck};
pub use statement::{MAX_DEGREE, MAX_VARIABLES, MIN_SOUNDNESS_BITS, Order, Statement, Weight};
pub use table::Mle;
pub use transcript::{Blake3Transcript, Closure, Transcript};
