//! `cargo xtask comparisons`: writes what recorded results say.

use std::process::ExitCode;

use clap::Parser;
use evariste_machine::process;
use evariste_report::comparisons;

/// Writes docs/comparisons.md from the files under docs/results.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask comparisons")]
struct Options {}

fn main() -> ExitCode {
    let Options {} = Options::parse();
    match comparisons::write(&process::root()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
