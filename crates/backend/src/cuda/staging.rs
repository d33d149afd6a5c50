//! Pinned host memory, kept for reuse.
//!
//! A buffer that nobody waits for stands behind its transfer's event, in a line for each stream, until the copy is
//! known to be done. If a call fails, it stays there and is looked at again. Lines are looked through when memory is
//! asked for, and, if there are many bytes, before a copy is waited for: there is no thread for it. A block returns to
//! its pool, zeroed if it is secret, when the last buffer of it is gone.

use std::{
    collections::VecDeque,
    mem,
    ptr::{self, NonNull},
    slice,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
};

use cudarc::driver::sys::{CU_MEMHOSTALLOC_WRITECOMBINED, CUresult};

use super::{
    driver::{Context, call},
    stream::{Event, Events, Stream, Timing},
};
use crate::{
    error::{Error, Result},
    host::{HostBuffer, HostMemory, PendingCopy},
    info::{DeviceId, Transfer},
    pool::Pool,
    secrecy::Secrecy,
    zeroize::zeroize,
};

/// Bytes under transfer at which the host waits for the oldest copy, and bytes kept for each direction, with an
/// eighth more for small blocks. They are more
/// than two milliseconds of copies at 55 GB/s, so that the link never runs dry. Pinning more would only delay the first
/// uploads.
const BUDGET: u64 = 128 << 20;

/// Bytes under transfer from which on a host that waits for the device looks which of them are done, and zeroes the
/// secrets among these: otherwise the next transfer would wait for that.
const LARGE: u64 = 1 << 20;

/// Pinned memory comes in pages.
const PAGE: u64 = 4096;

/// The pinned memory of a device.
pub(super) struct Staging {
    context: Arc<Context>,
    events: Arc<Events>,
    uploads: Pool<Block>,
    downloads: Pool<Block>,
    flying: Mutex<Flying>,
}

/// Buffers under transfer that nobody waits for.
#[derive(Default)]
struct Flying {
    lines: Vec<Line>,
    bytes: u64,
}

/// Buffers under transfer on one stream, oldest first. Never empty.
struct Line {
    stream: Arc<Stream>,
    buffers: VecDeque<InFlight>,
}

/// A buffer under transfer.
struct InFlight {
    buffer: HostBuffer,
    /// The end of the transfer, or of something later on its stream; `None` where marking it failed.
    end: Option<Event>,
}

impl InFlight {
    /// Whether the transfer is known to be done. Where its end was not marked, the present end of its stream is now.
    fn is_done(&mut self, stream: &Stream, events: &Arc<Events>) -> bool {
        if self.end.is_none() {
            self.end = events.record(stream, Timing::Off).ok();
        }
        self.end.as_ref().is_some_and(|end| end.is_done().unwrap_or(false))
    }

    fn synchronize(&self, stream: &Stream) -> Result<()> {
        self.end.as_ref().map_or_else(|| stream.synchronize(), Event::synchronize)
    }
}

impl Staging {
    pub(super) fn new(context: &Arc<Context>, events: &Arc<Events>) -> Arc<Self> {
        Arc::new(Self {
            context: Arc::clone(context),
            events: Arc::clone(events),
            uploads: Pool::new(BUDGET),
            downloads: Pool::new(BUDGET),
            flying: Mutex::default(),
        })
    }

    /// The context must be bound, here and in all functions below.
    pub(super) fn buffer(self: &Arc<Self>, bytes: usize, transfer: Transfer, secrecy: Secrecy) -> Result<CudaStaging> {
        let class = Pool::<Block>::class((bytes as u64).max(PAGE));
        self.reclaim();
        self.keep_to(BUDGET.saturating_sub(class))?;
        let mut block = match self.pool(transfer).take(class) {
            Some(block) => block,
            None => self.make(class, transfer, bytes)?,
        };
        block.secrecy = secrecy;
        let context = Arc::clone(&self.context);
        Ok(CudaStaging { context, staging: Arc::downgrade(self), block: Some(block), bytes, transfer })
    }

    fn make(&self, class: u64, transfer: Transfer, bytes: usize) -> Result<Block> {
        if let Some(block) = Block::new(&self.context, class, transfer)? {
            return Ok(block);
        }
        self.keep_to(0)?;
        self.trim();
        Block::new(&self.context, class, transfer)?.ok_or(Error::OutOfMemory {
            device: self.context.id(),
            requested: bytes as u64,
            available: None,
        })
    }

    /// Keeps a buffer until its transfer on a stream is done.
    fn fly(&self, stream: &Arc<Stream>, flight: InFlight) {
        let mut flying = self.flying();
        flying.bytes += flight.buffer.len() as u64;
        match flying.lines.iter_mut().find(|line| Arc::ptr_eq(&line.stream, stream)) {
            Some(line) => line.buffers.push_back(flight),
            None => flying.lines.push(Line { stream: Arc::clone(stream), buffers: [flight].into() }),
        }
    }

