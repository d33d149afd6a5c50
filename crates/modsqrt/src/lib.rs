#![doc = include_str!("../README.md")]
//!
//! # Choices
//! - The kernel for roots interprets steps (`steps.rs`), nearly all of them multiplications. Exponentiations and the
//!   correction of Tonelli and Shanks are lists of steps. All threads take the same steps. A launch may end after any
//!   step where a device limits the work of a thread.
//! - In CUDA a thread has an element of up to 1024 bits, with its accumulator, its modulus and both halves of a product
//!   in registers. Two threads share a longer element, and four share one beyond 2048 bits
//!   (`cuda/modsqrt/multiply.cuh`).
//! - Integers on the host are `crypto-bigint`'s. Secret ones are zeroed, but for that crate's temporaries.

mod config;
mod error;
mod jacobi;
mod kernel;
mod moduli;
mod number;
mod plan;
mod prime;
mod puzzle;
pub mod rabin;
pub mod reference;
mod steps;
#[cfg(test)]
mod tests;

pub use config::{JacobiConfig, ModSqrtConfig, RootChoice};
pub use crypto_bigint::BoxedUint;
pub use error::{Error, Result};
pub use jacobi::Jacobi;
pub use number::{MAX_BITS, MIN_BITS, limbs};
pub use plan::{ModSqrt, Outcome};
pub use puzzle::Puzzle;
