//! The programs that commands are made of, and how they are built.

use std::process::{Command, ExitCode};

use anyhow::{Context, Result};
use clap::Args;
use evariste_machine::process;

use crate::{compiler, gpu};

/// A program of the workspace.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Program {
    pub(crate) package: &'static str,
    /// What its file is called.
    pub(crate) name: &'static str,
}

/// What measures.
pub(crate) const BENCH: Program = Program { package: "evariste-benches", name: "evariste-bench" };

/// What runs trials and compiles kernels.
pub(crate) const TRIALS: Program = Program { package: "evariste-trials", name: "evariste-trials" };

/// What writes documents from recorded results.
pub(crate) const REPORT: Program = Program { package: "evariste-report", name: "evariste-report" };

/// The feature of the bench that has all cases.
pub(crate) const ALL: &str = "all";

/// The feature of the bench that measures GPUs through Vulkan, Metal or DirectX 12. It is among [`ALL`].
pub(crate) const WGPU: &str = "wgpu";

/// The feature of the trials that has them over every field, and the argument that asks for it.
pub(crate) const EVERY_FIELD: &str = "every-field";

/// Arguments that ask for more than the headlines.
const MORE: [&str; 4] = ["--only", "--case", "--log-n", "--profile"];

/// How what is tested is compiled, unless the environment says otherwise: that takes longer than it runs, so with few
/// optimisations, and with checks of overflow and of assumptions. `.ci/run` compiles so, too. Some tests have no
/// optimisations ([`compiler`]).
const TEST_PROFILE: [(&str, &str); 4] = [
    ("CARGO_PROFILE_RELEASE_OPT_LEVEL", "1"),
    ("CARGO_PROFILE_RELEASE_LTO", "off"),
    ("CARGO_PROFILE_RELEASE_OVERFLOW_CHECKS", "true"),
    ("CARGO_PROFILE_RELEASE_DEBUG_ASSERTIONS", "true"),
];

#[derive(Args, Debug)]
pub(crate) struct Arguments {
    /// Options of the program: `--help` lists them.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "OPTIONS")]
    pub(crate) arguments: Vec<String>,
}

impl Arguments {
    /// What the program of the trials is built with.
    pub(crate) fn features(&self) -> Vec<&str> {
        let asked = |argument: &String| argument.strip_prefix("--") == Some(EVERY_FIELD);
        self.arguments.iter().any(asked).then_some(EVERY_FIELD).into_iter().collect()
    }
}

#[derive(Args, Debug)]
pub(crate) struct Bench {
    /// Peers that are built in, separated by commas: aws-lc, blst, gpu-peers, plonky3, winterfell. It comes first.
    #[arg(long, value_name = "F", value_delimiter = ',')]
    features: Vec<String>,
    /// Options of the bench: `--help` lists them.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "OPTIONS")]
    pub(crate) arguments: Vec<String>,
}

impl Bench {
    /// What the bench is built with: all cases only if they are asked for, and GPUs through wgpu where there may be one,
    /// or if an emulated one is asked for.
    pub(crate) fn features(&self, has_gpu: bool) -> Vec<&str> {
        let asked = |is_it: fn(&String) -> bool| self.arguments.iter().any(is_it);
        let all = asked(|argument| MORE.contains(&argument.split('=').next().unwrap_or_default())).then_some(ALL);
        let wgpu = (has_gpu || asked(|argument| argument.contains(WGPU))).then_some(WGPU);
        self.features.iter().map(String::as_str).chain(wgpu).chain(all).collect()
    }

    pub(crate) fn run(&self) -> Result<ExitCode> {
        let features = self.features(gpu::may_be_there());
        if !features.iter().any(|feature| [ALL, WGPU].contains(feature)) {
            println!(
                "No GPU is seen here: the bench is built without wgpu. With --device wgpu:0 it measures an emulated one."
            );
        }
        BENCH.run(None, &features, &self.arguments)
    }
}

impl Program {
    /// A cargo command over this program, such as `run` or `build`, optimised and with features of its package.
    pub(crate) fn cargo(self, command: &str, features: &[&str]) -> Result<Command> {
        let mut cargo = process::cargo().context("programs are built from source: run `cargo xtask`")?;
        cargo.args([command, "--release", "--package", self.package, "--bin", self.name]);
        if !features.is_empty() {
            cargo.args(["--features", &features.join(",")]);
        }
        Ok(cargo)
    }

    /// Builds the program, which cargo tells of, and runs it.
    pub(crate) fn run(self, command: Option<&str>, features: &[&str], arguments: &[String]) -> Result<ExitCode> {
        let mut cargo = self.cargo("run", features)?;
        run(cargo.arg("--").args(command).args(arguments))
    }

    /// The same as tests are compiled: the program, and what it has cargo compile.
    pub(crate) fn run_tests(self, command: &str, features: &[&str], arguments: &[String]) -> Result<ExitCode> {
        let mut cargo = self.cargo("run", features)?;
        cargo.envs(TEST_PROFILE.into_iter().filter(|(name, _)| std::env::var_os(name).is_none()));
        compiler::wrap(&mut cargo)?;
        run(cargo.args(["--", command]).args(arguments))
    }
}

fn run(cargo: &mut Command) -> Result<ExitCode> {
    let status = cargo.status().context("cargo could not be started")?;
    Ok(if status.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_needs_all_cases_is_built_with_them() {
        let features = |arguments: &[&str]| {
            let arguments = arguments.iter().map(ToString::to_string).collect();
            Bench { features: vec!["blst".into()], arguments }.features(false).join(",")
        };
        assert_eq!(features(&[]), "blst");
        assert_eq!(features(&["--device", "cpu", "--json", "file"]), "blst");
        assert_eq!(features(&["--only", "ntt"]), "blst,all");
        assert_eq!(features(&["--log-n=16"]), "blst,all");
        assert_eq!(features(&["--profile", "full"]), "blst,all");
        assert_eq!(features(&["--device", "wgpu:0"]), "blst,wgpu");
        assert_eq!(Bench { features: vec![], arguments: vec![] }.features(true), [WGPU]);
    }

    #[test]
    fn every_field_is_built_where_it_is_asked_for() {
        let features = |arguments: &[&str]| {
            Arguments { arguments: arguments.iter().map(ToString::to_string).collect() }.features().join(",")
        };
        assert_eq!(features(&["--all"]), "");
        assert_eq!(features(&["--all", "--every-field"]), "every-field");
    }
}
