#![doc = include_str!("../README.md")]
//!
//! The time of all operations depends on the points. Points must lie on the curve. Neither a prime order nor a subgroup
//! is assumed.

mod constants;
mod device_curve;
mod element;
mod fixed_base;
pub mod lanes;
mod operation;
pub mod point;
mod point_sum;
mod points;
pub mod source;

pub use constants::{CurveConstant, CurveError, expect_generator};
pub use device_curve::DeviceCurve;
pub use element::{AffinePoint, Jacobian, Xyzz};
pub use fixed_base::FixedBase;
pub use point_sum::PointSum;
pub use points::{PointForm, Points};
