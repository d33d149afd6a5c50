//! Which devices to work on.

use anyhow::{Context, Result};
use evariste_backend::{Device, DeviceId};
use serde::Serialize;

/// The devices to work on, and those that are not there.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) devices: Vec<Device>,
    pub(crate) missing: Vec<Missing>,
}

/// A device, or all of a backend, that cannot be used.
#[derive(Debug, Serialize)]
pub(crate) struct Missing {
    pub(crate) device: String,
    pub(crate) reason: String,
}

/// The devices of these names, or every device there is.
///
/// # Errors
/// A device that is named must be there.
pub(crate) fn select(names: &[DeviceId]) -> Result<Found> {
    if names.is_empty() {
        return Ok(discover());
    }
    let open = |id: &DeviceId| Device::open(*id).with_context(|| format!("--device {id}"));
    Ok(Found { devices: names.iter().map(open).collect::<Result<_>>()?, missing: Vec::new() })
}

fn discover() -> Found {
    let mut found = Found { devices: Vec::new(), missing: Vec::new() };
    for discovered in Device::discover() {
        match discovered.device {
            Ok(device) => found.devices.push(device),
            Err(error) => {
                found.missing.push(Missing { device: discovered.id.to_string(), reason: error.to_string() });
            }
        }
    }
    found
}
