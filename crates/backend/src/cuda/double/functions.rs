//! The driver's functions.

use std::{
    alloc::alloc_zeroed,
    collections::VecDeque,
    ffi::{c_char, c_int, c_uchar, c_uint, c_void},
    ptr, slice,
};

use cudarc::driver::sys::{
    CUDA_MEMCPY2D, CUDA_MEMCPY3D_PEER, CUcontext, CUdevice, CUdevice_attribute, CUdeviceptr, CUevent, CUfunction,
    CUfunction_attribute, CUlaunchConfig, CUmemAccessDesc, CUmemPool_attribute, CUmemoryPool, CUmemorytype, CUmodule,
    CUresult, CUstream, CUuuid,
};

use super::*;
use crate::cuda::functions::Functions;

pub(super) const SUCCESS: CUresult = CUresult::CUDA_SUCCESS;

/// Writes an output argument.
fn give<T>(to: *mut T, value: T) -> CUresult {
    // SAFETY: whoever calls the driver gives a pointer to a live value.
    unsafe { to.write(value) };
    SUCCESS
}

fn memcpy_2d(world: &mut World, copy: &CUDA_MEMCPY2D, stream: CUstream) -> CUresult {
    if copy.srcPitch.max(copy.dstPitch) > MAX_PITCH {
        return CUresult::CUDA_ERROR_INVALID_VALUE;
    }
    let host = CUmemorytype::CU_MEMORYTYPE_HOST;
    for row in 0..copy.Height {
        let (from, to) = (row * copy.srcPitch, row * copy.dstPitch);
        let from = match copy.srcMemoryType == host {
            true => Place::Host(copy.srcHost.expose_provenance() + from),
            false => Place::Device(copy.srcDevice + from as u64),
        };
        let to = match copy.dstMemoryType == host {
            true => Place::Host(copy.dstHost.expose_provenance() + to),
            false => Place::Device(copy.dstDevice + to as u64),
        };
        world.push(stream, Work::Copy { from, to, bytes: copy.WidthInBytes });
    }
    SUCCESS
}

fn memcpy_3d(world: &mut World, copy: &CUDA_MEMCPY3D_PEER, stream: CUstream) -> CUresult {
    if copy.srcPitch.max(copy.dstPitch) > MAX_PITCH || copy.Depth != 1 {
        return CUresult::CUDA_ERROR_INVALID_VALUE;
    }
    for row in 0..copy.Height {
        let from = Place::Device(copy.srcDevice + (row * copy.srcPitch) as u64);
        let to = Place::Device(copy.dstDevice + (row * copy.dstPitch) as u64);
        world.push(stream, Work::Copy { from, to, bytes: copy.WidthInBytes });
    }
    SUCCESS
}

fn allocate(world: &mut World, to: *mut CUdeviceptr, bytes: usize) -> CUresult {
    if bytes > 1 << 30 {
        return CUresult::CUDA_ERROR_OUT_OF_MEMORY;
    }
    let last = world.device.last_key_value().map_or(1 << 40, |(start, memory)| start + memory.len() as u64);
    let start = (last + 4096).next_multiple_of(4096);
    // What the memory held before.
    world.device.insert(start, vec![0xcd; bytes]);
    give(to, start)
}

macro_rules! double {
    ($($name:ident |$world:pat_param, $($arg:ident: $type:ty),*| $body:expr;)*) => {
        /// The double's functions.
        pub(in crate::cuda) static FUNCTIONS: Functions = Functions {
            $($name: {
                #[expect(non_snake_case, reason = "the driver's names")]
                #[allow(clippy::too_many_arguments, reason = "the driver's function has as many")]
                unsafe fn $name($($arg: $type),*) -> CUresult {
                    call(stringify!($name), |$world| $body)
                }
                $name
            },)*
            cuGetErrorName: error_text,
            cuGetErrorString: error_text,
        };
    };
}

unsafe fn error_text(error: CUresult, text: *mut *const c_char) -> CUresult {
    let words = match error {
        CUresult::CUDA_ERROR_ILLEGAL_ADDRESS => c"an illegal address",
        _ => c"made to fail",
    };
    give(text, words.as_ptr())
}

