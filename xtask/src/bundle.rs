//! `xtask bundle`: programs for a machine without Rust.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, ExitCode},
};

use anyhow::{Context, Result, ensure};
use clap::Args;
use evariste_machine::{
    host::{self, COMMIT_FILE},
    process::captured,
};
use serde_json::Value;

use crate::program::{ALL, BENCH, EVERY_FIELD, Program, TRIALS};

#[derive(Args, Debug)]
pub(crate) struct Options {
    /// The folder to write; it is made if it is not there.
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// Features of the bench that it gets besides all cases, such as aws-lc.
    #[arg(long, value_name = "F", value_delimiter = ',')]
    features: Vec<String>,
}

/// What starts them.
const RUN: &str = "run.sh";
const RUN_TEXT: &str = include_str!("run.sh");

pub(crate) fn run(options: &Options) -> Result<ExitCode> {
    let out = &options.out;
    fs::create_dir_all(out).with_context(|| format!("making {}", out.display()))?;
    let mut features: Vec<&str> = options.features.iter().map(String::as_str).collect();
    features.push(ALL);
    let programs = [(BENCH, features), (TRIALS, vec![EVERY_FIELD])];
    for (program, features) in &programs {
        install(&executable(*program, features)?, &out.join(program.name))?;
    }
    write(&out.join(COMMIT_FILE), &(host::commit() + "\n"))?;
    let script = out.join(RUN);
    write(&script, RUN_TEXT)?;
    make_executable(&script)?;

    let mut total = 0;
    for (Program { name, .. }, _) in programs {
        let bytes = fs::metadata(out.join(name))?.len();
        println!("{:>6.1} MiB  {name}", mebibytes(bytes));
        total += bytes;
    }
    println!("{:>6.1} MiB  in {}; start {RUN} there", mebibytes(total), out.display());
    Ok(ExitCode::SUCCESS)
}

fn mebibytes(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}

/// Builds a program, and gives its path.
fn executable(program: Program, features: &[&str]) -> Result<PathBuf> {
    let messages = captured(program.cargo("build", features)?.args(["--message-format", "json"]))?;
    let executable = |line: &str| {
        let message: Value = serde_json::from_str(line).ok()?;
        (message["target"]["name"] == program.name).then(|| message["executable"].as_str().map(PathBuf::from))?
    };
    messages.lines().find_map(executable).with_context(|| format!("cargo did not tell where {} is", program.name))
}

/// Copies a program without its symbols.
fn install(from: &Path, to: &Path) -> Result<()> {
    fs::copy(from, to).with_context(|| format!("copying {} to {}", from.display(), to.display()))?;
    let status = Command::new("strip").arg(to).status().context("strip, of the binutils, could not be started")?;
    ensure!(status.success(), "strip failed on {}", to.display());
    Ok(())
}

fn write(path: &Path, text: &str) -> Result<()> {
    fs::write(path, text).with_context(|| format!("writing {}", path.display()))
}

#[cfg(unix)]
fn make_executable(path: &Path) -> Result<()> {
    use std::os::unix::fs::PermissionsExt;

    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).with_context(|| format!("{}", path.display()))
}

#[cfg(not(unix))]
fn make_executable(_: &Path) -> Result<()> {
    Ok(())
}
