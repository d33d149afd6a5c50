use evariste_backend::Device;

use super::limits::Limits;

/// A device under measurement.
#[derive(Debug)]
pub(crate) struct Target {
    pub(crate) device: Device,
    pub(crate) limits: Limits,
}
