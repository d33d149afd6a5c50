//! Device memory: allocations made of chunks, and operations split at the chunks' borders.

use std::sync::{Arc, atomic::Ordering};

use super::gpu::Gpu;
use crate::{
    error::{Error, Result},
    handles::{Memory, own},
    pool::Pool,
    secrecy::Secrecy,
};

/// Bytes of the longest words in which kernels see memory.
const WORD_BYTES: u64 = 16;

/// An allocation: chunks of the device's chunk size. The last may be smaller. Each is a size class of the pool.
pub(super) struct WgpuMemory {
    gpu: Arc<Gpu>,
    chunks: Vec<wgpu::Buffer>,
    bytes: u64,
    secrecy: Secrecy,
}

impl WgpuMemory {
    pub(super) fn new(gpu: &Arc<Gpu>, bytes: u64, secrecy: Secrecy) -> Result<Self> {
        let limit = gpu.info.limits.buffer_bytes;
        if bytes > limit {
            return Err(Error::TooLarge { what: "allocation", device: gpu.info.id, expected: limit, actual: bytes });
        }
        let mut memory = Self { gpu: Arc::clone(gpu), chunks: Vec::new(), bytes, secrecy };
        let mut left = bytes;
        loop {
            let chunk = left.min(gpu.chunk_bytes);
            match gpu.take_or_create(Pool::<()>::class(chunk), bytes) {
                Ok(buffer) => memory.push(buffer),
                Err(error) => {
                    memory.release();
                    return Err(error);
                }
            }
            left -= chunk;
            if left == 0 {
                return Ok(memory);
            }
        }
    }

    /// The memory behind a handle, if it is of this device.
    pub(super) fn of<'a>(memory: &'a Memory, gpu: &Arc<Gpu>) -> Result<&'a Self> {
        let memory = own(memory.downcast_ref::<Self>(), "memory", &gpu.info)?;
        gpu.expect_same("memory", &memory.gpu)?;
        Ok(memory)
    }

    pub(super) fn chunks(&self) -> &[wgpu::Buffer] {
        &self.chunks
    }

    pub(super) fn secrecy(&self) -> Secrecy {
        self.secrecy
    }

    /// What is bound of the memory for a view of `bytes` bytes from `at` on.
    pub(super) fn window(&self, at: u64, bytes: u64) -> Window<'_> {
        let size = self.gpu.chunk_bytes;
        let whole = |first: usize, end: usize| {
            let chunks = &self.chunks[first..end];
            Window { chunks, range: None, base: at - first as u64 * size }
        };
        if bytes == 0 {
            // Nothing of it is touched, but a binding is never empty.
            return Window { base: 0, ..whole(0, 1) };
        }
        let (first, last) = ((at / size) as usize, ((at + bytes - 1) / size) as usize);
        if first < last {
            return whole(first, last + 1);
        }
        let within = at % size;
        let offset = within / self.gpu.storage_align * self.gpu.storage_align;
        // To the end of a whole word of any size, which an allocation has.
        let end = (within + bytes).next_multiple_of(WORD_BYTES);
        let chunks = &self.chunks[first..=first];
        Window { chunks, range: Some((offset, end - offset)), base: within - offset }
    }

    /// Checks a range that the device reads, and rounds its length up to whole words: chunks end in whole words.
    pub(super) fn source(&self, what: &'static str, at: u64, bytes: u64) -> Result<u64> {
        self.expect_range(what, at, bytes)?;
        if at.is_multiple_of(4) { Ok(bytes.next_multiple_of(4)) } else { Err(self.unaligned(what, at, bytes)) }
    }

    /// Checks a range that the device writes, and rounds its length up to whole words, which it may be only where
    /// nothing follows.
    pub(super) fn target(&self, what: &'static str, at: u64, bytes: u64) -> Result<u64> {
        self.expect_range(what, at, bytes)?;
        if at.is_multiple_of(4) && (bytes.is_multiple_of(4) || at + bytes == self.bytes) {
            return Ok(bytes.next_multiple_of(4));
        }
        Err(self.unaligned(what, at, bytes))
    }

    fn expect_range(&self, what: &'static str, offset: u64, count: u64) -> Result<()> {
        match offset.checked_add(count) {
            Some(end) if end <= self.bytes => Ok(()),
            _ => Err(Error::OutOfRange { what, offset, count, len: self.bytes }),
        }
    }

    fn unaligned(&self, call: &'static str, at: u64, bytes: u64) -> Error {
        Error::Driver {
            device: self.gpu.info.id,
            call,
            reason: format!("{bytes} bytes from byte {at} on are not whole 32-bit words"),
        }
    }

    /// The pieces of `bytes` bytes from `at` on, one for each chunk that they touch.
    pub(super) fn pieces(&self, at: u64, bytes: u64) -> impl Iterator<Item = Piece<'_>> {
        let size = self.gpu.chunk_bytes;
        let mut done = 0;
        std::iter::from_fn(move || {
            let (chunk, offset) = ((at + done) / size, (at + done) % size);
            let len = (size - offset).min(bytes - done);
            let buffer = self.chunks.get(chunk as usize).filter(|_| len > 0)?;
            let piece = Piece { buffer, offset, len, done };
            done += len;
            Some(piece)
        })
    }

    fn push(&mut self, buffer: wgpu::Buffer) {
        let counters = &self.gpu.counters;
        let live = counters.live.fetch_add(buffer.size(), Ordering::Relaxed) + buffer.size();
        counters.peak.fetch_max(live, Ordering::Relaxed);
        self.chunks.push(buffer);
    }

    /// Gives the chunks back to the system instead of the pool.
    fn release(&mut self) {
        for buffer in self.chunks.drain(..) {
            self.gpu.counters.live.fetch_sub(buffer.size(), Ordering::Relaxed);
        }
    }
}