    /// Takes back the buffers whose transfers are done.
    pub(super) fn reclaim(&self) {
        let mut done = Vec::new();
        let mut flying = self.flying();
        for Line { stream, buffers } in &mut flying.lines {
            while buffers.front_mut().is_some_and(|flight| flight.is_done(stream, &self.events)) {
                done.extend(buffers.pop_front());
            }
        }
        flying.bytes -= done.iter().map(|flight| flight.buffer.len() as u64).sum::<u64>();
        flying.lines.retain(|line| !line.buffers.is_empty());
        // Zeroing secrets takes its time.
        drop(flying);
        drop(done);
    }

    /// [`Staging::reclaim`] for a host that is about to wait, if there is much to take back.
    fn reclaim_meanwhile(&self) {
        if self.flying().bytes >= LARGE {
            self.reclaim();
        }
    }

    /// Waits until at most `limit` bytes are under transfer. What cannot be waited for stays under transfer.
    fn keep_to(&self, limit: u64) -> Result<()> {
        while let Some((stream, flight)) = self.oldest_beyond(limit) {
            if let Err(error) = flight.synchronize(&stream) {
                self.fly(&stream, flight);
                return Err(error);
            }
        }
        Ok(())
    }

    fn oldest_beyond(&self, limit: u64) -> Option<(Arc<Stream>, InFlight)> {
        let mut flying = self.flying();
        if flying.bytes <= limit {
            return None;
        }
        let line = flying.lines.first_mut()?;
        let oldest = (Arc::clone(&line.stream), line.buffers.pop_front()?);
        flying.bytes -= oldest.1.buffer.len() as u64;
        flying.lines.retain(|line| !line.buffers.is_empty());
        Some(oldest)
    }

    /// Puts an unused block into its pool.
    fn shelve(&self, mut block: Block) {
        block.zeroize_vec();
        drop(self.pool(block.transfer).replace(block.class, block));
    }

    /// Gives the memory that waits for reuse back to the system.
    pub(super) fn trim(&self) {
        self.reclaim();
        // Blocks that cannot be freed now are better kept.
        if self.context.bind().is_ok() {
            drop((self.uploads.drain(), self.downloads.drain()));
        }
    }

    fn pool(&self, transfer: Transfer) -> &Pool<Block> {
        match transfer {
            Transfer::Upload => &self.uploads,
            Transfer::Download | Transfer::Both => &self.downloads,
        }
    }

    fn flying(&self) -> MutexGuard<'_, Flying> {
        self.flying.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Staging {
    fn drop(&mut self) {
        let idle = self.context.bind().and_then(|()| self.keep_to(0).or_else(|_| self.context.synchronize()));
        if let Err(error) = idle {
            // The device may still copy from or to what is left: it stays allocated for good.
            log::error!("a transfer cannot be waited for: {error}");
            mem::forget(mem::take(self.flying.get_mut().unwrap_or_else(PoisonError::into_inner)));
        }
    }
}

/// Pinned memory.
struct Block {
    context: Arc<Context>,
    start: NonNull<u8>,
    class: u64,
    transfer: Transfer,
    secrecy: Secrecy,
}

// SAFETY: a block owns its memory alone, and may be freed from any thread.
unsafe impl Send for Block {}
// SAFETY: shared access gives the address only.
unsafe impl Sync for Block {}

impl Block {
    /// `None` when memory is exhausted.
    fn new(context: &Arc<Context>, class: u64, transfer: Transfer) -> Result<Option<Self>> {
        let Ok(size) = usize::try_from(class) else { return Ok(None) };
        // Write-combined memory goes over the link faster, but the host reads it at a crawl.
        let flags = match transfer {
            Transfer::Upload => CU_MEMHOSTALLOC_WRITECOMBINED,
            Transfer::Download | Transfer::Both => 0,
        };
        let mut start = ptr::null_mut();
        // SAFETY: the pointer is to a live value.
        match unsafe { (context.functions().cuMemHostAlloc)(&mut start, size, flags) } {
            CUresult::CUDA_ERROR_OUT_OF_MEMORY => return Ok(None),
            result => context.check("cuMemHostAlloc", result)?,
        }
        let Some(start) = NonNull::new(start.cast()) else { return Ok(None) };
        Ok(Some(Self { context: Arc::clone(context), start, class, transfer, secrecy: Secrecy::Public }))
    }

