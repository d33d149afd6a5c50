//! `xtask address`: the tests of the libraries and those of the CPU device under the compiler's address sanitizer.
//!
//! It finds what the code of the host, `unsafe` or not, reads or writes outside of allocations and after they are
//! freed: the CPU's kernels, the pools of memory, and the double of the CUDA driver that copies late.

use std::process::{Command, ExitCode};

use anyhow::{Context, Result};
use clap::Args;
use evariste_machine::process;

/// The libraries with `unsafe` code, or whose kernels the CPU runs.
const PACKAGES: [&str; 11] = [
    "evariste-backend",
    "evariste-primitives",
    "evariste-field",
    "evariste-curve",
    "evariste-ntt",
    "evariste-aes",
    "evariste-msm",
    "evariste-sumcheck",
    "evariste-sqrt",
    "evariste-modsqrt",
    "evariste-groth16",
];

#[derive(Args, Debug)]
pub(crate) struct Options {
    /// Runs only the tests of the libraries whose names contain this, and those of the CPU whose names begin with it.
    #[arg(long, value_name = "S", default_value = "")]
    filter: String,
}

pub(crate) fn run(options: &Options) -> Result<ExitCode> {
    let libraries = PACKAGES.iter().flat_map(|package| ["--package", package]).chain(["--lib"]);
    let device = ["--package", "evariste-conformance", "--test", "conformance"];
    let passed = [tests(libraries, &options.filter)?, tests(device, &format!("cpu::{}", options.filter))?];
    Ok(if passed == [true; 2] { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Whether all of these tests passed.
fn tests<'a>(targets: impl IntoIterator<Item = &'a str>, filter: &str) -> Result<bool> {
    let mut cargo = process::cargo().context("the tests are built from source: run `cargo xtask address`")?;
    let version = process::captured(Command::new("rustc").arg("-vV"))?;
    let host = version.lines().find_map(|line| line.strip_prefix("host: ")).context("rustc does not tell its host")?;
    // The sanitizer's runtime comes with stable Rust; the flag that links it asks for this.
    cargo.env("RUSTC_BOOTSTRAP", "1").env("RUSTFLAGS", "-Zsanitizer=address");
    // Drivers of GPUs keep memory until the process ends.
    cargo.env("ASAN_OPTIONS", "detect_leaks=0");
    // A target by name, so that build scripts and macros are built without the flag; not where other commands build.
    cargo.args(["test", "--release", "--no-fail-fast", "--target", host, "--target-dir", "target/address"]);
    let status = cargo.args(targets).args(["--", filter]).status().context("cargo could not be started")?;
    Ok(status.success())
}
