//! Copies: between host and device, and within a device.

mod download;
mod on_default_queue;
mod on_queue;
#[cfg(test)]
mod tests;

pub use download::Download;
