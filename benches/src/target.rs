use evariste::backend::Device;

use crate::limits::Limits;

/// A device under measurement.
#[derive(Debug)]
pub(crate) struct Target {
    pub(crate) device: Device,
    pub(crate) limits: Limits,
}
