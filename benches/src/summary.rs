//! The summary: a row for each headline and device, for the first run of the bench.

use std::fmt;

use evariste_machine::{devices::Missing, table::Table};

use crate::{
    limits::Bound,
    report::{Machine, MeasuredDevice, Report, scaled, time},
    session::{Headline, Record},
};

/// A report by its headlines.
#[derive(Debug)]
pub(crate) struct Summary<'a> {
    pub(crate) report: &'a Report,
    pub(crate) headlines: &'a [Headline],
    /// What `--only` understands.
    pub(crate) names: &'a [&'static str],
}

impl fmt::Display for Summary<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Report { machine: Machine { host, devices, missing }, failures, skipped, .. } = self.report;
        writeln!(f, "{} ({} threads), {} {}", host.cpu, host.cores, host.os, host.architecture)?;
        for MeasuredDevice { entry, limits } in devices {
            let (copy, mul) = (scaled(limits.copy_bytes_per_s), scaled(limits.mul_per_s));
            let of_host = if entry.name == host.cpu { String::new() } else { format!("{}, ", entry.name) };
            writeln!(f, "{}: {of_host}copies {copy}B/s, multiplies {mul}/s in BLS12-381 Fr", entry.device)?;
        }
        for Missing { device, reason } in missing {
            writeln!(f, "{device}: not measured: {}", first_clause(reason))?;
        }
        writeln!(f, "\n{}\n", self.table().render())?;
        for skipped in skipped {
            writeln!(f, "skipped {}: {} 2^{}: {}", skipped.device, skipped.case, skipped.log_n, skipped.reason)?;
        }
        failures.iter().try_for_each(|failure| writeln!(f, "FAILED {failure}"))?;
        write!(
            f,
            "Each result was checked before it was timed. More: --only {} (all cases of one), --profile full (all sizes), \
             --json FILE",
            self.names.join("|")
        )
    }
}

impl Summary<'_> {
    fn table(&self) -> Table {
        let mut table = Table::new(2, &["device", "algorithm", "size", "time", "rate", "of limit", "to a peer"]);
        for MeasuredDevice { entry, .. } in &self.report.machine.devices {
            for headline in self.headlines {
                if let Some(record) = self.record(&entry.device, headline) {
                    table.row(row(headline, record));
                }
            }
        }
        table
    }

    /// The largest that was measured.
    fn record(&self, device: &str, headline: &Headline) -> Option<&Record> {
        let of_row =
            |record: &&Record| record.device == device && record.case == headline.case && record.peer.is_none();
        self.report.records.iter().filter(of_row).max_by_key(|record| record.log_n)
    }
}

fn row(headline: &Headline, record: &Record) -> [String; 7] {
    let unit = if record.algorithm == "aes" { "B/s" } else { "/s" };
    let bound = |bound| match bound {
        Bound::Multiplications => "mul",
        Bound::Copy => "copy",
    };
    let none = || "–".to_owned();
    [
        record.device.clone(),
        headline.title.to_owned(),
        format!("2^{}", record.log_n),
        time(record.median_ms),
        record.throughput.map_or_else(none, |rate| format!("{}{unit}", scaled(rate))),
        record
            .of_limit
            .zip(record.limit)
            .map_or_else(none, |(share, limit)| format!("{:.0}% {}", 100.0 * share, bound(limit))),
        record.speedup.as_ref().map_or_else(none, |speedup| format!("{:.2}× {}", speedup.ratio, speedup.peer)),
    ]
}

/// A reason up to its remedy. The JSON has the full text, and so does the failure of a device that the caller named.
fn first_clause(reason: &str) -> &str {
    [": ", "; ", "\n"].iter().fold(reason, |reason, end| reason.split(end).next().unwrap_or(reason))
}