double! {
    cuInit |_, _flags: c_uint| SUCCESS;
    cuCtxEnablePeerAccess |_, _context: CUcontext, _flags: c_uint| SUCCESS;
    cuCtxSetCurrent |world, context: CUcontext| {
        world.current = context as usize;
        SUCCESS
    };
    cuCtxSynchronize |world,| {
        let own = world.streams.iter().filter(|(_, stream)| stream.context == world.current);
        for stream in own.map(|(id, _)| *id).collect::<Vec<_>>() {
            world.run(stream);
        }
        SUCCESS
    };
    cuDeviceGet |_, device: *mut CUdevice, ordinal: c_int| give(device, ordinal);
    cuDeviceCanAccessPeer |_, can: *mut c_int, _device: CUdevice, _peer: CUdevice| give(can, 1);
    cuDeviceGetAttribute |world, value: *mut c_int, attribute: CUdevice_attribute, _device: CUdevice| {
        use CUdevice_attribute as A;
        give(value, match attribute {
            A::CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED => c_int::from(!world.without_pools),
            A::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR => 9,
            A::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR => 0,
            A::CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK => 1024,
            A::CU_DEVICE_ATTRIBUTE_MAX_PITCH => MAX_PITCH as c_int,
            _ => 1 << 16,
        })
    };
    cuDeviceGetCount |_, count: *mut c_int| give(count, 2);
    cuDeviceGetDefaultMemPool |_, pool: *mut CUmemoryPool, _device: CUdevice| give(pool, ptr::null_mut());
    cuDeviceGetName |_, name: *mut c_char, _len: c_int, _device: CUdevice| give(name, b'd' as c_char);
    cuDeviceGetUuid_v2 |_, uuid: *mut CUuuid, _device: CUdevice| give(uuid, CUuuid { bytes: [7; 16] });
    cuDevicePrimaryCtxRelease_v2 |world, device: CUdevice| {
        world.retained[device as usize] -= 1;
        SUCCESS
    };
    cuDevicePrimaryCtxRetain |world, context: *mut CUcontext, device: CUdevice| {
        world.retained[device as usize] += 1;
        give(context, ptr::without_provenance_mut(device as usize + 1))
    };
    cuDeviceTotalMem_v2 |_, bytes: *mut usize, _device: CUdevice| give(bytes, 1 << 34);
    cuDriverGetVersion |_, version: *mut c_int| give(version, 12090);
    cuEventCreate |world, event: *mut CUevent, _flags: c_uint| {
        let id = world.id();
        world.events.insert(id, Mark { context: world.current, points: Vec::new() });
        give(event, ptr::without_provenance_mut(id))
    };
    cuEventDestroy_v2 |world, event: CUevent| {
        if world.events.remove(&(event as usize)).is_none() {
            world.faults.push("an event is destroyed twice".into());
        }
        SUCCESS
    };
    cuEventElapsedTime |_, milliseconds: *mut f32, _from: CUevent, _to: CUevent| give(milliseconds, 1.0);
    cuEventQuery |world, event: CUevent| match world.events.get(&(event as usize)) {
        Some(mark) if mark.points.last().is_some_and(|(_, done)| !done) => CUresult::CUDA_ERROR_NOT_READY,
        _ => SUCCESS,
    };
    cuEventRecord |world, event: CUevent, stream: CUstream| {
        let event = event as usize;
        let Some(mark) = world.events.get_mut(&event) else { return CUresult::CUDA_ERROR_INVALID_HANDLE };
        if world.streams.get(&(stream as usize)).is_none_or(|stream| stream.context != mark.context) {
            world.faults.push("an event is recorded on a stream of another context".into());
            return CUresult::CUDA_ERROR_INVALID_HANDLE;
        }
        let time = mark.points.len();
        mark.points.push((stream as usize, false));
        world.push(stream, Work::Record { event, time });
        SUCCESS
    };
    cuEventSynchronize |world, event: CUevent| {
        let times = world.times(event);
        world.run_to(event as usize, times);
        SUCCESS
    };
    cuFuncGetAttribute |world, value: *mut c_int, attribute: CUfunction_attribute, _function: CUfunction| {
        give(value, match attribute {
            CUfunction_attribute::CU_FUNC_ATTRIBUTE_PTX_VERSION => world.architecture.unwrap_or(90),
            _ => 1024,
        })
    };
    cuFuncSetAttribute |_, _function: CUfunction, _attribute: CUfunction_attribute, _value: c_int| SUCCESS;
    cuLaunchKernelEx |world, config: *const CUlaunchConfig, _function: CUfunction, arguments: *mut *mut c_void,
        _extra: *mut *mut c_void| {
        // SAFETY: the parameters are one word, and there is one buffer.
        let (word, at) = unsafe { ((*arguments).cast::<u32>().read_unaligned(), (*arguments.add(1)).cast::<u64>().read()) };
        // SAFETY: the configuration is live.
        let config = unsafe { &*config };
        world.launches.push([config.numAttrs, config.gridDimX, config.blockDimX]);
        world.push(config.hStream, Work::Fill { at, word });
        SUCCESS
    };
    cuMemAllocFromPoolAsync |world, to: *mut CUdeviceptr, bytes: usize, _pool: CUmemoryPool, _stream: CUstream| {
        allocate(world, to, bytes)
    };
    cuMemAlloc_v2 |world, to: *mut CUdeviceptr, bytes: usize| allocate(world, to, bytes);
    cuMemFreeAsync |world, at: CUdeviceptr, stream: CUstream| {
        world.push(stream, Work::Free { at });
        SUCCESS
    };
    cuMemFreeHost |world, start: *mut c_void| {
        let start = start.addr();
        let Some(len) = world.host.remove(&start) else { return CUresult::CUDA_ERROR_INVALID_VALUE };
        if world.streams.values().flat_map(|stream| &stream.work).any(|work| work.touches_host(start, len)) {
            world.faults.push("pinned memory is freed under a copy".into());
        }
        // SAFETY: pinned memory that was given out, and is freed below.
        let memory = unsafe { slice::from_raw_parts(ptr::with_exposed_provenance::<u8>(start), len) }.to_vec();
        world.expect_no_secret("pinned", &memory);
        free_host(start, len);
        SUCCESS
    };
    cuMemFree_v2 |world, at: CUdeviceptr| {
        world.step(0, Work::Free { at });
        SUCCESS
    };
    cuMemGetInfo_v2 |_, free: *mut usize, total: *mut usize| {
        give(free, 1 << 30);
        give(total, 1 << 34)
    };
    cuMemHostAlloc |world, to: *mut *mut c_void, bytes: usize, _flags: c_uint| {
        if bytes > 1 << 30 {
            return CUresult::CUDA_ERROR_OUT_OF_MEMORY;
        }
        // SAFETY: the size is not zero.
        let start = unsafe { alloc_zeroed(host_layout(bytes)) };
        world.host.insert(start.expose_provenance(), bytes);
        give(to, start.cast())
    };
    cuMemPoolGetAttribute |_, _pool: CUmemoryPool, _attribute: CUmemPool_attribute, value: *mut c_void| {
        give(value.cast::<u64>(), 0)
    };
    cuMemPoolSetAccess |_, _pool: CUmemoryPool, _access: *const CUmemAccessDesc, _count: usize| SUCCESS;
    cuMemPoolSetAttribute |_, _pool: CUmemoryPool, _attribute: CUmemPool_attribute, _value: *mut c_void| SUCCESS;
    cuMemPoolTrimTo |_, _pool: CUmemoryPool, _keep: usize| SUCCESS;
    cuMemcpy3DPeerAsync |world, copy: *const CUDA_MEMCPY3D_PEER, stream: CUstream| {
        // SAFETY: the caller gives a pointer to a copy.
        memcpy_3d(world, unsafe { &*copy }, stream)
    };
    cuMemcpy2DAsync_v2 |world, copy: *const CUDA_MEMCPY2D, stream: CUstream| {
        // SAFETY: a pointer to a live value.
        memcpy_2d(world, unsafe { &*copy }, stream)
    };
    cuMemcpyDtoDAsync_v2 |world, to: CUdeviceptr, from: CUdeviceptr, bytes: usize, stream: CUstream| {
        world.push(stream, Work::Copy { from: Place::Device(from), to: Place::Device(to), bytes });
        SUCCESS
    };
    cuMemcpyDtoHAsync_v2 |world, to: *mut c_void, from: CUdeviceptr, bytes: usize, stream: CUstream| {
        world.push(stream, Work::Copy { from: Place::Device(from), to: Place::Host(to.expose_provenance()), bytes });
        SUCCESS
    };
    cuMemcpyHtoDAsync_v2 |world, to: CUdeviceptr, from: *const c_void, bytes: usize, stream: CUstream| {
        world.push(stream, Work::Copy { from: Place::Host(from.expose_provenance()), to: Place::Device(to), bytes });
        SUCCESS
    };
    cuMemcpyPeerAsync |world, to: CUdeviceptr, _to_context: CUcontext, from: CUdeviceptr, _from_context: CUcontext,
        bytes: usize, stream: CUstream| {
        world.push(stream, Work::Copy { from: Place::Device(from), to: Place::Device(to), bytes });
        SUCCESS
    };
    cuMemsetD8Async |world, at: CUdeviceptr, value: c_uchar, bytes: usize, stream: CUstream| {
        world.push(stream, Work::Set { at, bytes, value });
        SUCCESS
    };
    cuModuleGetFunction |_, function: *mut CUfunction, module: CUmodule, _name: *const c_char| {
        give(function, module.cast())
    };
    cuModuleLoadData |world, module: *mut CUmodule, _image: *const c_void| {
        world.modules += 1;
        let id = world.id();
        give(module, ptr::without_provenance_mut(id))
    };
    cuModuleUnload |world, _module: CUmodule| {
        world.modules -= 1;
        SUCCESS
    };
    cuStreamCreate |world, stream: *mut CUstream, _flags: c_uint| {
        let (id, context) = (world.id(), world.current);
        world.streams.insert(id, Stream { context, work: VecDeque::new(), live: true });
        give(stream, ptr::without_provenance_mut(id))
    };
    cuStreamDestroy_v2 |world, stream: CUstream| {
        match world.streams.get_mut(&(stream as usize)) {
            Some(stream) if stream.live => stream.live = false,
            _ => world.faults.push("a stream is destroyed twice".into()),
        }
        SUCCESS
    };
    cuStreamSynchronize |world, stream: CUstream| {
        world.run(stream as usize);
        SUCCESS
    };
    cuStreamWaitEvent |world, stream: CUstream, event: CUevent, _flags: c_uint| {
        let times = world.times(event);
        world.push(stream, Work::Wait { event: event as usize, times });
        SUCCESS
    };
}
