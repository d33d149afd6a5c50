#![doc = include_str!("../README.md")]

mod dft;
mod mmcs;
mod value;

pub use dft::DeviceDft;
pub use mmcs::{DeviceMmcs, Error, ProverData};
pub use value::{DeviceValue, Values};

#[cfg(test)]
mod tests;
