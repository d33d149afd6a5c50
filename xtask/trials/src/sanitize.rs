//! `xtask sanitize`: every kernel launched under the tools of NVIDIA's compute-sanitizer.
//!
//! The launches are trials, so that their results are checked too: `evariste_conformance::launches`, a process for each
//! group of kernels and tool. They run without a tool first, which compiles the kernels and fills the cache.

use std::{
    env, fmt, fs,
    path::{Path, PathBuf},
    process::{Command, ExitCode, Output},
    time::Instant,
};

use anyhow::{Context, Result, bail, ensure};
use clap::{Args, ValueEnum};
use evariste_backend::{Device, DeviceId, Kind};
use evariste_machine::{host, process::captured, table::Table};
use libtest_mimic::Arguments;
use rayon::prelude::*;

/// The hidden command that runs the launches of one group.
pub(crate) const COMMAND: &str = "launch-kernels";

/// What compute-sanitizer exits with when it has found something.
const FOUND: i32 = 9;

/// Lines of a report that are kept.
const REPORT_LINES: usize = 120;

/// Where toolkits have it.
const FOLDER_VARIABLES: [&str; 2] = ["CUDA_HOME", "CUDA_PATH"];
const FOLDERS: [&str; 2] = ["/usr/local/cuda", "/opt/cuda"];

#[derive(Args, Debug)]
pub(crate) struct Options {
    /// The device: cuda:N.
    #[arg(long, value_name = "D", default_value = "cuda:0")]
    device: DeviceId,
    /// The tools, separated by commas. All unless given.
    #[arg(long, value_name = "T", value_delimiter = ',')]
    tool: Vec<Tool>,
    /// Runs only the groups of kernels whose names contain this.
    #[arg(long, value_name = "S", default_value = "")]
    filter: String,
    /// Processes at a time.
    #[arg(long, value_name = "N", default_value_t = 4)]
    jobs: usize,
    /// The program compute-sanitizer, if it is neither on the path nor in a usual place of the CUDA toolkit.
    #[arg(long, value_name = "FILE")]
    sanitizer: Option<PathBuf>,
    /// Writes the report to a file too.
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

#[derive(Args, Debug)]
pub(crate) struct GroupOptions {
    #[arg(long)]
    device: DeviceId,
    #[arg(long)]
    group: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Tool {
    /// Accesses outside of allocations, misaligned ones, and uses of memory before it is made or after it is freed.
    Memcheck,
    /// Races in shared memory.
    Racecheck,
    /// Reads of memory that nobody wrote.
    Initcheck,
    /// Barriers that not all threads reach.
    Synccheck,
}

impl Tool {
    fn name(self) -> &'static str {
        match self {
            Tool::Memcheck => "memcheck",
            Tool::Racecheck => "racecheck",
            Tool::Initcheck => "initcheck",
            Tool::Synccheck => "synccheck",
        }
    }

    /// Its own options. That a call of the driver fails is for the caller to tell.
    fn options(self) -> &'static [&'static str] {
        match self {
            Tool::Memcheck => &["--track-stream-ordered-races", "all", "--report-api-errors", "no"],
            Tool::Racecheck | Tool::Initcheck | Tool::Synccheck => &[],
        }
    }
}

/// What came of one process.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Outcome {
    /// The trials passed, and the tool found nothing.
    Clean,
    /// What the tool counted.
    Found { count: u64 },
    /// The trials failed, or the tool did not run.
    Failed,
}

impl Outcome {
    /// `found`: what the tool exits with when it has found something, if there is a tool.
    fn of(code: Option<i32>, text: &str, found: Option<i32>) -> Self {
        match (code, found, counted(text)) {
            (Some(0), None, _) | (Some(0), Some(_), Some(0)) => Outcome::Clean,
            (_, Some(_), Some(count)) if count > 0 => Outcome::Found { count },
            _ => Outcome::Failed,
        }
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Outcome::Clean => f.write_str("clean"),
            Outcome::Found { count } => write!(f, "{count} FOUND"),
            Outcome::Failed => f.write_str("FAILED"),
        }
    }
}

