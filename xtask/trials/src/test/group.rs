//! The trials of one device and one area, as a process of their own.

use std::{
    convert::Infallible,
    env, fmt, fs,
    path::{Path, PathBuf},
    process::{Command, ExitCode, ExitStatus},
    str::FromStr,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};
use clap::Args;
use libtest_mimic::{Arguments, Conclusion, FormatSetting, Trial};

use super::{Counts, Options, Source};

/// The hidden command that runs one group.
pub(crate) const COMMAND: &str = "run-group";

#[derive(Args, Debug)]
pub(crate) struct GroupOptions {
    /// How names of trials start: `device::suite`.
    #[arg(long)]
    group: String,
    /// What names must contain.
    #[arg(long, default_value = "")]
    filter: String,
    /// Whether trials that take minutes are among them.
    #[arg(long)]
    full: bool,
    /// Threads that run trials.
    #[arg(long)]
    threads: usize,
    /// Where what came of it is written to.
    #[arg(long)]
    report: PathBuf,
}

/// Trials whose names start alike, by `device::suite`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Group {
    pub(super) device: String,
    pub(super) suite: String,
}

impl FromStr for Group {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Infallible> {
        Ok(Self::of(text))
    }
}

impl Group {
    pub(super) fn of(trial: &str) -> Self {
        let mut parts = trial.split("::").map(str::to_owned);
        Self { device: parts.next().unwrap_or_default(), suite: parts.next().unwrap_or_default() }
    }

    /// The command that runs it, and reports to a file.
    pub(super) fn command(&self, options: &Options, threads: usize, report: &Path) -> Result<Command> {
        let mut command = Command::new(env::current_exe().context("this program is nowhere to be found")?);
        command.args([COMMAND, &format!("--group={self}"), &format!("--threads={threads}"), "--report"]).arg(report);
        command.args(options.filter.as_ref().map(|filter| format!("--filter={filter}")));
        command.args(options.full.then_some("--full"));
        Ok(command)
    }

    /// Runs its trials here.
    pub(super) fn run(&self, trials: Vec<Trial>, threads: Option<usize>) -> Counts {
        println!("{self}");
        let start = Instant::now();
        // Kernels have thousands of lines otherwise, and CUDA sources on the host are checked with each.
        let format = match self.device.as_str() {
            "wgsl" | "nvrtc" | "emulator" | "emulator-portable" => FormatSetting::Terse,
            _ => FormatSetting::Pretty,
        };
        let arguments = Arguments { format: Some(format), test_threads: threads, ..Default::default() };
        let Conclusion { num_passed, num_failed, num_ignored, .. } = libtest_mimic::run(&arguments, trials);
        println!("{self}: {:.1} s\n", start.elapsed().as_secs_f64());
        Counts { passed: num_passed, failed: num_failed, skipped: num_ignored }
    }
}

impl fmt::Display for Group {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}::{}", self.device, self.suite)
    }
}

/// What came of a group: counts, and what the slowest of its trials took.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Report {
    pub(super) counts: Counts,
    pub(super) slowest: Vec<(Duration, String)>,
}

impl Report {
    /// As a text: counts in its first line, and a line for each of the slowest trials.
    fn text(&self) -> String {
        let Counts { passed, failed, skipped } = self.counts;
        let lines = self.slowest.iter().map(|(took, name)| format!("{} {name}\n", took.as_millis()));
        format!("{passed} {failed} {skipped}\n") + &lines.collect::<String>()
    }

    fn of_text(text: &str) -> Option<Self> {
        let mut lines = text.lines();
        let mut counts = lines.next()?.split(' ').map(str::parse);
        let mut count = || counts.next()?.ok();
        let counts = Counts { passed: count()?, failed: count()?, skipped: count()? };
        let line = |line: &str| {
            let (took, name) = line.split_once(' ')?;
            Some((Duration::from_millis(took.parse().ok()?), name.to_owned()))
        };
        Some(Self { counts, slowest: lines.map(line).collect::<Option<_>>()? })
    }

    /// What a process has left that was to run so many trials, and how it ended.
    pub(super) fn of_process(path: &Path, expected: usize, ended: Result<ExitStatus>) -> Result<Self> {
        let status = ended?;
        let text = fs::read_to_string(path).unwrap_or_default();
        let report = Self::of_text(&text).with_context(|| format!("its process ended early ({status})"))?;
        let Counts { passed, failed, skipped } = report.counts;
        let count = passed + failed + skipped;
        ensure!(count == expected as u64, "its process ran {count} trials in place of {expected}");
        ensure!(status.success() || failed > 0, "its process ended badly behind its trials ({status})");
        Ok(report)
    }
}

/// Runs one group in this process, and writes what came of it.
pub(crate) fn run(options: &GroupOptions) -> Result<ExitCode> {
    let group = Group::of(&options.group);
    let mut trials = Source::of_label(&group.device)?.trials(options.full)?;
    trials.retain(|trial| Group::of(trial.name()) == group && trial.name().contains(&options.filter));
    ensure!(!trials.is_empty(), "there is no trial of {group}");
    let counts = group.run(trials, Some(options.threads));
    let report = Report { counts, slowest: evariste_conformance::slowest(usize::MAX) };
    let path = &options.report;
    fs::write(path, report.text()).with_context(|| format!("{} could not be written", path.display()))?;
    Ok(if counts.failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_is_read_as_it_was_written() {
        let slowest =
            vec![(Duration::from_millis(1500), "cpu::ntt::a b".into()), (Duration::ZERO, "cpu::ntt::c".into())];
        let report = Report { counts: Counts { passed: 3, failed: 1, skipped: 2 }, slowest };
        assert_eq!(Report::of_text(&report.text()), Some(report));
        for damaged in ["", "1 2", "1 2 x", "1 2 3\nx y", "1 2 3\n4"] {
            assert_eq!(Report::of_text(damaged), None, "{damaged:?}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn a_process_that_ends_badly_or_runs_less_has_failed() {
        use std::os::unix::process::ExitStatusExt;

        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("report");
        let of = |text: &str, status: i32| {
            fs::write(&path, text).unwrap();
            Report::of_process(&path, 4, Ok(ExitStatus::from_raw(status))).map_err(|error| error.to_string())
        };
        assert_eq!(of("3 0 1\n", 0).unwrap().counts, Counts { passed: 3, failed: 0, skipped: 1 });
        assert_eq!(of("2 1 1\n", 1 << 8).unwrap().counts.failed, 1);
        assert!(of("3 0 1\n", 11).unwrap_err().contains("ended badly"));
        assert!(of("3 0 0\n", 0).unwrap_err().contains("3 trials in place of 4"));
        assert!(of("3 0", 9).unwrap_err().contains("ended early"));
        let missing = Report::of_process(&folder.path().join("none"), 4, Ok(ExitStatus::from_raw(0)));
        assert!(missing.is_err());
    }

    #[test]
    fn a_group_is_the_start_of_a_name() {
        let group = Group::of("wgpu:0::ntt::baby-bear::sizes");
        assert_eq!((group.device.as_str(), group.suite.as_str()), ("wgpu:0", "ntt"));
        assert_eq!(Group::of(&group.to_string()), group);
    }
}
