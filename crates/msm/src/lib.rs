#![doc = include_str!("../README.md")]

mod accumulate;
mod adding;
mod affine_tree;
mod batch_affine;
mod combine;
mod config;
mod cost;
mod digits;
mod error;
mod host;
mod kernels;
mod memory_plan;
mod msm_curve;
mod plan;
mod precompute;
mod recode;
mod reduce;
pub mod reference;
mod scalars;
mod schedule;
mod sharded;
mod shared;
#[cfg(test)]
mod tests;
mod whole_buckets;

#[cfg(feature = "compare")]
pub use config::{Accumulation, Addition, Aggregation, Tuning};
pub use config::{Bases, Infinity, MsmConfig, Precompute};
pub use digits::{Digits, PendingSum};
pub use error::{Error, Result};
pub use host::msm_host;
pub use msm_curve::MsmCurve;
pub use plan::{Msm, Profiled, Stage};
pub use scalars::Scalars;
pub use sharded::ShardedMsm;
