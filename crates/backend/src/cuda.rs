//! NVIDIA GPUs.
//!
//! # Choices
//! - **Everything is loaded at run time.** The driver comes through `cudarc`'s tables. A check comes first: it is there
//!   and has all functions that are called ([`driver`], [`functions`]). NVRTC comes by a loader of our own
//!   ([`compiler`]). A program built with this backend runs on machines with neither.
//! - **The driver's interface, not the runtime's**, in the device's primary context. So memory and streams can be
//!   shared with other CUDA code of the process. Every entry makes the context current on the calling thread, and
//!   leaves it so.
//! - **Kernels** are compiled by NVRTC for the GPU that is there; the code is cached on disk ([`kernels`]).
//!   [`compiler`] describes the declarations that a source finds. An entry is
//!   `extern "C" __global__ void name(const Params params, T0* b0, …)`. Compilation checks its argument sizes, since
//!   the driver trusts them at every launch.
//! - **Memory** comes from the driver's pool, in the order of the default stream ([`memory`]). Freeing never waits for
//!   the device, and memory is never reused under work of any queue. Work on one queue comes after what others were
//!   given before for the same bytes, if one of both writes them ([`uses`]).
//! - **Host memory** is pinned, write-combined for uploads ([`staging`]). It is kept while the device may copy from or
//!   to it, whatever call fails.
//!
//! # Invariants
//! - What is made in a context holds that context; the context is released last.
//! - No handle of another backend or device reaches the driver: each is checked where it comes in.
//! - An error after which the driver refuses everything marks the device as lost, for good ([`driver::Context`]).

