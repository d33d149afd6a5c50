//! `cargo xtask comparisons` and `cargo xtask report`: what recorded results say, as a document and as a page.

use std::{path::PathBuf, process::ExitCode};

use anyhow::Result;
use clap::Parser;
use evariste_machine::process;
use evariste_report::{comparisons, page};

/// Tells what the files under docs/results say.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask")]
enum Command {
    /// Writes docs/comparisons.md and the charts under docs/charts.
    Comparisons,
    /// Writes one page with charts of all results, which needs no other file. Results of other machines are taken along
    /// where their files lie under docs/results.
    Report {
        /// Where to.
        #[arg(long, value_name = "FILE")]
        out: Option<PathBuf>,
    },
}

fn main() -> ExitCode {
    match run(Command::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(command: Command) -> Result<()> {
    let root = process::root();
    match command {
        Command::Comparisons => {
            comparisons::write(&root)?;
            page::write_charts(&root)
        }
        Command::Report { out } => {
            let out = out.unwrap_or_else(|| root.join("target/report.html"));
            page::write(&root, &out)?;
            println!("written to {}", out.display());
            Ok(())
        }
    }
}
