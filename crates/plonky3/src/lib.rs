#![doc = include_str!("../README.md")]

mod air;
mod dft;
mod error;
mod mmcs;
mod pcs;
mod prover;
mod value;

pub use air::DeviceAir;
pub use dft::DeviceDft;
pub use error::ProverError;
pub use mmcs::{DeviceByteMmcs, DeviceMmcs, DeviceTreeMmcs, DeviceTrees, Digests, Error, HostMmcs, ProverData};
pub use pcs::{DeviceFriPcs, DevicePcsData};
pub use prover::{prove, prove_with};
pub use value::{DeviceValue, Values};

#[cfg(test)]
mod tests;