use std::{
    ffi::c_void,
    fmt,
    ops::Range,
    ptr,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use cudarc::driver::sys::{self, CUlaunchAttribute, CUlaunchAttributeID, CUlaunchAttributeValue, CUlaunchConfig};

use crate::{
    cache::Cache,
    compilations::Observer,
    device::backend::Backend,
    device::dispatch::{Arg, Dispatch, Lent},
    error::{Error, Result},
    handles::{Event, Executable, Memory, QueueHandle, own},
    host::{HostBuffer, Pending},
    info::{DeviceInfo, Stats, Transfer},
    secrecy::Secrecy,
    span::{Span, SpanMut, expect_len, row_bytes},
    spec::KernelSpec,
};
use driver::{Context, call};
use kernels::{Compiler, Kernels, Module};
use memory::{CudaMemory, DeviceCopy, Heap, Touch, on_stream};
use staging::{CudaStaging, Flight, Staging};
use stream::{CudaQueue, Events, Stream, Streams, Timing};

#[cfg(test)]
mod archived;
pub mod compiler;
#[cfg(test)]
mod double;
mod driver;
mod functions;
mod image;
mod kernels;
mod memory;
#[cfg(test)]
mod queues;
mod staging;
mod stream;
#[cfg(test)]
mod tests;
mod uses;

/// Buffers up to which a launch keeps their addresses on the stack: usual kernels have fewer.
const FEW_ARGUMENTS: usize = 8;

/// Room for `count` values: on the stack if they are few, else on the heap.
fn room<'a, T: Copy>(few: &'a mut [T], many: &'a mut Vec<T>, count: usize) -> &'a mut [T] {
    if count <= few.len() {
        return &mut few[..count];
    }
    many.resize(count, few[0]);
    many
}

/// Workgroups of one launch, in the first dimension of a grid.
const MAX_GROUPS: u64 = i32::MAX as u64;

/// Opens device number `index`.
pub(crate) fn open(index: usize) -> Result<Arc<dyn Backend>> {
    Ok(Arc::new(Cuda::open(index)?))
}

/// Devices on this machine, at least one.
pub(crate) fn count() -> Result<usize> {
    driver::count()
}

struct Cuda {
    info: DeviceInfo,
    queue: QueueHandle,
    kernels: Kernels,
    staging: Arc<Staging>,
    heap: Arc<Heap>,
    streams: Arc<Streams>,
    events: Arc<Events>,
    context: Arc<Context>,
    launches: AtomicU64,
    uploads: Traffic,
    downloads: Traffic,
    /// Bytes from one row to the next that copies of several rows may have at most.
    max_pitch: usize,
}

/// Copies in one direction.
#[derive(Default)]
struct Traffic {
    copies: AtomicU64,
    bytes: AtomicU64,
}

impl Traffic {
    fn add(&self, bytes: u64) {
        self.copies.fetch_add(1, Ordering::Relaxed);
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    fn get(&self) -> (u64, u64) {
        (self.copies.load(Ordering::Relaxed), self.bytes.load(Ordering::Relaxed))
    }
}

impl Cuda {
    fn open(index: usize) -> Result<Self> {
        Self::of(Context::retain(index)?, Cache::open(), &kernels::NVRTC)
    }

    fn of(context: Arc<Context>, cache: Cache, compiler: &'static Compiler) -> Result<Self> {
        context.bind()?;
        let info = context.describe()?;
        let max_pitch = context.attribute(sys::CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MAX_PITCH)? as usize;
        let stream = Stream::new(&context)?;
        let events = Events::new(&context);
        Ok(Self {
            queue: QueueHandle::new(CudaQueue::of(&stream)),
            kernels: Kernels::new(&context, &info.architecture, cache, compiler),
            staging: Staging::new(&context, &events),
            heap: Heap::new(&context, &stream, &events, info.limits.buffer_bytes)?,
            streams: Arc::default(),
            events,
            context,
            launches: AtomicU64::new(0),
            uploads: Traffic::default(),
            downloads: Traffic::default(),
            max_pitch,
            info,
        })
    }

    fn stream<'a>(&self, queue: &'a QueueHandle) -> Result<&'a Arc<Stream>> {
        let stream = own(queue.downcast_ref::<CudaQueue>(), "queue", &self.info)?.stream();
        self.context.expect("queue", stream.context())?;
        Ok(stream)
    }

    fn event<'a>(&self, event: &'a Event) -> Result<&'a stream::Event> {
        let event = own(event.downcast_ref::<stream::Event>(), "event", &self.info)?;
        self.context.expect("event", event.context())?;
        Ok(event)
    }

    fn memory<'a>(&self, memory: &'a Memory) -> Result<&'a CudaMemory> {
        let memory = own(memory.downcast_ref::<CudaMemory>(), "memory", &self.info)?;
        self.context.expect("memory", memory.heap().context())?;
        Ok(memory)
    }

    /// Blocks of a matrix of `bytes` bytes.
    fn blocks(&self, bytes: usize, rows: usize, count: usize) -> Blocks {
        Blocks { pitch: bytes / rows.max(1), rows, count, max_pitch: self.max_pitch }
    }

    /// Queues a copy into host memory of this device.
    fn read_into(&self, queue: &QueueHandle, src: Span<'_>, mut flight: Flight) -> Result<Pending> {
        let (stream, memory, bytes) = (self.stream(queue)?, self.memory(src.memory())?, flight.memory().len());
        let source = memory.range("read", src.at(), src.bytes())?;
        expect_len("the target of a read, in bytes", src.bytes(), bytes as u64)?;
        self.context.bind()?;
        if bytes > 0 {
            let target: *mut c_void = flight.memory().as_mut_ptr().cast();
            on_stream(stream, &[Touch::read(memory, &src)], || {
                // SAFETY: `bytes` lie in the source by the check above and are the length of the host memory, which is
                // kept until the copy is done.
                unsafe { call!(self.context, cuMemcpyDtoHAsync_v2(target, source, bytes, stream.raw())) }
            })?;
        }
        self.downloads.add(bytes as u64);
        Ok(Pending::new(flight.queued(&self.events)?))
    }

    /// Copies a rectangle of a matrix to the same place of another one.
    fn copy_rectangle(
        &self,
        queue: &QueueHandle,
        src: Span<'_>,
        dst: SpanMut<'_>,
        pitch: usize,
        rectangle: Rectangle,
    ) -> Result<()> {
        let (stream, target) = (self.stream(queue)?, self.memory(dst.memory())?);
        let source = own(src.memory().downcast_ref::<CudaMemory>(), "memory", &self.info)?;
        let from = source.range("copy", src.at(), src.bytes())? + rectangle.start as u64;
        let to = target.range("copy", dst.at(), dst.bytes())? + rectangle.start as u64;
        self.context.bind()?;
        if rectangle.width == 0 || rectangle.height == 0 {
            return Ok(());
        }
        let copy = DeviceCopy { from, to, pitch, width: rectangle.width, height: rectangle.height };
        let written = Touch::write(target, &dst);
        if !ptr::eq(source.heap().context(), &*self.context) {
            return on_stream(stream, &[written], || source.copy_to_peer(&copy, stream, &self.events));
        }
        on_stream(stream, &[written, Touch::read(source, &src)], || {
            // SAFETY: the caller's rectangle lies in both ranges, which lie in their memory by the checks above. `dst` is
            // the right to its range, so that they do not overlap.
            unsafe { copy.queue(&self.context, &self.context, stream) }
        })
    }
}

