#![doc = include_str!("../README.md")]

mod check;
mod curve;
mod domain;
mod error;
mod file;
mod key;
mod matrix;
mod order;
mod prover;
mod r1cs;
pub mod reference;
mod required;
mod sections;
mod setup;
pub mod snarkjs;
mod sum;
mod verifier;
mod witness;
mod words;
mod zkey;

pub use ark_groth16::{Proof, ProvingKey, VerifyingKey};
pub use check::Check;
pub use curve::{CircomCurve, Curve, DevicePairing};
pub use error::{Error, JsonProblem, Place, PointError, Problem, Result};
pub use key::{Key, Quotient};
pub use matrix::{Entry, Matrix, Rows};
pub use prover::{PinnedWitness, Profiled, Proofs, Prover, ProverConfig, Stage};
pub use r1cs::R1cs;
pub use verifier::{Claim, Verifier};
pub use witness::Witness;
