//! NVRTC, NVIDIA's run-time compiler: CUDA C++ to machine code, with or without a GPU.
//!
//! The library is loaded at run time, under the names of the versions that are known to work. The system's places for
//! libraries come first, then the folders of CUDA toolkits. `cudarc` does not load it: it knows the names of one
//! version only, does not look into folders, and panics if there is no library.
//!
//! [`compile`] checks more than the compiler does: the entry must take the parameters and buffers that the
//! [`KernelSpec`] declares.
//!
//! # What a source may use
//! Sources are complete: there are no headers. A prelude declares the fixed-width integers of `<cstdint>` (`int8_t` …
//! `uint64_t`, `intptr_t`, `uintptr_t`) and `wait_for_previous()` ([`KernelSpec`]). `size_t`, CUDA's vector types and
//! intrinsics are built in. Line numbers in messages are those of the source without the prelude.

use std::ffi::CString;

use super::image;
use crate::{
    cache::Cache,
    error::{Error, Result},
    spec::KernelSpec,
    unused::without_unused_functions,
};
use library::{Failure, Nvrtc, Output, unavailable};
use report::{parameters, usage};

pub use report::Usage;

mod library;
mod report;
#[cfg(test)]
mod tests;

/// Options of every compilation, besides the target. The assembler's report is where [`Usage`] comes from.
pub(crate) const OPTIONS: &[&str] = &["--std=c++17", "--ptxas-options=--verbose"];

/// The option that turns NVRTC's own cache off, and the first version that has such a cache if there is a driver. That
/// cache would give code without the assembler's report. It would keep it in a folder whose owner and mode nobody has
/// checked.
const NO_CACHE: &str = "--no-cache";
const CACHES_FROM: (u32, u32) = (12, 9);

/// What the sources find declared. Out of the way of the numbers of their lines.
const PRELUDE: &str = "typedef signed char int8_t; typedef unsigned char uint8_t; typedef short int16_t; \
    typedef unsigned short uint16_t; typedef int int32_t; typedef unsigned int uint32_t; typedef long long int64_t; \
    typedef unsigned long long uint64_t; typedef long long intptr_t; typedef unsigned long long uintptr_t;
__device__ __forceinline__ void wait_for_previous() {
#if __CUDA_ARCH__ >= 900
    asm volatile(\"griddepcontrol.wait;\" ::: \"memory\");
#endif
}";

/// The line of a source that waits itself for the launch ahead of it. With it stands the first target architecture for
/// which it has a meaning, as in [`PRELUDE`].
const WAITS: &str = "wait_for_previous();";
const WAITS_FROM: u32 = 90;

/// A compiled kernel.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Compiled {
    /// Machine code (a cubin) for a target `sm_N`; PTX that ends in a zero for a target `compute_N`.
    pub code: Vec<u8>,
    /// The messages of the compiler and the assembler.
    pub log: String,
    /// The resources of the kernel; `None` for PTX, which the driver assembles later.
    pub usage: Option<Usage>,
}

/// Returns the version of NVRTC, such as (13, 0).
///
/// # Errors
/// [`Error::Unavailable`] if there is no NVRTC. The reason says how to install it.
pub fn version() -> Result<(u32, u32)> {
    Ok(Nvrtc::get()?.version)
}

/// Returns the architectures that [`compile`] takes, such as 90 for `sm_90` and `compute_90`, in ascending order.
///
/// # Errors
/// [`Error::Unavailable`] if there is no NVRTC.
pub fn architectures() -> Result<Vec<u32>> {
    Ok(Nvrtc::get()?.architectures.clone())
}

/// Compiles a kernel for an architecture: `sm_N` for machine code, `compute_N` for PTX.
///
/// # Errors
/// [`Error::Unavailable`] if there is no NVRTC. [`Error::Compile`] with the compiler's messages, or if the entry does
/// not take the parameters and buffers that `spec` declares.
pub fn compile(spec: &KernelSpec, architecture: &str) -> Result<Compiled> {
    compile_source(spec, &source(spec), architecture)
}

/// Returns the key of a kernel's code in an [`archive`](crate::archive), for a target `sm_N` or `compute_N`. The key is
/// a hash of everything that the code is compiled from, except the compiler's version.
pub fn key(spec: &KernelSpec, target: &str) -> [u8; 32] {
    *digest(spec, &source(spec), target).as_bytes()
}

