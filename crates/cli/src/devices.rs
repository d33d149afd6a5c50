//! Devices.

use anyhow::{Context, Result};
use evariste_backend::{Device, DeviceInfo};
use serde_json::json;

use crate::{arguments::Target, outcome::Outcome};

/// Opens the device that is asked for.
pub(crate) fn open(target: &Target) -> Result<Device> {
    match target.device {
        Some(id) => Device::open(id).with_context(|| format!("--device {id}")),
        None => Ok(Device::best()?),
    }
}

/// Lists the devices, and those that cannot be used with the reason.
pub(crate) fn list() -> Outcome {
    let (mut lines, mut devices, mut missing) = (Vec::new(), Vec::new(), Vec::new());
    for found in Device::discover() {
        let id = found.id.to_string();
        match found.device {
            Ok(device) => {
                let info = device.info();
                lines.push(format!("{id:<8} {}", described(info)));
                devices.push(json!({
                    "device": id,
                    "name": info.name,
                    "driver": info.driver,
                    "architecture": info.architecture,
                    "memory_bytes": info.memory_bytes,
                    "parallelism": info.parallelism,
                    "software": info.features.software,
                }));
            }
            Err(error) => {
                lines.push(format!("{id:<8} unavailable: {error}"));
                missing.push(json!({ "device": id, "reason": error.to_string() }));
            }
        }
    }
    Outcome::new(lines.join("\n"), json!({ "devices": devices, "missing": missing }))
}

fn described(info: &DeviceInfo) -> String {
    let memory = info.memory_bytes.map(|bytes| format!("{:.1} GiB", bytes as f64 / f64::from(1 << 30)));
    let parts = [
        Some(info.name.clone()),
        Some(info.architecture.clone()),
        Some(info.driver.clone()).filter(|driver| !driver.is_empty()),
        memory,
        // The driver of a processor has its number of threads.
        (!info.is_processor()).then(|| format!("{} units", info.parallelism)),
        info.features.software.then(|| "an emulation".to_owned()),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}
