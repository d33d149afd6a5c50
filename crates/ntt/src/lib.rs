#![doc = include_str!("../README.md")]

mod config;
mod error;
mod host;
mod layout;
mod order;
mod out_of_core;
mod pass;
mod pipeline;
mod plan;
mod polynomial;
pub mod reference;
mod sharded;
mod tables;
mod transform;
mod tuning;
mod twiddles;

#[cfg(feature = "compare")]
pub use config::Split;
pub use config::{NttConfig, Twiddles};
pub use error::{Error, Result};
pub use host::{forward_host, inverse_host};
pub use order::{Order, reverse_bits};
pub use out_of_core::{OutOfCore, forward_out_of_core, inverse_out_of_core};
pub use pipeline::Pipeline;
pub use plan::Ntt;
pub use polynomial::LowDegreeExtension;
pub use sharded::{Rows, ShardedNtt, ShardedTransform};
pub use transform::Transform;
pub use twiddles::TwiddleTable;