    /// Zeroes a secret block that no transfer uses.
    fn zeroize_vec(&mut self) {
        if self.secrecy == Secrecy::Secret {
            // SAFETY: the block has `class` bytes and is borrowed exclusively; no buffer of it is left.
            zeroize(unsafe { slice::from_raw_parts_mut(self.start.as_ptr(), self.class as usize) });
            self.secrecy = Secrecy::Public;
        }
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        self.zeroize_vec();
        if self.context.bind().is_ok() {
            // SAFETY: allocated in `new`, and no transfer uses it: those own their block.
            let _ = unsafe { call!(self.context, cuMemFreeHost(self.start.as_ptr().cast())) };
        }
    }
}

/// Pinned memory behind host buffers. The block is there until drop.
pub(super) struct CudaStaging {
    context: Arc<Context>,
    /// Buffers under transfer are kept by it: a strong reference would be a circle.
    staging: Weak<Staging>,
    block: Option<Block>,
    bytes: usize,
    transfer: Transfer,
}

impl CudaStaging {
    pub(super) fn context(&self) -> &Context {
        &self.context
    }
}

// SAFETY: the block has at least `bytes` bytes, which the driver gave out as initialised pages of this process; it does
// not move, and is accessed by no one else until it goes back to the pool.
unsafe impl HostMemory for CudaStaging {
    fn start(&self) -> NonNull<u8> {
        self.block.as_ref().map_or(NonNull::dangling(), |block| block.start)
    }

    fn bytes(&self) -> usize {
        self.bytes
    }

    fn device(&self) -> DeviceId {
        self.context.id()
    }

    fn transfer(&self) -> Transfer {
        self.transfer
    }

    fn secrecy(&self) -> Secrecy {
        self.block.as_ref().map_or(Secrecy::Public, |block| block.secrecy)
    }
}

impl Drop for CudaStaging {
    fn drop(&mut self) {
        let Some(block) = self.block.take() else { return };
        match self.staging.upgrade() {
            Some(staging) => staging.shelve(block),
            None => drop(block),
        }
    }
}

/// A copy from or to pinned memory that is under way, or about to be. Dropping it gives the memory back when the copy
/// is known to be done.
pub(super) struct Flight {
    staging: Weak<Staging>,
    stream: Arc<Stream>,
    /// There until `wait` or drop.
    flying: Option<InFlight>,
}

impl Flight {
    /// Call this before the first copy from or to this memory is queued on a stream. From here on the memory stays as
    /// it is until the stream has come past the work it was given meanwhile, whatever fails. A failed call of the
    /// driver may have queued its copy too.
    pub(super) fn new(buffer: HostBuffer, staging: &Arc<Staging>, stream: &Arc<Stream>) -> Self {
        let flying = Some(InFlight { buffer, end: None });
        Self { staging: Arc::downgrade(staging), stream: Arc::clone(stream), flying }
    }

    pub(super) fn memory(&mut self) -> &mut [u8] {
        self.flying.as_mut().map_or(&mut [], |flight| &mut flight.buffer)
    }

    /// The same memory for one more copy behind those that it is in, if it is for both directions and they are on
    /// `stream`.
    pub(super) fn again(mut self: Box<Self>, stream: &Arc<Stream>) -> Result<Self, Box<Self>> {
        match &mut self.flying {
            Some(flight) if flight.buffer.transfer() != Transfer::Upload && Arc::ptr_eq(&self.stream, stream) => {
                flight.end = None;
                Ok(*self)
            }
            _ => Err(self),
        }
    }

    /// Marks the end of the copies.
    pub(super) fn queued(mut self, events: &Arc<Events>) -> Result<Self> {
        if let Some(flight) = &mut self.flying {
            flight.end = Some(events.record(&self.stream, Timing::Off)?);
        }
        Ok(self)
    }
}

impl PendingCopy for Flight {
    fn wait(mut self: Box<Self>) -> Result<HostBuffer> {
        if let Some(flight) = &self.flying {
            self.stream.context().bind()?;
            let is_done = flight.end.as_ref().is_some_and(|end| end.is_done().unwrap_or(true));
            if let (false, Some(staging)) = (is_done, self.staging.upgrade()) {
                staging.reclaim_meanwhile();
            }
            flight.synchronize(&self.stream)?;
        }
        match self.flying.take() {
            Some(flight) => Ok(flight.buffer),
            None => unreachable!("a copy is waited for once"),
        }
    }
}

impl Drop for Flight {
    fn drop(&mut self) {
        let Some(flight) = self.flying.take() else { return };
        match self.staging.upgrade() {
            Some(staging) => staging.fly(&self.stream, flight),
            // The device is closed: whoever held its last handle waited for all other copies.
            None => {
                if self.stream.context().bind().and_then(|()| flight.synchronize(&self.stream)).is_err() {
                    mem::forget(flight);
                }
            }
        }
    }
}
