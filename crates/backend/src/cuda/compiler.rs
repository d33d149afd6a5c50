//! NVRTC, NVIDIA's run-time compiler: CUDA C++ to machine code, with or without a GPU.
//!
//! The library is looked for under the names of the versions that are known to work, first where the system looks for
//! libraries and then in the folders of CUDA toolkits. It is loaded by this module and not by `cudarc`, which knows
//! only the names of one version, does not look into folders, and panics where there is nothing.
//!
//! [`compile`] checks more than the compiler does: the entry must take the parameters and buffers that the
//! [`KernelSpec`] declares.
//!
//! # What a source may use
//! Sources are complete: there are no headers, neither the C++ library's nor CUDA's. A prelude declares the fixed-width integers
//! of `<cstdint>` (`int8_t` … `uint64_t`, `intptr_t`, `uintptr_t`); `size_t`, CUDA's vector types and intrinsics are built in; so
//! is `wait_for_previous()` ([`KernelSpec`]). Line numbers in messages are those of the source without the prelude.

use std::{
    env,
    ffi::{CStr, CString, c_char, c_int, c_void},
    fmt,
    path::{Path, PathBuf},
    ptr,
    sync::{Mutex, MutexGuard, OnceLock, PoisonError},
};

use libloading::Library;

use super::image;
use crate::{
    cache::Cache,
    error::{Error, Result},
    info::Kind,
    spec::KernelSpec,
};

/// Options of every compilation, besides the target. The assembler's report is where [`Usage`] comes from.
pub(crate) const OPTIONS: &[&str] = &["--std=c++17", "--ptxas-options=--verbose"];

/// What turns a cache of NVRTC's own off, and the version from which on it has one where there is a driver: it would give code
/// without the assembler's report, and keep it in a folder whose owner and mode nobody has checked.
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

/// The line of a source that waits itself for the launch ahead of it, and the architecture compiled for from which on that has a
/// meaning, as in [`PRELUDE`].
const WAITS: &str = "wait_for_previous();";
const WAITS_FROM: u32 = 90;

/// Where toolkits say they are, and where they are by default.
const FOLDER_VARIABLES: [&str; 4] = ["CUDA_HOME", "CUDA_PATH", "CUDA_ROOT", "CUDA_TOOLKIT_ROOT_DIR"];
const FOLDERS: [&str; 2] = ["/usr/local/cuda", "/opt/cuda"];
const SUBFOLDERS: [&str; 4] = ["lib64", "lib", "bin", "bin/x64"];

/// The library's names, newest first.
#[cfg(not(windows))]
const NAMES: [&str; 4] = ["libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so.11.2", "libnvrtc.so"];
#[cfg(windows)]
const NAMES: [&str; 3] = ["nvrtc64_130_0.dll", "nvrtc64_120_0.dll", "nvrtc64_112_0.dll"];

/// A compiled kernel.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Compiled {
    /// Machine code (a cubin) for a target `sm_N`; PTX that ends in a zero for a target `compute_N`.
    pub code: Vec<u8>,
    /// What the compiler and the assembler said.
    pub log: String,
    /// What the kernel takes; `None` for PTX, which the driver assembles later.
    pub usage: Option<Usage>,
}

/// What a kernel takes of a multiprocessor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Usage {
    /// Registers of each thread.
    pub registers: u32,
    /// Bytes of local memory (the stack) of each thread.
    pub local_bytes: u32,
    /// Bytes of registers that each thread stores to local memory for want of registers.
    pub spill_bytes: u32,
    /// Bytes of static shared memory of a workgroup; [`KernelSpec::shared_bytes`] come on top.
    pub shared_bytes: u32,
}

impl fmt::Display for Usage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { registers, local_bytes, spill_bytes, shared_bytes } = self;
        write!(f, "{registers} registers, {local_bytes} B local, {spill_bytes} B spilled, {shared_bytes} B shared")
    }
}

