//! From a kernel's text to a library that runs it.

use std::{
    collections::{BTreeSet, HashMap},
    env,
    ffi::{OsStr, OsString, c_char},
    fs,
    hash::{DefaultHasher, Hash, Hasher},
    path::{Path, PathBuf},
    process::{self, Command},
    ptr,
    sync::{
        Arc, LazyLock, Mutex, OnceLock, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use evariste_backend::{
    Error, Kind, Result,
    author::{Access, CpuArg, KernelSpec, without_unused_functions},
};
use libloading::Symbol;

use crate::{Arithmetic, POISON};

const RUNTIME_HEADER: &str = include_str!("runtime.h");
const RUNTIME: &str = include_str!("runtime.cpp");
const CUDA_HEADER: &str = include_str!("cuda.h");
const ENTRY: &str = include_str!("entry.h");

const COMMON: [&str; 6] = ["-std=c++17", "-fPIC", "-fvisibility=hidden", "-fno-exceptions", "-fno-rtti", "-c"];

/// Kernels cast between elements, words and tables as CUDA allows, and are full of pragmas that GCC does not know. With
/// more optimisation they compile longer and run hardly faster.
const OF_KERNELS: [&str; 10] = [
    "-Og",
    "-w",
    "-fno-strict-aliasing",
    "-fsanitize=undefined,bounds-strict",
    "-fno-sanitize=vptr",
    "-fno-sanitize-recover=all",
    "-fsanitize=thread",
    "--param=tsan-distinguish-volatile=1",
    "--param=tsan-instrument-func-entry-exit=0",
    "-fno-tree-loop-distribute-patterns",
];

/// A register that functions save, for the carry flag.
const CARRY_REGISTER: &str = if cfg!(target_arch = "x86_64") { "r15" } else { "x28" };

const NEEDED: &str = "it takes GCC's C++ compiler, version 11 or later, as g++ or in CXX";

/// A kernel's library, when it is built.
type Entry = Arc<OnceLock<Result<Arc<Library>, String>>>;

/// Libraries by their kernels' texts.
type Libraries = Mutex<HashMap<String, Entry>>;

/// What any device of this process has compiled, by text: tests open a device each, and GCC takes longer than they do.
static BUILT: LazyLock<Libraries> = LazyLock::new(Libraries::default);

/// The entry of a text. A second caller waits for the first.
fn entry(libraries: &Libraries, text: &str) -> Entry {
    let mut libraries = libraries.lock().unwrap_or_else(PoisonError::into_inner);
    Arc::clone(libraries.entry(text.to_owned()).or_default())
}

/// GCC, and what was compiled for one device.
#[derive(Debug)]
pub(crate) struct Compiler {
    program: OsString,
    arithmetic: Arithmetic,
    folder: Folder,
    libraries: Libraries,
    /// Hashes of texts by name and variant.
    names: Mutex<HashMap<(&'static str, String), u64>>,
    files: AtomicU64,
}

impl Compiler {
    pub(crate) fn new(arithmetic: Arithmetic) -> Result<Self> {
        let unavailable = |reason: String| Error::Unavailable { backend: Kind::Cuda, reason };
        if !cfg!(target_os = "linux") {
            return Err(unavailable("CUDA sources run on the host on Linux only".into()));
        }
        let compiler = Self {
            program: env::var_os("CXX").unwrap_or_else(|| "g++".into()),
            arithmetic,
            folder: Folder::new().map_err(|error| unavailable(format!("a folder for compiled kernels: {error}")))?,
            libraries: Mutex::default(),
            names: Mutex::default(),
            files: AtomicU64::new(0),
        };
        let write = |name, text| fs::write(compiler.folder.0.join(name), text);
        let written = write("runtime.h", RUNTIME_HEADER).and_then(|()| write("runtime.cpp", RUNTIME));
        written.map_err(|error| unavailable(format!("the runtime of kernels: {error}")))?;
        let options = COMMON.into_iter().chain(["-O2", "runtime.cpp", "-o", "runtime.o"]);
        compiler.start(options).map_err(|log| unavailable(format!("{NEEDED}: {log}")))?;
        Ok(compiler)
    }

    /// The library of a kernel, with the time that it took if this device did not have it yet; or the compiler's
    /// messages.
    pub(crate) fn compile(&self, spec: &KernelSpec) -> Result<(Arc<Library>, Option<Duration>), String> {
        let text = text(spec, self.arithmetic);
        {
            let mut hasher = DefaultHasher::new();
            text.hash(&mut hasher);
            let mut names = self.names.lock().unwrap_or_else(PoisonError::into_inner);
            if *names.entry((spec.name, spec.variant.clone())).or_insert(hasher.finish()) != hasher.finish() {
                return Err("there is a kernel of this name and variant with another text".into());
            }
        }
        let mut time = None;
        let build = || {
            let start = Instant::now();
            let built = entry(&BUILT, &text);
            let library = built.get_or_init(|| self.build(spec, &text).map(Arc::new)).clone();
            time = Some(start.elapsed());
            library
        };
        let library = entry(&self.libraries, &text).get_or_init(build).clone()?;
        library.expect(spec)?;
        Ok((library, time))
    }

    fn build(&self, spec: &KernelSpec, text: &str) -> Result<Library, String> {
        let name = format!("{}-{}", spec.name, self.files.fetch_add(1, Ordering::Relaxed));
        let [source, object, library] = ["cpp", "o", "so"].map(|extension| format!("{name}.{extension}"));
        let path = |file: &str| self.folder.0.join(file);
        fs::write(path(&source), text).map_err(|error| error.to_string())?;
        self.start(COMMON.into_iter().chain(OF_KERNELS).chain([source.as_str(), "-o", &object]))?;
        self.start(["-shared", "-Wl,-Bsymbolic", "-Wl,-z,defs", &object, "runtime.o", "-o", &library])?;
        let loaded = Library::load(&path(&library), spec);
        // What is loaded stays when its file goes.
        for file in [&source, &object, &library] {
            fs::remove_file(path(file)).map_err(|error| error.to_string())?;
        }
        loaded
    }

    fn start<'a>(&self, options: impl IntoIterator<Item = &'a str>) -> Result<(), String> {
        let mut command = Command::new(&self.program);
        let output = command.args(options.into_iter().map(OsStr::new)).current_dir(&self.folder.0).output();
        let output = output.map_err(|error| format!("{}: {error}", self.program.display()))?;
        let log = String::from_utf8_lossy(&output.stderr);
        if output.status.success() { Ok(()) } else { Err(format!("{}: {}", output.status, log.trim())) }
    }
}

/// A kernel's text with everything around it.
fn text(spec: &KernelSpec, arithmetic: Arithmetic) -> String {
    let source = spec.cuda_source();
    let header = RUNTIME_HEADER.replace("#pragma once\n", "");
    let carry = u8::from(arithmetic == Arithmetic::CarryFlag);
    // Dynamic shared memory has every name that the text gives it.
    let names: BTreeSet<&str> = source.split("extern __shared__").skip(1).filter_map(declared).collect();
    let names: String = names.iter().map(|name| format!(".globl {name}\\n{name}:\\n")).collect();
    let source = without_unused_functions(&source.replace("extern __shared__", "extern EMULATOR_DYNAMIC"));
    let (name, threads, shared) = (spec.name, spec.threads, spec.shared_bytes.max(1));
    format!(
        "// {name}: {threads} threads, {shared} bytes\n{header}#define CARRY_MODEL {carry}\n#define CARRY_REGISTER \"{CARRY_REGISTER}\"\n{CUDA_HEADER}\
         #line 1 \"{name}.cu\"\n{source}\n#define EMULATOR_KERNEL {name}\n{ENTRY}\
         asm(\".pushsection .bss\\n.balign 1024\\n.globl emulator_dynamic_shared\\n\
         emulator_dynamic_shared:\\n{names}.zero {shared}\\n.popsection\");\n"
    )
}

/// The name of an array that is declared where `rest` starts: `unsigned char name[];`.
fn declared(rest: &str) -> Option<&str> {
    let (declaration, _) = rest.split_once("[]")?;
    declaration.rsplit(|c: char| !c.is_ascii_alphanumeric() && c != '_').next()
}

/// A folder of this process alone, removed at the end.
#[derive(Debug)]
struct Folder(PathBuf);

impl Folder {
    fn new() -> std::io::Result<Self> {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = env::temp_dir().join(format!("evariste-emulator-{}-{number}", process::id()));
        let mut builder = fs::DirBuilder::new();
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        builder.create(&path)?;
        Ok(Self(path))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[repr(C)]
struct Buffer {
    start: *mut u8,
    bytes: usize,
    len: usize,
    own_start: usize,
    own_end: usize,
    writable: usize,
}

/// One launch, as `runtime.h` has it.
#[repr(C)]
struct Launch {
    params: *const u8,
    params_bytes: u64,
    buffers: *const Buffer,
    buffer_count: u32,
    threads: u32,
    blocks: u32,
    shared_bytes: u32,
    unwritten: u32,
    error: [c_char; 512],
}

/// A compiled kernel with a runtime of its own.
#[derive(Debug)]
pub(crate) struct Library {
    run: unsafe extern "C" fn(*mut Launch) -> i32,
    params_bytes: u32,
    writable: Vec<bool>,
    threads: u32,
    shared_bytes: u32,
    /// The runtime's state is one launch's.
    running: Mutex<()>,
    /// What `run` points into.
    _code: libloading::Library,
}

impl Library {
    fn load(path: &Path, spec: &KernelSpec) -> Result<Self, String> {
        // SAFETY: the library was just built from the runtime and a kernel, and has no constructors but the runtime's.
        let code = unsafe { libloading::Library::new(path) }.map_err(|error| error.to_string())?;
        // SAFETY: the runtime exports these functions with these types.
        let (run, params_bytes, writable) = unsafe {
            let number = |name: &[u8]| -> Result<u32, String> {
                let function: Symbol<'_, unsafe extern "C" fn() -> u32> = code.get(name).map_err(|e| e.to_string())?;
                Ok(function())
            };
            let run: Symbol<'_, unsafe extern "C" fn(*mut Launch) -> i32> =
                code.get(b"emulator_run").map_err(|e| e.to_string())?;
            let flags: Symbol<'_, unsafe extern "C" fn() -> *const u8> =
                code.get(b"emulator_kernel_flags").map_err(|e| e.to_string())?;
            let (flags, count) = (flags(), number(b"emulator_kernel_bindings")? as usize);
            // There is a flag for each binding.
            let writable = std::slice::from_raw_parts(flags, count).iter().map(|flag| *flag != 0).collect();
            (*run, number(b"emulator_kernel_params_bytes")?, writable)
        };
        let (threads, shared_bytes) = (spec.threads, spec.shared_bytes);
        Ok(Self { run, params_bytes, writable, threads, shared_bytes, running: Mutex::new(()), _code: code })
    }

    /// Refuses a kernel that does not take what its declaration says.
    fn expect(&self, spec: &KernelSpec) -> Result<(), String> {
        let declared: Vec<bool> = spec.bindings.iter().map(|binding| binding.access == Access::Write).collect();
        // An empty struct has one byte in C++.
        if self.params_bytes as usize != spec.params_bytes().max(1) {
            return Err(format!("it takes {} bytes of parameters, not {}", self.params_bytes, spec.params_bytes()));
        }
        if self.writable != declared {
            return Err(format!("it writes buffers {:?} of {declared:?}", self.writable));
        }
        Ok(())
    }

    /// Launches the kernel, or says what it did wrong. `edges` has for each argument how many bytes of its first word
    /// come before it, and whether its buffer ends with it.
    pub(crate) fn run(
        &self,
        params: &[u8],
        args: &mut [CpuArg<'_>],
        edges: &[(usize, bool)],
        blocks: u32,
    ) -> Result<(), String> {
        // The CPU's blocks of memory are of whole 16 bytes, as are those of GPUs, which kernels count on.
        // A view ends where the next one of its buffer starts.
        let starts: Vec<usize> = args.iter().map(|arg| arg.read::<u8>().as_ptr().addr()).collect();
        let whole = |start: usize, bytes: usize| {
            let behind = starts.iter().filter(|other| **other >= start + bytes).map(|other| other - start);
            behind.fold(bytes.next_multiple_of(16), usize::min)
        };
        let buffers: Vec<Buffer> = args
            .iter_mut()
            .zip(edges)
            .map(|(arg, &(before, is_last))| {
                let (start, len, writable) = match arg {
                    CpuArg::Read(bytes) => (bytes.as_ptr().cast_mut(), bytes.len(), 0),
                    CpuArg::Write(bytes) => (bytes.as_mut_ptr(), bytes.len(), 1),
                };
                let (start, len) = (start.wrapping_sub(before), before + len);
                let bytes = if before > 0 { len.next_multiple_of(16) } else { whole(start.addr(), len) };
                let own_end = if is_last { bytes } else { len.next_multiple_of(4) };
                Buffer { start, bytes, len, own_start: before / 4 * 4, own_end, writable }
            })
            .collect();
        let params = if params.is_empty() { &[0] } else { params };
        let mut launch = Launch {
            params: params.as_ptr(),
            params_bytes: params.len() as u64,
            buffers: if buffers.is_empty() { ptr::null() } else { buffers.as_ptr() },
            buffer_count: buffers.len() as u32,
            threads: self.threads,
            blocks,
            shared_bytes: self.shared_bytes,
            unwritten: u32::from_ne_bytes(POISON),
            error: [0; 512],
        };
        let _alone = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        // SAFETY: the launch and what it points to live until the call returns, and the runtime keeps the kernel
        // inside.
        if unsafe { (self.run)(&mut launch) } == 0 {
            return Ok(());
        }
        Err(launch.error.iter().take_while(|c| **c != 0).map(|c| char::from(*c as u8)).collect())
    }
}
