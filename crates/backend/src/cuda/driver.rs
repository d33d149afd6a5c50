//! The driver library: whether it is there, its errors, and the context of a device.

use std::{
    ffi::{CStr, c_char, c_int},
    fs, ptr,
    sync::{Arc, OnceLock},
};

use cudarc::driver::sys::{self, CUctx_st, CUdevice, CUdevice_attribute, CUresult};

use super::functions::Functions;
use crate::{
    error::{Error, Result},
    info::{DeviceId, DeviceInfo, Features, Kind, Limits},
};

/// Calls a function of the driver in a context and turns its result into ours. Expands to an unsafe call.
macro_rules! call {
    ($context:expr, $function:ident($($arg:expr),* $(,)?)) => {
        $context.check(stringify!($function), ($context.functions().$function)($($arg),*))
    };
}
pub(super) use call;

/// Bytes in which host data passes through pinned memory: 150 µs of a PCIe 5 link. That is enough to hide the 10 µs
/// that a copy's start costs. It is little enough that the encoding of one piece overlaps the copy of another.
const STAGING_BYTES: u64 = 8 << 20;

/// Buffers of one launch: parameters may take 4 KiB in all on every architecture, and half is left to the plain ones.
const BINDINGS: u32 = 256;

/// A handle of the driver.
#[derive(Debug)]
pub(super) struct Handle<T>(pub(super) *mut T);

impl<T> Clone for Handle<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Handle<T> {}

// SAFETY: the driver's functions may be called from any thread, and its handles belong to a context, not to a thread.
unsafe impl<T> Send for Handle<T> {}
// SAFETY: as above; the handle itself is never dereferenced here.
unsafe impl<T> Sync for Handle<T> {}

/// Makes sure that the driver is loaded and initialised.
pub(super) fn load() -> Result<()> {
    static READY: OnceLock<()> = OnceLock::new();
    if READY.get().is_some() {
        return Ok(());
    }
    // SAFETY: loading the driver runs its initialisers, which is what it is loaded for.
    if !unsafe { sys::is_culib_present() } {
        return Err(unavailable(format!(
            "the CUDA driver ({}) was not found: install the NVIDIA driver, and in a container pass the GPU through",
            if cfg!(windows) { "nvcuda.dll" } else { "libcuda.so.1" },
        )));
    }
    // SAFETY: the library was just found; `cudarc` keeps it loaded.
    let library = unsafe { sys::culib() };
    for name in Functions::NAMES {
        // SAFETY: the symbol is only looked for, never called through this type.
        if unsafe { library.get::<unsafe extern "C" fn()>(name.as_bytes()) }.is_err() {
            return Err(unavailable(format!(
                "the NVIDIA driver is too old, it lacks {name}: update it to 520 or later"
            )));
        }
    }
    // SAFETY: the function is there, and takes no flags.
    succeed(Functions::LIBRARY, unsafe { (Functions::LIBRARY.cuInit)(0) })?;
    let _ = READY.set(());
    Ok(())
}

/// Devices that the driver offers, at least one.
pub(super) fn count() -> Result<usize> {
    load()?;
    count_of(Functions::LIBRARY)
}

/// The driver is initialised.
fn count_of(functions: &Functions) -> Result<usize> {
    let mut count: c_int = 0;
    // SAFETY: the driver is initialised, and the pointer is to a live value.
    succeed(functions, unsafe { (functions.cuDeviceGetCount)(&mut count) })?;
    match usize::try_from(count) {
        Ok(count) if count > 0 => Ok(count),
        _ => Err(unavailable("the NVIDIA driver finds no GPU".into())),
    }
}

fn unavailable(reason: String) -> Error {
    Error::Unavailable { backend: Kind::Cuda, reason }
}

/// Maps a failure outside any context: the driver cannot be used.
fn succeed(functions: &Functions, result: CUresult) -> Result<()> {
    match result {
        CUresult::CUDA_SUCCESS => Ok(()),
        CUresult::CUDA_ERROR_NO_DEVICE => Err(unavailable("the NVIDIA driver finds no GPU".into())),
        _ => Err(unavailable(format!("the NVIDIA driver does not work: {}", describe(functions, result)))),
    }
}

/// The driver's name and words for a failure.
fn describe(functions: &Functions, result: CUresult) -> String {
    let text = |get: unsafe fn(CUresult, *mut *const c_char) -> CUresult| {
        let mut text = ptr::null();
        // SAFETY: the pointer is to a live value; for an unknown code the driver leaves it null.
        unsafe { get(result, &mut text) };
        // SAFETY: what is not null is a string constant of the driver.
        (!text.is_null()).then(|| unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned())
    };
    match (text(functions.cuGetErrorName), text(functions.cuGetErrorString)) {
        (Some(name), Some(words)) => format!("{words} ({name})"),
        _ => format!("error {}", result as u32),
    }
}

