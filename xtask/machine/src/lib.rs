//! What the workspace's own programs share: the machine they run on, other programs that they start, plain tables, and
//! the map of packages.

#[cfg(feature = "devices")]
pub mod devices;
pub mod host;
pub mod map;
pub mod process;
pub mod table;
