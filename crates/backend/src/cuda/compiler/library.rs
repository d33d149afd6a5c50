//! The library: found and loaded at run time, and run.

use std::{
    env,
    ffi::{CStr, CString, c_char, c_int, c_void},
    path::{Path, PathBuf},
    ptr,
    sync::{Mutex, MutexGuard, OnceLock, PoisonError},
};

use libloading::Library;

use crate::{
    error::{Error, Result},
    info::Kind,
};

/// Where toolkits say they are, and where they are by default.
const FOLDER_VARIABLES: [&str; 4] = ["CUDA_HOME", "CUDA_PATH", "CUDA_ROOT", "CUDA_TOOLKIT_ROOT_DIR"];
const FOLDERS: [&str; 2] = ["/usr/local/cuda", "/opt/cuda"];
const SUBFOLDERS: [&str; 4] = ["lib64", "lib", "bin", "bin/x64"];

/// The library's names, newest first.
#[cfg(not(windows))]
pub(super) const NAMES: [&str; 4] = ["libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so.11.2", "libnvrtc.so"];
#[cfg(windows)]
pub(super) const NAMES: [&str; 3] = ["nvrtc64_130_0.dll", "nvrtc64_120_0.dll", "nvrtc64_112_0.dll"];

static FIRST: Mutex<()> = Mutex::new(());
static WARM: OnceLock<()> = OnceLock::new();

/// The library crashes if its first compilation is not alone. So the first one is of a kernel without contents, which
/// takes 50 ms, and others wait for no more. Where it fails, the caller has to be alone as long as it holds what this
/// gives.
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
pub(super) struct Nvrtc {
    pub(super) version: (u32, u32),
    /// What it compiles for, in ascending order.
    pub(super) architectures: Vec<u32>,
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

/// What a run of the compiler gives.
pub(super) struct Output {
    /// A cubin, or the PTX where no more was asked for.
    pub(super) code: Vec<u8>,
    pub(super) ptx: Vec<u8>,
    pub(super) log: String,
}

/// Why a run of the compiler gives nothing, in its words.
pub(super) enum Failure {
    /// The library lacks its second half.
    Incomplete(String),
    Refused(String),
}

impl Nvrtc {
    /// Compiles a source, to PTX alone or to machine code as well.
    pub(super) fn run(
        &'static self,
        source: &CStr,
        file: &CStr,
        options: &[CString],
        to_ptx: bool,
    ) -> std::result::Result<Output, Failure> {
        let refused = |code| Failure::Refused(self.describe(code));
        let alone = alone(self, options);
        let program = Program::new(self, source, file).map_err(refused)?;
        let compiled = program.compile(options);
        let log = program.text(self.log_size, self.log);
        match compiled {
            Ok(()) => {}
            Err(BUILTINS_FAILED) => return Err(Failure::Incomplete(log)),
            Err(code) => return Err(Failure::Refused(format!("{log}\n{}", self.describe(code)))),
        }
        let ptx = program.bytes(self.ptx_size, self.ptx).map_err(refused)?;
        let code = match to_ptx {
            true => ptx.clone(),
            false => program.bytes(self.code_size, self.code).map_err(refused)?,
        };
        if alone.is_some() {
            let _ = WARM.set(());
        }
        Ok(Output { code, ptx, log })
    }

    pub(super) fn get() -> Result<&'static Self> {
        static NVRTC: OnceLock<Result<Nvrtc>> = OnceLock::new();
        NVRTC.get_or_init(|| Self::find(candidates())).as_ref().map_err(Error::clone)
    }

    /// The first candidate that loads.
    pub(super) fn find(candidates: impl IntoIterator<Item = PathBuf>) -> Result<Self> {
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
        // SAFETY: the list has room for the number of architectures that the library gave.
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

/// NVRTC opens its second half by name only. It does not find it in a folder where the system does not look. So this
/// function opens it by path; NVRTC then finds it by name, since it is open already.
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
pub(super) fn candidates() -> Vec<PathBuf> {
    let toolkits = FOLDER_VARIABLES.iter().filter_map(env::var_os).map(PathBuf::from);
    let toolkits = toolkits.filter(|folder| folder.is_absolute()).chain(FOLDERS.iter().map(PathBuf::from));
    let folders = toolkits.flat_map(|toolkit| SUBFOLDERS.map(|subfolder| toolkit.join(subfolder)));
    let files = folders.flat_map(|folder| NAMES.map(|name| folder.join(name)));
    NAMES.iter().map(PathBuf::from).chain(files).collect()
}

pub(super) fn unavailable(reason: String) -> Error {
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
        // SAFETY: the program is live, and `options.len()` options are there, each ending in a zero.
        succeed(unsafe { (self.nvrtc.compile)(self.raw, options.len() as c_int, options.as_ptr()) })
    }

    /// What a pair of functions for a size and for that many bytes gives.
    fn bytes(&self, size: SizeFn, get: BytesFn) -> std::result::Result<Vec<u8>, c_int> {
        let mut len = 0;
        // SAFETY: the program is live, and the pointer is to a live value.
        succeed(unsafe { size(self.raw, &mut len) })?;
        let mut bytes = vec![0_u8; len];
        // SAFETY: there is room for the number of bytes that the library gave.
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
