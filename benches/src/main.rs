//! `cargo xtask bench`: the limits of each device, then every algorithm as a share of them.
//!
//! Each file of `algorithms` has a constant [`Algorithm`], and `build.rs` lists them. Without the feature `all` this
//! program holds the headlines alone, so that a first run waits for the code that it needs.

mod coverage;
#[cfg(feature = "gpu-peers")]
mod gpu_peers;
mod input;
mod ladder;
mod limits;
#[cfg(feature = "plonky3")]
mod plonky3;
mod progress;
mod report;
#[cfg(feature = "all")]
mod reproduce;
mod request;
mod session;
mod sizes;
mod summary;
mod target;
mod timing;

include!(concat!(env!("OUT_DIR"), "/algorithms.rs"));

use std::{path::PathBuf, process::ExitCode};

use anyhow::{Context, Result, ensure};
use clap::{Parser, Subcommand, ValueEnum, builder::PossibleValuesParser};
use evariste::backend::DeviceId;
use evariste_machine::{
    devices::{self, Found, Missing},
    host::Host,
    process,
};

#[cfg(feature = "all")]
use algorithms::aes;
use algorithms::{ALGORITHMS, plan};
use coverage::Coverage;
use limits::Limits;
use progress::Progress;
use report::Report;
use request::Request;
use session::{Algorithm, Headline, Selection, Session};
use sizes::Sizes;
use summary::Summary;
use target::Target;
use timing::Budget;

/// Whether there are all cases, and not the headlines alone. Code of other cases stands behind it, so that it is not
/// compiled.
const ALL: bool = cfg!(feature = "all");

/// Measures every device found: its limits, then every algorithm, each result checked before it is timed.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask bench", args_conflicts_with_subcommands = true)]
struct Options {
    #[command(subcommand)]
    child: Option<Child>,
    /// A device to measure: cpu, cuda:N, wgpu:N; may be repeated. Every device found unless given, without emulations.
    #[arg(long, value_name = "D")]
    device: Vec<DeviceId>,
    /// Measures all cases of these algorithms. The headlines of all unless given.
    #[arg(long, value_name = "A", value_delimiter = ',', value_parser = PossibleValuesParser::new(names()))]
    only: Vec<String>,
    /// Only cases whose names contain this; may be repeated.
    #[arg(long, value_name = "TEXT")]
    case: Vec<String>,
    /// log₂ of the sizes, of transforms in elements and of AES in bytes: numbers and ranges such as 16..24, both ends
    /// included, separated by commas.
    #[arg(long, value_name = "A..B")]
    log_n: Option<Sizes>,
    /// Measures peers too, on the CPU: arkworks on all its cores, RustCrypto on one, and aws-lc, blst, plonky3 and
    /// winterfell if this program is built with the features of their names; on an NVIDIA GPU sppark and Bellperson's
    /// kernels with the feature gpu-peers. The headlines have theirs anyway.
    #[arg(long)]
    peers: bool,
    /// How much to measure. AES has hundreds of cases and takes 50 ms for each in both profiles.
    #[arg(long, value_enum, default_value_t = Profile::Quick)]
    profile: Profile,
    /// Writes the results to a file.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

/// What this program starts itself for.
#[derive(Debug, Subcommand)]
enum Child {
    /// Makes one plan in a process of its own and prints how long that took.
    #[command(name = plan::COMMAND, hide = true)]
    Plan(plan::Options),
    /// Lists the devices that there are, and what each can do.
    Devices,
    /// Measures what the five founding documents published, and tells both side by side.
    #[cfg(feature = "all")]
    Reproduce(reproduce::Options),
    /// Writes a file that encrypting can be tried on.
    #[cfg(feature = "all")]
    Input(aes::Input),
}

/// How much to measure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Profile {
    /// The headlines of each algorithm, at one size; with --only, --case or --log-n all cases, at small sizes. 0.3 s a
    /// case.
    Quick,
    /// All cases and sizes, 1 s a case.
    Full,
}

impl Options {
    fn coverage(&self) -> Coverage {
        match self.profile {
            Profile::Full => Coverage::Full,
            Profile::Quick if self.only.is_empty() && self.case.is_empty() && self.log_n.is_none() => Coverage::Summary,
            Profile::Quick => Coverage::Small,
        }
    }
}

