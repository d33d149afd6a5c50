//! What was measured, as JSON and as tables of all cases.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt, fs,
    path::Path,
};

use anyhow::{Context, Result};
use evariste_machine::{
    devices::{DeviceEntry, Missing},
    host::{Host, commit},
    table::{Table, bytes},
};
use serde::Serialize;

use crate::{
    algorithms::ntt::with_relative_efficiency,
    coverage::Coverage,
    ladder::{self, Rates, Rung},
    limits::Limits,
    session::{self, Measurements, Record, Skipped},
    target::Target,
    timing::{self, Budget},
};

/// How it was measured, in words.
#[derive(Debug, Serialize)]
pub(crate) struct Settings {
    #[serde(rename = "profile")]
    coverage: Coverage,
    timing: String,
    throughput: &'static str,
    relative_efficiency: &'static str,
    of_limit: &'static str,
    copy_bytes_per_s: &'static str,
    mul_per_s: &'static str,
    host_cases: &'static str,
    of_parts: &'static str,
    plan_cases: &'static str,
    aes_cases: &'static str,
}

impl Settings {
    pub(crate) fn of(coverage: Coverage) -> Self {
        let (usual, brief) = (Budget::of(coverage), Budget::brief());
        Self {
            coverage,
            timing: format!(
                "after warm-up, the median (beside it the mean and the variance) over at least {} runs and {:?}, of AES {} and \
                 {:?}; a run queues `batch` iterations, enough for {:?} but at most {}, then waits for the device, and its time is divided by `batch`",
                usual.runs,
                usual.time,
                brief.runs,
                brief.time,
                timing::RUN_TIME,
                timing::MAX_BATCH,
            ),
            throughput: "elements in a second",
            relative_efficiency: "N log2 N bits^2 in a second, for transforms of N elements in all, bits those of the modulus",
            of_limit: "the larger of multiplications / mul_per_s and bytes / copy_bytes_per_s, divided by the median; \
                       `limit` says which; for a transform of n elements (n/2) log2 n multiplications, and the bytes \
                       of the elements read once and written once; a multiplication counts by the square of its limbs",
            copy_bytes_per_s: "bytes read plus bytes written by a copy within the device, of a buffer beyond its caches",
            mul_per_s: "multiplications in BLS12-381 Fr, in long chains on many elements",
            host_cases: "host slice to host slice: upload, transform and download, with plan and buffers made before",
            of_parts: "the median divided by that of the case `-in-turn`, where upload, kernel and download of the whole \
                       data wait for each other",
            aes_cases: "elements are bytes; CTR and GCM by all methods and lengths of keys, of which names without a method are \
                        by the fastest; XTS (sectors of 4 KiB) and CBC by the fastest and by the bitsliced one; `no-stride`: \
                        a thread for each part of the data in place of a stride over it; host slices without `crossover` \
                        pass through the device at every length; queues: as many as the name says, else 4; up to 4 GiB \
                        on GPUs, host cases of queues and of other modes than CTR up to 1 GiB; peers work on one thread, \
                        with keys expanded before, and so do the \
                        cases `one-thread`; what is opened is copied before the time starts",
            plan_cases: "one process each: making a plan on an open device, with empty and with filled kernel caches",
        }
    }
}

/// A device and its limits.
#[derive(Debug, Serialize)]
pub(crate) struct MeasuredDevice {
    #[serde(flatten)]
    pub(crate) entry: DeviceEntry,
    #[serde(flatten)]
    pub(crate) limits: Limits,
}

impl From<(DeviceEntry, Limits)> for MeasuredDevice {
    fn from((entry, limits): (DeviceEntry, Limits)) -> Self {
        Self { entry, limits }
    }
}

/// The machine's host and devices.
#[derive(Debug, Serialize)]
pub(crate) struct Machine {
    #[serde(flatten)]
    pub(crate) host: Host,
    pub(crate) devices: Vec<MeasuredDevice>,
    /// Devices that are not there, and why.
    pub(crate) missing: Vec<Missing>,
}

