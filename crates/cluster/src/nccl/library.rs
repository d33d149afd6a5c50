//! The library: found and loaded at run time.

use std::{
    error::Error as _,
    ffi::{CStr, c_char, c_int, c_uint, c_void},
    fmt, mem, ptr,
    sync::OnceLock,
};

use crate::error::{Error, Result};

/// The library's names.
const NAMES: [&str; 2] = ["libnccl.so.2", "libnccl.so"];

/// The first version that has communicators that do not block, as it counts.
const LEAST: c_int = version(2, 14, 0);

const fn version(major: c_int, minor: c_int, patch: c_int) -> c_int {
    major * 10_000 + minor * 100 + patch
}

/// Results that are no errors.
pub(super) const SUCCESS: c_int = 0;
pub(super) const IN_PROGRESS: c_int = 7;

/// The type of data that are bytes.
pub(super) const BYTES: c_int = 1;

/// Bytes of [`UniqueId`].
pub(super) const ID: usize = 128;

/// The name of a group.
#[derive(Clone, Copy)]
#[repr(C)]
pub(super) struct UniqueId(pub(super) [u8; ID]);

/// A communicator.
#[derive(Clone, Copy, Debug)]
#[repr(transparent)]
pub(super) struct RawComm(*mut c_void);

impl RawComm {
    pub(super) fn is_null(self) -> bool {
        self.0.is_null()
    }
}

impl Default for RawComm {
    fn default() -> Self {
        Self(ptr::null_mut())
    }
}

// SAFETY: a communicator may be ended from another thread than the one that made it; it is never used by two at once.
unsafe impl Send for RawComm {}

/// `ncclConfig_t` as of the first version that has it. Later ones take defaults for what it lacks.
#[derive(Debug)]
#[repr(C)]
pub(super) struct Config {
    size: usize,
    magic: c_uint,
    version: c_uint,
    blocking: c_int,
    /// Later versions have a number here, and take this value for none.
    undefined: c_int,
}

impl Config {
    /// Of communicators that do not block.
    pub(super) fn new() -> Self {
        Self {
            size: mem::size_of::<Self>(),
            magic: 0xcafe_beef,
            version: LEAST as c_uint,
            blocking: 0,
            undefined: c_int::MIN,
        }
    }
}

type SendFn = unsafe extern "C" fn(*const c_void, usize, c_int, c_int, RawComm, *mut c_void) -> c_int;

type ReceiveFn = unsafe extern "C" fn(*mut c_void, usize, c_int, c_int, RawComm, *mut c_void) -> c_int;

/// The library's functions.
pub(super) struct Library {
    version: c_int,
    pub(super) get_unique_id: unsafe extern "C" fn(*mut UniqueId) -> c_int,
    pub(super) comm_init: unsafe extern "C" fn(*mut RawComm, c_int, UniqueId, c_int, *mut Config) -> c_int,
    pub(super) comm_abort: unsafe extern "C" fn(RawComm) -> c_int,
    pub(super) comm_get_async_error: unsafe extern "C" fn(RawComm, *mut c_int) -> c_int,
    pub(super) group_start: unsafe extern "C" fn() -> c_int,
    pub(super) group_end: unsafe extern "C" fn() -> c_int,
    pub(super) send: SendFn,
    pub(super) receive: ReceiveFn,
    error_text: unsafe extern "C" fn(c_int) -> *const c_char,
    last_error: unsafe extern "C" fn(RawComm) -> *const c_char,
    _library: libloading::Library,
}

impl Library {
    /// The library, which is loaded once.
    pub(super) fn get() -> Result<&'static Self> {
        static LIBRARY: OnceLock<Result<Library, String>> = OnceLock::new();
        LIBRARY.get_or_init(|| Self::find(&NAMES)).as_ref().map_err(|reason| Error::NoNccl { reason: reason.clone() })
    }

    /// The first of these that loads.
    fn find(names: &[&str]) -> Result<Self, String> {
        let mut refused = String::new();
        for name in names {
            // SAFETY: loading NCCL runs its initialisers, which have no preconditions.
            let library = match unsafe { libloading::Library::new(*name) } {
                Ok(library) => library,
                Err(error) => {
                    refused.push_str(&format!("; {}", words(&error)));
                    continue;
                }
            };
            match Self::load(library) {
                Ok(library) if library.version >= LEAST => return Ok(library),
                Ok(library) => refused.push_str(&format!("; {name} is of version {}", library.version)),
                Err(error) => refused.push_str(&format!("; {name} cannot be used: {}", words(&error))),
            }
        }
        Err(format!(
            "NCCL ({}, 2.14 or later) was not found: install NVIDIA's package libnccl2, or the Python package nvidia-nccl \
             for your version of CUDA and add its folder lib to LD_LIBRARY_PATH{refused}",
            NAMES[0],
        ))
    }

    fn load(library: libloading::Library) -> Result<Self, libloading::Error> {
        // SAFETY: every type is that of the function in nccl.h, where results and types are C enumerations.
        unsafe {
            let get_version = *library.get::<unsafe extern "C" fn(*mut c_int) -> c_int>("ncclGetVersion")?;
            let mut version = 0;
            get_version(&mut version);
            Ok(Self {
                version,
                get_unique_id: *library.get("ncclGetUniqueId")?,
                comm_init: *library.get("ncclCommInitRankConfig")?,
                comm_abort: *library.get("ncclCommAbort")?,
                comm_get_async_error: *library.get("ncclCommGetAsyncError")?,
                group_start: *library.get("ncclGroupStart")?,
                group_end: *library.get("ncclGroupEnd")?,
                send: *library.get("ncclSend")?,
                receive: *library.get("ncclRecv")?,
                error_text: *library.get("ncclGetErrorString")?,
                last_error: *library.get("ncclGetLastError")?,
                _library: library,
            })
        }
    }

    /// The library's words for a failure of a call.
    pub(super) fn describe(&self, call: &str, code: c_int, comm: RawComm) -> String {
        // SAFETY: the function takes any number.
        let error = text(unsafe { (self.error_text)(code) });
        // SAFETY: the communicator is live or null, for which the library takes the last error of all.
        let last = text(unsafe { (self.last_error)(comm) });
        format!("{call}: {error} ({code}; {last}; NCCL {})", self.version)
    }
}

/// What the loader says, with the system's words.
fn words(error: &libloading::Error) -> String {
    match error.source() {
        Some(source) => format!("{error}: {source}"),
        None => error.to_string(),
    }
}

/// A text of the library, which is a constant or lives as long as the next call.
fn text(start: *const c_char) -> String {
    match start.is_null() {
        true => "no words for it".to_owned(),
        // SAFETY: what is not null is a text that ends in a zero.
        false => unsafe { CStr::from_ptr(start) }.to_string_lossy().into_owned(),
    }
}

impl fmt::Debug for Library {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Library").field("version", &self.version).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_without_it_says_what_to_install() {
        let Err(reason) = Library::find(&["libevariste-none.so.2"]) else { panic!("there is none") };
        assert!(reason.contains("libnccl.so.2") && reason.contains("libevariste-none.so.2"), "{reason}");
        // Of another library, too.
        let Err(reason) = Library::find(&["libc.so.6"]) else { panic!("it is none") };
        assert!(reason.contains("libc.so.6 cannot be used"), "{reason}");
    }

    #[test]
    fn the_configuration_is_that_of_the_first_version() {
        assert_eq!((mem::size_of::<Config>(), mem::offset_of!(Config, blocking)), (24, 16));
        assert_eq!(LEAST, 21_400);
    }
}
