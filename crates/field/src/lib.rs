#![doc = include_str!("../README.md")]

mod constants;
mod element;
mod field;
pub mod rate;
pub mod reference;
pub mod source;
mod vector;

pub use element::{Canonical, Mont};
pub use field::DeviceField;
pub use vector::Vector;
