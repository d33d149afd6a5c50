#![doc = include_str!("../README.md")]

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

pub use error::{Error, Refused, Result};
pub use proof::{Proof, SubClaim};
pub use prover::{Config, Draw, Proved, Strategy, Sumcheck};
pub use statement::{MAX_DEGREE, MAX_VARIABLES, MIN_SOUNDNESS_BITS, Order, Statement, Weight};
pub use table::Tables;
pub use transcript::{Blake3Transcript, Closure, Transcript};
