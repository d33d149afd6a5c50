//! `xtask bundle`: programs for a machine without Rust.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::{Command, ExitCode},
};

use anyhow::{Context, Result, ensure};
use clap::Args;
use serde_json::Value;

use crate::{
    machine::{self, COMMIT_FILE},
    process::{captured, cargo},
};

#[derive(Args, Debug)]
pub(crate) struct Options {
    /// The folder to write; it is made if it is not there.
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// Features of this package that the carried program gets, such as aws-lc. It is built anew then.
    #[arg(long, value_name = "F", value_delimiter = ',')]
    features: Vec<String>,
}

/// This program, and the tests of every device.
const PROGRAMS: [&str; 2] = ["xtask", "conformance"];

/// What starts them.
const RUN: &str = "run.sh";
const RUN_TEXT: &str = include_str!("run.sh");

pub(crate) fn run(options: &Options) -> Result<ExitCode> {
    let out = &options.out;
    fs::create_dir_all(out).with_context(|| format!("making {}", out.display()))?;
    let this = match options.features.as_slice() {
        [] => env::current_exe().context("the path of this program")?,
        _ => executable(&options.features, &["build", "--package", "xtask"], "xtask")?,
    };
    // The tests together with this package, so that both share what they are built from.
    let packages = ["--package", "xtask", "--package", "evariste-conformance"];
    let tests = [&["test"], &packages[..], &["--test", "conformance", "--no-run"]].concat();
    let conformance = executable(&options.features, &tests, "conformance")?;
    for (name, from) in PROGRAMS.into_iter().zip([this, conformance]) {
        install(&from, &out.join(name))?;
    }
    write(&out.join(COMMIT_FILE), &(machine::commit() + "\n"))?;
    let script = out.join(RUN);
    write(&script, RUN_TEXT)?;
    make_executable(&script)?;

    let mut total = 0;
    for name in PROGRAMS {
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

/// Builds a program with features of this package, and gives its path.
fn executable(features: &[String], build: &[&str], target: &str) -> Result<PathBuf> {
    let mut command = cargo().context("a bundle is made by `cargo xtask bundle`, in the repository")?;
    command.args(build).args(["--release", "--message-format", "json"]);
    command.args(features.iter().map(|feature| format!("--features=xtask/{feature}")));
    let messages = captured(&mut command)?;
    let executable = |line: &str| {
        let message: Value = serde_json::from_str(line).ok()?;
        (message["target"]["name"] == target).then(|| message["executable"].as_str().map(PathBuf::from))?
    };
    messages.lines().find_map(executable).with_context(|| format!("cargo did not tell where {target} is"))
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