/// Blocks of neighbouring columns that a matrix is copied in, of equal width.
struct Blocks {
    /// Bytes of a row.
    pitch: usize,
    rows: usize,
    count: usize,
    /// Bytes that a row of a copy of several may have.
    max_pitch: usize,
}

/// Parts of neighbouring rows that one copy takes.
struct Rectangle {
    /// Where the first part starts, in bytes.
    start: usize,
    width: usize,
    height: usize,
}

impl Blocks {
    /// The copies that a block takes: one, unless rows are further apart than a copy of several can have them.
    fn copies(&self, block: usize) -> impl Iterator<Item = Rectangle> {
        let Self { pitch, rows, count, max_pitch } = *self;
        let at = |block: usize| (pitch as u128 * block as u128 / count as u128) as usize;
        let (start, width) = (at(block), at(block + 1) - at(block));
        let (copies, width, height) = match count {
            // Whole rows lie one after the other.
            1 => (1, width * rows, 1),
            _ if pitch > max_pitch => (rows, width, 1),
            _ => (1, width, rows),
        };
        let copies = if width == 0 || height == 0 { 0 } else { copies };
        (0..copies).map(move |copy| Rectangle { start: start + copy * pitch, width, height })
    }

    /// A copy of its size, from host memory to host memory.
    fn copy(&self, rectangle: &Rectangle) -> sys::CUDA_MEMCPY2D {
        sys::CUDA_MEMCPY2D {
            srcXInBytes: 0,
            srcY: 0,
            srcMemoryType: sys::CUmemorytype::CU_MEMORYTYPE_HOST,
            srcHost: ptr::null(),
            srcDevice: 0,
            srcArray: ptr::null_mut(),
            srcPitch: self.pitch,
            dstXInBytes: 0,
            dstY: 0,
            dstMemoryType: sys::CUmemorytype::CU_MEMORYTYPE_HOST,
            dstHost: ptr::null_mut(),
            dstDevice: 0,
            dstArray: ptr::null_mut(),
            dstPitch: self.pitch,
            WidthInBytes: rectangle.width,
            Height: rectangle.height,
        }
    }
}

impl Backend for Cuda {
    fn info(&self) -> &DeviceInfo {
        &self.info
    }

    fn stats(&self) -> Stats {
        let (writes, bytes_up) = self.uploads.get();
        let (reads, bytes_down) = self.downloads.get();
        self.kernels.compilations().counted(Stats {
            launches: self.launches.load(Ordering::Relaxed),
            writes,
            reads,
            bytes_up,
            bytes_down,
            bytes_live: self.heap.live(),
            bytes_peak: self.heap.peak(),
            bytes_pooled: self.context.bind().and_then(|()| self.heap.pooled()).unwrap_or(0),
            ..Stats::default()
        })
    }

    fn alloc(&self, bytes: u64, secrecy: Secrecy) -> Result<Memory> {
        let limit = self.info.limits.buffer_bytes;
        if bytes > limit {
            return Err(Error::TooLarge {
                what: "an allocation",
                device: self.info.id,
                expected: limit,
                actual: bytes,
            });
        }
        self.context.bind()?;
        Ok(Memory::new(self.heap.alloc(bytes, secrecy)?, bytes))
    }

    fn host_buffer(&self, bytes: usize, transfer: Transfer, secrecy: Secrecy) -> Result<HostBuffer> {
        self.context.bind()?;
        Ok(HostBuffer::new(self.staging.buffer(bytes, transfer, secrecy)?))
    }

    fn expect_host(&self, buffer: &HostBuffer) -> Result<()> {
        let staging = own(buffer.downcast_ref::<CudaStaging>(), "host buffer", &self.info)?;
        self.context.expect("host buffer", staging.context())
    }

    fn default_queue(&self) -> &QueueHandle {
        &self.queue
    }

    fn queue(&self) -> Result<QueueHandle> {
        self.context.bind()?;
        Ok(QueueHandle::new(self.streams.queue(&self.context)?))
    }

