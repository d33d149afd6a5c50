//! Pinned host memory, kept for reuse.
//!
//! A block given to a transfer waits behind that transfer's event, in a line for each stream, until the copy is done.
//! Lines are looked through when memory is asked for: there is no thread for it.

use std::{
    any::Any,
    collections::VecDeque,
    mem,
    ptr::{self, NonNull},
    slice,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use cudarc::driver::sys::{self, CU_MEMHOSTALLOC_WRITECOMBINED, CUresult};

use super::{
    driver::{Context, call},
    stream::{Event, Events, Stream, Timing},
};
use crate::{Error, HostBuffer, HostMemory, PendingRead, Result, Secrecy, Transfer, erase::erase, pool::Pool};

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

/// Blocks under transfer.
#[derive(Default)]
struct Flying {
    lines: Vec<Line>,
    bytes: u64,
}

/// Blocks under transfer on one stream, oldest first. Never empty.
struct Line {
    stream: Arc<Stream>,
    blocks: VecDeque<(Event, Block)>,
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
        Ok(CudaStaging { staging: Arc::clone(self), block: Some(block), bytes })
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

    /// Keeps a block until an event of a stream.
    fn fly(&self, stream: &Arc<Stream>, event: Event, block: Block) {
        let mut flying = self.flying();
        flying.bytes += block.class;
        match flying.lines.iter_mut().find(|line| Arc::ptr_eq(&line.stream, stream)) {
            Some(line) => line.blocks.push_back((event, block)),
            None => flying.lines.push(Line { stream: Arc::clone(stream), blocks: [(event, block)].into() }),
        }
    }

    /// Takes back the blocks whose transfers are done.
    pub(super) fn reclaim(&self) {
        let mut done = Vec::new();
        let mut flying = self.flying();
        for line in &mut flying.lines {
            // On a lost device nothing runs any more.
            while line.blocks.front().is_some_and(|(event, _)| event.is_done().unwrap_or(true)) {
                done.extend(line.blocks.pop_front());
            }
        }
        flying.bytes -= done.iter().map(|(_, block)| block.class).sum::<u64>();
        flying.lines.retain(|line| !line.blocks.is_empty());
        drop(flying);
        done.into_iter().for_each(|(_, block)| self.shelve(block));
    }

    /// Waits until at most `limit` bytes are under transfer.
    fn keep_to(&self, limit: u64) -> Result<()> {
        while let Some((event, block)) = self.oldest_beyond(limit) {
            let waited = event.synchronize();
            self.shelve(block);
            waited?;
        }
        Ok(())
    }

    fn oldest_beyond(&self, limit: u64) -> Option<(Event, Block)> {
        let mut flying = self.flying();
        if flying.bytes <= limit {
            return None;
        }
        let oldest = flying.lines.first_mut()?.blocks.pop_front()?;
        flying.bytes -= oldest.1.class;
        flying.lines.retain(|line| !line.blocks.is_empty());
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
            Transfer::Download => &self.downloads,
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

impl Block {
    /// `None` when memory is exhausted.
    fn new(context: &Arc<Context>, class: u64, transfer: Transfer) -> Result<Option<Self>> {
        let Ok(size) = usize::try_from(class) else { return Ok(None) };
        // Write-combined memory goes over the link faster, but the host reads it at a crawl.
        let flags = match transfer {
            Transfer::Upload => CU_MEMHOSTALLOC_WRITECOMBINED,
            Transfer::Download => 0,
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

    fn bytes(&self, len: usize) -> &[u8] {
        assert!(len as u64 <= self.class);
        // SAFETY: the block has `class` bytes, is borrowed, and no transfer writes to it: those own their block.
        unsafe { slice::from_raw_parts(self.start.as_ptr(), len) }
    }

    fn bytes_mut(&mut self, len: usize) -> &mut [u8] {
        assert!(len as u64 <= self.class);
        // SAFETY: as above, and it is borrowed exclusively.
        unsafe { slice::from_raw_parts_mut(self.start.as_ptr(), len) }
    }

    /// Zeroes a secret block that no transfer uses.
    fn wipe(&mut self) {
        if self.secrecy == Secrecy::Secret {
            erase(self.bytes_mut(self.class as usize));
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

/// Pinned memory in the hands of a user. The block is there until a transfer takes it.
pub(super) struct CudaStaging {
    staging: Arc<Staging>,
    block: Option<Block>,
    bytes: usize,
}

impl CudaStaging {
    pub(super) fn context(&self) -> &Context {
        &self.staging.context
    }

    pub(super) fn as_mut_ptr(&mut self) -> *mut u8 {
        self.bytes_mut().as_mut_ptr()
    }

    /// To be called when a copy from or to this memory was queued on a stream: the memory stays as it is until the
    /// copy is done, whatever becomes of the result.
    pub(super) fn fly(mut self, stream: &Arc<Stream>, events: &Arc<Events>) -> Result<Flight> {
        match events.record(stream, Timing::Off) {
            Ok(event) => Ok(Flight { stream: Arc::clone(stream), event: Some(event), target: self }),
            Err(error) => {
                // Without an event, only an idle stream tells that the copy is done. Where that fails too, the memory
                // must not be reused: it goes with the device.
                if stream.synchronize().is_err() {
                    mem::forget(self.block.take());
                }
                Err(error)
            }
        }
    }
}

impl HostMemory for CudaStaging {
    fn bytes(&self) -> &[u8] {
        self.block.as_ref().map_or(&[], |block| block.bytes(self.bytes))
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        self.block.as_mut().map_or(&mut [], |block| block.bytes_mut(self.bytes))
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any + Send> {
        self
    }
}

impl Drop for CudaStaging {
    fn drop(&mut self) {
        if let Some(block) = self.block.take() {
            self.staging.shelve(block);
        }
    }
}

/// A copy from or to pinned memory that is under way. Dropping it gives the memory back when the copy is done.
pub(super) struct Flight {
    stream: Arc<Stream>,
    /// There until `wait` or drop.
    event: Option<Event>,
    target: CudaStaging,
}

impl PendingRead for Flight {
    fn wait(mut self: Box<Self>) -> Result<HostBuffer> {
        if let Some(event) = &self.event {
            event.context().bind()?;
            event.synchronize()?;
        }
        self.event = None;
        let staging = Arc::clone(&self.target.staging);
        let (block, bytes) = (self.target.block.take(), self.target.bytes);
        Ok(HostBuffer::new(CudaStaging { staging, block, bytes }))
    }
}

impl Drop for Flight {
    fn drop(&mut self) {
        if let (Some(event), Some(block)) = (self.event.take(), self.target.block.take()) {
            self.target.staging.fly(&self.stream, event, block);
        }
    }
}