/// Returns the version of NVRTC, such as (13, 0).
///
/// # Errors
/// [`Error::Unavailable`] if there is no NVRTC; the reason says how to get it.
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

/// Compiles a kernel for an architecture: `sm_N` for the machine code of one, `compute_N` for PTX.
///
/// # Errors
/// [`Error::Unavailable`] if there is no NVRTC; [`Error::Compile`] with the compiler's messages, also if the entry does
/// not take what `spec` declares.
pub fn compile(spec: &KernelSpec, architecture: &str) -> Result<Compiled> {
    compile_source(spec, &source(spec), architecture)
}

/// Returns by what the code of a kernel for a target is found in an [`archive`](crate::archive): a hash of all that it is compiled
/// from but for the compiler's version. The target is `sm_N` or `compute_N`.
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

/// What to compile for, to run on a GPU of an architecture `sm_N`: that, or where the GPU is newer than the compiler,
/// PTX for the newest architecture that the compiler knows.
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

/// Whether a kernel compiled from a source for architecture N may be launched before the launch ahead of it has ended: it waits
/// for that itself, see [`KernelSpec`].
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
    let (source, file) = (text(source)?, text(&format!("{}.cu", spec.name))?);
    let mut options = vec![text(&format!("--gpu-architecture={architecture}"))?];
    let no_cache = (nvrtc.version >= CACHES_FROM).then_some(&NO_CACHE);
    for option in OPTIONS.iter().chain(no_cache) {
        options.push(text(option)?);
    }

    let alone = alone(nvrtc, &options);
    let program = Program::new(nvrtc, &source, &file).map_err(|code| refuse(nvrtc.describe(code)))?;
    let compiled = program.compile(&options);
    let log = program.text(nvrtc.log_size, nvrtc.log);
    match compiled {
        Ok(()) => {}
        Err(BUILTINS_FAILED) => return Err(unavailable(format!("NVRTC is incomplete: {}", log.trim()))),
        Err(code) => return Err(refuse(format!("{log}\n{}", nvrtc.describe(code)))),
    }
    let ptx = program.bytes(nvrtc.ptx_size, nvrtc.ptx).map_err(|code| refuse(nvrtc.describe(code)))?;
    let code = if architecture.starts_with("compute_") {
        ptx.clone()
    } else {
        program.bytes(nvrtc.code_size, nvrtc.code).map_err(|code| refuse(nvrtc.describe(code)))?
    };
    if image::whole(&code).is_none() {
        return Err(refuse("its code is no image whose parts all lie in it".into()));
    }
    if alone.is_some() {
        let _ = WARM.set(());
    }
    drop(alone);

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

/// The sizes of an entry's parameters in PTX.
fn parameters(ptx: &str, name: &str) -> Option<Vec<usize>> {
    let (_, rest) = ptx.split_once(&format!(".entry {name}("))?;
    let (list, _) = rest.split_once(')')?;
    list.split(',').map(str::trim).filter(|parameter| !parameter.is_empty()).map(parameter_bytes).collect()
}

/// The size of one parameter, such as `.param .u64 .ptr .align 1 x_param_1` or `.param .align 4 .b8 x_param_0[12]`.
fn parameter_bytes(parameter: &str) -> Option<usize> {
    let bits = |word: &str| word.strip_prefix(['.'])?.strip_prefix(['b', 'u', 's', 'f'])?.parse::<usize>().ok();
    let bytes = parameter.split_whitespace().find_map(bits)? / 8;
    match parameter.split_once('[') {
        Some((_, count)) => Some(bytes * count.trim_end_matches(']').parse::<usize>().ok()?),
        None => Some(bytes),
    }
}

