//! One page of all results: charts, ratios to peers, the founding comparisons, history.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
};

use anyhow::{Context, Result};
use evariste_machine::process;

use crate::{
    Record, Results, Section, Table,
    chart::{Chart, Line, escaped},
    comparisons,
    section::digits,
};

/// What a chart's vertical axis has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Axis {
    Milliseconds,
    /// 10^9 bytes in a second.
    Rate,
    /// The share of the device's limit.
    Limit,
}

/// A chart over all devices: its title, its axis, and the cases of its lines with what they are called.
struct Plot {
    title: &'static str,
    axis: Axis,
    cases: &'static [(&'static str, &'static str)],
}

const TRANSFORMS: Plot = Plot {
    title: "One transform in device memory",
    axis: Axis::Milliseconds,
    cases: &[
        ("BLS12-381 Fr", "bls12-381-fr/forward/natural/device"),
        ("Goldilocks", "goldilocks/forward/natural/device"),
        ("BabyBear", "baby-bear/forward/natural/device"),
    ],
};

const SUMS: Plot = Plot {
    title: "A sum of points, scalars and bases in device memory",
    axis: Axis::Milliseconds,
    cases: &[
        ("BLS12-381 G1", "bls12-381-g1/random/device"),
        ("BLS12-381 G1, tables", "bls12-381-g1/random/tables/device"),
        ("BN254 G1", "bn254-g1/random/device"),
    ],
};

const PLOTS: [Plot; 9] = [
    TRANSFORMS,
    Plot {
        title: "One transform of BLS12-381 Fr, share of the device's limit",
        axis: Axis::Limit,
        cases: &[("", "bls12-381-fr/forward/natural/device")],
    },
    SUMS,
    Plot {
        title: "A sum of points, share of the device's limit",
        axis: Axis::Limit,
        cases: &[("", "bls12-381-g1/random/device")],
    },
    Plot {
        title: "A zero-check of A·B − C over BLS12-381 Fr",
        axis: Axis::Milliseconds,
        cases: &[("", "bls12-381-fr/zero-check/device")],
    },
    Plot {
        title: "Square roots of a batch",
        axis: Axis::Milliseconds,
        cases: &[("BLS12-381 Fr", "bls12-381-fr/roots/device"), ("Goldilocks", "goldilocks/roots/device")],
    },
    Plot {
        title: "AES-128 in device memory",
        axis: Axis::Rate,
        cases: &[("CTR", "aes-128-ctr/device"), ("GCM", "aes-128-gcm-seal/device"), ("XTS", "aes-128-xts/device")],
    },
    Plot {
        title: "AES-128-CTR with its transfers",
        axis: Axis::Rate,
        cases: &[("four queues", "aes-128-ctr/pinned"), ("in turn", "aes-128-ctr-in-turn/pinned")],
    },
    Plot {
        title: "AES-128-CTR in device memory, share of the device's limit",
        axis: Axis::Limit,
        cases: &[("", "aes-128-ctr/device")],
    },
];

/// Where the charts of README lie, from the repository's root.
pub const CHARTS: &str = "docs/charts";

impl Axis {
    fn title(self) -> &'static str {
        match self {
            Axis::Milliseconds => "ms",
            Axis::Rate => "GB/s",
            Axis::Limit => "% of the limit",
        }
    }

    fn of(self, record: &Record) -> Option<f64> {
        match self {
            Axis::Milliseconds => Some(record.median_ms),
            Axis::Rate => record.throughput.map(|rate| rate / 1e9),
            Axis::Limit => record.of_limit.map(|share| 100.0 * share),
        }
    }
}

/// Parts of devices' names that tell nobody anything.
const NOISE: [&str; 4] = ["NVIDIA ", "Intel(R) ", "(R)", " Processor"];

/// A device as people speak of it: without its maker, and with what it was reached through.
fn spoken(results: &Results, device: &str) -> String {
    let found = results.machine.devices.iter().find(|entry| entry.device == device);
    let name = found.map_or(device, |entry| entry.name.as_str());
    let name = NOISE.iter().fold(name.to_owned(), |name, part| name.replace(part, ""));
    match device.split(':').next() {
        Some("cuda") => format!("{name}, CUDA"),
        Some("wgpu") => format!("{name}, portable"),
        _ => format!("{name}, {} threads", results.machine.cores),
    }
}

