//! Device memory: stream-ordered allocations of the driver's pool.
//!
//! Memory is allocated and freed in the order of the default stream, so neither waits for the device. Uses by other
//! streams are remembered ([`super::uses`]). Before the memory is freed, the default stream waits for them. Memory that
//! cannot be freed, since a call fails, stays with the heap, which tries again.

use std::{
    ops::Range,
    ptr,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use cudarc::driver::sys::{
    self, CUdevice, CUdevice_attribute, CUdeviceptr, CUmemAccess_flags, CUmemAccessDesc, CUmemLocation,
    CUmemLocationType, CUmemPool_attribute, CUmemPoolHandle_st, CUmemoryPool, CUresult,
};

use super::{
    driver::{Context, Handle, call},
    stream::{Event, Events, Stream, Timing},
    uses::Uses,
};
use crate::{
    bindings::Access,
    error::{Error, Result},
    pool::Pool,
    secrecy::Secrecy,
    span::{Flag, Span, SpanMut},
};

/// What the driver's pool rounds allocations to.
const GRANULE: u64 = 512;

/// Kernels read and write words of up to this many bytes at once: allocations end with a whole one.
const WIDEST: u64 = 16;

/// Bytes of the words that parts of memory are divided at.
const WORD: u64 = 4;

/// Where memory comes from.
enum Source {
    /// The device's default pool in the driver.
    Driver(Handle<CUmemPoolHandle_st>),
    /// Allocations of our own, kept for reuse, on devices where the driver has no pools.
    Own(Pool<Own>),
}

/// An allocation of our own.
#[derive(Clone, Copy)]
struct Own {
    start: CUdeviceptr,
    size: u64,
}

/// Memory that nobody uses any more but the device.
struct Unused {
    start: CUdeviceptr,
    size: u64,
    /// Bytes with those that fill the last word.
    whole: u64,
    secrecy: Secrecy,
    /// Streams other than the default one that may still use it.
    streams: Vec<Arc<Stream>>,
}

/// The memory of a device.
pub(super) struct Heap {
    context: Arc<Context>,
    /// The default stream, whose order all allocations follow.
    stream: Arc<Stream>,
    events: Arc<Events>,
    source: Source,
    /// What could not be freed yet.
    unused: Mutex<Vec<Unused>>,
    /// Devices that were given access to this memory, or cannot have it.
    peers: Mutex<Vec<CUdevice>>,
    live: AtomicU64,
    peak: AtomicU64,
}

impl Heap {
    /// The context must be bound, here and in all functions below.
    pub(super) fn new(
        context: &Arc<Context>,
        stream: &Arc<Stream>,
        events: &Arc<Events>,
        memory_bytes: u64,
    ) -> Result<Arc<Self>> {
        let pools = context.attribute(CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED)?;
        let source = match pools {
            0 => Source::Own(Pool::new(memory_bytes / 4)),
            _ => Source::Driver(default_pool(context)?),
        };
        Ok(Arc::new(Self {
            context: Arc::clone(context),
            stream: Arc::clone(stream),
            events: Arc::clone(events),
            source,
            unused: Mutex::default(),
            peers: Mutex::default(),
            live: AtomicU64::new(0),
            peak: AtomicU64::new(0),
        }))
    }

    pub(super) fn context(&self) -> &Context {
        &self.context
    }

    /// The default stream.
    pub(super) fn stream(&self) -> &Stream {
        &self.stream
    }

    /// `bytes` must be within the memory of the device.
    pub(super) fn alloc(self: &Arc<Self>, bytes: u64, secrecy: Secrecy) -> Result<CudaMemory> {
        self.free_unused();
        let size = match self.source {
            _ if bytes == 0 => 0,
            Source::Driver(_) => bytes.next_multiple_of(GRANULE),
            Source::Own(_) => Pool::<Own>::class(bytes),
        };
        let mut memory = CudaMemory { heap: Arc::clone(self), start: 0, bytes, size, secrecy, uses: None };
        let live = self.live.fetch_add(size, Ordering::Relaxed) + size;
        if size > 0 {
            memory.start = self.take_or_trim(size, bytes)?;
            if memory.whole() > bytes {
                // A word's bytes behind the end are read with those before it.
                let (padding, count) = (memory.start + bytes, (memory.whole() - bytes) as usize);
                // SAFETY: the allocation has `whole` bytes, and was made in the order of this stream.
                unsafe { call!(self.context, cuMemsetD8Async(padding, 0, count, self.stream.raw())) }?;
            }
            let made = self.events.record(&self.stream, Timing::Off)?;
            memory.uses = Some(Uses::new(&self.stream, made, bytes.next_multiple_of(WORD)));
        }
        self.peak.fetch_max(live, Ordering::Relaxed);
        Ok(memory)
    }

    fn take_or_trim(&self, size: u64, requested: u64) -> Result<CUdeviceptr> {
        if let Some(start) = self.take(size, requested)? {
            return Ok(start);
        }
        // Memory that was freed behind pending work is free once that is done.
        self.context.synchronize()?;
        self.trim();
        if let Some(start) = self.take(size, requested)? {
            return Ok(start);
        }
        Err(Error::OutOfMemory { device: self.context.id(), requested, available: self.context.free_bytes().ok() })
    }

    /// `None` when memory is exhausted. The driver rounds to `size` itself, and tools see where an allocation ends.
    fn take(&self, size: u64, bytes: u64) -> Result<Option<CUdeviceptr>> {
        let mut start = 0;
        let (call, result) = match &self.source {
            Source::Driver(pool) => {
                let (pool, stream) = (pool.0, self.stream.raw());
                // SAFETY: the pointer is to a live value, pool and stream are live.
                let result = unsafe {
                    (self.context.functions().cuMemAllocFromPoolAsync)(&mut start, whole(bytes) as usize, pool, stream)
                };
                ("cuMemAllocFromPoolAsync", result)
            }
            Source::Own(pool) => {
                if let Some(own) = pool.take(size) {
                    return Ok(Some(own.start));
                }
                // SAFETY: the pointer is to a live value.
                ("cuMemAlloc_v2", unsafe { (self.context.functions().cuMemAlloc_v2)(&mut start, size as usize) })
            }
        };
        match result {
            CUresult::CUDA_ERROR_OUT_OF_MEMORY => Ok(None),
            _ => self.context.check(call, result).map(|()| Some(start)),
        }
    }

    /// Takes memory back, in the order of the default stream. The context must be bound.
    fn free(&self, memory: &mut Unused) -> Result<()> {
        while let Some(stream) = memory.streams.last() {
            self.stream.wait_for_stream(stream, &self.events)?;
            memory.streams.pop();
        }
        // The last stream of another device may have gone, and its context been made current for that.
        self.context.bind()?;
        if memory.secrecy == Secrecy::Secret {
            let whole = memory.whole as usize;
            // SAFETY: the allocation has `whole` bytes, and all uses of it come before in this stream.
            unsafe { call!(self.context, cuMemsetD8Async(memory.start, 0, whole, self.stream.raw())) }?;
        }
        let (start, size) = (memory.start, memory.size);
        match &self.source {
            // SAFETY: allocated by `take` from this source, not freed yet, and used by no one after this.
            Source::Driver(_) => unsafe { call!(self.context, cuMemFreeAsync(start, self.stream.raw())) },
            Source::Own(pool) => match pool.give(size, Own { start, size }) {
                None => Ok(()),
                Some(own) => self.stream.synchronize().and_then(|()| self.free_own(own)),
            },
        }
    }

    /// The default stream, which orders its uses, must be idle.
    fn free_own(&self, own: Own) -> Result<()> {
        // SAFETY: allocated by `take`, not freed yet, and the stream that orders its uses is idle.
        unsafe { call!(self.context, cuMemFree_v2(own.start)) }
    }

    /// Frees memory that nobody uses, or keeps it to try again.
    fn retire(&self, mut memory: Unused) {
        match self.context.bind().and_then(|()| self.free(&mut memory)) {
            Ok(()) => {}
            // A lost device's memory goes with its context.
            Err(Error::Lost { device, .. }) if device == self.context.id() => {}
            Err(error) => {
                log::warn!("{} bytes on {} stay in use for now: {error}", memory.size, self.context.id());
                self.unused().push(memory);
            }
        }
    }

    /// Tries again to free what could not be freed.
    fn free_unused(&self) {
        let unused = std::mem::take(&mut *self.unused());
        unused.into_iter().for_each(|memory| self.retire(memory));
    }

    fn unused(&self) -> MutexGuard<'_, Vec<Unused>> {
        self.unused.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives memory that no one uses back to the driver.
    pub(super) fn trim(&self) {
        self.free_unused();
        let trimmed = match &self.source {
            // SAFETY: the device's default pool lives as long as the device.
            Source::Driver(pool) => unsafe { call!(self.context, cuMemPoolTrimTo(pool.0, 0)) },
            Source::Own(pool) => {
                // Taken out first, so that the wait is for the last use of all.
                let blocks = pool.drain();
                let idle = self.stream.synchronize();
                for own in blocks {
                    if idle.is_err() || self.free_own(own).is_err() {
                        let (start, size, secrecy) = (own.start, own.size, Secrecy::Public);
                        self.unused().push(Unused { start, size, whole: size, secrecy, streams: Vec::new() });
                    }
                }
                idle
            }
        };
        if let Err(error) = trimmed {
            log::debug!("memory was not given back: {error}");
        }
    }

    /// Lets another device, whose context is bound, read this memory over the link between both. Without such a link,
    /// or if that fails, the driver copies through host memory.
    fn open_to(&self, peer: &Context) {
        let device = peer.device();
        let mut peers = self.peers.lock().unwrap_or_else(PoisonError::into_inner);
        if peers.contains(&device) {
            return;
        }
        // Whoever copies next tries again after an error.
        match self.give_access(peer) {
            Ok(()) => peers.push(device),
            Err(error) => {
                log::debug!("{} copies from {} through host memory: {error}", peer.id(), self.context.id());
            }
        }
    }

    fn give_access(&self, peer: &Context) -> Result<()> {
        let mut can = 0;
        // SAFETY: both devices are the driver's, and the pointer is to a live value.
        unsafe { call!(peer, cuDeviceCanAccessPeer(&mut can, peer.device(), self.context.device())) }?;
        if can == 0 {
            return Ok(());
        }
        // SAFETY: the context is live. It may have access already, by other code of the process.
        match unsafe { (peer.functions().cuCtxEnablePeerAccess)(self.context.raw(), 0) } {
            CUresult::CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED => {}
            result => peer.check("cuCtxEnablePeerAccess", result)?,
        }
        let Source::Driver(pool) = &self.source else { return Ok(()) };
        // Access to a context is none to the memory of its pools.
        let access = CUmemAccessDesc {
            location: CUmemLocation { type_: CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE, id: peer.device() },
            flags: CUmemAccess_flags::CU_MEM_ACCESS_FLAGS_PROT_READWRITE,
        };
        // SAFETY: the pool is live, and the pointer is to one live description.
        unsafe { call!(peer, cuMemPoolSetAccess(pool.0, &raw const access, 1)) }
    }

    pub(super) fn live(&self) -> u64 {
        self.live.load(Ordering::Relaxed)
    }

    pub(super) fn peak(&self) -> u64 {
        self.peak.load(Ordering::Relaxed)
    }

    /// Bytes kept for later allocations.
    pub(super) fn pooled(&self) -> Result<u64> {
        match &self.source {
            Source::Driver(pool) => {
                let get = |attribute| pool_attribute(&self.context, pool.0, attribute);
                let reserved = get(CUmemPool_attribute::CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT)?;
                let used = get(CUmemPool_attribute::CU_MEMPOOL_ATTR_USED_MEM_CURRENT)?;
                Ok(reserved.saturating_sub(used))
            }
            Source::Own(pool) => Ok(pool.bytes()),
        }
    }
}

impl Drop for Heap {
    fn drop(&mut self) {
        // The driver's pool outlives this heap: what was freed must not stay in it.
        if self.context.bind().is_err() {
            return;
        }
        self.trim();
        if self.stream.synchronize().is_ok() {
            self.trim();
        }
        for memory in self.unused.get_mut().unwrap_or_else(PoisonError::into_inner).drain(..) {
            log::error!("{} bytes on {} stay in use", memory.size, self.context.id());
        }
    }
}

fn whole(bytes: u64) -> u64 {
    bytes.next_multiple_of(WIDEST)
}

/// The device's default pool, set to keep what is freed: without that, every synchronization gives all of it back.
fn default_pool(context: &Context) -> Result<Handle<CUmemPoolHandle_st>> {
    let mut pool = ptr::null_mut();
    // SAFETY: the pointer is to a live value, the device is the context's.
    unsafe { call!(context, cuDeviceGetDefaultMemPool(&mut pool, context.device())) }?;
    let mut threshold = u64::MAX;
    let value = ptr::from_mut(&mut threshold).cast();
    let attribute = CUmemPool_attribute::CU_MEMPOOL_ATTR_RELEASE_THRESHOLD;
    // SAFETY: this attribute is a 64-bit number.
    unsafe { call!(context, cuMemPoolSetAttribute(pool, attribute, value)) }?;
    Ok(Handle(pool))
}

/// One of the attributes that are 64-bit numbers.
fn pool_attribute(context: &Context, pool: CUmemoryPool, attribute: CUmemPool_attribute) -> Result<u64> {
    let mut value = 0_u64;
    // SAFETY: the caller asks for a 64-bit attribute, and the pointer is to a live value.
    unsafe { call!(context, cuMemPoolGetAttribute(pool, attribute, ptr::from_mut(&mut value).cast())) }?;
    Ok(value)
}

/// An allocation. It holds its heap, and so its device, alive.
pub(super) struct CudaMemory {
    heap: Arc<Heap>,
    /// Zero for an allocation of no bytes.
    start: CUdeviceptr,
    bytes: u64,
    size: u64,
    secrecy: Secrecy,
    /// `None` without bytes.
    uses: Option<Uses>,
}

impl CudaMemory {
    pub(super) fn heap(&self) -> &Heap {
        &self.heap
    }

    pub(super) fn start(&self) -> CUdeviceptr {
        self.start
    }

    /// Bytes with those that fill the last word.
    fn whole(&self) -> u64 {
        whole(self.bytes)
    }

    /// The address of a range.
    pub(super) fn range(&self, what: &'static str, offset: u64, count: u64) -> Result<CUdeviceptr> {
        match offset.checked_add(count) {
            Some(end) if end <= self.bytes => Ok(self.start + offset),
            _ => Err(Error::OutOfRange { what, offset, count, len: self.bytes }),
        }
    }

    /// Copies to memory of another device, on a stream of that device. The copy runs after all work that this device
    /// has been given for this memory, and before this memory is freed. The context of the other device must be bound,
    /// and is again afterwards.
    pub(super) fn copy_to_peer(&self, copy: &DeviceCopy, stream: &Arc<Stream>, events: &Arc<Events>) -> Result<()> {
        let Some(uses) = &self.uses else { return Ok(()) };
        let (owner, target) = (&self.heap.context, stream.context());
        self.heap.open_to(target);
        owner.bind()?;
        let ready = self.ready(uses);
        target.bind()?;
        for event in ready? {
            stream.wait(&event)?;
        }
        // SAFETY: the caller checked both ranges; the contexts are those that the memory was allocated in.
        let copied = unsafe { copy.queue(owner, target, stream) };
        // Should something fail, the copy may be under way all the same: the memory is not freed before that stream is
        // idle.
        let first = copy.from - self.start;
        let range = first..first + ((copy.height - 1) * copy.pitch + copy.width) as u64;
        uses.note(stream, stream.give(), &range, Access::Read, false);
        copied?;
        let done = events.record(stream, Timing::Off);
        owner.bind()?;
        let ordered = done.and_then(|done| self.heap.stream.wait(&done).map(|()| done.position()));
        target.bind()?;
        match ordered {
            Ok(position) => uses.hand_over(stream, position),
            Err(_) => stream.synchronize()?,
        }
        Ok(())
    }

    /// Events after which all that uses the memory so far is done.
    fn ready(&self, uses: &Uses) -> Result<Vec<Event>> {
        // One of another device is ordered behind this one's already.
        let own = |stream: &Arc<Stream>| std::ptr::eq(stream.context(), &*self.heap.context);
        let streams = uses.streams().into_iter().filter(own);
        streams.map(|stream| self.heap.events.record(&stream, Timing::Off)).collect()
    }
}

/// A copy between two places in memory of devices.
pub(super) struct DeviceCopy {
    pub(super) from: CUdeviceptr,
    pub(super) to: CUdeviceptr,
    /// The distance of rows in both places, in bytes.
    pub(super) pitch: usize,
    /// The bytes of a row that are copied.
    pub(super) width: usize,
    /// The rows: one or more.
    pub(super) height: usize,
}

impl DeviceCopy {
    /// Gives the copy to a stream of the device of `target`, whose context is bound.
    ///
    /// # Safety
    /// The places lie in memory of `owner` and of `target`, and stay there until the copy is done.
    pub(super) unsafe fn queue(&self, owner: &Context, target: &Context, stream: &Stream) -> Result<()> {
        let Self { from, to, pitch, width, height } = *self;
        if height > 1 {
            let kind = sys::CUmemorytype::CU_MEMORYTYPE_DEVICE;
            let copy = sys::CUDA_MEMCPY3D_PEER {
                srcXInBytes: 0,
                srcY: 0,
                srcZ: 0,
                srcLOD: 0,
                srcMemoryType: kind,
                srcHost: ptr::null(),
                srcDevice: from,
                srcArray: ptr::null_mut(),
                srcContext: owner.raw(),
                srcPitch: pitch,
                srcHeight: height,
                dstXInBytes: 0,
                dstY: 0,
                dstZ: 0,
                dstLOD: 0,
                dstMemoryType: kind,
                dstHost: ptr::null_mut(),
                dstDevice: to,
                dstArray: ptr::null_mut(),
                dstContext: target.raw(),
                dstPitch: pitch,
                dstHeight: height,
                WidthInBytes: width,
                Height: height,
                Depth: 1,
            };
            // SAFETY: as the caller promises.
            return unsafe { call!(target, cuMemcpy3DPeerAsync(&raw const copy, stream.raw())) };
        }
        // SAFETY: as the caller promises.
        unsafe {
            match ptr::eq(owner, target) {
                true => call!(target, cuMemcpyDtoDAsync_v2(to, from, width, stream.raw())),
                false => call!(target, cuMemcpyPeerAsync(to, target.raw(), from, owner.raw(), width, stream.raw())),
            }
        }
    }
}

/// What work on a stream does with memory of its device. Launches list it on the heap: it has no padding, see [`Flag`].
pub(super) struct Touch<'a> {
    memory: &'a CudaMemory,
    bytes: Range<u64>,
    is_write: Flag,
    is_ordered: Flag,
}

