//! Host data through a device in pieces: while one piece is worked on, the next comes and the last one goes.
//!
//! Each stage has a queue, a piece of device memory, and pinned host memory for either direction that lives as long as the
//! ring: it is zeroed once at the end, not piece by piece. Data is copied once on the host in each direction, by all
//! cores, or not at all where it is pinned already.

use std::{mem, ops::Range};

use evariste_backend::{Buffer, HostBuffer, Pending, Queue, Secrecy, Transfer};
use rayon::prelude::*;

use crate::{Aes, Result, cpu::BLOCK};

/// Bytes that one thread copies at a time: they stay in its second cache.
const COPY_GRAIN: usize = 256 << 10;

/// Pieces of data of known length that a stage takes at least, so that there is something to overlap.
const ROUNDS: usize = 2;

/// Bytes under which pieces are not cut smaller: at 50 GB/s a copy takes as long as its launch then.
const MIN_PIECE: usize = 512 << 10;

/// Pieces of device memory, each with a queue of its own where the device has several.
pub(crate) struct Ring<'a> {
    aes: &'a Aes,
    stages: Vec<Stage>,
    piece_bytes: usize,
    /// What memory for uploads is for. Readers may read what they have written, at a crawl from memory for uploads only.
    up: Transfer,
}

struct Stage {
    queue: Queue,
    buffer: Buffer<u8>,
    /// Host memory on its way up, or back from there.
    up: Option<Pending>,
    /// Host memory on its way down, and the part of the data that it is for.
    down: Option<(Pending, Range<usize>)>,
}

impl<'a> Ring<'a> {
    /// For data of a known length, in pieces that are multiples of `unit`, itself one of blocks.
    pub(crate) fn for_len(aes: &'a Aes, len: usize, unit: usize) -> Result<Self> {
        let (queues, chunk) = (aes.config().queue_count(), aes.config().piece_bytes());
        // Powers of two, so that rings for data of all lengths find the host memory of earlier ones in its pool.
        let even = len.div_ceil(ROUNDS * queues).next_power_of_two().max(MIN_PIECE);
        let piece_bytes = chunk.min(even).next_multiple_of(unit).max(unit);
        Self::new(aes, piece_bytes, queues.min(len.div_ceil(piece_bytes)).max(1), Transfer::Upload)
    }

    /// For readers.
    pub(crate) fn for_stream(aes: &'a Aes) -> Result<Self> {
        Self::new(aes, aes.config().piece_bytes(), aes.config().queue_count(), Transfer::Both)
    }

    fn new(aes: &'a Aes, piece_bytes: usize, stages: usize, up: Transfer) -> Result<Self> {
        let stage = |_| -> Result<Stage> {
            let queue = aes.device().queue()?;
            let buffer = aes.device().alloc_with::<u8>(piece_bytes, Secrecy::Secret)?;
            Ok(Stage { queue, buffer, up: None, down: None })
        };
        Ok(Self { aes, stages: (0..stages).map(stage).collect::<Result<_>>()?, piece_bytes, up })
    }

    /// Bytes of a piece. Only the last one may be shorter.
    pub(crate) fn piece_bytes(&self) -> usize {
        self.piece_bytes
    }

    /// Uploads `data` piece by piece, queues `work` on (queue, piece, where it starts in the data, its bytes), and
    /// downloads the result to where it came from. `done` sees the results in order.
    pub(crate) fn run(
        &mut self,
        data: &mut [u8],
        work: impl Fn(&Queue, &mut Buffer<u8>, usize, usize) -> Result<()> + Sync,
        done: impl FnMut(&[u8]) + Send,
    ) -> Result<()> {
        // On one of the pool's threads from the start, instead of entering the pool and waking for every piece.
        rayon::scope(|_| self.run_in_pool(data, &work, done))
    }

    fn run_in_pool(
        &mut self,
        data: &mut [u8],
        work: &(impl Fn(&Queue, &mut Buffer<u8>, usize, usize) -> Result<()> + Sync),
        mut done: impl FnMut(&[u8]) + Send,
    ) -> Result<()> {
        let count = self.stages.len();
        let pieces = data.len().div_ceil(self.piece_bytes);
        for i in 0..pieces + count {
            let start = data.len().min(i * self.piece_bytes);
            let (before, rest) = data.split_at_mut(start);
            let len = rest.len().min(self.piece_bytes);
            let next = &rest[..len];
            let finished = self.stages[i % count].finished()?;
            // The next piece goes up as soon as it is copied, while the last one of this stage is still being copied out.
            let send = || {
                if len == 0 {
                    return Ok(());
                }
                let mut host = self.host_for_upload(i % count, len)?;
                copy(next, &mut host);
                let stage = &mut self.stages[i % count];
                stage.send(host)?;
                work(&stage.queue, &mut stage.buffer, start, len)
            };
            let store = || {
                if let Some((host, range)) = &finished {
                    copy(host, &mut before[range.clone()]);
                    done(host);
                }
            };
            rayon::join(send, store).0?;
            self.receive(i % count, finished.map(|(host, _)| host), start..start + len)?;
        }
        Ok(())
    }

