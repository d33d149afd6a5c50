#![doc = include_str!("../README.md")]

mod error;
mod merkle;
mod poseidon2;
pub mod reference;

pub use error::{Error, Result};
pub use merkle::{
    Merkle, MerkleTree,
    verifier::{Dimensions, Opening, verify},
};
pub use poseidon2::{Poseidon2, Rows, parameters::Poseidon2Parameters, published::Poseidon2Field};

#[cfg(test)]
mod tests;
