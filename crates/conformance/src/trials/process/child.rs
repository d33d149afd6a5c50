//! Scenarios that need a process of their own: other environment variables, hidden libraries, less memory.

use std::{
    env,
    ffi::OsStr,
    fs,
    process::{self, Command},
};

use ark_bls12_381::Fr;
use ark_ff::FftField;
use ark_poly::{EvaluationDomain, Radix2EvaluationDomain};
use evariste::backend::Device;
use evariste::field::{DeviceField, Mont, small::BabyBear};
use evariste::ntt::Ntt;
use libtest_mimic::Failed;

use crate::{
    devices::{is_checked_cpu, is_emulated},
    expect::{expect, expect_equal, expect_same},
    prepared,
    samples::samples,
};

/// Names the scenario that this process is started for.
const VARIABLE: &str = "EVARISTE_CONFORMANCE_CHILD";

/// Cycles of plans in which memory is measured.
const CYCLES: usize = 2000;

/// Growth that [`CYCLES`] may cause, in bytes: half a kilobyte each.
const GROWTH: u64 = 1 << 20;

/// Measurements. The first is left out, and the smallest counts: allocators and drivers take some memory when they
/// please, while a leak shows in each.
const WINDOWS: usize = 4;

/// Runs the scenario that this process was started for and ends it; returns at once if there is none.
pub fn run_child() {
    let Some(scenario) = env::var(VARIABLE).ok() else { return };
    let (name, device) = scenario.split_once(' ').unwrap_or((&scenario, ""));
    let outcome = match name {
        "best" => Device::best().map(|device| device.to_string()).map_err(Failed::from),
        "open" => device.parse::<Device>().map(|device| device.to_string()).map_err(Failed::from),
        "ntt" => device.parse::<Device>().map_err(Failed::from).and_then(|device| checked_ntt(&device)),
        "cycles" => device.parse::<Device>().map_err(Failed::from).and_then(|device| few_or_many_cycles(&device)),
        "launches" => device.parse::<Device>().map_err(Failed::from).and_then(|device| launches(&device)),
        "prepared" => device.parse::<Device>().map_err(Failed::from).and_then(|device| prepared::check(&device, &[])),
        // What finds its kernels kept does so in each area.
        "prepared-again" => device.parse::<Device>().map_err(Failed::from).and_then(|device| {
            prepared::check(&device, if is_emulated(&device) { &["hash", "msm", "sumcheck"] } else { &[] })
        }),
        "memory" => device.parse::<Device>().map_err(Failed::from).and_then(|device| exhausted(&device)),
        _ => Err(format!("unknown scenario {name}").into()),
    };
    match outcome {
        Ok(report) => println!("ok: {report}"),
        Err(error) => println!("error: {}", error.message().unwrap_or("unknown")),
    }
    process::exit(0);
}

/// Runs a scenario in a process of its own and gives the line that it prints. `limit` bounds its memory in KiB.
pub(crate) fn run(scenario: &str, variables: &[(&str, &OsStr)], limit: Option<u64>) -> Result<String, Failed> {
    let program = env::current_exe()?;
    let mut command = match limit {
        None => Command::new(program),
        Some(kib) => {
            let mut shell = Command::new("sh");
            shell.arg("-c").arg(format!("ulimit -v {kib} && exec \"$0\"")).arg(program);
            shell
        }
    };
    command.env(VARIABLE, scenario).env_remove(evariste::backend::DEVICE_VARIABLE).envs(variables.iter().copied());
    let output = command.output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    let report = text.lines().find(|line| line.starts_with("ok: ") || line.starts_with("error: "));
    match (output.status.success(), report) {
        (true, Some(report)) => Ok(report.to_owned()),
        _ => Err(format!("{scenario}: {}: {text}{}", output.status, String::from_utf8_lossy(&output.stderr)).into()),
    }
}

