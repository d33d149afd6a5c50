//! Roots modulo primes that are known at run time only, and what rests on them.
//!
//! [`ModSqrt`] takes primes of 2 to 4096 bits and gives roots by the million: one kernel for each number of 32-bit limbs, to which
//! the primes are data. [`Jacobi`] gives the symbols of as many values for any odd moduli of 2 to 4096 bits.
//!
//! # Choices
//! - The kernel for roots is a machine whose steps are multiplications (`program.rs`): exponentiations and the correction of Tonelli
//!   and Shanks are lists of steps. All threads take the same steps, the multiplication stands in the text once, and
//!   work is cut between any two steps where a device limits what a thread may do in one launch.
//! - In CUDA, up to 1024 bits, a thread has an element: the accumulator, the modulus and both halves of a product in registers. Beyond,
//!   two threads share an element, and four beyond 2048 bits (`cuda/modsqrt/multiply.cuh`).
//! - Integers on the host are those of `crypto-bigint`, which are zeroed when they are secret, but for its own temporaries; primality is
//!   `crypto-primes`'.

mod jacobi;
mod kernels;
mod moduli;
mod number;
mod plan;
mod prime;
mod program;
mod puzzle;
pub mod rabin;
pub mod reference;
#[cfg(test)]
mod tests;

pub use crypto_bigint::BoxedUint;
pub use jacobi::Jacobi;
pub use number::{MAX_BITS, MIN_BITS, limbs};
pub use plan::{ModSqrt, Outcome};
pub use puzzle::Puzzle;
