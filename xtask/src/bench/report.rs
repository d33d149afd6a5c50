//! What was measured: as it is collected, as JSON, and as tables.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    io::{self, IsTerminal},
    time::Duration,
};

use anyhow::Result;
use serde::Serialize;

use super::{
    Algorithm, Options, Profile,
    aes::{IN_TURN, Rung},
    is_too_large,
    limits::{Bound, Limits},
    timing::{self, Budget, Timing},
};
use crate::{
    devices::Missing,
    machine::{DeviceEntry, Host},
    table::Table,
};

/// What is measured.
#[derive(Debug)]
pub(crate) struct Case {
    pub(crate) algorithm: Algorithm,
    pub(crate) name: String,
    pub(crate) device: String,
    pub(crate) peer: Option<&'static str>,
    pub(crate) log_n: u32,
    /// Elements worked on, of all transforms together.
    pub(crate) elements: Option<usize>,
    /// The shortest time in seconds by the device's limits, and what bounds it.
    pub(crate) floor: Option<(f64, Bound)>,
}

/// A result.
#[derive(Debug, Serialize)]
pub(crate) struct Record {
    algorithm: Algorithm,
    pub(crate) case: String,
    pub(crate) device: String,
    pub(crate) peer: Option<&'static str>,
    pub(crate) log_n: u32,
    elements: Option<usize>,
    median_ms: f64,
    min_ms: f64,
    runs: usize,
    /// Iterations of a run.
    batch: u32,
    /// Kernel launches of one iteration.
    launches: Option<u64>,
    /// Elements in a second.
    pub(crate) throughput: Option<f64>,
    of_limit: Option<f64>,
    limit: Option<Bound>,
    checked: String,
    /// How many times faster than the fastest peer.
    speedup: Option<Speedup>,
    /// The time as a share of that of its parts one after the other.
    of_parts: Option<f64>,
}

#[derive(Debug, Serialize)]
struct Speedup {
    peer: &'static str,
    ratio: f64,
}

/// A case that a device has no room for.
#[derive(Debug, Serialize)]
pub(crate) struct Skipped {
    device: String,
    case: String,
    log_n: u32,
    reason: String,
}

/// Results as they come in.
#[derive(Debug)]
pub(crate) struct Session {
    /// For the cases to come.
    pub(crate) budget: Budget,
    /// Parts of names, of which a case must have one; all cases if there are none.
    wanted: Vec<String>,
    pub(crate) progress: Progress,
    pub(crate) records: Vec<Record>,
    pub(crate) skipped: Vec<Skipped>,
    pub(crate) failures: Vec<String>,
}

impl Session {
    pub(crate) fn new(budget: Budget, wanted: Vec<String>) -> Self {
        let progress = Progress { terminal: io::stderr().is_terminal() };
        Self { budget, wanted, progress, records: Vec::new(), skipped: Vec::new(), failures: Vec::new() }
    }

    /// Measures one case: `work` checks the result, times it, and tells the launches and the check that was made.
    pub(crate) fn measure(&mut self, case: Case, work: impl FnOnce(&Budget) -> Result<(Timing, Option<u64>, String)>) {
        let Case { algorithm, name, device, peer, log_n, elements, floor } = case;
        if !self.wanted.is_empty() && !self.wanted.iter().any(|text| name.contains(text.as_str())) {
            return;
        }
        let by = peer.map(|peer| format!(" by {peer}")).unwrap_or_default();
        self.progress.step(&format!("{device}: {name} 2^{log_n}{by}"));
        match work(&self.budget) {
            Ok((timing, launches, checked)) => {
                let seconds = timing.median.as_secs_f64();
                self.records.push(Record {
                    algorithm,
                    case: name,
                    device,
                    peer,
                    log_n,
                    elements,
                    median_ms: milliseconds(timing.median),
                    min_ms: milliseconds(timing.min),
                    runs: timing.runs,
                    batch: timing.batch,
                    launches,
                    throughput: elements.map(|elements| elements as f64 / seconds),
                    of_limit: floor.map(|(floor, _)| floor / seconds),
                    limit: floor.map(|(_, bound)| bound),
                    checked,
                    speedup: None,
                    of_parts: None,
                });
            }
            Err(error) if is_too_large(&error) => {
                self.skipped.push(Skipped { device, case: name, log_n, reason: error.to_string() });
            }
            Err(error) => self.failures.push(format!("{device}: {name} 2^{log_n}{by}: {error:#}")),
        }
    }
}

fn milliseconds(time: Duration) -> f64 {
    1e3 * time.as_secs_f64()
}

/// What is going on, on the standard error: one line that changes on a terminal, else a line a step.
#[derive(Debug)]
pub(crate) struct Progress {
    terminal: bool,
}

impl Progress {
    pub(crate) fn step(&self, what: &str) {
        match self.terminal {
            true => eprint!("\r\x1b[K{what}"),
            false => eprintln!("{what}"),
        }
    }

    pub(crate) fn finish(&self) {
        if self.terminal {
            eprint!("\r\x1b[K");
        }
    }
}

