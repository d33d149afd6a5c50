#![doc = include_str!("../README.md")]

mod plan;
pub mod reference;

pub use plan::Gray;
