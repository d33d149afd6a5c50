#![doc = include_str!("../README.md")]

mod config;
mod decompress;
mod error;
mod hash;
mod hash_to_curve;
mod kernel;
#[cfg(target_arch = "x86_64")]
mod lanes;
mod machine;
mod map;
mod membership;
mod method;
mod methods;
mod nth_root;
mod plan;
mod point_check;
mod program;
pub mod reference;
mod root_field;
#[cfg(test)]
mod tests;

pub use config::{RootChoice, SqrtConfig};
pub use decompress::{Check, Decompress, DecompressConfig, Encoding, Invalid};
pub use error::{Error, PointError, Result};
pub use hash_to_curve::HashToCurve;
pub use map::MapToCurve;
pub use method::Method;
pub use nth_root::NthRoot;
pub use plan::Sqrt;
pub use point_check::PointCheck;
pub use root_field::RootField;
