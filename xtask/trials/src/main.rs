//! The programs behind `cargo xtask test`, `kernels` and `sanitize`: whatever runs trials or compiles kernels.

mod guide;
mod kernels;
mod sanitize;
mod test;

use std::process::ExitCode;

use clap::Parser;

#[derive(Debug, Parser)]
#[command(name = "cargo xtask", disable_help_subcommand = true)]
enum Command {
    /// Runs the trials of every device found and tells what ran, what was skipped, and why.
    Test(test::Options),
    /// Runs the trials of one device and one area.
    #[command(name = test::group::COMMAND, hide = true)]
    RunGroup(test::group::GroupOptions),
    /// Compiles every kernel over every field for every target, without any GPU; with --package, makes an archive of
    /// kernels compiled ahead of time.
    Kernels(kernels::Options),
    /// Launches every kernel on an NVIDIA GPU under compute-sanitizer: memcheck, racecheck, initcheck and synccheck.
    Sanitize(sanitize::Options),
    /// Launches the kernels of one group.
    #[command(name = sanitize::COMMAND, hide = true)]
    LaunchKernels(sanitize::GroupOptions),
}

/// Trials look at what is freed.
#[global_allocator]
static HEAP: evariste_conformance::Heap = evariste_conformance::Heap;

fn main() -> ExitCode {
    evariste_conformance::run_child();
    if let Some(outcome) = guide::check_as_compiler() {
        return outcome;
    }
    let outcome = match Command::parse() {
        Command::Test(options) => test::run(&options),
        Command::RunGroup(options) => test::group::run(&options),
        Command::Kernels(options) => kernels::run(&options),
        Command::Sanitize(options) => sanitize::run(&options),
        Command::LaunchKernels(options) => sanitize::group(&options),
    };
    outcome.unwrap_or_else(|error| {
        eprintln!("error: {error:#}");
        ExitCode::FAILURE
    })
}