/// What the assembler's report says of an entry, and of the functions that it calls.
fn usage(log: &str, name: &str) -> Option<Usage> {
    let (_, report) = log.split_once(&format!("Compiling entry function '{name}'"))?;
    let report = report.split("Compiling entry function").next()?;
    let (_, own) = report.split_once(&format!("Function properties for {name}"))?;
    Some(Usage {
        registers: number_before(report, " registers")?,
        local_bytes: number_before(report, " bytes cumulative stack size")
            .or_else(|| number_before(own, " bytes stack frame"))?,
        spill_bytes: report.lines().filter_map(|line| number_before(line, " bytes spill stores")).sum(),
        shared_bytes: number_before(report, " bytes smem").unwrap_or(0),
    })
}

fn number_before(text: &str, unit: &str) -> Option<u32> {
    let (before, _) = text.split_once(unit)?;
    before.rsplit(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
}

static FIRST: Mutex<()> = Mutex::new(());
static WARM: OnceLock<()> = OnceLock::new();

/// The library crashes if its first compilation is not alone. So the first one is of a kernel without contents, which takes 50 ms,
/// and others wait for no more. Where it fails, the caller has to be alone as long as it holds what this gives.
fn alone(nvrtc: &'static Nvrtc, options: &[CString]) -> Option<MutexGuard<'static, ()>> {
    if WARM.get().is_some() {
        return None;
    }
    let alone = FIRST.lock().unwrap_or_else(PoisonError::into_inner);
    if WARM.get().is_none() {
        let nothing = Program::new(nvrtc, c"extern \"C\" __global__ void nothing() {}", c"nothing.cu");
        if nothing.and_then(|program| program.compile(options)).is_err() {
            return Some(alone);
        }
        let _ = WARM.set(());
    }
    None
}

type RawProgram = *mut c_void;
type SizeFn = unsafe extern "C" fn(RawProgram, *mut usize) -> c_int;
type BytesFn = unsafe extern "C" fn(RawProgram, *mut c_char) -> c_int;
type CreateFn = unsafe extern "C" fn(
    *mut RawProgram,
    *const c_char,
    *const c_char,
    c_int,
    *const *const c_char,
    *const *const c_char,
) -> c_int;

/// The library could not open its second half, `nvrtc-builtins`.
const BUILTINS_FAILED: c_int = 7;

/// The library's functions.
struct Nvrtc {
    version: (u32, u32),
    architectures: Vec<u32>,
    create: CreateFn,
    compile: unsafe extern "C" fn(RawProgram, c_int, *const *const c_char) -> c_int,
    destroy: unsafe extern "C" fn(*mut RawProgram) -> c_int,
    code_size: SizeFn,
    code: BytesFn,
    ptx_size: SizeFn,
    ptx: BytesFn,
    log_size: SizeFn,
    log: BytesFn,
    error_text: unsafe extern "C" fn(c_int) -> *const c_char,
    _libraries: Vec<Library>,
}

impl Nvrtc {
    fn get() -> Result<&'static Self> {
        static NVRTC: OnceLock<Result<Nvrtc>> = OnceLock::new();
        NVRTC.get_or_init(|| Self::find(candidates())).as_ref().map_err(Error::clone)
    }

    /// The first candidate that loads.
    fn find(candidates: impl IntoIterator<Item = PathBuf>) -> Result<Self> {
        let mut refused = String::new();
        for path in candidates {
            // SAFETY: loading NVRTC runs its initialisers, which have no preconditions.
            let Ok(library) = (unsafe { Library::new(&path) }) else { continue };
            match Self::load(library, &path) {
                Ok(nvrtc) => return Ok(nvrtc),
                Err(reason) => refused.push_str(&format!("; {} cannot be used: {reason}", path.display())),
            }
        }
        Err(unavailable(format!(
            "NVRTC ({}, CUDA 11.2 or later) was not found: install the CUDA toolkit, or the Python package \
             nvidia-cuda-nvrtc and add its folder lib to {}{refused}",
            NAMES[0],
            if cfg!(windows) { "PATH" } else { "LD_LIBRARY_PATH" },
        )))
    }

    fn load(library: Library, path: &Path) -> std::result::Result<Self, libloading::Error> {
        // SAFETY: every type below is that of the function in nvrtc.h, where results are C enumerations.
        let (get_version, count, list) = unsafe {
            (
                *library.get::<unsafe extern "C" fn(*mut c_int, *mut c_int) -> c_int>("nvrtcVersion")?,
                *library.get::<unsafe extern "C" fn(*mut c_int) -> c_int>("nvrtcGetNumSupportedArchs")?,
                *library.get::<unsafe extern "C" fn(*mut c_int) -> c_int>("nvrtcGetSupportedArchs")?,
            )
        };
        let (mut major, mut minor, mut known): (c_int, c_int, c_int) = (0, 0, 0);
        // SAFETY: the pointers are to live values.
        unsafe { (get_version(&mut major, &mut minor), count(&mut known)) };
        let mut architectures = vec![0 as c_int; usize::try_from(known).unwrap_or(0)];
        // SAFETY: the list has as many places as the library asked for.
        unsafe { list(architectures.as_mut_ptr()) };
        let mut architectures: Vec<u32> = architectures.into_iter().filter_map(|n| u32::try_from(n).ok()).collect();
        architectures.sort_unstable();

        let version = (u32::try_from(major).unwrap_or(0), u32::try_from(minor).unwrap_or(0));
        let builtins = load_builtins(path, version);
        // SAFETY: as above.
        unsafe {
            Ok(Self {
                version,
                architectures,
                create: *library.get("nvrtcCreateProgram")?,
                compile: *library.get("nvrtcCompileProgram")?,
                destroy: *library.get("nvrtcDestroyProgram")?,
                code_size: *library.get("nvrtcGetCUBINSize")?,
                code: *library.get("nvrtcGetCUBIN")?,
                ptx_size: *library.get("nvrtcGetPTXSize")?,
                ptx: *library.get("nvrtcGetPTX")?,
                log_size: *library.get("nvrtcGetProgramLogSize")?,
                log: *library.get("nvrtcGetProgramLog")?,
                error_text: *library.get("nvrtcGetErrorString")?,
                _libraries: [library].into_iter().chain(builtins).collect(),
            })
        }
    }

    fn describe(&self, code: c_int) -> String {
        // SAFETY: the function takes any number, and gives a string constant.
        let text = unsafe { (self.error_text)(code) };
        if text.is_null() {
            return format!("NVRTC error {code}");
        }
        // SAFETY: as above.
        unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
    }
}

/// NVRTC opens its second half by name only, and so does not find it in a folder where the system does not look: it is
/// opened here, by path, and found by name as it is then open already.
fn load_builtins(nvrtc: &Path, (major, minor): (u32, u32)) -> Option<Library> {
    let folder = nvrtc.parent().filter(|folder| folder.is_absolute())?;
    let name = if cfg!(windows) {
        format!("nvrtc-builtins64_{major}{minor}.dll")
    } else {
        format!("libnvrtc-builtins.so.{major}.{minor}")
    };
    // SAFETY: the library holds data only.
    unsafe { Library::new(folder.join(name)) }.ok()
}

/// Where NVRTC may be: bare names for the system's own search, then files in the toolkits' folders.
fn candidates() -> Vec<PathBuf> {
    let toolkits = FOLDER_VARIABLES.iter().filter_map(env::var_os).map(PathBuf::from);
    let toolkits = toolkits.filter(|folder| folder.is_absolute()).chain(FOLDERS.iter().map(PathBuf::from));
    let folders = toolkits.flat_map(|toolkit| SUBFOLDERS.map(|subfolder| toolkit.join(subfolder)));
    let files = folders.flat_map(|folder| NAMES.map(|name| folder.join(name)));
    NAMES.iter().map(PathBuf::from).chain(files).collect()
}

fn unavailable(reason: String) -> Error {
    Error::Unavailable { backend: Kind::Cuda, reason }
}

/// A program of the library. Its results are error codes.
struct Program {
    nvrtc: &'static Nvrtc,
    raw: RawProgram,
}

impl Program {
    fn new(nvrtc: &'static Nvrtc, source: &CStr, file: &CStr) -> std::result::Result<Self, c_int> {
        let mut raw = ptr::null_mut();
        // SAFETY: the pointer is to a live value, both texts end in a zero, and there are no headers.
        let code = unsafe { (nvrtc.create)(&mut raw, source.as_ptr(), file.as_ptr(), 0, ptr::null(), ptr::null()) };
        succeed(code).map(|()| Self { nvrtc, raw })
    }

    fn compile(&self, options: &[CString]) -> std::result::Result<(), c_int> {
        let options: Vec<*const c_char> = options.iter().map(|option| option.as_ptr()).collect();
        // SAFETY: the program is live, and there are as many options as is said, each ending in a zero.
        succeed(unsafe { (self.nvrtc.compile)(self.raw, options.len() as c_int, options.as_ptr()) })
    }

    /// What a pair of functions for a size and for that many bytes gives.
    fn bytes(&self, size: SizeFn, get: BytesFn) -> std::result::Result<Vec<u8>, c_int> {
        let mut len = 0;
        // SAFETY: the program is live, and the pointer is to a live value.
        succeed(unsafe { size(self.raw, &mut len) })?;
        let mut bytes = vec![0_u8; len];
        // SAFETY: there is room for as many bytes as the library asked for.
        succeed(unsafe { get(self.raw, bytes.as_mut_ptr().cast()) })?;
        Ok(bytes)
    }

    /// [`Program::bytes`] where they are a message.
    fn text(&self, size: SizeFn, get: BytesFn) -> String {
        let bytes = self.bytes(size, get).unwrap_or_default();
        String::from_utf8_lossy(&bytes).trim_end_matches('\0').to_owned()
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // SAFETY: the program is live and not used after this.
        unsafe { (self.nvrtc.destroy)(&mut self.raw) };
    }
}

fn succeed(code: c_int) -> std::result::Result<(), c_int> {
    if code == 0 { Ok(()) } else { Err(code) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        bindings::{Binding, BindingType},
        params,
        spec::Language,
    };

    const BODY: &str = r#"
        extern "C" __global__ void double_all(const Params params, uint64_t* x) {
            __shared__ uint64_t tile[64];
            size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x;
            tile[threadIdx.x % 64] = i < params.n ? x[i] : 0;
            __syncthreads();
            if (i < params.n) x[i] = 2 * tile[threadIdx.x % 64] + params.k;
        }"#;

    params! {
        struct Scale {
            n: u32,
            k: u32,
        }
    }

    fn spec(body: &'static str) -> KernelSpec {
        KernelSpec::new::<Scale, _>(
            "double_all",
            "u64",
            vec![Binding::write("x", BindingType::Vec2)],
            |_, _| {},
            move |language| {
                assert_eq!(language, Language::Cuda);
                body.to_owned()
            },
        )
    }

    /// Runs a check where NVRTC is there; where it is not, asserts on what its users are told.
    fn with_nvrtc(check: impl FnOnce()) {
        match version() {
            Ok(version) => {
                assert!(version >= (11, 2), "{version:?}");
                check();
            }
            Err(error) => {
                assert_tells_how_to_get_it(&error);
                assert_eq!(compile(&spec(BODY), "sm_90").unwrap_err(), error);
            }
        }
    }

    fn assert_tells_how_to_get_it(error: &Error) {
        let Error::Unavailable { backend: Kind::Cuda, reason } = error else { panic!("{error:?}") };
        assert!(reason.contains("nvidia-cuda-nvrtc") && reason.contains("CUDA toolkit"), "{reason}");
    }

    #[test]
    fn a_kernel_compiles_for_every_generation() {
        with_nvrtc(|| {
            let known = architectures().unwrap();
            assert!(known.is_sorted());
            for architecture in [75, 90, 120].into_iter().filter(|n| known.contains(n)) {
                // The second time must tell as much.
                for _ in 0..2 {
                    let compiled = compile(&spec(BODY), &format!("sm_{architecture}")).unwrap();
                    assert!(compiled.code.starts_with(b"\x7fELF"), "sm_{architecture}");
                    let usage = compiled.usage.unwrap();
                    assert!((4..64).contains(&usage.registers), "{usage}");
                    assert_eq!((usage.local_bytes, usage.spill_bytes, usage.shared_bytes), (0, 0, 512));
                }
            }
            assert!(known.contains(&75) || known.contains(&90), "{known:?}");
        });
    }

    #[test]
    fn threads_compile_side_by_side() {
        with_nvrtc(|| {
            let code: Vec<Vec<u8>> = std::thread::scope(|scope| {
                let threads: Vec<_> =
                    (0..4).map(|_| scope.spawn(|| compile(&spec(BODY), "compute_80").unwrap().code)).collect();
                threads.into_iter().map(|thread| thread.join().unwrap()).collect()
            });
            assert!(code.iter().all(|one| *one == code[0] && one.ends_with(&[0])));
        });
    }

    #[test]
    fn a_broken_source_gives_the_log_with_its_own_lines() {
        with_nvrtc(|| {
            let broken = "// Nothing\n\nextern \"C\" __global__ void double_all() { nonsense; }";
            let Err(Error::Compile { kernel, device, log }) = compile(&spec(broken), "sm_90") else {
                panic!("it compiled")
            };
            assert_eq!((kernel.as_str(), device.as_str()), ("double_all (u64)", "sm_90"));
            assert!(log.contains("double_all.cu(3)") && log.contains("nonsense"), "{log}");
            let Err(Error::Compile { .. }) = compile(&spec(BODY), "sm_1") else { panic!("sm_1 was accepted") };
        });
    }

    #[test]
    fn an_entry_other_than_declared_is_refused() {
        let cases = [
            ("extern \"C\" __global__ void other(const uint64_t p, uint64_t* x) {}", "has no entry"),
            ("extern \"C\" __global__ void double_all(const uint32_t p, uint64_t* x) {}", "[4, 8] bytes"),
            ("extern \"C\" __global__ void double_all(const uint64_t p) {}", "[8] bytes"),
            ("extern \"C\" __global__ void double_all(const uint64_t p, int* x, int* y) {}", "[8, 8, 8] bytes"),
        ];
        with_nvrtc(|| {
            for (source, expected) in cases {
                let Err(Error::Compile { log, .. }) = compile(&spec(source), "sm_90") else { panic!("{source}") };
                assert!(log.contains(expected), "{log}");
            }
        });
    }

    #[test]
    fn an_empty_struct_of_parameters_is_one_byte() {
        let source = "extern \"C\" __global__ void empty(const Params params) {}";
        let spec = KernelSpec::new::<(), _>("empty", "", vec![], |_, _| {}, move |_| source.to_owned());
        with_nvrtc(|| assert!(compile(&spec, "sm_90").is_ok()));
    }

    #[test]
    fn what_is_spilled_is_told() {
        let source = r#"
            extern "C" __global__ void __launch_bounds__(1024, 2) double_all(const Params params, uint64_t* x) {
                uint64_t t[96];
                #pragma unroll
                for (int i = 0; i < 96; i++) t[i] = x[i * params.n + threadIdx.x];
                __syncthreads();
                #pragma unroll
                for (int i = 0; i < 96; i++) x[i * params.k + threadIdx.x] = t[i] * t[95 - i];
            }"#;
        with_nvrtc(|| {
            let usage = compile(&spec(source), "sm_90").unwrap().usage.unwrap();
            assert!(usage.registers <= 32 && usage.spill_bytes > 0 && usage.local_bytes > 0, "{usage}");
        });
    }

    #[test]
    fn a_missing_library_is_unavailable() {
        let error = Nvrtc::find([PathBuf::from("/nonexistent/libnvrtc.so.13")]).map(drop).unwrap_err();
        assert_tells_how_to_get_it(&error);
    }

    /// In a process of its own, where files that are no libraries stand in the loader's way.
    #[cfg(target_os = "linux")]
    #[test]
    fn a_hidden_library_is_unavailable() {
        const HIDDEN: &str = "EVARISTE_TEST_NVRTC_HIDDEN";
        if std::env::var_os(HIDDEN).is_some() {
            let toolkit = candidates().iter().any(|path| path.is_absolute() && path.exists());
            match version() {
                Err(error) => assert_tells_how_to_get_it(&error),
                Ok(_) => assert!(toolkit, "found although it is hidden, and no toolkit is installed"),
            }
            return;
        }
        let folder = std::env::temp_dir().join(format!("evariste-nvrtc-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        for name in NAMES {
            std::fs::write(folder.join(name), "not a library").unwrap();
        }
        let status = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "cuda::compiler::tests::a_hidden_library_is_unavailable"])
            .env(HIDDEN, "1")
            .env("LD_LIBRARY_PATH", &folder)
            .status();
        std::fs::remove_dir_all(&folder).unwrap();
        assert!(status.unwrap().success());
    }

    #[test]
    fn a_kernel_waits_where_its_source_says_so_and_its_code_can() {
        let waiting = format!("{PRELUDE}\nvoid f() {{\n    {WAITS}\n}}");
        assert_eq!([75, 89, 90, 120].map(|n| waits(&waiting, n)), [false, false, true, true]);
        let commented = waiting.replace(WAITS, &format!("// No {WAITS}"));
        assert!(!waits(PRELUDE, 90) && !waits(&commented, 90), "neither the declaration nor a comment is a call");
    }

    #[test]
    fn code_waits_from_the_architecture_on_that_launches_ask_for() {
        with_nvrtc(|| {
            const WAITING: &str = "extern \"C\" __global__ void double_all(const Params params, uint64_t* x) {\n    \
                                   wait_for_previous();\n    x[0] = 1;\n}";
            for architecture in [80, WAITS_FROM].into_iter().filter(|n| architectures().unwrap().contains(n)) {
                for (body, says) in [(BODY, false), (WAITING, true)] {
                    let code = compile(&spec(body), &format!("compute_{architecture}")).unwrap().code;
                    let waiting = String::from_utf8_lossy(&code).contains("griddepcontrol.wait");
                    assert_eq!(waiting, waits(&source(&spec(body)), architecture), "{architecture}: {body}");
                    assert_eq!(waiting, says && architecture >= WAITS_FROM);
                }
            }
        });
    }

    #[test]
    fn a_newer_gpu_gets_ptx_of_the_newest_known_architecture() {
        let known = [75, 80, 90];
        assert_eq!(nearest(&known, "sm_90").as_deref(), Some("sm_90"));
        assert_eq!(nearest(&known, "sm_86").as_deref(), Some("compute_80"));
        assert_eq!(nearest(&known, "sm_120").as_deref(), Some("compute_90"));
        assert_eq!(nearest(&known, "sm_70"), None);
    }

    #[test]
    fn parameters_of_every_form_are_read() {
        let ptx = "\n.visible .entry f(\n\t.param .align 4 .b8 f_param_0[12],\n\t.param .u64 .ptr .align 1 f_param_1,\
                   \n\t.param .u32 f_param_2\n)\n.maxntid 256\n{";
        assert_eq!(parameters(ptx, "f"), Some(vec![12, 8, 4]));
        assert_eq!(parameters(".entry f(\n\n)\n{", "f"), Some(vec![]));
        assert_eq!(parameters(ptx, "g"), None);
    }
}
