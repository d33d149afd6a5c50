#![doc = include_str!("../README.md")]

mod accumulate;
mod adding;
mod affine_tree;
mod batch_affine;
mod combine;
mod config;
mod cost;
mod error;
mod host;
mod kernels;
mod memory_plan;
mod plan;
mod precompute;
mod recode;
mod reduce;
pub mod reference;
mod scalars;
mod schedule;
mod shared;
#[cfg(test)]
mod tests;
mod whole_buckets;

use evariste_curve::DeviceCurve;
use evariste_field::DevicePrimeField;

pub use config::{Accumulation, Addition, Aggregation, Bases, Infinity, MsmConfig, Precompute, Tuning};
pub use error::{Error, Result};
pub use host::msm_host;
pub use plan::{Msm, Profiled, Stage};
pub use scalars::Scalars;

/// A curve with device forms of its points and scalars.
pub trait MsmCurve: DeviceCurve<ScalarField: DevicePrimeField> {}

impl<C: DeviceCurve<ScalarField: DevicePrimeField>> MsmCurve for C {}