impl Drop for WgpuMemory {
    fn drop(&mut self) {
        if self.secrecy == Secrecy::Secret {
            // Submitted at once: secrets shall not wait for the next batch.
            let cleared = self.gpu.record_and_submit(|recorder, device| {
                for buffer in &self.chunks {
                    recorder.encoder(device).clear_buffer(buffer, 0, None);
                }
            });
            if cleared.is_err() {
                // A lost device: its memory is out of everyone's reach, but must not come back from the pool.
                return self.release();
            }
        }
        for buffer in self.chunks.drain(..) {
            let bytes = buffer.size();
            self.gpu.counters.live.fetch_sub(bytes, Ordering::Relaxed);
            drop(self.gpu.buffers.give(bytes, buffer));
        }
    }
}

/// What is bound for a view: whole chunks, or a range of one.
pub(super) struct Window<'a> {
    pub(super) chunks: &'a [wgpu::Buffer],
    /// Where the range of the one chunk starts, and its bytes.
    pub(super) range: Option<(u64, u64)>,
    /// Bytes from the start of what is bound to the view's.
    pub(super) base: u64,
}

/// A part of an operation, within one chunk.
pub(super) struct Piece<'a> {
    pub(super) buffer: &'a wgpu::Buffer,
    /// Where the piece starts in its chunk.
    pub(super) offset: u64,
    pub(super) len: u64,
    /// Bytes of the operation before this piece.
    pub(super) done: u64,
}

/// The pieces of a copy: each lies within one chunk of the source and one of the target.
pub(super) fn copy_pieces<'a>(
    (src, src_at): (&'a WgpuMemory, u64),
    (dst, dst_at): (&'a WgpuMemory, u64),
    bytes: u64,
) -> impl Iterator<Item = (Piece<'a>, Piece<'a>)> {
    src.pieces(src_at, bytes)
        .flat_map(move |from| dst.pieces(dst_at + from.done, from.len).map(move |to| (from.part(to.done, to.len), to)))
}

impl<'a> Piece<'a> {
    fn part(&self, skip: u64, len: u64) -> Piece<'a> {
        Piece { buffer: self.buffer, offset: self.offset + skip, len, done: self.done + skip }
    }
}
