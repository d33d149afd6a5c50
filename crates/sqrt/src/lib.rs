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
mod program;
pub mod reference;
#[cfg(test)]
mod tests;

use evariste_field::{DeviceField, DevicePrimeField};

pub use config::{RootChoice, SqrtConfig};
pub use decompress::{Check, Decompress, DecompressConfig, Encoding, Invalid};
pub use error::{Error, PointError, Result};
pub use hash_to_curve::HashToCurve;
pub use map::MapToCurve;
pub use method::Method;
pub use nth_root::NthRoot;
pub use plan::Sqrt;

/// A field with square roots on devices: a prime field, or an extension of one.
pub trait RootField: DeviceField<BasePrimeField: DevicePrimeField> {}

impl<F: DeviceField<BasePrimeField: DevicePrimeField>> RootField for F {}
