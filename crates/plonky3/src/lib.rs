#![doc = include_str!("../README.md")]

mod dft;
mod mmcs;
mod pcs;
mod value;

pub use dft::DeviceDft;
pub use mmcs::{DeviceByteMmcs, DeviceMmcs, DeviceTreeMmcs, DeviceTrees, Digests, Error, HostMmcs, ProverData};
pub use pcs::{DeviceFriPcs, DevicePcsData, ProverError};
pub use value::{DeviceValue, Values};

#[cfg(test)]
mod tests;
