//! The compiler of tests, as cargo calls it: `cargo xtask test` names this program as `RUSTC_WORKSPACE_WRAPPER`.
//!
//! The tests of a crate compile for longer than they run, as each has algorithms over several fields and curves of its
//! own: they are not optimised, but for a few crates. Libraries and programs are, as the profile says. `.ci/clippy` does
//! the same.

use std::{
    env,
    ffi::{OsStr, OsString},
    process::{Command, ExitCode, ExitStatus},
};

use anyhow::{Context, Result};
use clap::CommandFactory as _;

/// The variable of cargo that names what it calls in place of the compiler, for crates of the workspace.
const WRAPPER: &str = "RUSTC_WORKSPACE_WRAPPER";

/// The variable that says that it is this program.
const CALLED: &str = "EVARISTE_COMPILER_OF_TESTS";

/// Crates whose tests are optimised: they look for secrets in memory, and code that is not optimised leaves copies of what
/// it moves.
const OPTIMISED: [&str; 1] = ["evariste_aes"];

/// Has cargo call this program in place of the compiler, unless it calls another one.
pub(crate) fn wrap(cargo: &mut Command) -> Result<()> {
    if env::var_os(WRAPPER).is_none() {
        cargo.env(WRAPPER, env::current_exe().context("where this program is")?).env(CALLED, "1");
    }
    Ok(())
}

/// Compiles, if cargo called this program for that.
pub(crate) fn compile() -> Option<Result<ExitCode>> {
    env::var_os(CALLED)?;
    let mut arguments = env::args_os().skip(1);
    let compiler = arguments.next().filter(|first| !is_command(first))?;
    let arguments = arguments_for(arguments.collect());
    let status = Command::new(&compiler).args(arguments).status();
    let status = status.with_context(|| format!("{} could not be started", compiler.display()));
    let code = |status: ExitStatus| {
        status.code().and_then(|code| u8::try_from(code).ok()).map_or(ExitCode::FAILURE, ExitCode::from)
    };
    Some(status.map(code))
}

/// Whether the first argument is one of this program's, and not the compiler that cargo names: tests may call it, too.
fn is_command(argument: &OsStr) -> bool {
    let is_help = argument == "help" || argument.to_string_lossy().starts_with('-');
    is_help || crate::Command::command().find_subcommand(argument).is_some()
}

/// The last level of optimisation counts.
fn arguments_for(mut arguments: Vec<OsString>) -> Vec<OsString> {
    let is_optimised = arguments.iter().any(|argument| OPTIMISED.iter().any(|name| argument == name));
    if !is_optimised && arguments.iter().any(|argument| argument == "--test") {
        arguments.push("-Copt-level=0".into());
    }
    arguments
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_alone_are_not_optimised() {
        let arguments = |text: &str| -> Vec<String> {
            let given = text.split(' ').map(OsString::from).collect();
            arguments_for(given).iter().map(|argument| argument.to_string_lossy().into_owned()).collect()
        };
        assert_eq!(arguments("--test -Copt-level=1"), ["--test", "-Copt-level=1", "-Copt-level=0"]);
        assert_eq!(arguments("--crate-name evariste_aes --test"), ["--crate-name", "evariste_aes", "--test"]);
        assert_eq!(arguments("--crate-type lib"), ["--crate-type", "lib"]);
    }

    #[test]
    fn commands_are_no_compilers() {
        assert!(!is_command(OsStr::new("/usr/bin/rustc")) && !is_command(OsStr::new("another-compiler")));
        assert!(["test", "bench", "help", "--help"].iter().all(|argument| is_command(OsStr::new(argument))));
    }
}
