//! Pinned host memory, kept for reuse.
//!
//! A buffer that nobody waits for stands behind its transfer's event, in a line for each stream, until the copy is done.
//! Lines are looked through when memory is asked for: there is no thread for it. A block returns to its pool, zeroed if it
//! is secret, when the last buffer of it is gone.

use std::{
    collections::VecDeque,
    mem,
    ptr::{self, NonNull},
    slice,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
};

use cudarc::driver::sys::{self, CU_MEMHOSTALLOC_WRITECOMBINED, CUresult};

use super::{
    driver::{Context, call},
    stream::{Event, Events, Stream, Timing},
};
use crate::{
    DeviceId, Error, HostBuffer, HostMemory, PendingCopy, Result, Secrecy, Transfer, erase::erase, pool::Pool,
};

/// Bytes under transfer at which the host waits for the oldest copy, and bytes kept for each direction: more than two
/// milliseconds of copies at 55 GB/s, so that the link never runs dry. Pinning more would only delay the first uploads.
const BUDGET: u64 = 128 << 20;

/// Pinned memory comes in pages.
const PAGE: u64 = 4096;

/// The pinned memory of a device.
pub(super) struct Staging {
    context: Arc<Context>,
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
    buffers: VecDeque<(Event, HostBuffer)>,
}

impl Staging {
    pub(super) fn new(context: &Arc<Context>) -> Arc<Self> {
        Arc::new(Self {
            context: Arc::clone(context),
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

    /// Keeps a buffer until an event of a stream.
    fn fly(&self, stream: &Arc<Stream>, event: Event, buffer: HostBuffer) {
        let mut flying = self.flying();
        flying.bytes += buffer.len() as u64;
        match flying.lines.iter_mut().find(|line| Arc::ptr_eq(&line.stream, stream)) {
            Some(line) => line.buffers.push_back((event, buffer)),
            None => flying.lines.push(Line { stream: Arc::clone(stream), buffers: [(event, buffer)].into() }),
        }
    }

    /// Takes back the buffers whose transfers are done.
    pub(super) fn reclaim(&self) {
        let mut done = Vec::new();
        let mut flying = self.flying();
        for line in &mut flying.lines {
            // On a lost device nothing runs any more.
            while line.buffers.front().is_some_and(|(event, _)| event.is_done().unwrap_or(true)) {
                done.extend(line.buffers.pop_front());
            }
        }
        flying.bytes -= done.iter().map(|(_, buffer)| buffer.len() as u64).sum::<u64>();
        flying.lines.retain(|line| !line.buffers.is_empty());
        // Zeroing secrets takes its time.
        drop(flying);
        drop(done);
    }

    /// Waits until at most `limit` bytes are under transfer.
    fn keep_to(&self, limit: u64) -> Result<()> {
        while let Some((event, buffer)) = self.oldest_beyond(limit) {
            let waited = event.synchronize();
            drop(buffer);
            waited?;
        }
        Ok(())
    }

    fn oldest_beyond(&self, limit: u64) -> Option<(Event, HostBuffer)> {
        let mut flying = self.flying();
        if flying.bytes <= limit {
            return None;
        }
        let oldest = flying.lines.first_mut()?.buffers.pop_front()?;
        flying.bytes -= oldest.1.len() as u64;
        flying.lines.retain(|line| !line.buffers.is_empty());
        Some(oldest)
    }

    /// Puts an unused block into its pool.
    fn shelve(&self, mut block: Block) {
        block.wipe();
        drop(self.pool(block.transfer).give(block.class, block));
    }

    /// Gives the memory that waits for reuse back to the system.
    pub(super) fn trim(&self) {
        self.reclaim();
        drop((self.uploads.drain(), self.downloads.drain()));
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
        if self.context.bind().is_ok()
            && let Err(error) = self.keep_to(0)
        {
            log::debug!("a transfer failed: {error}");
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
        match unsafe { sys::cuMemHostAlloc(&mut start, size, flags) } {
            CUresult::CUDA_ERROR_OUT_OF_MEMORY => return Ok(None),
            result => context.check("cuMemHostAlloc", result)?,
        }
        let Some(start) = NonNull::new(start.cast()) else { return Ok(None) };
        Ok(Some(Self { context: Arc::clone(context), start, class, transfer, secrecy: Secrecy::Public }))
    }

    /// Zeroes a secret block that no transfer uses.
    fn wipe(&mut self) {
        if self.secrecy == Secrecy::Secret {
            // SAFETY: the block has `class` bytes and is borrowed exclusively; no buffer of it is left.
            erase(unsafe { slice::from_raw_parts_mut(self.start.as_ptr(), self.class as usize) });
            self.secrecy = Secrecy::Public;
        }
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        self.wipe();
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

// SAFETY: the block has at least `bytes` bytes, which the driver gave out as initialised pages of this process; it does not
// move, and is accessed by no one else until it goes back to the pool.
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

/// A copy from or to pinned memory that is under way. Dropping it gives the memory back when the copy is done.
pub(super) struct Flight {
    staging: Weak<Staging>,
    stream: Arc<Stream>,
    /// There until `wait` or drop.
    flying: Option<(Event, HostBuffer)>,
}

impl Flight {
    /// To be called when a copy from or to this memory was queued on a stream: the memory stays as it is until the copy
    /// is done, whatever becomes of the result.
    pub(super) fn of(
        buffer: HostBuffer,
        staging: &Arc<Staging>,
        stream: &Arc<Stream>,
        events: &Arc<Events>,
    ) -> Result<Self> {
        match events.record(stream, Timing::Off) {
            Ok(event) => {
                Ok(Self { staging: Arc::downgrade(staging), stream: Arc::clone(stream), flying: Some((event, buffer)) })
            }
            Err(error) => {
                // Without an event, only an idle stream tells that the copy is done. Where that fails too, the memory
                // must not be reused: it goes with the device.
                if stream.synchronize().is_err() {
                    mem::forget(buffer);
                }
                Err(error)
            }
        }
    }
}

impl PendingCopy for Flight {
    fn wait(mut self: Box<Self>) -> Result<HostBuffer> {
        if let Some((event, _)) = &self.flying {
            event.context().bind()?;
            event.synchronize()?;
        }
        match self.flying.take() {
            Some((_, buffer)) => Ok(buffer),
            None => unreachable!("a copy is waited for once"),
        }
    }
}

impl Drop for Flight {
    fn drop(&mut self) {
        let Some((event, buffer)) = self.flying.take() else { return };
        match self.staging.upgrade() {
            Some(staging) => staging.fly(&self.stream, event, buffer),
            // The device is closed: whoever held its last handle waited for all other copies.
            None => {
                if event.context().bind().and_then(|()| event.synchronize()).is_err() {
                    mem::forget(buffer);
                }
            }
        }
    }
}
