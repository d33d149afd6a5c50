//! CUDA through NVRTC.

use anyhow::{Context, Result, ensure};
use evariste_backend::{KernelSpec, nvrtc};

use super::Takes;

/// The architecture that is checked for all fields unless the user says otherwise.
pub(crate) const MAIN: &str = "sm_90";

/// Those that are checked for a field beside it: the oldest and the newest, and one for each amount of memory that a block may
/// have.
pub(crate) const OTHERS: [&str; 3] = ["sm_75", "sm_80", "sm_120"];

/// Threads that a block may have, on every architecture.
pub(crate) const WORKGROUP_THREADS: u32 = 1024;

/// Shared memory that a block may ask for, from the table of technical specifications in the CUDA programming guide.
pub(crate) fn workgroup_bytes(architecture: &str) -> Result<u32> {
    let number: u32 = architecture
        .strip_prefix("sm_")
        .and_then(|number| number.parse().ok())
        .with_context(|| format!("{architecture:?} is no architecture such as sm_90"))?;
    Ok(match number {
        ..=79 => 64 << 10,
        80 | 87 => 163 << 10,
        86 | 89 | 120.. => 99 << 10,
        _ => 227 << 10,
    })
}

/// What every kernel says first, so that it is launched while the launch ahead of it ends: see [`KernelSpec`].
const FIRST: &str = " wait_for_previous();";

pub(crate) fn check(spec: &KernelSpec, architecture: &str, workgroup_bytes: u32) -> Result<Takes> {
    ensure!(waits_first(&spec.cuda_source(), spec.name), "the entry does not start with wait_for_previous()");
    let compiled = nvrtc::compile(spec, architecture)?;
    let usage = compiled.usage.with_context(|| format!("no usage in the compiler's log: {}", compiled.log))?;
    let shared_bytes = usage.shared_bytes + spec.shared_bytes;
    ensure!(shared_bytes <= workgroup_bytes, "{shared_bytes} bytes of shared memory, there are {workgroup_bytes}");
    Ok(Takes { registers: Some(usage.registers), spill_bytes: Some(usage.spill_bytes), shared_bytes })
}

/// Whether the entry of a source, the last one where there are several for other bindings, has [`FIRST`] behind its parameters.
fn waits_first(source: &str, name: &str) -> bool {
    let text = source.lines().filter(|line| !line.starts_with('#')).flat_map(str::split_whitespace);
    let text = text.collect::<Vec<_>>().join(" ");
    let entry = text.rsplit_once(&format!(" {name}(const Params params"));
    entry.and_then(|(_, rest)| rest.split_once('{')).is_some_and(|(_, body)| body.starts_with(FIRST))
}
