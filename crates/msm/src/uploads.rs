//! Scalars from the host.

use std::ops::Range;

use evariste_backend::{Buffer, Device, Event, Queue, Secrecy};
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
    queue: Option<Queue>,
}

struct Slot<F: DevicePrimeField> {
    scalars: Buffer<Mont<F>>,
    /// When the piece that lies there has been read.
    free: Option<Event>,
}

impl<'a, F: DevicePrimeField> Uploads<'a, F> {
    pub(crate) fn new(device: &'a Device, host: &'a [F], pieces: Vec<Range<usize>>, secrecy: Secrecy) -> Result<Self> {
        let queue = if pieces.len() > 1 { Some(device.queue()?) } else { None };
        // All memory now: what is allocated later comes behind the work that has been queued by then.
        let slot = |slot| {
            let len = pieces.iter().skip(slot).step_by(SLOTS).map(Range::len).max().unwrap_or(0);
            Ok(Slot { scalars: device.alloc_with(len, secrecy)?, free: None })
        };
        let slots = (0..SLOTS.min(pieces.len())).map(slot).collect::<Result<_>>()?;
        Ok(Self { device, host, pieces, slots, queue })
    }

    /// Calls `read` with a buffer that begins with the scalars of a piece. What it queues on the default queue finds them there.
    pub(crate) fn with(&mut self, piece: usize, read: impl FnOnce(&Buffer<Mont<F>>) -> Result<()>) -> Result<()> {
        let (queue, place) = (self.queue.as_ref(), piece % SLOTS);
        let slot = &mut self.slots[place];
        if let Some(free) = slot.free.take() {
            self.device.wait_for(queue, &free)?;
        }
        slot.scalars.write_on(queue, 0, &self.host[self.pieces[piece].clone()])?;
        if queue.is_some() {
            self.device.wait_for(None, &self.device.record(queue)?)?;
        }
        read(&slot.scalars)?;
        if queue.is_some() {
            slot.free = Some(self.device.record(None)?);
        }
        Ok(())
    }
}
