//! `cargo xtask test`: the tests of all libraries and the trials of every device found, and a matrix of what ran and
//! what did not.

pub(crate) mod group;
mod jobs;

use std::{
    collections::{BTreeMap, BTreeSet},
    env, fmt,
    io::{self, IsTerminal},
    process::{Command, ExitCode},
    time::Duration,
};

use anyhow::{Context, Result, ensure};
use clap::{Args, ValueEnum};
use evariste_backend::{
    Device, DeviceId, Kind,
    author::{CpuVectors, cpu_has_carry_chains, cpu_vectors},
    nvrtc,
};
use evariste_conformance::EVERY_FIELD;
use evariste_machine::{
    devices::{self, Found, Missing},
    process,
    table::Table,
};
use libtest_mimic::Trial;

use self::{
    group::{Group, Report},
    jobs::{Job, Step},
};
use crate::{guide, kernels};

#[derive(Args, Debug)]
pub(crate) struct Options {
    /// Runs more: also emulated devices, CUDA sources on the host, every kernel through every compiler, examples, and
    /// the tests of documentation, programs, clusters and the adapter for Plonky3. It takes some twenty minutes on two
    /// cores, once all is built.
    #[arg(long)]
    all: bool,
    /// What must be there, separated by commas: the run fails without it.
    #[arg(long, value_name = "R", value_delimiter = ',')]
    require: Vec<Requirement>,
    /// A device to test: cpu, cuda:N, wgpu:N; may be repeated. Every device found unless given, emulations with --all
    /// alone.
    #[arg(long, value_name = "D")]
    device: Vec<DeviceId>,
    /// Runs only the device tests and kernel checks whose names contain this, and not `cargo test`.
    #[arg(long, value_name = "S")]
    filter: Option<String>,
    /// Leaves out a group of them, such as cpu::launches.
    #[arg(long, value_name = "G")]
    except: Option<Group>,
    /// Runs what takes minutes too: chains of thousands of calls, and 4 GiB and one byte in memory and in files, which
    /// need 9 GB of room for temporary files.
    #[arg(long)]
    full: bool,
    /// Runs the trials over every field and curve, and not over one of each shape alone. The program must be built for
    /// it, as `cargo xtask` and bundles do.
    #[arg(long)]
    every_field: bool,
    /// Lists the trials that took longest, at most this number.
    #[arg(long, value_name = "N", default_value_t = 10)]
    slowest: usize,
}

/// Cargo's variable for colours, which it would not have as its output goes through a pipe.
const COLOR: &str = "CARGO_TERM_COLOR";

/// Packages that `cargo test` leaves out: this program runs the trials.
const NOT_TESTED: [&str; 1] = ["evariste-conformance"];

/// Further packages that it leaves out unless everything is tested: programs, and what is made for other libraries, with
/// dependencies of their own that take minutes to compile. This program is none of them: what it is built from has the
/// features that tests need, and would be compiled a second time without them.
const PROGRAMS: [&str; 9] = [
    "evariste-benches",
    "evariste-cli",
    "evariste-cluster",
    "evariste-examples",
    "evariste-fuzz",
    "evariste-plonky3",
    "evariste-report",
    "evariste-scaling",
    "xtask",
];

/// What a machine may be required to have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Requirement {
    /// The CPU device.
    Cpu,
    /// A device through Vulkan, Metal or DirectX 12, be it emulated.
    Wgpu,
    /// NVIDIA's compiler, with or without a GPU.
    Nvrtc,
    /// An NVIDIA GPU.
    Cuda,
    /// The CUDA sources run on the host, which takes GCC.
    Emulator,
}

impl Requirement {
    fn name(self) -> &'static str {
        match self {
            Requirement::Cpu => "cpu",
            Requirement::Wgpu => "wgpu",
            Requirement::Nvrtc => "nvrtc",
            Requirement::Cuda => "cuda",
            Requirement::Emulator => "emulator",
        }
    }

    fn is_met(self, devices: &[Device], emulator: bool) -> bool {
        let kind = |kind| devices.iter().any(|device| device.info().id.kind == kind);
        match self {
            Requirement::Cpu => kind(Kind::Cpu),
            Requirement::Wgpu => kind(Kind::Wgpu),
            Requirement::Cuda => kind(Kind::Cuda),
            Requirement::Nvrtc => nvrtc::version().is_ok(),
            Requirement::Emulator => emulator,
        }
    }
}

/// What came of a group of tests.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Counts {
    passed: u64,
    failed: u64,
    skipped: u64,
}

