//! The workspace's own commands. `cargo xtask help` lists them; the same program runs without cargo from the folder that
//! `cargo xtask bundle` makes.

mod address;
mod bench;
mod bundle;
mod devices;
mod fuzz;
mod guide;
mod kernels;
mod machine;
#[cfg(test)]
mod modules;
mod process;
mod sanitize;
mod table;
mod test;

use std::process::ExitCode;

use clap::Parser;

#[derive(Debug, Parser)]
#[command(about = "Benches, tests and checks of Evariste", disable_help_subcommand = false)]
enum Command {
    /// Measures every device found: its limits, then every algorithm, each result checked before it is timed.
    Bench(bench::Options),
    /// Runs all tests on every device found and tells what ran, what was skipped, and why.
    Test(test::Options),
    /// Compiles every kernel over every field for every target, without any GPU.
    Kernels(kernels::Options),
    /// Launches every kernel on an NVIDIA GPU under compute-sanitizer: memcheck, racecheck, initcheck and synccheck.
    Sanitize(sanitize::Options),
    /// Runs the tests of the libraries and of the CPU under the compiler's address sanitizer.
    Address(address::Options),
    /// Gives mutated inputs to what reads files, batches, expressions, cache entries and names of devices.
    Fuzz(fuzz::Options),
    /// Makes a folder of programs that bench and test on a machine without Rust.
    Bundle(bundle::Options),
    /// Makes one plan in a process of its own and prints how long that took.
    #[command(name = bench::plan::COMMAND, hide = true)]
    Plan(bench::plan::Options),
    /// Launches the kernels of one family.
    #[command(name = sanitize::COMMAND, hide = true)]
    LaunchKernels(sanitize::FamilyOptions),
}

/// Trials look at what is freed.
#[global_allocator]
static HEAP: evariste_conformance::Heap = evariste_conformance::Heap;

fn main() -> ExitCode {
    evariste_conformance::run_child();
    let outcome = match Command::parse() {
        Command::Bench(options) => bench::run(&options),
        Command::Test(options) => test::run(&options),
        Command::Kernels(options) => kernels::run(&options),
        Command::Sanitize(options) => sanitize::run(&options),
        Command::Address(options) => address::run(&options),
        Command::Fuzz(options) => fuzz::run(&options),
        Command::Bundle(options) => bundle::run(&options),
        Command::Plan(options) => bench::plan::child(&options),
        Command::LaunchKernels(options) => sanitize::family(&options),
    };
    outcome.unwrap_or_else(|error| {
        eprintln!("error: {error:#}");
        ExitCode::FAILURE
    })
}