impl<'a> Touch<'a> {
    /// Of the words around a range, which a kernel may write as a whole.
    pub(super) fn of(memory: &'a CudaMemory, span: &Span<'_>, access: Access) -> Self {
        let bytes = span.at() / WORD * WORD..(span.at() + span.bytes()).next_multiple_of(WORD);
        Self { memory, bytes, is_write: (access == Access::Write).into(), is_ordered: span.is_ordered().into() }
    }

    fn access(&self) -> Access {
        if self.is_write == Flag::Yes { Access::Write } else { Access::Read }
    }

    pub(super) fn read(memory: &'a CudaMemory, span: &Span<'_>) -> Self {
        Self::of(memory, span, Access::Read)
    }

    pub(super) fn write(memory: &'a CudaMemory, span: &SpanMut<'_>) -> Self {
        Self::of(memory, &span.as_span(), Access::Write)
    }
}

/// Gives work to a stream, in order with what other streams do with the same memory. What fails may have been given.
pub(super) fn on_stream<T>(stream: &Arc<Stream>, touched: &[Touch<'_>], give: impl FnOnce() -> Result<T>) -> Result<T> {
    for touch @ Touch { memory, bytes, is_ordered, .. } in touched {
        if let Some(uses) = &memory.uses {
            uses.order(stream, bytes, touch.access(), *is_ordered == Flag::Yes, &memory.heap.events)?;
        }
    }
    let given = give();
    let position = stream.give();
    for touch @ Touch { memory, bytes, is_ordered, .. } in touched {
        if let Some(uses) = &memory.uses {
            uses.note(stream, position, bytes, touch.access(), *is_ordered == Flag::Yes);
        }
    }
    given
}

impl Drop for CudaMemory {
    fn drop(&mut self) {
        self.heap.live.fetch_sub(self.size, Ordering::Relaxed);
        if self.start == 0 {
            return;
        }
        let streams = self.uses.as_mut().map(Uses::others).unwrap_or_default();
        let (start, size, whole, secrecy) = (self.start, self.size, self.whole(), self.secrecy);
        self.heap.retire(Unused { start, size, whole, secrecy, streams });
    }
}
