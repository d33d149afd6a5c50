//! Other programs.

use std::{
    env,
    ffi::OsStr,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, bail};

/// Set by cargo where this program runs under `cargo xtask`; not set for the program of a bundle.
const CARGO: &str = "CARGO";

/// The file that a workspace has in its root alone.
const LOCK: &str = "Cargo.lock";

/// A cargo command in the workspace's root, or `None` outside cargo.
pub fn cargo() -> Option<Command> {
    let mut command = Command::new(env::var_os(CARGO)?);
    command.current_dir(root());
    // What `cargo run` says of this program's package: build scripts that look at it would run again, and what needs
    // them would be compiled again.
    let of_package = |name: &str| name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_");
    for (name, _) in env::vars_os().filter(|(name, _)| name.to_str().is_some_and(of_package)) {
        command.env_remove(name);
    }
    Some(command)
}

/// The root of the workspace that this program was built from, or the working folder outside cargo.
pub fn root() -> PathBuf {
    let package = env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from);
    let root = package.as_deref().and_then(|package| package.ancestors().find(|above| above.join(LOCK).is_file()));
    root.map_or_else(|| PathBuf::from("."), Path::to_path_buf)
}

/// What a program prints, with the white space at the ends removed.
///
/// # Errors
/// The program cannot be started, fails, or prints what is no text.
pub fn output(program: &str, arguments: &[&str]) -> Result<String> {
    captured(Command::new(program).args(arguments))
}

/// What a command prints on its standard output, with the white space at the ends removed.
///
/// # Errors
/// As those of [`output`].
pub fn captured(command: &mut Command) -> Result<String> {
    let program = Path::new(command.get_program()).file_name().unwrap_or(OsStr::new("?")).to_owned();
    let program = program.to_string_lossy();
    let output = command.output().with_context(|| format!("{program} could not be started"))?;
    if !output.status.success() {
        bail!("{program} failed ({}): {}", output.status, String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(String::from_utf8(output.stdout).with_context(|| format!("{program} printed no text"))?.trim().to_owned())
}

/// Does `work` while nothing reaches the standard error, where libraries of drivers write on their own.
#[cfg(unix)]
pub fn quietly<T>(work: impl FnOnce() -> T) -> T {
    use std::{fs::File, io, os::fd::OwnedFd};

    use rustix::stdio::dup2_stderr;

    /// Gives the standard error back, after a panic too.
    struct Restore(OwnedFd);

    impl Drop for Restore {
        fn drop(&mut self) {
            let _ = dup2_stderr(&self.0);
        }
    }

    let redirect = || -> io::Result<Restore> {
        let (kept, nowhere) = (rustix::io::dup(io::stderr())?, File::options().write(true).open("/dev/null")?);
        dup2_stderr(&nowhere)?;
        Ok(Restore(kept))
    };
    // Without, it is only less quiet.
    let _restore = redirect();
    work()
}

#[cfg(not(unix))]
pub fn quietly<T>(work: impl FnOnce() -> T) -> T {
    work()
}
