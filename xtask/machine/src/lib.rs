//! What the workspace's own programs share: the machine they run on, other programs that they start, and plain tables.

#[cfg(feature = "devices")]
pub mod devices;
pub mod host;
pub mod process;
pub mod table;