impl Plot {
    /// A line for each device and case. Of the files the first that has a case at a size counts.
    fn chart<'a>(&self, files: impl IntoIterator<Item = &'a Results>) -> Chart {
        let mut lines: BTreeMap<(usize, String), BTreeMap<u32, f64>> = BTreeMap::new();
        for results in files {
            for record in results.records.iter().filter(|record| record.peer.is_none()) {
                let place = self.cases.iter().position(|(_, case)| *case == record.case);
                if let Some((place, value)) = place.zip(self.axis.of(record)) {
                    let line = lines.entry((place, spoken(results, &record.device))).or_default();
                    line.entry(record.log_n).or_insert(value);
                }
            }
        }
        let line = |((place, device), points): ((usize, String), BTreeMap<u32, f64>)| {
            let name = match self.cases[place].0 {
                "" => device,
                case => format!("{case}, {device}"),
            };
            Line { name, points: points.into_iter().collect() }
        };
        let lines = lines.into_iter().map(line).filter(|line| line.points.len() > 1).collect();
        Chart { title: self.title.into(), axis: self.axis.title(), lines }
    }
}

/// Charts of a plot: one for each of its cases where one alone would have too many lines to tell apart.
fn drawn(plot: &Plot, files: &[&Results]) -> Vec<Chart> {
    let chart = plot.chart(files.iter().copied());
    if chart.lines.len() <= MAX_LINES {
        return vec![chart];
    }
    let of_case = |case: &'static [(&'static str, &'static str); 1]| {
        let title = format!("{}, {}", plot.title, case[0].0);
        let chart = Plot { cases: case, ..*plot }.chart(files.iter().copied());
        Chart { title, ..chart }
    };
    plot.cases.as_chunks().0.iter().map(of_case).collect()
}

/// Lines that a reader can tell apart.
const MAX_LINES: usize = 6;

/// The page, from all results below a root.
///
/// # Errors
/// If a file of results is missing or damaged.
pub fn page(root: &Path) -> Result<String> {
    let mut files = Results::read_folder(&root.join(comparisons::RESULTS))?;
    // The newest first, as far as the history is there.
    files.sort_by_cached_key(|(name, results)| (Reverse(age(root, &results.commit)), name.clone()));
    let files: Vec<&Results> = files.iter().map(|(_, results)| results).collect();
    let all = |results: &&Results| -> Vec<String> {
        results.machine.devices.iter().map(|device| spoken(results, &device.device)).collect()
    };
    let devices: BTreeSet<String> = files.iter().flat_map(all).collect();
    let mut body = format!(
        "<h1>Evariste, measured</h1>\n<p>{} files of results, on {}. Each result was checked before it was timed; times are \
         medians.</p>\n<h2>By size</h2>\n",
        files.len(),
        escaped(&devices.into_iter().collect::<Vec<_>>().join("; "))
    );
    for chart in PLOTS.iter().flat_map(|plot| drawn(plot, &files)).filter(|chart| !chart.lines.is_empty()) {
        body += &format!("<figure>{}</figure>\n", chart.svg()?);
    }
    body += "<h2>Beside other libraries</h2>\n<p>How many times faster than the fastest peer of the same run on the CPU.</p>\n";
    body += &html_table(&peers(&files));
    body += "<h2>The founding documents</h2>\n";
    comparisons::sections(root)?.iter().for_each(|section| body += &html_section(section));
    body += "<h2>By commit</h2>\n<p>What was recorded at several commits on one device, the newest first, in ms.</p>\n";
    body += &html_table(&history(&files));
    Ok(format!("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n{HEAD}</head>\n<body>\n{body}</body>\n</html>\n"))
}

/// Writes the page.
///
/// # Errors
/// As [`page`], and if it cannot be written.
pub fn write(root: &Path, file: &Path) -> Result<()> {
    fs::write(file, page(root)?).with_context(|| format!("writing {}", file.display()))
}

