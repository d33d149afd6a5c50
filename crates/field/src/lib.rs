#![doc = include_str!("../README.md")]

mod arithmetic;
mod constants;
mod element;
mod expression;
mod extension;
mod field;
pub mod ifma;
pub mod reference;
mod roots;
pub mod rows;
mod shoup;
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
pub use roots::two_adic_root;
pub use shoup::shoup_constants;
pub use sum::FieldSum;
pub use vector::{Formula, Prefix, Vector, invert};
