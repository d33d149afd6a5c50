//! `xtask fuzz`: builds the fuzz targets with overflow checks and debug assertions, and runs them on stable Rust.

use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::Args;
use evariste_machine::process;

#[derive(Args, Debug)]
pub(crate) struct Options {
    /// Options of the runner: `--help` after `--` lists them. Without: every target, a minute each, two at a time.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "OPTIONS")]
    arguments: Vec<String>,
}

pub(crate) fn run(options: &Options) -> Result<ExitCode> {
    let mut cargo = process::cargo().context("the fuzz targets are built from source: run `cargo xtask fuzz`")?;
    cargo.args([
        "run",
        "--quiet",
        "--profile",
        "checked",
        "--package",
        "evariste-fuzz",
        "--bin",
        "evariste-fuzz",
        "--",
    ]);
    let status = cargo.args(&options.arguments).status().context("cargo could not be started")?;
    Ok(if status.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
