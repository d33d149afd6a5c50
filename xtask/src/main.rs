//! The workspace's own commands. `cargo xtask help` lists them.
//!
//! This program has none of Evariste's code: it builds the program that a command takes, and no other, and starts it.
//! The folder that `cargo xtask bundle` makes holds those programs, which run without cargo.

mod address;
mod bundle;
mod compiler;
#[cfg(test)]
mod floors;
mod fuzz;
mod gpu;
#[cfg(test)]
mod modules;
mod program;
#[cfg(test)]
mod sources;
#[cfg(test)]
mod verbs;

use std::process::ExitCode;

use anyhow::Result;
use clap::Parser;
use evariste_machine::{map, process::root};

use program::{ALL, BENCH, EVERY_FIELD, REPORT, TRIALS, WGPU};

#[derive(Debug, Parser)]
#[command(about = "Benches, tests and checks of Evariste", disable_help_subcommand = false)]
enum Command {
    /// Measures every device found: its limits, then every algorithm, each result checked before it is timed.
    #[command(disable_help_flag = true)]
    Bench(program::Bench),
    /// Runs the tests of the libraries and of every device found, and tells what ran, what was skipped, and why.
    #[command(disable_help_flag = true)]
    Test(program::Arguments),
    /// Compiles every kernel over every field for every target, without any GPU; with --package, makes an archive of
    /// kernels compiled ahead of time.
    #[command(disable_help_flag = true)]
    Kernels(program::Arguments),
    /// Launches every kernel on an NVIDIA GPU under compute-sanitizer: memcheck, racecheck, initcheck and synccheck.
    #[command(disable_help_flag = true)]
    Sanitize(program::Arguments),
    /// Lists the devices that there are, and what each can do.
    Devices,
    /// Measures what the five founding documents published, and tells both side by side: prentt, hyperplonk, aes, msm,
    /// sqrt, or all of them.
    #[command(disable_help_flag = true)]
    Reproduce(program::Arguments),
    /// Writes a file of a number of bytes without a pattern, to try encrypting on: BYTES FILE.
    #[command(disable_help_flag = true)]
    Input(program::Arguments),
    /// Writes the tables of packages in README.md and docs/architecture.md from their manifests.
    Map,
    /// Writes docs/comparisons.md, and the charts beside it, from the files under docs/results.
    Comparisons,
    /// Writes one page with charts of all results under docs/results.
    #[command(disable_help_flag = true)]
    Report(program::Arguments),
    /// Runs the tests of the libraries and of the CPU under the compiler's address sanitizer.
    Address(address::Options),
    /// Gives mutated inputs to what reads files, batches, expressions, cache entries and names of devices.
    Fuzz(fuzz::Options),
    /// Makes a folder of programs that bench and test on a machine without Rust.
    Bundle(bundle::Options),
}

fn map() -> Result<ExitCode> {
    map::write(&root())?.iter().for_each(|document| println!("wrote {document}"));
    Ok(ExitCode::SUCCESS)
}

fn main() -> ExitCode {
    let outcome = compiler::compile().unwrap_or_else(|| run(Command::parse()));
    outcome.unwrap_or_else(|error| {
        eprintln!("error: {error:#}");
        ExitCode::FAILURE
    })
}

fn run(command: Command) -> Result<ExitCode> {
    match command {
        Command::Bench(options) => options.run(),
        Command::Test(options) => TRIALS.run_tests("test", &options.features(), &options.arguments),
        Command::Kernels(options) => TRIALS.run(Some("kernels"), &[], &options.arguments),
        Command::Sanitize(options) => TRIALS.run(Some("sanitize"), &[EVERY_FIELD], &options.arguments),
        Command::Devices => BENCH.run(Some("devices"), &[WGPU], &[]),
        Command::Reproduce(options) => BENCH.run(Some("reproduce"), &[ALL], &options.arguments),
        Command::Input(options) => BENCH.run(Some("input"), &[ALL], &options.arguments),
        Command::Map => map(),
        Command::Comparisons => REPORT.run(Some("comparisons"), &[], &[]),
        Command::Report(options) => REPORT.run(Some("report"), &[], &options.arguments),
        Command::Address(options) => address::run(&options),
        Command::Fuzz(options) => fuzz::run(&options),
        Command::Bundle(options) => bundle::run(&options),
    }
}
