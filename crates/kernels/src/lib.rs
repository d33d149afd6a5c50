#![doc = include_str!("../README.md")]

/// The archive, empty if none was made before this crate was built.
pub static ARCHIVE: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/kernels.archive"));

/// What to say where [`ARCHIVE`] is empty.
pub const MISSING: &str = "it was built without one: make it by cargo xtask kernels --package, and build again";