/// All there is to tell.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    pub(crate) machine: Machine,
    pub(crate) commit: String,
    pub(crate) settings: Settings,
    pub(crate) failures: Vec<String>,
    pub(crate) skipped: Vec<Skipped>,
    /// Methods, grid-stride loops and queues of AES-128, side by side.
    pub(crate) ladder: Vec<Rung>,
    pub(crate) records: Vec<Record>,
}

impl Report {
    pub(crate) fn new(targets: &[Target], missing: Vec<Missing>, coverage: Coverage, measured: Measurements) -> Self {
        let device = |target: &Target| (DeviceEntry::from(target.device.info()), target.limits).into();
        let Measurements { records, skipped, failures } = measured;
        Self {
            machine: Machine { host: Host::here(), devices: targets.iter().map(device).collect(), missing },
            commit: commit(),
            settings: Settings::of(coverage),
            failures,
            skipped,
            ladder: ladder::ladder(&records),
            records: with_relative_efficiency(session::with_shares(session::with_speedups(records))),
        }
    }

    /// Writes the report as JSON.
    pub(crate) fn write(&self, path: &Path) -> Result<()> {
        let text = serde_json::to_string_pretty(self).context("the results as JSON")?;
        fs::write(path, text + "\n").with_context(|| format!("writing {}", path.display()))?;
        eprintln!("written to {}", path.display());
        Ok(())
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Machine { host, devices, missing } = &self.machine;
        writeln!(
            f,
            "{} ({} threads), {} {}, commit {}\n",
            host.cpu, host.cores, host.os, host.architecture, self.commit
        )?;
        let mut table = Table::new(3, &["device", "name", "driver", "copy", "mul (BLS12-381 Fr)"]);
        for MeasuredDevice { entry, limits } in devices {
            let copy = format!("{}B/s", scaled(limits.copy_bytes_per_s));
            let mul = format!("{}/s", scaled(limits.mul_per_s));
            table.row([entry.device.clone(), entry.name.clone(), entry.driver.clone(), copy, mul]);
        }
        writeln!(f, "{}", table.render())?;
        for Missing { device, reason } in missing {
            writeln!(f, "{device}: not measured: {reason}")?;
        }
        let mut algorithms: Vec<&str> = self.records.iter().map(|record| record.algorithm).collect();
        algorithms.dedup();
        for algorithm in algorithms {
            let records: Vec<&Record> = self.records.iter().filter(|r| r.algorithm == algorithm).collect();
            writeln!(f, "\n{}", records_table(records).render())?;
        }
        if !self.ladder.is_empty() {
            writeln!(
                f,
                "\nAES-128, from the plain cipher to the fastest, GB/s\n\n{}",
                ladder_table(&self.ladder).render()
            )?;
        }
        let aes: Vec<&Record> = self.records.iter().filter(|r| r.algorithm == "aes").collect();
        for (place, title) in [
            ("device", "data on the device"),
            ("host", "host slices"),
            ("one-thread", "host slices, one thread"),
            ("pinned", "pinned host memory"),
        ] {
            if let Some(table) = sizes_table(&aes, place) {
                writeln!(f, "\nAES, {title}, GB/s\n\n{}", table.render())?;
            }
        }
        for Skipped { device, case, log_n, reason } in &self.skipped {
            writeln!(f, "skipped {device}: {case} 2^{log_n}: {reason}")?;
        }
        for failure in &self.failures {
            writeln!(f, "FAILED {failure}")?;
        }
        Ok(())
    }
}