/// What `--only` understands.
fn names() -> Vec<&'static str> {
    let mut names: Vec<&str> = algorithms().iter().map(|algorithm| algorithm.name).collect();
    names.dedup();
    names
}

/// All that is measured, in the order of the report. Several files of one algorithm are beside each other.
fn algorithms() -> Vec<&'static Algorithm> {
    let mut all = ALGORITHMS.to_vec();
    all.sort_by_key(|algorithm| algorithm.name);
    all
}

fn main() -> ExitCode {
    let options = Options::parse();
    let outcome = match &options.child {
        Some(Child::Plan(options)) => plan::child(options),
        Some(Child::Devices) => process::quietly(|| devices::select(&[])).map(|found| {
            print!("{}", devices::listing(&Host::here(), &found));
            ExitCode::SUCCESS
        }),
        #[cfg(feature = "all")]
        Some(Child::Reproduce(options)) => reproduce::run(options),
        #[cfg(feature = "all")]
        Some(Child::Input(input)) => input.write(),
        None => run(&options),
    };
    outcome.unwrap_or_else(|error| {
        eprintln!("error: {error:#}");
        ExitCode::FAILURE
    })
}

fn run(options: &Options) -> Result<ExitCode> {
    check()?;
    let coverage = options.coverage();
    let built = ALL || coverage == Coverage::Summary;
    ensure!(
        built,
        "this program has the headlines alone: build it with the feature `all`, as `cargo xtask bench` does"
    );
    let mut progress = Progress::new();
    let (targets, missing) = targets(&options.device, coverage, &mut progress)?;

    let request =
        Request { coverage, log_n: options.log_n.clone(), peers: options.peers || coverage == Coverage::Summary };
    let is_wanted =
        |algorithm: &&Algorithm| options.only.is_empty() || options.only.iter().any(|name| name == algorithm.name);
    let algorithms: Vec<&'static Algorithm> = algorithms().into_iter().filter(is_wanted).collect();
    let headlines: Vec<Headline> = algorithms.iter().flat_map(|algorithm| algorithm.headlines).copied().collect();
    let only = (coverage == Coverage::Summary).then(|| headlines.clone());
    let selection = Selection { headlines: only, parts: options.case.clone(), names: None };
    let session = Session::run(&algorithms, &targets, &request, selection, progress);
    let session = session.context("there is nothing to measure")?;
    let report = Report::new(&targets, missing, coverage, session.results());
    match coverage {
        Coverage::Summary => println!("{}", Summary { report: &report, headlines: &headlines, names: &names() }),
        Coverage::Small | Coverage::Full => println!("{report}"),
    }
    if let Some(path) = &options.json {
        report.write(path)?;
    }
    Ok(if report.failures.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The devices that are asked for, with their limits, and those that are not there.
fn targets(asked: &[DeviceId], coverage: Coverage, progress: &mut Progress) -> Result<(Vec<Target>, Vec<Missing>)> {
    let Found { devices, missing } = devices::select_real(asked)?;
    devices.iter().for_each(|_| progress.expect());
    let mut targets = Vec::new();
    for device in devices {
        progress.step(&format!("{device}: copy bandwidth and multiplication rate"));
        let limits =
            Limits::measure(&device, &Budget::of(coverage)).with_context(|| format!("the limits of {device}"))?;
        targets.push(Target { device, limits });
    }
    Ok((targets, missing))
}

/// Whether headlines are known by one name each. Not a unit test, for which all that algorithms run would be compiled
/// once more.
fn check() -> Result<()> {
    let headlines: Vec<&Headline> = ALGORITHMS.iter().flat_map(|algorithm| algorithm.headlines).collect();
    for (i, headline) in headlines.iter().enumerate() {
        let is_like = |other: &&&Headline| other.case == headline.case || other.title == headline.title;
        ensure!(!headlines[..i].iter().any(|other| is_like(&other)), "{} is a headline twice", headline.case);
        ensure!(session::task(headline.case).is_some(), "{} does not say where its data lies", headline.case);
    }
    Ok(())
}