    fn write(&self, queue: &QueueHandle, dst: SpanMut<'_>, src: HostBuffer) -> Result<Pending> {
        let (stream, memory, bytes) = (self.stream(queue)?, self.memory(dst.memory())?, src.len());
        let target = memory.range("write", dst.at(), dst.bytes())?;
        expect_len("the source of a write, in bytes", dst.bytes(), bytes as u64)?;
        self.expect_host(&src)?;
        self.context.bind()?;
        let mut flight = Flight::new(src, &self.staging, stream);
        if bytes > 0 {
            let source: *const c_void = flight.memory().as_ptr().cast();
            on_stream(stream, &[Touch::write(memory, &dst)], || {
                // SAFETY: `bytes` lie in the target by the check above and are the length of the host memory, which is
                // kept until the copy is done.
                unsafe { call!(self.context, cuMemcpyHtoDAsync_v2(target, source, bytes, stream.raw())) }
            })?;
        }
        self.uploads.add(bytes as u64);
        Ok(Pending::new(flight.queued(&self.events)?))
    }

    fn read(&self, queue: &QueueHandle, src: Span<'_>, dst: HostBuffer) -> Result<Pending> {
        self.expect_host(&dst)?;
        let flight = Flight::new(dst, &self.staging, self.stream(queue)?);
        self.read_into(queue, src, flight)
    }

    fn read_after(&self, queue: &QueueHandle, src: Span<'_>, before: Pending) -> Result<Pending> {
        let before = match before.downcast::<Flight>() {
            Ok(before) => before,
            Err(before) => return self.read(queue, src, before.wait()?),
        };
        match before.again(self.stream(queue)?) {
            Ok(flight) => self.read_into(queue, src, flight),
            Err(before) => self.read(queue, src, Pending::new(*before).wait()?),
        }
    }

    fn write_columns(
        &self,
        queue: &QueueHandle,
        dst: SpanMut<'_>,
        src: HostBuffer,
        rows: usize,
        pieces: usize,
    ) -> Result<(Vec<Event>, Pending)> {
        let (stream, memory, bytes) = (self.stream(queue)?, self.memory(dst.memory())?, src.len());
        let target = memory.range("write", dst.at(), dst.bytes())?;
        expect_len("the source of a write, in bytes", dst.bytes(), bytes as u64)?;
        self.expect_host(&src)?;
        self.context.bind()?;
        let blocks = self.blocks(bytes, rows, pieces);
        let mut flight = Flight::new(src, &self.staging, stream);
        let mut events = Vec::new();
        let mark = || Ok(Event::new(self.events.record(stream, Timing::On)?));
        on_stream(stream, &[Touch::write(memory, &dst)], || {
            for block in 0..pieces {
                if block > 0 {
                    events.push(mark()?);
                }
                for part in blocks.copies(block) {
                    let source: *const c_void = flight.memory()[part.start..].as_ptr().cast();
                    let target = target + part.start as u64;
                    let copy = sys::CUDA_MEMCPY2D {
                        srcHost: source,
                        dstMemoryType: sys::CUmemorytype::CU_MEMORYTYPE_DEVICE,
                        dstDevice: target,
                        ..blocks.copy(&part)
                    };
                    // SAFETY: the copies of all blocks make up the host memory, which is kept until they are done, and
                    // the range of the target.
                    unsafe {
                        match part.height {
                            1 => call!(self.context, cuMemcpyHtoDAsync_v2(target, source, part.width, stream.raw())),
                            _ => call!(self.context, cuMemcpy2DAsync_v2(&raw const copy, stream.raw())),
                        }
                    }?;
                }
            }
            Ok(())
        })?;
        // Behind the write as a whole.
        if pieces > 0 {
            events.push(mark()?);
        }
        self.uploads.add(bytes as u64);
        Ok((events, Pending::new(flight.queued(&self.events)?)))
    }

