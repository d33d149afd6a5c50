#![doc = include_str!("../README.md")]

mod add_sub;
#[cfg(all(target_arch = "x86_64", target_pointer_width = "64"))]
mod chains;
mod element;
pub mod evaluator;
mod extension;
mod field;
pub mod ifma;
mod monoid;
pub mod native;
pub mod reference;
mod roots;
mod shoup;
pub mod small;
pub mod source;
mod sparse;
mod vector;
pub mod words;

#[doc(hidden)]
pub use element::expect_stored;
pub use element::{Canonical, Mont};
pub use evariste_expression::{Expression, Step};
pub use extension::{Extension, ExtensionConfig};
pub use field::{DeviceField, DevicePrimeField, arithmetic::Arithmetic};
pub use monoid::FieldSum;
pub use roots::two_adic_root;
#[doc(hidden)]
pub use shoup::shoup_constants;
pub use sparse::SparseMatrix;
#[doc(hidden)]
pub use vector::invert;
pub use vector::{Formula, Prefix, Vector};
