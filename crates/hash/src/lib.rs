#![doc = include_str!("../README.md")]

mod dimensions;
mod error;
mod merkle;
mod poseidon2;
pub mod reference;

pub use dimensions::Dimensions;
pub use error::{Error, Result};
pub use merkle::{
    Merkle, MerkleTree,
    verifier::{Opening, verify},
};
pub use poseidon2::{Poseidon2, Rows, parameters::Poseidon2Parameters, published::Poseidon2Field};

#[cfg(test)]
mod tests;
