#![doc = include_str!("../README.md")]

mod error;
mod hash;
mod hash_to_curve;
#[cfg(target_arch = "x86_64")]
mod lanes;
mod machine;
mod map;
mod methods;
#[cfg(feature = "modular")]
pub mod modular;
mod nth_root;
mod plan;
mod points;
mod program;
pub mod reference;
mod subgroup;
#[cfg(test)]
mod tests;

use evariste_field::{DeviceField, DevicePrimeField};

pub use error::{Error, Result};
pub use hash_to_curve::HashToCurve;
pub use map::MapToCurve;
#[cfg(feature = "modular")]
pub use modular::{Jacobi, ModSqrt};
pub use nth_root::NthRoot;
pub use plan::{Choice, Config, Method, Sqrt};
pub use points::{Check, Decompress, Encoding, PointError, Refused};

/// A field with roots on devices: prime, or an extension of a prime field that is on devices.
pub trait RootField: DeviceField<BasePrimeField: DevicePrimeField> {}

impl<F: DeviceField<BasePrimeField: DevicePrimeField>> RootField for F {}