impl Counts {
    const PASSED: Self = Self { passed: 1, failed: 0, skipped: 0 };
    const FAILED: Self = Self { passed: 0, failed: 1, skipped: 0 };
    const SKIPPED: Self = Self { passed: 0, failed: 0, skipped: 1 };

    /// Whether no test ran.
    fn is_of_nothing(self) -> bool {
        self.passed + self.failed == 0
    }

    fn add(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.skipped += other.skipped;
    }
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts = [(self.passed, "passed"), (self.failed, "FAILED"), (self.skipped, "skipped")];
        let parts: Vec<_> = parts.iter().filter(|(n, _)| *n > 0).map(|(n, what)| format!("{n} {what}")).collect();
        f.write_str(&parts.join(", "))
    }
}

/// What ran and what did not.
#[derive(Debug, Default)]
struct Matrix {
    /// By device or tool, and by suite.
    cells: BTreeMap<(String, String), Counts>,
    /// Devices and tools that are not there.
    missing: Vec<Missing>,
    /// Trials that have ended, and what they took.
    took: Vec<(Duration, String)>,
}

/// What trials are made of.
#[derive(Clone, Copy, Debug)]
enum Source {
    /// No device in particular.
    Common,
    Device(DeviceId),
    /// CUDA sources on the host, with the arithmetic of GPUs.
    Emulator,
    /// The same with the portable one.
    PortableEmulator,
    /// Kernels, and the compiler of WGSL.
    Wgsl,
    /// Kernels, and NVIDIA's compiler.
    Nvrtc,
}

impl Source {
    /// That of trials whose names start so.
    fn of_label(label: &str) -> Result<Self> {
        Ok(match label {
            "any" => Source::Common,
            "emulator" => Source::Emulator,
            "emulator-portable" => Source::PortableEmulator,
            "wgsl" => Source::Wgsl,
            "nvrtc" => Source::Nvrtc,
            device => Source::Device(device.parse()?),
        })
    }

    /// Its trials, with those that take minutes if they are asked for.
    fn trials(self, full: bool) -> Result<Vec<Trial>> {
        let compiled = |checks: Vec<kernels::Check>| checks.into_iter().map(kernels::Check::trial).collect();
        Ok(match self {
            Source::Common => evariste_conformance::common().into_iter().chain([guide::trial()]).collect(),
            Source::Device(id) => {
                let device = Device::open(id)?;
                let long = if full { evariste_conformance::long(&device) } else { Vec::new() };
                evariste_conformance::suite(&device).into_iter().chain(long).collect()
            }
            Source::Emulator => evariste_conformance::emulator_of("emulator")?,
            Source::PortableEmulator => evariste_conformance::emulator_of("emulator-portable")?,
            Source::Wgsl => compiled(kernels::wgsl_checks(EVERY_FIELD)?),
            Source::Nvrtc => compiled(kernels::cuda_checks(&[], EVERY_FIELD)?),
        })
    }
}