    fn read_columns(
        &self,
        queue: &QueueHandle,
        src: Span<'_>,
        dst: HostBuffer,
        rows: usize,
        after: &[Event],
    ) -> Result<Pending> {
        let (stream, memory, bytes) = (self.stream(queue)?, self.memory(src.memory())?, dst.len());
        let source = memory.range("read", src.at(), src.bytes())?;
        expect_len("the target of a read, in bytes", src.bytes(), bytes as u64)?;
        self.expect_host(&dst)?;
        let after = after.iter().map(|event| self.event(event)).collect::<Result<Vec<_>>>()?;
        self.context.bind()?;
        let blocks = self.blocks(bytes, rows, after.len());
        let mut flight = Flight::new(dst, &self.staging, stream);
        on_stream(stream, &[Touch::read(memory, &src)], || {
            for (block, event) in after.into_iter().enumerate() {
                stream.wait(event)?;
                for part in blocks.copies(block) {
                    let target: *mut c_void = flight.memory()[part.start..].as_mut_ptr().cast();
                    let source = source + part.start as u64;
                    let copy = sys::CUDA_MEMCPY2D {
                        srcMemoryType: sys::CUmemorytype::CU_MEMORYTYPE_DEVICE,
                        srcDevice: source,
                        dstHost: target,
                        ..blocks.copy(&part)
                    };
                    // SAFETY: the copies of all blocks make up the host memory, which is kept until they are done, and
                    // the range of the source.
                    unsafe {
                        match part.height {
                            1 => call!(self.context, cuMemcpyDtoHAsync_v2(target, source, part.width, stream.raw())),
                            _ => call!(self.context, cuMemcpy2DAsync_v2(&raw const copy, stream.raw())),
                        }
                    }?;
                }
            }
            Ok(())
        })?;
        self.downloads.add(bytes as u64);
        Ok(Pending::new(flight.queued(&self.events)?))
    }

    fn copies_from(&self, memory: &Memory) -> bool {
        memory.downcast_ref::<CudaMemory>().is_some()
    }

    /// `src` may be memory of another CUDA device; queue and `dst` are of this one.
    fn copy(&self, queue: &QueueHandle, src: Span<'_>, dst: SpanMut<'_>) -> Result<()> {
        expect_len("the source of a copy, in bytes", dst.bytes(), src.bytes())?;
        let width = src.bytes() as usize;
        self.copy_rectangle(queue, src, dst, width, Rectangle { start: 0, width, height: 1 })
    }

    fn copy_columns(
        &self,
        queue: &QueueHandle,
        src: Span<'_>,
        mut dst: SpanMut<'_>,
        rows: usize,
        columns: Range<u64>,
    ) -> Result<()> {
        let pitch = row_bytes(&src, &dst, rows, &columns)? as usize;
        let (start, width) = (columns.start as usize, (columns.end - columns.start) as usize);
        let (copies, height) = if pitch > self.max_pitch { (rows, 1) } else { (1, rows) };
        (0..copies).try_for_each(|copy| {
            let rectangle = Rectangle { start: start + copy * pitch, width, height };
            self.copy_rectangle(queue, src, dst.reborrow(), pitch, rectangle)
        })
    }

    fn clear(&self, queue: &QueueHandle, dst: SpanMut<'_>) -> Result<()> {
        let (stream, memory, bytes) = (self.stream(queue)?, self.memory(dst.memory())?, dst.bytes());
        let target = memory.range("clear", dst.at(), bytes)?;
        self.context.bind()?;
        if bytes == 0 {
            return Ok(());
        }
        on_stream(stream, &[Touch::write(memory, &dst)], || {
            // SAFETY: the range lies in the memory by the check above.
            unsafe { call!(self.context, cuMemsetD8Async(target, 0, bytes as usize, stream.raw())) }
        })
    }

    fn record(&self, queue: &QueueHandle) -> Result<Event> {
        let stream = self.stream(queue)?;
        self.context.bind()?;
        Ok(Event::new(self.events.record(stream, Timing::On)?))
    }

    fn wait_for(&self, queue: &QueueHandle, event: &Event) -> Result<()> {
        let (stream, event) = (self.stream(queue)?, self.event(event)?);
        self.context.bind()?;
        stream.wait(event)
    }

    fn elapsed(&self, from: &Event, to: &Event) -> Result<Duration> {
        let (from, to) = (self.event(from)?, self.event(to)?);
        self.context.bind()?;
        from.synchronize()?;
        to.synchronize()?;
        from.elapsed(to)
    }

    fn compile(&self, spec: &KernelSpec) -> Result<Executable> {
        self.context.bind()?;
        Ok(Executable::new(self.kernels.get(spec)?))
    }

    fn observe(&self, observer: Option<Observer>) {
        self.kernels.compilations().observe(observer);
    }

