#![doc = include_str!("../README.md")]

mod arithmetic;
mod constants;
mod element;
mod expression;
mod extension;
mod field;
pub mod ifma;
mod known;
pub mod reference;
pub mod small;
pub mod source;
mod sum;
mod sums;
mod vector;
pub mod words;

pub use arithmetic::Arithmetic;
pub use element::{Canonical, Mont, expect_stored};
pub use expression::{Expression, Step};
pub use extension::{Extension, ExtensionConfig};
pub use field::{DeviceField, DevicePrimeField};
pub use known::known_constants;
pub use sum::FieldSum;
pub use vector::{Prefix, Vector, invert};