/// Whether an error leaves the context unusable: the errors after which, by the driver's manual, the context (or the
/// process) cannot be used any more.
fn is_sticky(result: CUresult) -> bool {
    matches!(
        result,
        CUresult::CUDA_ERROR_DEINITIALIZED
            | CUresult::CUDA_ERROR_DEVICE_UNAVAILABLE
            | CUresult::CUDA_ERROR_ECC_UNCORRECTABLE
            | CUresult::CUDA_ERROR_NVLINK_UNCORRECTABLE
            | CUresult::CUDA_ERROR_CONTAINED
            | CUresult::CUDA_ERROR_ILLEGAL_ADDRESS
            | CUresult::CUDA_ERROR_LAUNCH_TIMEOUT
            | CUresult::CUDA_ERROR_CONTEXT_IS_DESTROYED
            | CUresult::CUDA_ERROR_ASSERT
            | CUresult::CUDA_ERROR_HARDWARE_STACK_ERROR
            | CUresult::CUDA_ERROR_ILLEGAL_INSTRUCTION
            | CUresult::CUDA_ERROR_MISALIGNED_ADDRESS
            | CUresult::CUDA_ERROR_INVALID_ADDRESS_SPACE
            | CUresult::CUDA_ERROR_INVALID_PC
            | CUresult::CUDA_ERROR_LAUNCH_FAILED
            | CUresult::CUDA_ERROR_TENSOR_MEMORY_LEAK
            | CUresult::CUDA_ERROR_MPS_CLIENT_TERMINATED
            | CUresult::CUDA_ERROR_EXTERNAL_DEVICE
    )
}

/// A device's primary context, retained.
pub(super) struct Context {
    functions: &'static Functions,
    id: DeviceId,
    device: CUdevice,
    raw: Handle<CUctx_st>,
    lost: OnceLock<String>,
}

impl Context {
    pub(super) fn retain(index: usize) -> Result<Arc<Self>> {
        load()?;
        Self::retain_of(Functions::LIBRARY, index)
    }

    /// The driver is initialised.
    pub(super) fn retain_of(functions: &'static Functions, index: usize) -> Result<Arc<Self>> {
        let available = count_of(functions)?;
        let id = DeviceId { kind: Kind::Cuda, index };
        let ordinal = match c_int::try_from(index) {
            Ok(ordinal) if index < available => ordinal,
            _ => return Err(Error::NoSuchDevice { actual: id, available }),
        };
        let (mut device, mut raw) = (0, ptr::null_mut());
        let lost = OnceLock::new();
        let check = |call, result| check(functions, id, &lost, call, result);
        // SAFETY: the driver is initialised, the ordinal exists, and the pointer is to a live value.
        check("cuDeviceGet", unsafe { (functions.cuDeviceGet)(&mut device, ordinal) })?;
        // SAFETY: the device was just given by the driver; the pointer is to a live value.
        check("cuDevicePrimaryCtxRetain", unsafe { (functions.cuDevicePrimaryCtxRetain)(&mut raw, device) })?;
        Ok(Arc::new(Self { functions, id, device, raw: Handle(raw), lost }))
    }

