#![doc = include_str!("../README.md")]

mod config;
mod error;
mod host;
mod layout;
mod order;
mod pass;
mod pieces;
mod pipeline;
mod plan;
mod polynomial;
pub mod reference;
mod tables;
mod transform;

pub use config::{Config, Split, Twiddles};
pub use error::{Error, Result};
pub use host::{crossover, forward, inverse, set_crossover};
pub use order::{Order, reverse_bits};
pub use pieces::{forward_in_pieces, inverse_in_pieces};
pub use pipeline::Pipeline;
pub use plan::Ntt;
pub use polynomial::Extension;
pub use transform::Transform;