/// Sets how many times faster each record is than the fastest peer's of the same task and size, wherever the data of either lies.
pub(crate) fn with_speedups(mut records: Vec<Record>) -> Vec<Record> {
    let task = |record: &Record| (record.case.rsplit_once('/').map(|(task, _)| task.to_owned()), record.log_n);
    let peers: Vec<_> =
        records.iter().filter_map(|record| Some((task(record), record.peer?, record.median_ms))).collect();
    for record in records.iter_mut().filter(|record| record.peer.is_none()) {
        let peers = peers.iter().filter(|(of, ..)| *of == task(record));
        let peer = peers.min_by(|a, b| a.2.total_cmp(&b.2));
        record.speedup = peer.map(|&(_, peer, median_ms)| Speedup { peer, ratio: median_ms / record.median_ms });
    }
    records
}

/// Sets which share each overlapped transfer takes of the time of its parts one after the other.
pub(crate) fn with_shares(mut records: Vec<Record>) -> Vec<Record> {
    let in_turn = |case: &str| case.rsplit_once('/').map(|(task, place)| format!("{task}{IN_TURN}/{place}"));
    let parts: Vec<_> = records.iter().map(|r| (r.device.clone(), r.case.clone(), r.log_n, r.median_ms)).collect();
    for record in records.iter_mut().filter(|record| record.peer.is_none()) {
        let Some(case) = in_turn(&record.case) else { continue };
        let sum = parts.iter().find(|part| (&part.0, &part.1, part.2) == (&record.device, &case, record.log_n));
        record.of_parts = sum.map(|part| record.median_ms / part.3);
    }
    records
}

/// How it was measured, in words.
#[derive(Debug, Serialize)]
pub(crate) struct Settings {
    profile: Profile,
    timing: String,
    throughput: &'static str,
    of_limit: &'static str,
    copy_bytes_per_s: &'static str,
    mul_per_s: &'static str,
    host_cases: &'static str,
    of_parts: &'static str,
    plan_cases: &'static str,
    aes_cases: &'static str,
}

impl Settings {
    pub(crate) fn of(options: &Options) -> Self {
        let (usual, brief) = (Budget::of(options.profile), Budget::brief());
        Self {
            profile: options.profile,
            timing: format!(
                "after warm-up, the median over at least {} runs and {:?}, of AES {} and {:?}; a run queues `batch` \
                 iterations, enough for {:?} but at most {}, then waits for the device, and its time is divided by `batch`",
                usual.runs,
                usual.time,
                brief.runs,
                brief.time,
                timing::RUN_TIME,
                timing::MAX_BATCH,
            ),
            throughput: "elements in a second",
            of_limit: "the larger of multiplications / mul_per_s and bytes / copy_bytes_per_s, divided by the median; \
                       `limit` says which; for a transform of n elements (n/2) log2 n multiplications, and the bytes \
                       of the elements read once and written once",
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
    entry: DeviceEntry,
    #[serde(flatten)]
    limits: Limits,
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
        for algorithm in [Algorithm::Field, Algorithm::Ntt, Algorithm::Aes] {
            let records: Vec<&Record> = self.records.iter().filter(|r| r.algorithm == algorithm).collect();
            if !records.is_empty() {
                writeln!(f, "\n{}", records_table(records).render())?;
            }
        }
        if !self.ladder.is_empty() {
            writeln!(
                f,
                "\nAES-128, from the plain cipher to the fastest, GB/s\n\n{}",
                ladder_table(&self.ladder).render()
            )?;
        }
        let aes: Vec<&Record> = self.records.iter().filter(|r| r.algorithm == Algorithm::Aes).collect();
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

/// Throughput by log₂ of the size.
pub(crate) type Rates = BTreeMap<u32, f64>;

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
    let head: Vec<String> = ["device", "case"].map(String::from).into_iter().chain(sizes.iter().map(bytes)).collect();
    let mut table = Table::new(2, &head.iter().map(String::as_str).collect::<Vec<_>>());
    for (device, case, rates) in lines {
        let cell = |size: &u32| rates.get(size).map_or_else(|| "–".into(), |rate| three_digits(rate / 1e9));
        table.row([device.clone(), case.clone()].into_iter().chain(sizes.iter().map(cell)));
    }
    table
}

/// A size in bytes, from its logarithm.
fn bytes(log: &u32) -> String {
    let (unit, name) =
        [(30, "GiB"), (20, "MiB"), (10, "KiB")].into_iter().find(|(unit, _)| log >= unit).unwrap_or((0, "B"));
    format!("{} {name}", 1_u64 << (log - unit))
}

/// A number of three digits and its unit's prefix.
fn scaled(value: f64) -> String {
    let prefixes = [(1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")];
    let (unit, prefix) = prefixes.into_iter().find(|(unit, _)| value >= *unit).unwrap_or((1.0, ""));
    format!("{} {prefix}", three_digits(value / unit))
}

fn time(milliseconds: f64) -> String {
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
    fn sizes_are_told_in_bytes() {
        assert_eq!([0, 10, 19, 20, 32].map(|log| bytes(&log)), ["1 B", "1 KiB", "512 KiB", "1 MiB", "4 GiB"]);
    }

    #[test]
    fn numbers_have_three_digits() {
        assert_eq!([4.012e12, 67e9, 999.0, 0.0].map(scaled), ["4.01 T", "67.0 G", "999 ", "0.00 "]);
        assert_eq!([1234.0, 12.34, 0.2761, 2.5e-6].map(time), ["1.23 s", "12.3 ms", "276 µs", "2.50 ns"]);
    }
}