/// The number of the line `========= ERROR SUMMARY: 0 errors` or
/// `========= RACECHECK SUMMARY: 0 hazards displayed (…)`.
fn counted(text: &str) -> Option<u64> {
    let summary = |line: &str| line.split_once("SUMMARY: ")?.1.split(' ').next()?.parse().ok();
    text.lines().filter(|line| line.starts_with("===")).find_map(summary)
}

/// One process and what came of it.
#[derive(Debug)]
struct Run {
    tool: Option<Tool>,
    group: String,
    outcome: Outcome,
    seconds: f64,
    /// What it printed.
    text: String,
}

impl Run {
    fn tool(&self) -> &'static str {
        self.tool.map_or("none", Tool::name)
    }
}

pub(crate) fn run(options: &Options) -> Result<ExitCode> {
    ensure!(options.device.kind == Kind::Cuda, "--device {}: compute-sanitizer watches CUDA devices", options.device);
    let sanitizer = find(options.sanitizer.as_deref())?;
    let version = captured(Command::new(&sanitizer).arg("--version"))?;
    let version = version.lines().find_map(|line| line.strip_prefix("Version ")).unwrap_or("of an unknown version");
    let device = Device::open(options.device)?;
    let groups = groups(&device).filter(|group| group.contains(&options.filter)).collect::<Vec<_>>();
    ensure!(!groups.is_empty(), "no group of kernels has {:?} in its name", options.filter);
    let tools = if options.tool.is_empty() { Tool::value_variants() } else { &options.tool };

    let mut report =
        format!("compute-sanitizer {version}\n{device}, driver {}\ncommit {}\n", device.info().driver, host::commit());
    println!("{report}");
    let one = |(tool, group): (Option<Tool>, &String)| start(&sanitizer, tool, options.device, group);
    let pool = rayon::ThreadPoolBuilder::new().num_threads(options.jobs.max(1)).build()?;
    let all = |tools: Vec<Option<Tool>>| -> Result<Vec<Run>> {
        let pairs = tools.iter().flat_map(|tool| groups.iter().map(|group| (*tool, group))).collect::<Vec<_>>();
        pool.install(|| pairs.into_par_iter().map(one).collect())
    };
    let mut runs = all(vec![None])?;
    if runs.iter().all(|run| run.outcome == Outcome::Clean) {
        runs.extend(all(tools.iter().copied().map(Some).collect())?);
    }

    let mut table = Table::new(3, &["tool", "kernels", "result", "s"]);
    for run in &runs {
        table.row([run.tool().into(), run.group.clone(), run.outcome.to_string(), format!("{:.1}", run.seconds)]);
    }
    report += &format!("\n{}\n", table.render());
    for run in runs.iter().filter(|run| run.outcome != Outcome::Clean) {
        let lines: Vec<&str> = run.text.lines().take(REPORT_LINES).collect();
        report += &format!("\n== {}, {}\n{}\n", run.tool(), run.group, lines.join("\n"));
    }
    let clean = runs.iter().filter(|run| run.outcome == Outcome::Clean).count();
    let wanted = groups.len() * (1 + tools.len());
    report += &format!("\n{clean} of {wanted} runs clean\n");
    println!("{report}");
    if let Some(out) = &options.out {
        fs::write(out, &report).with_context(|| format!("writing {}", out.display()))?;
    }
    Ok(if clean == wanted { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The names of the groups of kernels, which are the last part of their trials' names.
fn groups(device: &Device) -> impl Iterator<Item = String> {
    let name = |trial: libtest_mimic::Trial| trial.name().rsplit("::").next().unwrap_or_default().to_owned();
    evariste_conformance::launches(device).into_iter().map(name)
}

/// Runs the launches of a group in a process of its own.
fn start(sanitizer: &Path, tool: Option<Tool>, device: DeviceId, group: &str) -> Result<Run> {
    let program = env::current_exe().context("the path of this program")?;
    let mut command = match tool {
        None => Command::new(&program),
        Some(tool) => {
            let mut command = Command::new(sanitizer);
            command.args(["--tool", tool.name(), "--error-exitcode", &FOUND.to_string()]);
            command.args(["--target-processes", "application-only"]).args(tool.options()).arg(&program);
            command
        }
    };
    command.args([COMMAND, "--device", &device.to_string(), "--group", group]);
    let start = Instant::now();
    let Output { status, stdout, stderr } = command.output().context("a process could not be started")?;
    let seconds = start.elapsed().as_secs_f64();
    let text = String::from_utf8_lossy(&stdout).into_owned() + &String::from_utf8_lossy(&stderr);
    let outcome = Outcome::of(status.code(), &text, tool.map(|_| FOUND));
    let run = Run { tool, group: group.to_owned(), outcome, seconds, text };
    println!("{} {}: {} after {seconds:.1} s", run.tool(), run.group, run.outcome);
    Ok(run)
}

/// Runs the launches of a group in this process.
pub(crate) fn group(options: &GroupOptions) -> Result<ExitCode> {
    let device = Device::open(options.device)?;
    let mut trials = evariste_conformance::launches(&device);
    trials.retain(|trial| trial.name().rsplit("::").next() == Some(options.group.as_str()));
    ensure!(!trials.is_empty(), "there is no group {:?}", options.group);
    let arguments = Arguments { test_threads: Some(1), ..Default::default() };
    let conclusion = libtest_mimic::run(&arguments, trials);
    Ok(if conclusion.has_failed() { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// The program, by the name that was given, on the path or in a toolkit.
fn find(given: Option<&Path>) -> Result<PathBuf> {
    if let Some(given) = given {
        ensure!(given.is_file(), "--sanitizer {}: there is no such file", given.display());
        return Ok(given.to_owned());
    }
    let name = format!("compute-sanitizer{}", env::consts::EXE_SUFFIX);
    let path = env::var_os("PATH").unwrap_or_default();
    let toolkits = FOLDER_VARIABLES.iter().filter_map(env::var_os).map(PathBuf::from);
    let toolkits = toolkits.chain(FOLDERS.map(PathBuf::from));
    let mut folders = env::split_paths(&path).chain(toolkits.map(|folder| folder.join("bin")));
    match folders.find_map(|folder| Some(folder.join(&name)).filter(|file| file.is_file())) {
        Some(file) => Ok(file),
        None => bail!("compute-sanitizer was not found: it comes with the CUDA toolkit, or name it by --sanitizer"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_summary_without_findings_is_clean() {
        let clean = "running 1 test\n========= COMPUTE-SANITIZER\n========= ERROR SUMMARY: 0 errors\n";
        let races = "========= RACECHECK SUMMARY: 2 hazards displayed (1 error, 1 warning)\n";
        let of = |code, text| Outcome::of(code, text, Some(FOUND));
        assert_eq!(of(Some(0), clean), Outcome::Clean);
        assert_eq!(
            of(Some(0), "========= RACECHECK SUMMARY: 0 hazards displayed (0 errors, 0 warnings)"),
            Outcome::Clean
        );
        assert_eq!(of(Some(FOUND), races), Outcome::Found { count: 2 });
        // Warnings leave the exit code alone.
        assert_eq!(of(Some(0), races), Outcome::Found { count: 2 });
        // Trials that failed, a tool that did not run, one that was killed.
        assert_eq!(of(Some(101), clean), Outcome::Failed);
        assert_eq!(of(Some(0), "ERROR SUMMARY: 0 errors, said by a trial"), Outcome::Failed);
        assert_eq!(of(None, clean), Outcome::Failed);
        assert_eq!(Outcome::of(Some(0), "", None), Outcome::Clean);
        assert_eq!(Outcome::of(Some(1), "", None), Outcome::Failed);
    }

    #[test]
    fn what_is_not_there_is_an_error() {
        let error = find(Some(Path::new("no/such/compute-sanitizer"))).unwrap_err();
        assert!(error.to_string().contains("no such file"), "{error}");
    }
}