    unsafe fn dispatch(&self, queue: &QueueHandle, job: Dispatch<'_, '_>) -> Result<()> {
        let stream = self.stream(queue)?;
        let module = own(job.executable.downcast_ref::<Arc<Module>>(), "executable", &self.info)?;
        self.context.expect("executable", module.context())?;
        module.expect_arguments(job.params.len(), job.args.len())?;
        if job.groups > MAX_GROUPS {
            let (device, limit) = (self.info.id, MAX_GROUPS);
            return Err(Error::TooLarge {
                what: "the number of workgroups",
                device,
                expected: limit,
                actual: job.groups,
            });
        }
        self.context.bind()?;

        let (mut few, mut many) = ([0; FEW_ARGUMENTS], Vec::new());
        let addresses = room(&mut few, &mut many, job.args.len());
        let mut touched = Vec::with_capacity(job.args.len());
        for ((arg, binding), address) in job.args.iter().zip(&*job.spec.bindings).zip(&mut *addresses) {
            let (memory, span) = (self.memory(arg.memory())?, arg.span());
            let word = binding.binding_type.bytes();
            *address = memory.start() + span.at() / word * word;
            touched.push(Touch::of(memory, &span, arg.access()));
        }
        // A kernel without parameters takes an empty struct. The driver copies one byte for it.
        let params: &[u8] = if job.params.is_empty() { &[0] } else { job.params };
        let (mut few, mut many) = ([ptr::null_mut(); 1 + FEW_ARGUMENTS], Vec::new());
        let arguments: &mut [*mut c_void] = room(&mut few, &mut many, 1 + addresses.len());
        arguments[0] = params.as_ptr().cast_mut().cast();
        for (argument, address) in arguments[1..].iter_mut().zip(addresses) {
            *argument = ptr::from_mut(address).cast();
        }

        let mut early = CUlaunchAttribute {
            id: CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION,
            pad: [0; 4],
            value: CUlaunchAttributeValue { programmaticStreamSerializationAllowed: 1 },
        };
        let config = CUlaunchConfig {
            gridDimX: job.groups as u32,
            gridDimY: 1,
            gridDimZ: 1,
            blockDimX: module.threads(),
            blockDimY: 1,
            blockDimZ: 1,
            sharedMemBytes: module.shared_bytes(),
            hStream: stream.raw(),
            attrs: &mut early,
            numAttrs: u32::from(module.waits()),
        };
        on_stream(stream, &touched, || {
            let arguments = arguments.as_mut_ptr();
            // SAFETY: the sizes of the entry's arguments were checked when it was compiled: parameters of this length,
            // then one address for each binding. The driver reads them, and the configuration, before it returns. The
            // caller vouches for the body.
            unsafe { call!(self.context, cuLaunchKernelEx(&config, module.function(), arguments, ptr::null_mut())) }
        })?;
        self.launches.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    unsafe fn lend(
        &self,
        queue: &QueueHandle,
        args: &mut [Arg<'_>],
        give: &mut dyn FnMut(Lent<'_>) -> Result<()>,
    ) -> Result<()> {
        let stream = self.stream(queue)?;
        let (mut addresses, mut touched) = (Vec::with_capacity(args.len()), Vec::with_capacity(args.len()));
        for arg in &*args {
            let (memory, span) = (self.memory(arg.memory())?, arg.span());
            addresses.push(memory.range("memory that is lent", span.at(), span.bytes())?);
            touched.push(Touch::of(memory, &span, arg.access()));
        }
        self.context.bind()?;
        let given = on_stream(stream, &touched, || give(Lent { stream: stream.raw().cast(), addresses: &addresses }));
        given.inspect_err(|error| {
            if let Error::Lost { device, reason } = error
                && *device == self.context.id()
            {
                self.context.lose(reason);
            }
        })
    }

    fn is_done(&self, event: &Event) -> Result<bool> {
        let event = self.event(event)?;
        self.context.bind()?;
        event.is_done()
    }

    fn sync(&self) -> Result<()> {
        self.context.bind()?;
        let given = self.heap.stream().given();
        self.context.synchronize()?;
        self.heap.stream().note_done(given);
        self.staging.reclaim();
        Ok(())
    }

    fn trim(&self) {
        if self.context.bind().is_ok() {
            self.staging.trim();
            self.heap.trim();
        }
    }
}

impl fmt::Debug for Cuda {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cuda").field("info", &self.info).finish_non_exhaustive()
    }
}