/// [`key`] of a kernel with that text.
pub(crate) fn digest(spec: &KernelSpec, source: &str, target: &str) -> blake3::Hash {
    let numbers = [spec.threads as usize, spec.shared_bytes as usize, spec.params_bytes(), spec.bindings.len()];
    Cache::key(&[
        b"cuda",
        source.as_bytes(),
        spec.name.as_bytes(),
        target.as_bytes(),
        OPTIONS.join(" ").as_bytes(),
        &numbers.map(|n| (n as u64).to_le_bytes()).concat(),
    ])
}

/// The text that is compiled.
pub(crate) fn source(spec: &KernelSpec) -> String {
    format!("{PRELUDE}\n#line 1 \"{}.cu\"\n{}", spec.name, spec.cuda_source())
}

/// The target to compile for, to run on a GPU of an architecture `sm_N`. It is that architecture. If the GPU is newer
/// than the compiler, it is PTX for the newest architecture that the compiler knows.
///
/// # Errors
/// [`Error::Unavailable`] if there is no NVRTC, [`Error::Compile`] if it has dropped the architecture.
pub(crate) fn target(spec: &KernelSpec, architecture: &str) -> Result<String> {
    let Nvrtc { version: (major, minor), architectures, .. } = Nvrtc::get()?;
    nearest(architectures, architecture).ok_or_else(|| Error::Compile {
        kernel: spec.label(),
        device: architecture.to_owned(),
        log: format!("NVRTC {major}.{minor} knows {architectures:?} only: install an older version beside it"),
    })
}

/// Whether a kernel compiled from a source for architecture N may be launched before the launch ahead of it has ended.
/// The kernel then waits for that itself, see [`KernelSpec`].
pub(crate) fn waits(source: &str, architecture: u32) -> bool {
    architecture >= WAITS_FROM && source.lines().any(|line| line.trim() == WAITS)
}

fn nearest(known: &[u32], architecture: &str) -> Option<String> {
    let wanted: u32 = architecture.strip_prefix("sm_")?.parse().ok()?;
    match known.iter().rev().find(|&&known| known <= wanted)? {
        known if *known == wanted => Some(architecture.to_owned()),
        older => Some(format!("compute_{older}")),
    }
}

pub(crate) fn compile_source(spec: &KernelSpec, source: &str, architecture: &str) -> Result<Compiled> {
    let nvrtc = Nvrtc::get()?;
    let refuse = |log: String| Error::Compile {
        kernel: spec.label(),
        device: architecture.to_owned(),
        log: log.trim().to_owned(),
    };
    let text = |text: &str| CString::new(text).map_err(|_| refuse("its source contains a zero".into()));
    let (source, file) = (text(&without_unused_functions(source))?, text(&format!("{}.cu", spec.name))?);
    let mut options = vec![text(&format!("--gpu-architecture={architecture}"))?];
    let no_cache = (nvrtc.version >= CACHES_FROM).then_some(&NO_CACHE);
    for option in OPTIONS.iter().chain(no_cache) {
        options.push(text(option)?);
    }

    let Output { code, ptx, log } =
        nvrtc.run(&source, &file, &options, architecture.starts_with("compute_")).map_err(|failure| match failure {
            Failure::Incomplete(log) => unavailable(format!("NVRTC is incomplete: {}", log.trim())),
            Failure::Refused(log) => refuse(log),
        })?;
    if image::whole(&code).is_none() {
        return Err(refuse("its code is no image whose parts all lie in it".into()));
    }

    let signature = String::from_utf8_lossy(&ptx);
    let found = parameters(&signature, spec.name)
        .ok_or_else(|| refuse(format!("the source has no entry: extern \"C\" __global__ void {}", spec.name)))?;
    // An empty struct has one byte in C++.
    let mut declared = vec![spec.params_bytes().max(1)];
    declared.resize(1 + spec.bindings.len(), size_of::<u64>());
    if found != declared {
        return Err(refuse(format!("its arguments have {found:?} bytes, its declaration says {declared:?}")));
    }
    Ok(Compiled { code, usage: usage(&log, spec.name), log })
}
