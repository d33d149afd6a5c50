//! Which devices to work on.

use anyhow::{Context, Result};
use evariste_backend::{Device, DeviceId, DeviceInfo};
use serde::Serialize;

use crate::{host::Host, process::quietly, table::Table};

/// The devices to work on, and those that are not there.
#[derive(Debug)]
pub struct Found {
    /// Those that work.
    pub devices: Vec<Device>,
    /// Those that do not, each with the reason.
    pub missing: Vec<Missing>,
}

/// A device, or all of a backend, that cannot be used.
#[derive(Debug, Serialize)]
pub struct Missing {
    /// Its name, or its backend's.
    pub device: String,
    /// Why it cannot be used.
    pub reason: String,
}

/// The devices of these names, or every device there is.
///
/// # Errors
/// A device that is named must be there.
pub fn select(names: &[DeviceId]) -> Result<Found> {
    if names.is_empty() {
        return Ok(discover());
    }
    let open = |id: &DeviceId| Device::open(*id).with_context(|| format!("--device {id}"));
    Ok(Found { devices: names.iter().map(open).collect::<Result<_>>()?, missing: Vec::new() })
}

/// The devices of these names, or every device there is but emulations. Drivers that are only probed are kept quiet.
///
/// # Errors
/// A device that is named must be there.
pub fn select_real(names: &[DeviceId]) -> Result<Found> {
    if !names.is_empty() {
        return select(names);
    }
    let mut found = quietly(|| select(&[]))?;
    let (emulated, devices) = found.devices.into_iter().partition(|device| device.info().features.software);
    found.devices = devices;
    found.missing.extend(emulated.into_iter().map(|device| Missing {
        device: device.info().id.to_string(),
        reason: format!("an emulation, taken by --device {}", device.info().id),
    }));
    Ok(found)
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

/// A device and its driver.
#[derive(Debug, Serialize)]
pub struct DeviceEntry {
    /// What `--device` calls it.
    pub device: String,
    /// What its maker calls it.
    pub name: String,
    /// The driver and its version.
    pub driver: String,
    /// What kernels are compiled for.
    pub architecture: String,
    /// Bytes of its memory, where it tells.
    pub memory_bytes: Option<u64>,
    /// Streaming multiprocessors, or threads of a CPU.
    pub parallelism: u32,
    /// Whether the processor emulates it.
    pub software: bool,
}

impl From<&DeviceInfo> for DeviceEntry {
    fn from(info: &DeviceInfo) -> Self {
        Self {
            device: info.id.to_string(),
            name: info.name.clone(),
            driver: info.driver.clone(),
            architecture: info.architecture.clone(),
            memory_bytes: info.memory_bytes,
            parallelism: info.parallelism,
            software: info.features.software,
        }
    }
}

/// A row for each device, and a line for each that cannot be used.
pub fn listing(host: &Host, found: &Found) -> String {
    let head = ["device", "name", "driver", "target", "memory", "buffer", "workgroup", "threads", "units", "abilities"];
    let mut table = Table::new(4, &head);
    for device in &found.devices {
        table.row(row(device.info()));
    }
    let missing: String =
        found.missing.iter().map(|missing| format!("{}: {}\n", missing.device, missing.reason)).collect();
    format!(
        "{} ({} threads), {} {}\n\n{}\n\nmemory: of the device; buffer: the largest; workgroup: shared memory, of a CPU a core's \
         cache; threads: of a workgroup at most; units: multiprocessors or threads\n{missing}",
        host.cpu,
        host.cores,
        host.os,
        host.architecture,
        table.render()
    )
}

fn row(info: &DeviceInfo) -> [String; 10] {
    let bytes = |bytes: u64| match bytes {
        0..0x100000 => format!("{} KiB", bytes >> 10),
        0x100000..0x40000000 => format!("{} MiB", bytes >> 20),
        _ => format!("{} GiB", bytes >> 30),
    };
    let abilities = [
        (info.features.int64, "64-bit integers"),
        (info.features.queues, "queues side by side"),
        (info.features.software, "an emulation"),
    ];
    [
        info.id.to_string(),
        info.name.clone(),
        info.driver.clone(),
        info.architecture.clone(),
        info.memory_bytes.map_or_else(|| "unknown".into(), bytes),
        // The CPU has none but its memory.
        if info.limits.buffer_bytes > 1 << 48 { "any".into() } else { bytes(info.limits.buffer_bytes) },
        bytes(info.limits.workgroup_bytes.into()),
        info.limits.workgroup_threads.to_string(),
        info.parallelism.to_string(),
        abilities.iter().filter(|(has, _)| *has).map(|(_, what)| *what).collect::<Vec<_>>().join(", "),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_has_a_row_and_a_missing_one_its_reason() {
        let missing = Missing { device: "cuda".into(), reason: "no driver".into() };
        let text = listing(&Host::here(), &Found { devices: vec![Device::cpu()], missing: vec![missing] });
        let row = text.lines().find(|line| line.starts_with("cpu ")).expect("a row of the CPU");
        assert!(row.contains(&Device::cpu().info().name), "{row}");
        assert!(text.ends_with("cuda: no driver\n"), "{text}");
    }
}
