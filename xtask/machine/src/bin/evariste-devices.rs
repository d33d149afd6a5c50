//! `cargo xtask devices`: which devices there are and what each can do.

use std::process::ExitCode;

use evariste_backend::DeviceInfo;
use evariste_machine::{
    devices::{self, Found},
    host::Host,
    process::quietly,
    table::Table,
};

fn main() -> ExitCode {
    let found = match quietly(|| devices::select(&[])) {
        Ok(found) => found,
        Err(error) => {
            eprintln!("error: {error:#}");
            return ExitCode::FAILURE;
        }
    };
    print!("{}", text(&Host::here(), &found));
    ExitCode::SUCCESS
}

/// A row for each device, and a line for each that cannot be used.
fn text(host: &Host, found: &Found) -> String {
    let head = ["device", "name", "driver", "target", "memory", "buffer", "workgroup", "threads", "units", "abilities"];
    let mut table = Table::new(4, &head);
    for device in &found.devices {
        table.row(row(device.info()));
    }
    let missing: String = found.missing.iter().map(|missing| format!("{}: {}\n", missing.device, missing.reason)).collect();
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
    use evariste_backend::Device;
    use evariste_machine::devices::Missing;

    use super::*;

    #[test]
    fn a_device_has_a_row_and_a_missing_one_its_reason() {
        let missing = Missing { device: "cuda".into(), reason: "no driver".into() };
        let text = text(&Host::here(), &Found { devices: vec![Device::cpu()], missing: vec![missing] });
        let row = text.lines().find(|line| line.starts_with("cpu ")).expect("a row of the CPU");
        assert!(row.contains(&Device::cpu().info().name), "{row}");
        assert!(text.ends_with("cuda: no driver\n"), "{text}");
    }
}