    /// Takes `input` to its end piece by piece: `work` is queued on (queue, piece, where it starts, its bytes), and
    /// `done` gets the results in order. A piece that `input` does not fill is the last one.
    pub(crate) fn pump(
        &mut self,
        mut input: impl FnMut(&mut [u8]) -> Result<usize>,
        work: impl Fn(&Queue, &mut Buffer<u8>, u64, usize) -> Result<()>,
        mut done: impl FnMut(&[u8]) -> Result<()>,
    ) -> Result<()> {
        let count = self.stages.len();
        let (mut at, mut i, mut last) = (0, 0, usize::MAX);
        while i < last.saturating_add(count) {
            let mut len = 0;
            if i < last {
                let mut host = self.host_for_upload(i % count, self.piece_bytes)?;
                len = input(&mut host)?;
                if len < host.len() {
                    last = i + 1;
                }
                if len > 0 {
                    drop(host.split_off(len));
                    let stage = &mut self.stages[i % count];
                    stage.send(host)?;
                    work(&stage.queue, &mut stage.buffer, at, len)?;
                }
            }
            let finished = self.stages[i % count].finished()?.map(|(host, _)| host);
            if let Some(host) = &finished {
                done(host)?;
            }
            self.receive(i % count, finished, 0..len)?;
            at += len as u64;
            i += 1;
        }
        Ok(())
    }

    /// [`Ring::run`] on pinned memory, which goes up and comes back without a copy on the host. Where the device fails,
    /// `data` is left empty: its parts were lost with the copies.
    pub(crate) fn run_pinned(
        &mut self,
        data: &mut HostBuffer,
        work: impl Fn(&Queue, &mut Buffer<u8>, usize, usize) -> Result<()>,
    ) -> Result<()> {
        let count = self.stages.len();
        let mut rest = data.split_off(0);
        let (mut start, mut done) = (0, Vec::new());
        for i in 0.. {
            let len = rest.len().min(self.piece_bytes);
            if len == 0 {
                break;
            }
            let stage = &mut self.stages[i % count];
            stage.turn()?;
            done.extend(stage.finished()?.map(|(host, _)| host));
            let tail = rest.split_off(len);
            stage.send(mem::replace(&mut rest, tail))?;
            work(&stage.queue, &mut stage.buffer, start, len)?;
            start += len;
            // Queued only now, so that the link has the next piece while the host waits for this one's upload.
            if i > 0 {
                self.stages[(i - 1) % count].turn()?;
            }
        }
        let pieces = start.div_ceil(self.piece_bytes);
        for i in pieces..pieces + count {
            let stage = &mut self.stages[i % count];
            stage.turn()?;
            done.extend(stage.finished()?.map(|(host, _)| host));
        }
        // Where a part does not belong, there is a defect in the lines above.
        done.into_iter().for_each(|part| assert!(data.join(part).is_ok(), "parts come back in order"));
        Ok(())
    }

    /// Host memory of a stage for the next `len` bytes.
    fn host_for_upload(&mut self, stage: usize, len: usize) -> Result<HostBuffer> {
        let mut host = match self.stages[stage].up.take() {
            Some(pending) => pending.wait()?,
            None => self.aes.device().host_buffer(self.piece_bytes, self.up, Secrecy::Secret)?,
        };
        drop(host.split_off(len));
        Ok(host)
    }

    /// Queues the download of what a stage works on.
    fn receive(&mut self, stage: usize, host: Option<HostBuffer>, range: Range<usize>) -> Result<()> {
        if range.is_empty() {
            return Ok(());
        }
        let mut host = match host {
            Some(host) => host,
            None => self.aes.device().host_buffer(self.piece_bytes, Transfer::Download, Secrecy::Secret)?,
        };
        drop(host.split_off(range.len()));
        let stage = &mut self.stages[stage];
        stage.down = Some((stage.buffer.view(..host.len())?.read_pinned(Some(&stage.queue), host)?, range));
        Ok(())
    }
}

impl Stage {
    /// Queues the upload of a piece.
    fn send(&mut self, host: HostBuffer) -> Result<()> {
        if !host.len().is_multiple_of(BLOCK) {
            // The last piece. Devices write part of a word only where a buffer ends, and kernels read whole blocks: what is
            // behind the end of a buffer has a value, what an earlier piece might have written need not have one.
            self.buffer = self.buffer.device().alloc_with(host.len(), Secrecy::Secret)?;
        }
        self.up = Some(self.buffer.view_mut(..host.len())?.write_pinned(Some(&self.queue), host)?);
        Ok(())
    }

    /// Waits for the result that is on its way, if there is one, and tells where it belongs.
    fn finished(&mut self) -> Result<Option<(HostBuffer, Range<usize>)>> {
        self.down.take().map(|(pending, range)| Ok((pending.wait()?, range))).transpose()
    }

    /// Sends pinned memory that has arrived back down for the result.
    fn turn(&mut self) -> Result<()> {
        let Some(pending) = self.up.take() else { return Ok(()) };
        let host = pending.wait()?;
        let range = 0..host.len();
        self.down = Some((self.buffer.view(range.clone())?.read_pinned(Some(&self.queue), host)?, range));
        Ok(())
    }
}

fn copy(from: &[u8], to: &mut [u8]) {
    let pairs = to.par_chunks_mut(COPY_GRAIN).zip(from.par_chunks(COPY_GRAIN));
    pairs.for_each(|(to, from)| to.copy_from_slice(from));
}