fn records_table(mut records: Vec<&Record>) -> Table {
    records.sort_by_key(|record| (record.device.clone(), record.peer, record.case.clone(), record.log_n));
    let head = ["device", "case", "size", "time", "elements/s", "of limit", "of parts", "vs peer", "checked"];
    let mut table = Table::new(2, &head);
    for record in records {
        let by = record.peer.map(|peer| format!(" {peer}")).unwrap_or_default();
        table.row([
            format!("{}{by}", record.device),
            record.case.clone(),
            format!("2^{}", record.log_n),
            time(record.median_ms),
            record.throughput.map_or_else(|| "–".into(), scaled),
            record.of_limit.map_or_else(|| "–".into(), |share| format!("{:.1}%", 100.0 * share)),
            record.of_parts.map_or_else(|| "–".into(), |share| format!("{share:.2}×")),
            record.speedup.as_ref().map_or_else(|| "–".into(), |speedup| format!("{:.2}×", speedup.ratio)),
            record.checked.clone(),
        ]);
    }
    table
}

/// One line for each case whose data lies at `place`, one column for each size.
fn sizes_table(records: &[&Record], place: &str) -> Option<Table> {
    let mut lines: BTreeMap<(&str, Option<&str>, &str), Rates> = BTreeMap::new();
    for record in records {
        if let (Some((task, at)), Some(throughput)) = (record.case.rsplit_once('/'), record.throughput)
            && at == place
        {
            lines.entry((&record.device, record.peer, task)).or_default().insert(record.log_n, throughput);
        }
    }
    let lines: Vec<_> = lines
        .iter()
        .map(|((device, peer, task), rates)| {
            let by = peer.map(|peer| format!(" {peer}")).unwrap_or_default();
            (format!("{device}{by}"), (*task).to_owned(), rates)
        })
        .collect();
    (!lines.is_empty()).then(|| rates_table(&lines))
}

fn ladder_table(ladder: &[Rung]) -> Table {
    let lines: Vec<_> =
        ladder.iter().map(|rung| (rung.device.clone(), rung.name.to_owned(), &rung.bytes_per_s)).collect();
    rates_table(&lines)
}

/// Lines of a device, what it does, and its rates in units of 10^9.
fn rates_table(lines: &[(String, String, &Rates)]) -> Table {
    let sizes: BTreeSet<u32> = lines.iter().flat_map(|(.., rates)| rates.keys().copied()).collect();
    let head: Vec<String> =
        ["device", "case"].map(String::from).into_iter().chain(sizes.iter().map(|log| bytes(*log))).collect();
    let mut table = Table::new(2, &head.iter().map(String::as_str).collect::<Vec<_>>());
    for (device, case, rates) in lines {
        let cell = |size: &u32| rates.get(size).map_or_else(|| "–".into(), |rate| three_digits(rate / 1e9));
        table.row([device.clone(), case.clone()].into_iter().chain(sizes.iter().map(cell)));
    }
    table
}

/// A number of three digits and its unit's prefix.
pub(crate) fn scaled(value: f64) -> String {
    let prefixes = [(1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")];
    let (unit, prefix) = prefixes.into_iter().find(|(unit, _)| value >= *unit).unwrap_or((1.0, ""));
    format!("{} {prefix}", three_digits(value / unit))
}

pub(crate) fn time(milliseconds: f64) -> String {
    let units = [(1e3, "s"), (1.0, "ms"), (1e-3, "µs")];
    let (unit, name) = units.into_iter().find(|(unit, _)| milliseconds >= *unit).unwrap_or((1e-6, "ns"));
    format!("{} {name}", three_digits(milliseconds / unit))
}

fn three_digits(value: f64) -> String {
    let decimals = if value < 9.995 { 2 } else { usize::from(value < 99.95) };
    format!("{value:.decimals$}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_three_digits() {
        assert_eq!([4.012e12, 67e9, 999.0, 0.0].map(scaled), ["4.01 T", "67.0 G", "999 ", "0.00 "]);
        assert_eq!([1234.0, 12.34, 0.2761, 2.5e-6].map(time), ["1.23 s", "12.3 ms", "276 µs", "2.50 ns"]);
    }
}
