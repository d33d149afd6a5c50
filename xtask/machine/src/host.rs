//! What a result was measured on.

use std::{env, fs, thread};

use serde::Serialize;

use crate::process::{self, output};

/// Names the commit where there is no repository.
const COMMIT_VARIABLE: &str = "EVARISTE_COMMIT";

/// The file of a bundle that names its commit, beside the program.
pub const COMMIT_FILE: &str = "COMMIT";

/// The host.
#[derive(Debug, Serialize)]
pub struct Host {
    /// The processor's name.
    pub cpu: String,
    /// Threads that run at once.
    pub cores: usize,
    /// The operating system.
    pub os: &'static str,
    /// The instruction set.
    pub architecture: &'static str,
}

impl Host {
    /// This host.
    pub fn here() -> Self {
        Self {
            cpu: cpu_name().unwrap_or_else(|| "unknown".into()),
            cores: thread::available_parallelism().map_or(1, usize::from),
            os: env::consts::OS,
            architecture: env::consts::ARCH,
        }
    }
}

fn cpu_name() -> Option<String> {
    if let Ok(text) = fs::read_to_string("/proc/cpuinfo") {
        let line = text.lines().find(|line| line.starts_with("model name"))?;
        return Some(line.split_once(':')?.1.trim().to_owned());
    }
    output("sysctl", &["-n", "machdep.cpu.brand_string"]).ok()
}

/// The commit that this program was built from, with `-dirty` if files differ from it: told by the environment, by the
/// bundle, or by the repository.
pub fn commit() -> String {
    env::var(COMMIT_VARIABLE)
        .ok()
        .or_else(bundled_commit)
        .or_else(repository_commit)
        .unwrap_or_else(|| "unknown".into())
}

fn bundled_commit() -> Option<String> {
    let file = env::current_exe().ok()?.parent()?.join(COMMIT_FILE);
    fs::read_to_string(file).ok().map(|text| text.trim().to_owned())
}

fn repository_commit() -> Option<String> {
    let root = process::root();
    let root = root.to_str()?;
    let head = output("git", &["-C", root, "rev-parse", "HEAD"]).ok()?;
    let changes = output("git", &["-C", root, "status", "--porcelain", "--untracked-files=no"]).ok()?;
    Some(if changes.is_empty() { head } else { head + "-dirty" })
}
