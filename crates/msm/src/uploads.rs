//! Scalars from the host.

use std::ops::Range;

use evariste_backend::{Buffer, Device, Event, Queue, Secrecy, View};
use evariste_field::{DevicePrimeField, Mont};

use crate::Result;

/// Memory for pieces: one is uploaded while the device works on another.
const SLOTS: usize = 2;

/// Scalars on their way to a device, piece by piece. With several pieces on a queue of their own, so that the device works on
/// one while the next comes.
pub(crate) struct Uploads<'a, F: DevicePrimeField> {
    device: &'a Device,
    host: &'a [F],
    pieces: Vec<Range<usize>>,
    slots: Vec<Slot<F>>,
    /// Where the device works.
    work: Option<&'a Queue>,
    /// Where several pieces come.
    queue: Option<Queue>,
}

struct Slot<F: DevicePrimeField> {
    scalars: Buffer<Mont<F>>,
    /// When the piece that lies there has been read.
    free: Option<Event>,
}

impl<'a, F: DevicePrimeField> Uploads<'a, F> {
    /// For work on a queue (`None`: the default one).
    pub(crate) fn new(
        device: &'a Device,
        work: Option<&'a Queue>,
        host: &'a [F],
        pieces: Vec<Range<usize>>,
        secrecy: Secrecy,
    ) -> Result<Self> {
        let queue = if pieces.len() > 1 { Some(device.queue()?) } else { None };
        // All memory now: what is allocated later comes behind the work that has been queued by then.
        let slot = |slot| {
            let len = pieces.iter().skip(slot).step_by(SLOTS).map(Range::len).max().unwrap_or(0);
            Ok(Slot { scalars: device.alloc_with(len, secrecy)?, free: None })
        };
        let slots = (0..SLOTS.min(pieces.len())).map(slot).collect::<Result<_>>()?;
        Ok(Self { device, host, pieces, slots, work, queue })
    }

    /// Calls `read` with the scalars of a piece. What it queues where the device works finds them there.
    pub(crate) fn with(&mut self, piece: usize, read: impl FnOnce(View<'_, Mont<F>>) -> Result<()>) -> Result<()> {
        let (queue, place, host) = (self.queue.as_ref(), piece % SLOTS, &self.host[self.pieces[piece].clone()]);
        let slot = &mut self.slots[place];
        if let Some(free) = slot.free.take() {
            self.device.wait_for(queue, &free)?;
        }
        slot.scalars.view_mut(..host.len())?.write_on(queue.or(self.work), host)?;
        if queue.is_some() {
            self.device.wait_for(self.work, &self.device.record(queue)?)?;
        }
        read(slot.scalars.view(..host.len())?)?;
        if queue.is_some() {
            slot.free = Some(self.device.record(self.work)?);
        }
        Ok(())
    }
}