fn checked_ntt(device: &Device) -> Result<String, Failed> {
    let x = samples::<Fr>(1 << 12, 20);
    let mut data = device.upload(&x)?;
    Ntt::new(device, 12)?.forward(&mut data)?;
    let domain = Radix2EvaluationDomain::<Fr>::new(x.len()).ok_or("no domain")?;
    expect_same("forward", &data.to_vec()?, &domain.fft(&x))?;
    let stats = device.stats();
    Ok(format!("{} compiled, {} from the cache", stats.compiled, stats.cache_hits))
}

/// The counters of a forward transform on a resident buffer, at several sizes.
fn launches(device: &Device) -> Result<String, Failed> {
    let mut report = String::new();
    for log_n in [4, 12, 17] {
        let ntt = Ntt::<Fr>::new(device, log_n)?;
        let mut data = device.upload(&samples(1 << log_n, 12))?;
        device.sync()?;
        let before = device.stats();
        ntt.forward(&mut data)?;
        device.sync()?;
        let after = device.stats();
        let copies = (after.writes - before.writes, after.reads - before.reads);
        expect_equal("host copies", &copies, &(0, 0))?;
        expect_equal("bytes up and down", &(after.bytes_up, after.bytes_down), &(before.bytes_up, before.bytes_down))?;
        let launches = after.launches - before.launches;
        expect_equal("launches", &launches, &(ntt.passes_per_transform() as u64))?;
        expect("at most four launches", launches <= 4)?;
        report += &format!("{launches} launches at 2^{log_n}; ");
    }
    Ok(report)
}

/// A plan holds the same over every field, and an emulated GPU multiplies numbers of one limb far faster.
fn few_or_many_cycles(device: &Device) -> Result<String, Failed> {
    if is_emulated(device) { cycles::<BabyBear>(device) } else { cycles::<Fr>(device) }
}

/// Growth of memory over many plans, in bytes of this process and of the device, and how much of it is allowed.
fn cycles<F: DeviceField + FftField>(device: &Device) -> Result<String, Failed> {
    let x = samples::<F>(1 << 12, 21);
    let mut growth = Vec::new();
    // An emulated GPU takes milliseconds for each, and a leaked buffer shows after a few.
    let cycles = if device.info().features.software || is_checked_cpu(device) { CYCLES / 8 } else { CYCLES };
    for _ in 0..WINDOWS {
        let before = (resident_bytes(), held_bytes(device));
        for _ in 0..cycles {
            let ntt = Ntt::<F>::new(device, 12)?;
            let mut data = device.upload::<Mont<F>>(&x)?;
            ntt.forward(&mut data)?;
        }
        device.sync()?;
        growth.push((resident_bytes().saturating_sub(before.0), held_bytes(device).saturating_sub(before.1)));
    }
    let resident = growth.iter().skip(1).map(|growth| growth.0).min().unwrap_or(0);
    let held = growth.iter().skip(1).map(|growth| growth.1).min().unwrap_or(0);
    let allowed = GROWTH * cycles as u64 / CYCLES as u64;
    Ok(format!("{resident} resident, {held} device, {allowed} allowed; all: {growth:?}"))
}

fn held_bytes(device: &Device) -> u64 {
    let stats = device.stats();
    stats.bytes_live + stats.bytes_pooled
}

/// Zero where the system does not tell.
fn resident_bytes() -> u64 {
    let kib = |status: String| -> Option<u64> {
        status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?.trim().strip_suffix(" kB")?.parse().ok()
    };
    fs::read_to_string("/proc/self/status").ok().and_then(kib).unwrap_or(0) << 10
}

/// Takes memory until an allocation fails, then works on.
fn exhausted(device: &Device) -> Result<String, Failed> {
    checked_ntt(device)?;
    let mut held = Vec::new();
    let error = loop {
        match device.alloc::<u8>(256 << 20) {
            Ok(buffer) => held.push(buffer),
            Err(error) => break error,
        }
        if held.len() > 4096 {
            return Err("memory has no end".into());
        }
    };
    let count = held.len();
    drop(held);
    checked_ntt(device)?;
    Ok(format!("after {count} buffers: {error}"))
}
