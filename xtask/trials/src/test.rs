//! `cargo xtask test`: the tests of all libraries and the trials of every device found, and a matrix of what ran and
//! what did not.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    process::{Command, ExitCode},
    time::Instant,
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
use libtest_mimic::{Arguments, FormatSetting, Trial};

use crate::{guide, kernels};

#[derive(Args, Debug)]
pub(crate) struct Options {
    /// Runs more: also emulated devices, CUDA sources on the host, every kernel through every compiler, examples, and
    /// the tests of documentation. It takes some half an hour on two cores.
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

/// Packages that `cargo test` leaves out: the trials run in this process.
const NOT_TESTED: [&str; 1] = ["evariste-conformance"];

/// Further packages that it leaves out unless everything is tested: programs, with the peers and dependencies of their
/// own.
const PROGRAMS: [&str; 3] = ["evariste-benches", "evariste-examples", "evariste-fuzz"];

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
#[derive(Clone, Copy, Debug, Default)]
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
    filter: Option<String>,
    all: bool,
}

pub(crate) fn run(options: &Options) -> Result<ExitCode> {
    ensure!(EVERY_FIELD || !options.every_field, "this program was built without the feature every-field");
    let Found { devices, missing } = match options.all {
        true => devices::select(&options.device)?,
        false => devices::select_real(&options.device)?,
    };
    let mut matrix = Matrix { missing, filter: options.filter.clone(), all: options.all, ..Default::default() };

    matrix.run_workspace()?;
    matrix.note_left_out();
    let mut trials: Vec<Trial> = devices.iter().flat_map(evariste_conformance::suite).collect();
    trials.extend(evariste_conformance::common());
    if options.all {
        trials.push(guide::trial());
    }
    if options.full {
        trials.extend(devices.iter().flat_map(evariste_conformance::long));
    }
    matrix.run_trials(trials, FormatSetting::Pretty);
    let emulator = options.all && options.device.is_empty() && matrix.run_emulator();
    if options.all || options.filter.is_some() {
        matrix.run_kernels()?;
    }

    let slowest = evariste_conformance::slowest(options.slowest);
    if !slowest.is_empty() {
        println!("the slowest trials, in seconds:");
    }
    slowest.iter().for_each(|(took, name)| println!("{:7.1}  {name}", took.as_secs_f64()));
    let mut total = matrix.print();
    for requirement in options.require.iter().filter(|requirement| !requirement.is_met(&devices, emulator)) {
        println!("FAILED: {} is required", requirement.name());
        total.add(Counts::FAILED);
    }
    if !options.all {
        println!("Emulated devices, CUDA sources on the host, all kernels and examples were left out: --all has them.");
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

impl Matrix {
    fn add(&mut self, device: &str, suite: &str, counts: Counts) {
        self.cells.entry((device.to_owned(), suite.to_owned())).or_default().add(counts);
    }

    /// The unit, integration and documentation tests of all crates. They count as one.
    fn run_workspace(&mut self) -> Result<()> {
        let mut not_tested = NOT_TESTED.to_vec();
        if process::cargo().is_some()
            && self.filter.is_none()
            && let Err(error) = evariste_conformance::emulator()
        {
            self.miss("emulator", format!("tests with CUDA sources on the host did not run: {error}"));
            self.add("emulator", "workspace", Counts::SKIPPED);
            not_tested.push("evariste-emulator");
        }
        let run = |mut cargo: Command, with: &dyn Fn(&mut Command)| -> Result<bool> {
            cargo.args(["test", "--release", "--workspace", "--no-fail-fast"]);
            cargo.args(not_tested.iter().flat_map(|package| ["--exclude", package]));
            with(&mut cargo);
            Ok(cargo.status().context("cargo could not be started")?.success())
        };
        let counts = match process::cargo() {
            None => {
                self.miss("cargo", "the tests of the workspace run under `cargo xtask test` only".into());
                Counts::SKIPPED
            }
            Some(_) if self.filter.is_some() => Counts::SKIPPED,
            Some(cargo) => {
                let tests = run(cargo, &|cargo| {
                    // The tests of examples are among them. The examples themselves would be compiled a second time.
                    cargo.args(["--lib", "--bins", "--tests"]);
                    if self.all {
                        cargo.args(["--features", "evariste-benches/all"]);
                    } else {
                        cargo.args(PROGRAMS.iter().flat_map(|package| ["--exclude", package]));
                    }
                })?;
                let documentation = match process::cargo().filter(|_| self.all) {
                    Some(cargo) => run(cargo, &|cargo| {
                        cargo.args(["--doc", "--features", "evariste-benches/all"]);
                    })?,
                    None => true,
                };
                if tests && documentation { Counts::PASSED } else { Counts::FAILED }
            }
        };
        self.add("cargo", "workspace", counts);
        Ok(())
    }

    /// What the tests of the workspace leave out on this machine, which they cannot tell `cargo test`.
    fn note_left_out(&mut self) {
        if self.filter.is_some() {
            return;
        }
        if cpu_vectors() < Some(CpuVectors::Avx512Ifma) {
            self.miss("lanes", "the processor has no AVX-512 IFMA, so that the tests of lanes did not run".into());
            self.add("lanes", "workspace", Counts::SKIPPED);
        }
        if !cpu_has_carry_chains() {
            self.miss(
                "chains",
                "the processor has no BMI2 and ADX, so that the tests of long products did not run".into(),
            );
            self.add("chains", "workspace", Counts::SKIPPED);
        }
        if let Err(error) = Device::wgpu(0) {
            self.miss("wgpu", format!("tests with it did not run: {error}"));
            self.add("wgpu", "workspace", Counts::SKIPPED);
        }
    }

    /// Runs trials named `device::suite::…`, suite after suite.
    fn run_trials(&mut self, trials: Vec<Trial>, format: FormatSetting) {
        let mut groups: BTreeMap<(String, String), Vec<Trial>> = BTreeMap::new();
        let filter = self.filter.as_deref().unwrap_or_default();
        for trial in trials.into_iter().filter(|trial| trial.name().contains(filter)) {
            let mut parts = trial.name().split("::").map(str::to_owned);
            let group = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
            groups.entry(group).or_default().push(trial);
        }
        for ((device, suite), trials) in groups {
            println!("{device} {suite}");
            let start = Instant::now();
            let arguments = Arguments { format: Some(format), ..Default::default() };
            let conclusion = libtest_mimic::run(&arguments, trials);
            let counts = Counts {
                passed: conclusion.num_passed,
                failed: conclusion.num_failed,
                skipped: conclusion.num_ignored,
            };
            println!("{device} {suite}: {:.1} s\n", start.elapsed().as_secs_f64());
            self.add(&device, &suite, counts);
        }
    }

    /// The CUDA sources on the host. Whether there is what they take.
    fn run_emulator(&mut self) -> bool {
        match evariste_conformance::emulator() {
            Ok(trials) => {
                self.run_trials(trials, FormatSetting::Terse);
                true
            }
            Err(error) => {
                self.miss("emulator", error.to_string());
                self.add("emulator", "all", Counts::SKIPPED);
                false
            }
        }
    }

    fn run_kernels(&mut self) -> Result<()> {
        let mut checks = kernels::wgsl_checks(EVERY_FIELD)?;
        match nvrtc::version() {
            Ok(_) => checks.extend(kernels::cuda_checks(&[], EVERY_FIELD)?),
            Err(error) => {
                self.miss("nvrtc", error.to_string());
                self.add("nvrtc", "kernels", Counts::SKIPPED);
            }
        }
        let trial = |check: kernels::Check| {
            Trial::test(format!("{}::kernels::{check}", check.tool()), move || {
                check.run().map(drop).map_err(|error| format!("{error:#}").into())
            })
        };
        self.run_trials(checks.into_iter().map(trial).collect(), FormatSetting::Terse);
        Ok(())
    }

    fn miss(&mut self, device: &str, reason: String) {
        self.missing.push(Missing { device: device.to_owned(), reason });
    }

    /// Prints the matrix and what is missing; gives the totals.
    fn print(&self) -> Counts {
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
