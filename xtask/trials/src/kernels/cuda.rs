//! CUDA through NVRTC.

use anyhow::{Context, Result, ensure};
use evariste_backend::{author::KernelSpec, nvrtc};

use super::Takes;

/// The architecture that is checked for all fields unless the user says otherwise.
pub(crate) const MAIN: &str = "sm_90";

/// Those that are checked for a field beside it: the oldest first and the newest, and one for each amount of memory
/// that a block may have.
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
    let is_assembled = architecture.starts_with("sm_");
    ensure!(compiled.usage.is_some() == is_assembled, "no usage in the compiler's log: {}", compiled.log);
    let shared_bytes = spec.shared_bytes + compiled.usage.as_ref().map_or(0, |usage| usage.shared_bytes);
    ensure!(shared_bytes <= workgroup_bytes, "{shared_bytes} bytes of shared memory, there are {workgroup_bytes}");
    let registers = compiled.usage.as_ref().map(|usage| usage.registers);
    Ok(Takes { registers, spill_bytes: compiled.usage.map(|usage| usage.spill_bytes), shared_bytes })
}

/// Whether every entry of a source has [`FIRST`] behind its parameters, but for the heads of those that share the body
/// of the next one.
fn waits_first(source: &str, name: &str) -> bool {
    let text = source.lines().filter(|line| !line.starts_with('#')).flat_map(str::split_whitespace);
    let text = text.collect::<Vec<_>>().join(" ");
    let head = format!(" {name}(const Params params");
    let entries = text.split(&head).skip(1).filter_map(|entry| entry.split_once('{'));
    let bodies: Vec<_> = entries.filter(|(_, body)| body.contains('}')).collect();
    !bodies.is_empty() && bodies.iter().all(|(_, body)| body.starts_with(FIRST))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_entry_with_a_body_of_its_own_waits_first() {
        let entry = |body: &str| format!("extern \"C\" __global__ void\nf(const Params params, BUFFERS(F)) {{\n{body}");
        let waiting = entry("#if A\n    wait_for_previous();\n    g();\n#endif\n}\n");
        let head = entry("    F* out = a;\n#else\n");
        let late = entry("    g();\n    wait_for_previous();\n}\n");
        assert!(waits_first(&waiting, "f") && waits_first(&(head.clone() + &waiting), "f"));
        for wrong in [&late, &(late.clone() + &waiting), &(waiting.clone() + &late), &(head + &late), "", "void f() {}"]
        {
            assert!(!waits_first(wrong, "f"), "{wrong}");
        }
        assert!(!waits_first(&waiting, "g"));
    }
}
