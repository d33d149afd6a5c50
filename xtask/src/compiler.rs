//! The compiler of tests, as cargo calls it: `cargo xtask test` names this program as `RUSTC_WORKSPACE_WRAPPER`.
//!
//! The tests of some crates compile for longer than they run, as they have algorithms over several fields and curves of
//! their own: they are not optimised. All else is, as the profile says. `.ci/clippy` does the same.

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

/// Crates whose tests are not optimised, as measured: `docs/results/2-core-start.txt`. Those that look for secrets in memory
/// must be, since code that is not optimised leaves copies of what it moves.
const NOT_OPTIMISED: [&str; 3] = ["evariste_hash", "evariste_msm", "evariste_sqrt"];

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
    let has = |wanted: &str| arguments.iter().any(|argument| argument == wanted);
    if has("--test") && NOT_OPTIMISED.iter().any(|name| has(name)) {
        arguments.push("-Copt-level=0".into());
    }
    arguments
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn some_tests_alone_are_not_optimised() {
        let arguments = |text: &str| -> Vec<String> {
            let given = text.split(' ').map(OsString::from).collect();
            arguments_for(given).iter().map(|argument| argument.to_string_lossy().into_owned()).collect()
        };
        assert_eq!(arguments("evariste_sqrt --test"), ["evariste_sqrt", "--test", "-Copt-level=0"]);
        assert_eq!(arguments("evariste_sqrt"), ["evariste_sqrt"]);
        assert_eq!(arguments("evariste_aes --test"), ["evariste_aes", "--test"]);
    }

    #[test]
    fn commands_are_no_compilers() {
        assert!(!is_command(OsStr::new("/usr/bin/rustc")) && !is_command(OsStr::new("another-compiler")));
        assert!(["test", "bench", "help", "--help"].iter().all(|argument| is_command(OsStr::new(argument))));
    }
}
