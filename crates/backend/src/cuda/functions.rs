//! The functions of the driver that this backend calls, as a table: `cudarc`'s, or in tests those of a double.

use std::ffi::{c_char, c_int, c_uchar, c_uint, c_void};

use cudarc::driver::sys::{
    self, CUDA_MEMCPY2D, CUDA_MEMCPY3D_PEER, CUcontext, CUdevice, CUdevice_attribute, CUdeviceptr, CUevent, CUfunction,
    CUfunction_attribute, CUlaunchConfig, CUmemAccessDesc, CUmemPool_attribute, CUmemoryPool, CUmodule, CUresult,
    CUstream, CUuuid,
};

macro_rules! functions {
    ($($name:ident($($arg:ty),*);)*) => {
        /// One pointer for each function, of the function's name.
        #[expect(non_snake_case, reason = "the driver's names")]
        pub(super) struct Functions {
            $(pub(super) $name: unsafe fn($($arg),*) -> CUresult,)*
        }

        impl Functions {
            /// The names. `cudarc` looks functions up when they are first called and panics if one is missing. So all
            /// of them are looked up before the first call.
            pub(super) const NAMES: &[&str] = &[$(stringify!($name)),*];

            /// Those of the driver library.
            pub(super) const LIBRARY: &Self = &Self { $($name: sys::$name),* };
        }
    };
}

functions! {
    cuCtxEnablePeerAccess(CUcontext, c_uint);
    cuCtxSetCurrent(CUcontext);
    cuCtxSynchronize();
    cuDeviceCanAccessPeer(*mut c_int, CUdevice, CUdevice);
    cuDeviceGet(*mut CUdevice, c_int);
    cuDeviceGetAttribute(*mut c_int, CUdevice_attribute, CUdevice);
    cuDeviceGetCount(*mut c_int);
    cuDeviceGetDefaultMemPool(*mut CUmemoryPool, CUdevice);
    cuDeviceGetName(*mut c_char, c_int, CUdevice);
    cuDeviceGetUuid_v2(*mut CUuuid, CUdevice);
    cuDevicePrimaryCtxRelease_v2(CUdevice);
    cuDevicePrimaryCtxRetain(*mut CUcontext, CUdevice);
    cuDeviceTotalMem_v2(*mut usize, CUdevice);
    cuDriverGetVersion(*mut c_int);
    cuEventCreate(*mut CUevent, c_uint);
    cuEventDestroy_v2(CUevent);
    cuEventElapsedTime(*mut f32, CUevent, CUevent);
    cuEventQuery(CUevent);
    cuEventRecord(CUevent, CUstream);
    cuEventSynchronize(CUevent);
    cuFuncGetAttribute(*mut c_int, CUfunction_attribute, CUfunction);
    cuFuncSetAttribute(CUfunction, CUfunction_attribute, c_int);
    cuGetErrorName(CUresult, *mut *const c_char);
    cuGetErrorString(CUresult, *mut *const c_char);
    cuInit(c_uint);
    cuLaunchKernelEx(*const CUlaunchConfig, CUfunction, *mut *mut c_void, *mut *mut c_void);
    cuMemAllocFromPoolAsync(*mut CUdeviceptr, usize, CUmemoryPool, CUstream);
    cuMemAlloc_v2(*mut CUdeviceptr, usize);
    cuMemFreeAsync(CUdeviceptr, CUstream);
    cuMemFreeHost(*mut c_void);
    cuMemFree_v2(CUdeviceptr);
    cuMemGetInfo_v2(*mut usize, *mut usize);
    cuMemHostAlloc(*mut *mut c_void, usize, c_uint);
    cuMemPoolGetAttribute(CUmemoryPool, CUmemPool_attribute, *mut c_void);
    cuMemPoolSetAccess(CUmemoryPool, *const CUmemAccessDesc, usize);
    cuMemPoolSetAttribute(CUmemoryPool, CUmemPool_attribute, *mut c_void);
    cuMemPoolTrimTo(CUmemoryPool, usize);
    cuMemcpy2DAsync_v2(*const CUDA_MEMCPY2D, CUstream);
    cuMemcpyDtoDAsync_v2(CUdeviceptr, CUdeviceptr, usize, CUstream);
    cuMemcpyDtoHAsync_v2(*mut c_void, CUdeviceptr, usize, CUstream);
    cuMemcpyHtoDAsync_v2(CUdeviceptr, *const c_void, usize, CUstream);
    cuMemcpyPeerAsync(CUdeviceptr, CUcontext, CUdeviceptr, CUcontext, usize, CUstream);
    cuMemcpy3DPeerAsync(*const CUDA_MEMCPY3D_PEER, CUstream);
    cuMemsetD8Async(CUdeviceptr, c_uchar, usize, CUstream);
    cuModuleGetFunction(*mut CUfunction, CUmodule, *const c_char);
    cuModuleLoadData(*mut CUmodule, *const c_void);
    cuModuleUnload(CUmodule);
    cuStreamCreate(*mut CUstream, c_uint);
    cuStreamDestroy_v2(CUstream);
    cuStreamSynchronize(CUstream);
    cuStreamWaitEvent(CUstream, CUevent, c_uint);
}
