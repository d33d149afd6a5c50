#![doc = include_str!("../README.md")]

mod accumulate;
mod adding;
mod config;
mod error;
mod finish;
mod host;
mod layout;
mod levels;
mod memory;
mod pairs;
mod plan;
mod recode;
mod reduce;
pub mod reference;
mod scalars;
mod shared;
mod tables;
#[cfg(test)]
mod tests;
mod whole;

use evariste_curve::DeviceCurve;
use evariste_field::DevicePrimeField;

pub use config::{Accumulation, Addition, Aggregation, Bases, Infinity, MsmConfig, Precompute, Tuning};
pub use error::{Error, Result};
pub use host::{crossover, msm, set_crossover};
pub use plan::{Msm, Stage, Staged};
pub use scalars::Scalars;

/// A curve whose points and scalars live on devices.
pub trait MsmCurve: DeviceCurve<ScalarField: DevicePrimeField> {}

impl<C: DeviceCurve<ScalarField: DevicePrimeField>> MsmCurve for C {}