/// The charts of README: the names of their files, and what is in them.
///
/// # Errors
/// If a file of results is missing or damaged.
pub fn charts(root: &Path) -> Result<[(&'static str, String); 2]> {
    let files = comparisons::files(root)?;
    let chart = |plot: &Plot| plot.chart(files.iter().map(|(_, results)| results)).svg();
    Ok([("ntt.svg", chart(&TRANSFORMS)?), ("msm.svg", chart(&SUMS)?)])
}

/// Writes the charts of README.
///
/// # Errors
/// As [`charts`], and if they cannot be written.
pub fn write_charts(root: &Path) -> Result<()> {
    let folder = root.join(CHARTS);
    fs::create_dir_all(&folder).with_context(|| format!("making {}", folder.display()))?;
    for (name, svg) in charts(root)? {
        let path = folder.join(name);
        fs::write(&path, svg).with_context(|| format!("writing {}", path.display()))?;
    }
    Ok(())
}

/// How many commits a commit follows, with itself: 0 where the history is not there.
fn age(root: &Path, commit: &str) -> u64 {
    let commit = commit.trim_end_matches("-dirty");
    let arguments = ["-C", &root.to_string_lossy(), "rev-list", "--count", commit, "--"];
    process::output("git", &arguments).ok().and_then(|count| count.trim().parse().ok()).unwrap_or(0)
}

fn peers(files: &[&Results]) -> Table {
    let mut table = Table::new("", ["case", "device", "size", "ms", "peer", "ratio"]);
    let mut seen = BTreeSet::new();
    for results in files {
        for record in &results.records {
            let Some(speedup) = &record.speedup else { continue };
            let device = spoken(results, &record.device);
            if seen.insert((record.case.clone(), device.clone(), record.log_n)) {
                let (size, time) = (format!("2^{}", record.log_n), digits(record.median_ms));
                let ratio = format!("{}×", digits(speedup.ratio));
                table.row([record.case.clone(), device, size, time, speedup.peer.clone(), ratio]);
            }
        }
    }
    table
}

/// Cases that several commits have.
fn history(files: &[&Results]) -> Table {
    let mut times = BTreeMap::new();
    for results in files {
        for record in results.records.iter().filter(|record| record.peer.is_none()) {
            let device = spoken(results, &record.device);
            let of_case: &mut Vec<(&str, f64)> = times.entry((record.case.as_str(), device, record.log_n)).or_default();
            if !of_case.iter().any(|(commit, _)| *commit == results.commit) {
                of_case.push((results.commit.as_str(), record.median_ms));
            }
        }
    }
    let mut table = Table::new("", ["case", "device", "size", "times"]);
    for ((case, device, log_n), times) in times.into_iter().filter(|(_, times)| times.len() > 1) {
        let short = |commit: &str| commit.chars().take(7).collect::<String>();
        let times = times.iter().map(|(commit, time)| format!("{} ({})", digits(*time), short(commit)));
        let times = times.collect::<Vec<_>>().join(", ");
        table.row([case.to_owned(), device, format!("2^{log_n}"), times]);
    }
    table
}

fn html_section(section: &Section) -> String {
    let paragraph = |text: &str| format!("<p>{}</p>\n", escaped(text));
    let items: String = section.verdicts.iter().map(|verdict| format!("<li>{}</li>", escaped(verdict))).collect();
    let tables: String = section.tables.iter().map(html_table).collect();
    [
        format!("<h3>{}</h3>\n", escaped(section.title)),
        paragraph(&format!("{} Measured there: {}", section.source, section.hardware)),
        paragraph(section.notes),
        format!("<ul>{items}</ul>\n"),
        tables,
    ]
    .concat()
}

/// A table that scrolls by itself where the page is narrow.
fn html_table(table: &Table) -> String {
    let cells = |cells: &[String], tag: &str| -> String {
        cells.iter().map(|cell| format!("<{tag}>{}</{tag}>", escaped(cell))).collect()
    };
    let rows: String = table.rows.iter().map(|row| format!("<tr>{}</tr>\n", cells(row, "td"))).collect();
    let caption = match table.title.as_str() {
        "" => String::new(),
        title => format!("<caption>{}</caption>", escaped(title)),
    };
    let head = cells(&table.head, "th");
    format!(
        "<div class=\"scroll\"><table>{caption}\n<thead><tr>{head}</tr></thead>\n<tbody>\n{rows}</tbody></table></div>\n"
    )
}

const HEAD: &str = "<meta charset=\"utf-8\">
<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">
<meta name=\"color-scheme\" content=\"light dark\">
<title>Evariste, measured</title>
<style>
:root { --paper: #ffffff; --ink: #24292f; --rule: #d0d7de; }
@media (prefers-color-scheme: dark) { :root { --paper: #0d1117; --ink: #d0d7de; --rule: #30363d; } }
body { margin: 0 auto; padding: 1rem; max-width: 60rem; background: var(--paper); color: var(--ink); font: 16px/1.5 sans-serif; }
figure { margin: 1rem 0; }
svg { max-width: 100%; height: auto; }
.scroll { overflow-x: auto; margin: 1rem 0; }
table { border-collapse: collapse; font-size: 0.875rem; }
caption { text-align: left; padding: 0.25rem 0; font-weight: bold; }
th, td { border-bottom: 1px solid var(--rule); padding: 0.2rem 0.6rem; text-align: right; white-space: nowrap; }
th:first-child, td:first-child { text-align: left; }
</style>
";

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;
    use crate::founding::SYSTEMS;

    fn root() -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
    }

    #[test]
    fn the_charts_say_what_the_results_say() {
        for (name, svg) in charts(&root()).unwrap() {
            let written = fs::read_to_string(root().join(CHARTS).join(name)).unwrap();
            assert!(written == svg, "{name} differs: `cargo xtask comparisons` writes it anew");
        }
    }

    #[test]
    fn the_page_has_all_charts_and_tables_and_needs_nothing_else() {
        let page = page(&root()).unwrap();
        assert!(page.matches("<svg ").count() >= PLOTS.len());
        assert!(page.matches("<table>").count() > 10 && page.matches("<h3>").count() == SYSTEMS.len());
        for outside in ["src=", "href=", "url(", "<script"] {
            assert!(!page.contains(outside), "the page has {outside}");
        }
        assert!(page.len() < 2_000_000, "{} bytes", page.len());
    }
}
