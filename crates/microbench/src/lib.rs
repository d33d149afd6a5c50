#![doc = include_str!("../README.md")]

mod additions;
mod multiplications;
mod products;

pub use additions::{ADDITIONS, AddChain};
pub use multiplications::{MULTIPLICATIONS, MulChain, Step};
pub use products::{Place, Products, Sharing};

/// Threads of a workgroup of the chains.
const THREADS: u32 = 256;
