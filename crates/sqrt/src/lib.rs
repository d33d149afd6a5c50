#![doc = include_str!("../README.md")]

mod error;
pub mod modular;

pub use error::{Error, Result};
pub use modular::ModSqrt;
