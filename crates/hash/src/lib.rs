#![doc = include_str!("../README.md")]

mod blake;
mod bytes;
mod dimensions;
mod duplex;
mod error;
mod layers;
mod merkle;
mod parameters;
mod poseidon;
mod poseidon2;
mod published;
pub mod reference;
mod serialization;
mod tree_hash;

pub use bytes::{ByteHash, function::HashFunction};
pub use dimensions::Dimensions;
pub use duplex::DuplexSponge;
pub use error::{Error, Result};
pub use layers::Arity;
#[doc(hidden)]
pub use layers::{Layer, cap_place, layers, siblings};
pub use merkle::{
    Merkle, MerkleTree,
    by_columns::TreeByColumns,
    bytes::{ByteMerkle, ByteRows, verify_bytes},
    verifier::{Opening, cap_len, verify},
};
pub use parameters::Poseidon2Parameters;
pub use poseidon::{Poseidon, parameters::PoseidonParameters};
pub use poseidon2::{Poseidon2, Rows};
pub use published::Poseidon2Field;
pub use serialization::{Form, Serialization, SerializingHash};
pub use tree_hash::{TreeHash, TreeParameters};

#[cfg(test)]
mod tests;
