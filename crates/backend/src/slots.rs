//! Device memory for several pieces of data, which take it in turn.

use std::{collections::VecDeque, ops::Range};

use crate::{
    buffer::{Buffer, Element},
    device::Device,
    error::{Error, Result},
    host::{HostBuffer, Pending},
    queue::Queue,
    secrecy::Secrecy,
};

/// The argument of [`Slot::queue`] in errors.
pub(crate) const HOST: &str = "the host memory of a pipeline";

/// The slots of a [`crate::PinnedPipeline`], a [`crate::BytePipeline`] or a [`crate::Prefetch`]. Pieces take them in
/// turn.
pub(crate) struct Slots<T: Element> {
    /// The first one is next.
    idle: VecDeque<Slot<T>>,
    /// Oldest first.
    busy: VecDeque<(Slot<T>, Vec<Pending>)>,
}

/// Device memory of a piece, and the queue of its copies. All other work on the piece is on the same queue, but for
/// some of [`crate::Prefetch`].
pub(crate) struct Slot<T: Element> {
    /// The first piece gets slot 0.
    pub(crate) number: usize,
    pub(crate) queue: Queue,
    pub(crate) data: Buffer<T>,
}

impl<T: Element> Slots<T> {
    /// Makes `slots` slots with memory of `len` elements each.
    pub(crate) fn new(device: &Device, len: usize, slots: usize, secrecy: Secrecy) -> Result<Self> {
        Self::of((0..slots).map(|_| Ok((device.queue()?, device.alloc_with(len, secrecy)?))))
    }

    /// Makes slots of these queues and memories.
    pub(crate) fn of(slots: impl Iterator<Item = Result<(Queue, Buffer<T>)>>) -> Result<Self> {
        let slots = slots.enumerate().map(|(number, slot)| slot.map(|(queue, data)| Slot { number, queue, data }));
        Ok(Self { idle: slots.collect::<Result<_>>()?, busy: VecDeque::new() })
    }

    /// The queues of the idle slots, the next one first.
    pub(crate) fn queues(&self) -> impl Iterator<Item = &Queue> {
        self.idle.iter().map(|slot| &slot.queue)
    }

    /// Waits for the oldest result if no slot is idle, and gives it.
    pub(crate) fn free(&mut self) -> Result<Option<Vec<HostBuffer>>> {
        if self.idle.is_empty() { self.next() } else { Ok(None) }
    }

    /// Waits for the oldest result, if there is one, and gives it.
    pub(crate) fn next(&mut self) -> Result<Option<Vec<HostBuffer>>> {
        let Some((slot, pending)) = self.busy.pop_front() else { return Ok(None) };
        self.idle.push_back(slot);
        pending.into_iter().map(Pending::wait).collect::<Result<_>>().map(Some)
    }

    /// The slot of the next piece. Call [`Slots::free`] before.
    pub(crate) fn first(&mut self) -> &mut Slot<T> {
        let Some(slot) = self.idle.front_mut() else { unreachable!("the oldest slot has become idle") };
        slot
    }

    /// The number of busy slots.
    pub(crate) fn busy(&self) -> usize {
        self.busy.len()
    }

    /// Marks the slot of the next piece as busy until these results are there.
    pub(crate) fn begin(&mut self, results: Vec<Pending>) {
        self.busy.extend(self.idle.pop_front().map(|slot| (slot, results)));
    }
}

impl<T: Element> Slot<T> {
    /// See [`crate::PinnedPipeline::run`].
    pub(crate) fn queue<E: From<Error>>(
        &mut self,
        host: Vec<HostBuffer>,
        work: impl FnOnce(&Queue, &mut Buffer<T>) -> Result<Range<usize>, E>,
    ) -> Result<Vec<Pending>, E> {
        let Self { queue, data, .. } = self;
        let memory = data.bytes();
        let mut lengths = Vec::with_capacity(host.len());
        let mut len = 0usize;
        for part in &host {
            let elements = part.len() / T::BYTES;
            len = len.saturating_add(elements);
            if elements * T::BYTES != part.len() || len > data.len() {
                return Err(Error::Length { what: HOST, expected: memory, actual: part.len() as u64 }.into());
            }
            lengths.push(elements);
        }
        let mut writes = Vec::with_capacity(host.len());
        let mut at = 0;
        for (part, len) in host.into_iter().zip(&lengths) {
            writes.push(queue.write_pinned(data.view_mut(at..at + len)?, part)?);
            at += len;
        }
        let back = work(queue, data)?;
        let back = data.view(back)?;
        if back.len() != len {
            let (expected, actual) = ((len * T::BYTES) as u64, back.bytes());
            return Err(Error::Length { what: HOST, expected, actual }.into());
        }
        let mut at = 0;
        let read = |(write, len): (Pending, usize)| {
            at += len;
            queue.read_pinned_after(back.view(at - len..at)?, write)
        };
        Ok(writes.into_iter().zip(lengths).map(read).collect::<Result<_>>()?)
    }
}
