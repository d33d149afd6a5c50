#![doc = include_str!("../README.md")]

mod check;
mod curve;
mod error;
mod file;
mod key;
mod matrix;
mod order;
mod sections;
mod witness;
mod words;
mod zkey;

pub use ark_groth16::{Proof, ProvingKey, VerifyingKey};
pub use check::Check;
pub use curve::{CircomCurve, DevicePairing};
pub use error::{Error, JsonProblem, Place, PointError, Problem, Result};
pub use key::{Key, Quotient};
pub use matrix::{Entry, Matrix};
pub use witness::Witness;