pub(crate) fn run(options: &Options) -> Result<ExitCode> {
    ensure!(EVERY_FIELD || !options.every_field, "this program was built without the feature every-field");
    let Found { devices, missing } = match options.all {
        true => devices::select(&options.device)?,
        false => devices::select_real(&options.device)?,
    };
    let mut matrix = Matrix { missing, ..Default::default() };

    let (gpus, others): (Vec<_>, Vec<_>) =
        devices.iter().map(Device::info).partition(|info| info.id.kind != Kind::Cpu && !info.features.software);
    let mut sources = vec![Source::Common];
    sources.extend(others.iter().map(|info| Source::Device(info.id)));
    if options.all || options.filter.is_some() {
        sources.push(Source::Wgsl);
        match nvrtc::version() {
            Ok(_) => sources.push(Source::Nvrtc),
            Err(error) => matrix.skip("nvrtc", "kernels", error.to_string()),
        }
    }
    let mut groups = groups(options, &sources)?;
    // The tests of its crate need what its trials do.
    let tests_workspace = options.filter.is_none() && process::cargo().is_some();
    let runs_emulator = options.all && options.device.is_empty();
    let emulator = (tests_workspace || runs_emulator).then(evariste_conformance::emulator).transpose();
    let no_emulator = emulator.as_ref().err().map(ToString::to_string);
    let mut has_emulator = false;
    if runs_emulator {
        match emulator {
            Ok(trials) => {
                group_by_name(options, trials.unwrap_or_default(), &mut groups);
                has_emulator = true;
            }
            Err(error) => matrix.skip("emulator", "all", error.to_string()),
        }
    }
    matrix.run_side_by_side(options, groups, no_emulator)?;
    // These fill their memory: no other group runs meanwhile.
    for gpu in gpus {
        for (group, trials) in self::groups(options, &[Source::Device(gpu.id)])? {
            let counts = group.run(trials, None);
            matrix.add(&group.device, &group.suite, counts);
        }
    }
    matrix.took.extend(evariste_conformance::slowest(options.slowest));
    matrix.note_left_out(options);

    let mut total = matrix.print(options.slowest);
    for requirement in options.require.iter().filter(|requirement| !requirement.is_met(&devices, has_emulator)) {
        println!("FAILED: {} is required", requirement.name());
        total.add(Counts::FAILED);
    }
    if !options.all {
        println!(
            "Emulated devices, CUDA sources on the host, all kernels, examples, and tests of programs, clusters and the adapter for \
             Plonky3 were left out: --all has them."
        );
    }
    if !EVERY_FIELD {
        println!(
            "Fields and curves of a shape that another one has, operations over further shapes, what emulated devices \
             compile for minutes, kernels of AES with keys of 192 bits and of short transforms side by side, and machine \
             code of most kernels of a name that another one has, were left out: --every-field has them."
        );
    }
    // A name that is none runs nothing, which proves nothing.
    if let Some(filter) = options.filter.as_ref().filter(|_| total.is_of_nothing()) {
        println!("FAILED: no test has {filter:?} in its name");
        total.add(Counts::FAILED);
    }
    println!("{} passed, {} failed, {} skipped", total.passed, total.failed, total.skipped);
    Ok(if total.failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The trials that are asked for, by group.
fn groups(options: &Options, sources: &[Source]) -> Result<BTreeMap<Group, Vec<Trial>>> {
    let mut groups = BTreeMap::new();
    for source in sources {
        group_by_name(options, source.trials(options.full)?, &mut groups);
    }
    Ok(groups)
}

fn group_by_name(options: &Options, trials: Vec<Trial>, groups: &mut BTreeMap<Group, Vec<Trial>>) {
    for trial in trials {
        let group = Group::of(trial.name());
        let is_asked_for = trial.name().contains(options.filter.as_deref().unwrap_or_default())
            && options.except.as_ref() != Some(&group);
        // Following the guide compiles crates.
        if is_asked_for && (options.all || group.suite != guide::SUITE) {
            groups.entry(group).or_default().push(trial);
        }
    }
}

/// The commands that run the unit, integration and documentation tests of all crates, if there is cargo.
fn workspace_tests(options: &Options, not_tested: &[&str]) -> Vec<Command> {
    let tests = || {
        let mut cargo = process::cargo()?;
        cargo.args(["test", "--release", "--workspace", "--no-fail-fast"]);
        cargo.args(not_tested.iter().flat_map(|package| ["--exclude", package]));
        if io::stdout().is_terminal() && env::var_os(COLOR).is_none() {
            cargo.env(COLOR, "always");
        }
        Some(cargo)
    };
    let libraries = tests().map(|mut cargo| {
        // The tests of examples are among them. The examples themselves would be compiled a second time.
        cargo.args(["--lib", "--bins", "--tests"]);
        if options.all {
            cargo.args(["--features", "evariste-benches/all"]);
        } else {
            cargo.args(PROGRAMS.iter().flat_map(|package| ["--exclude", package]));
        }
        cargo
    });
    let documentation = tests().filter(|_| options.all).map(|mut cargo| {
        cargo.args(["--doc", "--features", "evariste-benches/all"]);
        cargo
    });
    libraries.into_iter().chain(documentation).collect()
}

impl Matrix {
    fn add(&mut self, device: &str, suite: &str, counts: Counts) {
        self.cells.entry((device.to_owned(), suite.to_owned())).or_default().add(counts);
    }

    fn skip(&mut self, device: &str, suite: &str, reason: String) {
        self.missing.push(Missing { device: device.to_owned(), reason });
        self.add(device, suite, Counts::SKIPPED);
    }

    /// The tests of the workspace, which count as one, and groups of trials, in processes side by side. Emulated devices,
    /// which take long and are last by name, come first, and what cargo compiles behind the tests that it runs.
    fn run_side_by_side(
        &mut self,
        options: &Options,
        groups: BTreeMap<Group, Vec<Trial>>,
        no_emulator: Option<String>,
    ) -> Result<()> {
        let mut not_tested = NOT_TESTED.to_vec();
        let mut cargo = Vec::new();
        if options.filter.is_some() {
            self.add("cargo", "workspace", Counts::SKIPPED);
        } else if process::cargo().is_none() {
            self.skip("cargo", "workspace", "the tests of the workspace run under `cargo xtask test` only".into());
        } else {
            if let Some(error) = no_emulator {
                self.skip("emulator", "workspace", format!("tests with CUDA sources on the host did not run: {error}"));
                not_tested.push("evariste-emulator");
            }
            cargo = workspace_tests(options, &not_tested);
        }
        let count = cargo.len();
        let mut first = Job { steps: cargo.into_iter().map(|command| Step { command, name: None }).collect() };
        let mut jobs = Vec::new();
        let folder = tempfile::tempdir().context("there is no room for reports")?;
        let report = |group: &Group| folder.path().join(group.to_string().replace(':', "-"));
        let [_, threads] = jobs::shares(groups.len() + usize::from(count > 0));
        let (mut in_order, mut behind) = (Vec::new(), Vec::new());
        for (group, trials) in groups.into_iter().rev() {
            let command = group.command(options, threads, &report(&group))?;
            let step = Step { command, name: Some(group.to_string()) };
            if group.suite == guide::SUITE {
                first.steps.push(step);
                behind.push((group, trials.len()));
            } else {
                jobs.push(Job { steps: vec![step] });
                in_order.push((group, trials.len()));
            }
        }
        jobs.insert(0, first);
        let mut ended = jobs::run(jobs).into_iter();
        let mut first = ended.next().unwrap_or_default().into_iter();
        if count > 0 {
            let mut counts = Counts::PASSED;
            for ended in first.by_ref().take(count) {
                let ended = ended.map(|status| status.success());
                if let Err(error) = &ended {
                    println!("FAILED: the tests of the workspace: {error:#}");
                }
                if !ended.unwrap_or(false) {
                    counts = Counts::FAILED;
                }
            }
            self.add("cargo", "workspace", counts);
        }
        for ((group, count), ended) in behind.into_iter().chain(in_order).zip(first.chain(ended.flatten())) {
            let Report { counts, slowest } =
                Report::of_process(&report(&group), count, ended).unwrap_or_else(|error| {
                    println!("FAILED: {group}: {error:#}");
                    Report { counts: Counts::FAILED, ..Default::default() }
                });
            self.add(&group.device, &group.suite, counts);
            self.took.extend(slowest);
        }
        Ok(())
    }

    /// What the tests of the workspace leave out on this machine, which they cannot tell `cargo test`.
    fn note_left_out(&mut self, options: &Options) {
        if options.filter.is_some() {
            return;
        }
        if cpu_vectors() < Some(CpuVectors::Avx512Ifma) {
            let reason = "the processor has no AVX-512 IFMA, so that the tests of lanes did not run";
            self.skip("lanes", "workspace", reason.into());
        }
        if !cpu_has_carry_chains() {
            let reason = "the processor has no BMI2 and ADX, so that the tests of long products did not run";
            self.skip("chains", "workspace", reason.into());
        }
        if let Err(error) = Device::wgpu(0) {
            self.skip("wgpu", "workspace", format!("tests with it did not run: {error}"));
        }
    }

    /// Prints the trials that took longest, the matrix and what is missing; gives the totals.
    fn print(&mut self, slowest: usize) -> Counts {
        self.took.sort_unstable_by(|a, b| b.cmp(a));
        self.took.truncate(slowest);
        if !self.took.is_empty() {
            println!("the slowest trials, in seconds:");
        }
        self.took.iter().for_each(|(took, name)| println!("{:7.1}  {name}", took.as_secs_f64()));
        let devices: BTreeSet<&str> = self.cells.keys().map(|(device, _)| device.as_str()).collect();
        let suites: BTreeSet<&str> = self.cells.keys().map(|(_, suite)| suite.as_str()).collect();
        let head: Vec<&str> = ["device"].into_iter().chain(suites.iter().copied()).collect();
        let mut table = Table::new(head.len(), &head);
        for device in devices {
            let cell = |suite: &&str| match self.cells.get(&(device.to_owned(), (*suite).to_owned())) {
                Some(counts) => counts.to_string(),
                None => "–".into(),
            };
            table.row([device.to_owned()].into_iter().chain(suites.iter().map(cell)));
        }
        println!("\n{}\n", table.render());
        for Missing { device, reason } in &self.missing {
            println!("{device}: skipped: {reason}");
        }
        let mut total = Counts::default();
        self.cells.values().for_each(|counts| total.add(*counts));
        total
    }
}
