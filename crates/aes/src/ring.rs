//! Host data through a device in pieces: while one piece is worked on, the next comes and the last one goes.

use std::ops::Range;

use evariste_backend::{Arg, Buffer, Pending, Queue, Secrecy, Transfer};
use rayon::prelude::*;
use zeroize::Zeroizing;

use crate::{Aes, Result, cpu::BLOCK};

/// Bytes that one thread copies at a time.
const COPY_GRAIN: usize = 256 << 10;

/// Pieces of device memory, each with a queue of its own where the device has several.
pub(crate) struct Ring<'a> {
    aes: &'a Aes,
    slots: Vec<Slot>,
    piece_bytes: usize,
}

struct Slot {
    queue: Queue,
    buffer: Buffer<u8>,
    pending: Option<(Range<usize>, Pending)>,
}

impl<'a> Ring<'a> {
    pub(crate) fn new(aes: &'a Aes) -> Result<Self> {
        let config = aes.config();
        let piece_bytes = config.chunk_bytes.max(BLOCK).next_multiple_of(BLOCK);
        let slot = |_| -> Result<Slot> {
            let queue = aes.device().queue()?;
            let buffer = aes.device().alloc_with::<u8>(piece_bytes, Secrecy::Secret)?;
            Ok(Slot { queue, buffer, pending: None })
        };
        let slots = (0..config.queues.max(1)).map(slot).collect::<Result<_>>()?;
        Ok(Self { aes, slots, piece_bytes })
    }

    /// Uploads `data` piece by piece, queues `work` on (queue, piece, where it starts in the data, its bytes), and
    /// downloads the result to where it came from.
    pub(crate) fn run(
        &mut self,
        data: &mut [u8],
        work: impl Fn(&Queue, &mut Buffer<u8>, usize, usize) -> Result<()>,
    ) -> Result<()> {
        let count = self.slots.len();
        let mut next = 0;
        for (i, start) in (0..data.len()).step_by(self.piece_bytes).enumerate() {
            let range = start..data.len().min(start + self.piece_bytes);
            let slot = &mut self.slots[i % count];
            slot.finish(data)?;
            slot.buffer.write_on(Some(&slot.queue), 0, &data[range.clone()])?;
            work(&slot.queue, &mut slot.buffer, start, range.len())?;
            slot.read(self.aes, range)?;
            next = i + 1;
        }
        (next..next + count).try_for_each(|i| self.slots[i % count].finish(data))
    }
}

impl Ring<'_> {
    /// Takes `input` to its end piece by piece: `work` is queued on (queue, piece, where it starts, its bytes), and
    /// `done` gets the results in order.
    pub(crate) fn pump(
        &mut self,
        mut input: impl FnMut(&mut [u8]) -> Result<usize>,
        work: impl Fn(&Queue, &mut Buffer<u8>, u64, usize) -> Result<()>,
        mut done: impl FnMut(&[u8]) -> Result<()>,
    ) -> Result<()> {
        let count = self.slots.len();
        let mut host = Zeroizing::new(vec![0; self.piece_bytes]);
        let (mut at, mut next) = (0, 0);
        loop {
            let len = input(&mut host)?;
            if len == 0 {
                break;
            }
            let slot = &mut self.slots[next % count];
            slot.hand_over(&mut done)?;
            slot.buffer.write_on(Some(&slot.queue), 0, &host[..len])?;
            work(&slot.queue, &mut slot.buffer, at, len)?;
            slot.read(self.aes, 0..len)?;
            at += len as u64;
            next += 1;
        }
        (next..next + count).try_for_each(|i| self.slots[i % count].hand_over(&mut done))
    }
}

impl Slot {
    fn hand_over(&mut self, done: &mut impl FnMut(&[u8]) -> Result<()>) -> Result<()> {
        match self.pending.take() {
            Some((_, pending)) => done(&pending.wait()?),
            None => Ok(()),
        }
    }

    fn read(&mut self, aes: &Aes, range: Range<usize>) -> Result<()> {
        let backend = aes.device().backend();
        let staging = backend.host_buffer(range.len(), Transfer::Download, Secrecy::Secret)?;
        let pending = backend.read(&self.queue, Arg::read(&self.buffer).memory(), 0, staging)?;
        self.pending = Some((range, pending));
        Ok(())
    }

    fn finish(&mut self, data: &mut [u8]) -> Result<()> {
        let Some((range, pending)) = self.pending.take() else { return Ok(()) };
        let staging = pending.wait()?;
        data[range]
            .par_chunks_mut(COPY_GRAIN)
            .zip(staging.par_chunks(COPY_GRAIN))
            .for_each(|(to, from)| to.copy_from_slice(from));
        Ok(())
    }
}
