#![doc = include_str!("../README.md")]

mod dimensions;
mod duplex;
mod error;
mod merkle;
mod parameters;
mod poseidon;
mod poseidon2;
mod published;
pub mod reference;

pub use dimensions::Dimensions;
pub use duplex::DuplexSponge;
pub use error::{Error, Result};
#[doc(hidden)]
pub use merkle::layer_start;
pub use merkle::{
    Merkle, MerkleTree,
    verifier::{Opening, verify},
};
pub use parameters::Poseidon2Parameters;
pub use poseidon::{Poseidon, parameters::PoseidonParameters};
pub use poseidon2::{Poseidon2, Rows};
pub use published::Poseidon2Field;

#[cfg(test)]
mod tests;