    pub(super) fn functions(&self) -> &'static Functions {
        self.functions
    }

    pub(super) fn id(&self) -> DeviceId {
        self.id
    }

    pub(super) fn device(&self) -> CUdevice {
        self.device
    }

    pub(super) fn raw(&self) -> *mut CUctx_st {
        self.raw.0
    }

    /// Makes the context the calling thread's current one, which all further calls rely on.
    pub(super) fn bind(&self) -> Result<()> {
        if let Some(reason) = self.lost.get() {
            return Err(Error::Lost { device: self.id, reason: reason.clone() });
        }
        // SAFETY: the context is retained for as long as `self` lives.
        unsafe { call!(self, cuCtxSetCurrent(self.raw.0)) }
    }

    /// Refuses an argument of another device.
    pub(super) fn expect(&self, what: &'static str, owner: &Self) -> Result<()> {
        if ptr::eq(self, owner) {
            return Ok(());
        }
        Err(Error::WrongDevice { what, expected: self.id, actual: owner.id })
    }

    /// Maps a result of the driver. An error that leaves the context unusable marks the device as lost.
    pub(super) fn check(&self, call: &'static str, result: CUresult) -> Result<()> {
        check(self.functions, self.id, &self.lost, call, result)
    }

    /// Declares the device lost, unless it is.
    pub(super) fn lose(&self, reason: &str) {
        self.lost.get_or_init(|| reason.to_owned());
    }

    /// Waits for all work of the context. It must be bound.
    pub(super) fn synchronize(&self) -> Result<()> {
        // SAFETY: takes no arguments.
        unsafe { call!(self, cuCtxSynchronize()) }
    }

    pub(super) fn attribute(&self, attribute: CUdevice_attribute) -> Result<u32> {
        let mut value: c_int = 0;
        // SAFETY: the device is the driver's, and the pointer is to a live value.
        unsafe { call!(self, cuDeviceGetAttribute(&mut value, attribute, self.device)) }?;
        Ok(u32::try_from(value).unwrap_or(0))
    }

    pub(super) fn describe(&self) -> Result<DeviceInfo> {
        use CUdevice_attribute as A;
        let memory_bytes = self.memory_bytes()?;
        let major = self.attribute(A::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?;
        let minor = self.attribute(A::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?;
        let workgroup_bytes = self.attribute(A::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK)?;
        let opt_in_bytes = self.attribute(A::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)?;
        Ok(DeviceInfo {
            id: self.id,
            name: self.name()?,
            driver: self.driver()?,
            architecture: format!("sm_{major}{minor}"),
            uuid: Some(self.uuid()?),
            memory_bytes: Some(memory_bytes),
            parallelism: self.attribute(A::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)?,
            limits: Limits {
                buffer_bytes: memory_bytes,
                bindings: BINDINGS,
                workgroup_bytes: workgroup_bytes.max(opt_in_bytes),
                cache_bytes: self.attribute(A::CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE)?.into(),
                workgroup_threads: self.attribute(A::CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK)?,
                staging_bytes: STAGING_BYTES,
                loop_iterations: None,
            },
            features: Features { int64: true, queues: true, forward_progress: true, software: false },
        })
    }

    fn name(&self) -> Result<String> {
        let mut name = [0 as c_char; 256];
        // SAFETY: the buffer has the length that is given, the last byte less.
        unsafe { call!(self, cuDeviceGetName(name.as_mut_ptr(), name.len() as c_int - 1, self.device)) }?;
        // SAFETY: the buffer was zeroed and its last byte not offered, so it ends in a zero.
        Ok(unsafe { CStr::from_ptr(name.as_ptr()) }.to_string_lossy().into_owned())
    }

    fn uuid(&self) -> Result<[u8; 16]> {
        let mut uuid = sys::CUuuid { bytes: [0; 16] };
        // SAFETY: the pointer is to a live value.
        unsafe { call!(self, cuDeviceGetUuid_v2(&mut uuid, self.device)) }?;
        Ok(uuid.bytes.map(|byte| byte as u8))
    }

    fn memory_bytes(&self) -> Result<u64> {
        let mut bytes = 0;
        // SAFETY: the pointer is to a live value.
        unsafe { call!(self, cuDeviceTotalMem_v2(&mut bytes, self.device)) }?;
        Ok(bytes as u64)
    }

    /// Memory that is free on the device now. The context must be bound.
    pub(super) fn free_bytes(&self) -> Result<u64> {
        let (mut free, mut total) = (0, 0);
        // SAFETY: the pointers are to live values.
        unsafe { call!(self, cuMemGetInfo_v2(&mut free, &mut total)) }?;
        Ok(free as u64)
    }

    /// The version of the driver where the system tells it, and the CUDA version that it speaks.
    fn driver(&self) -> Result<String> {
        let mut version: c_int = 0;
        // SAFETY: the pointer is to a live value.
        unsafe { call!(self, cuDriverGetVersion(&mut version)) }?;
        let cuda = format!("CUDA {}.{}", version / 1000, version % 1000 / 10);
        Ok(match fs::read_to_string("/sys/module/nvidia/version") {
            Ok(driver) => format!("{}, {cuda}", driver.trim()),
            Err(_) => cuda,
        })
    }
}

fn check(
    functions: &Functions,
    id: DeviceId,
    lost: &OnceLock<String>,
    call: &'static str,
    result: CUresult,
) -> Result<()> {
    if result == CUresult::CUDA_SUCCESS {
        return Ok(());
    }
    let reason = describe(functions, result);
    if is_sticky(result) {
        let reason = lost.get_or_init(|| format!("{reason}, reported by {call}"));
        return Err(Error::Lost { device: id, reason: reason.clone() });
    }
    Err(Error::Driver { device: id, call, reason })
}

impl Drop for Context {
    fn drop(&mut self) {
        // SAFETY: retained in `retain`; everything that was made in the context holds it, so nothing is left.
        // A failure means that the context is gone already.
        let _ = unsafe { (self.functions.cuDevicePrimaryCtxRelease_v2)(self.device) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_without_the_driver_says_what_to_install() {
        // SAFETY: as in `load`.
        let present = unsafe { sys::is_culib_present() };
        match count() {
            Ok(count) => assert!(present && count > 0),
            Err(Error::Unavailable { backend: Kind::Cuda, reason }) => {
                assert!(reason.contains("NVIDIA driver"), "{reason}");
                assert!(present || reason.contains("libcuda.so.1") || reason.contains("nvcuda.dll"), "{reason}");
            }
            Err(error) => panic!("{error:?}"),
        }
    }

    #[test]
    fn a_device_beyond_the_last_is_refused() {
        match Context::retain(usize::MAX).map(drop) {
            Err(Error::NoSuchDevice { actual, available }) => assert!(actual.index == usize::MAX && available > 0),
            Err(Error::Unavailable { backend: Kind::Cuda, .. }) => assert!(count().is_err()),
            other => panic!("{other:?}"),
        }
    }
}
