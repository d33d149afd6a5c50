//! Scalars from the host.

use std::ops::Range;

use evariste_backend::{Buffer, Device, Element, Event, HostBuffer, Pending, Queue, Secrecy, View};
use evariste_field::{DevicePrimeField, Mont};

use crate::Result;

/// Memory for pieces: one is uploaded while the device works on another.
const SLOTS: usize = 2;

/// Where they are on the host.
pub(crate) enum Origin<'a, F: DevicePrimeField> {
    Slice(&'a [F]),
    /// In memory that the device copies from itself.
    Pinned {
        /// Those of the pieces that have not been sent.
        left: HostBuffer,
        sent: Vec<Pending>,
    },
}

impl<F: DevicePrimeField> Origin<'_, F> {
    /// Of scalars in device form.
    pub(crate) fn pinned(host: HostBuffer) -> Self {
        Origin::Pinned { left: host, sent: Vec::new() }
    }
}

/// Scalars on their way to a device, piece by piece. With several pieces on a queue of their own, so that the device works on
/// one while the next comes.
pub(crate) struct Uploads<'a, F: DevicePrimeField> {
    device: &'a Device,
    origin: Origin<'a, F>,
    pieces: Vec<Range<usize>>,
    stages: Vec<Stage<F>>,
    /// Where the device works.
    work: Option<&'a Queue>,
    /// Where several pieces come.
    queue: Option<Queue>,
}

struct Stage<F: DevicePrimeField> {
    scalars: Buffer<Mont<F>>,
    /// When the piece that lies there has been read.
    free: Option<Event>,
}

impl<'a, F: DevicePrimeField> Uploads<'a, F> {
    /// For work on a queue (`None`: the default one).
    pub(crate) fn new(
        device: &'a Device,
        work: Option<&'a Queue>,
        origin: Origin<'a, F>,
        pieces: Vec<Range<usize>>,
        secrecy: Secrecy,
    ) -> Result<Self> {
        let queue = if pieces.len() > 1 { Some(device.queue()?) } else { None };
        // All memory now: what is allocated later comes behind the work that has been queued by then.
        let stage = |stage| {
            let len = pieces.iter().skip(stage).step_by(SLOTS).map(Range::len).max().unwrap_or(0);
            Ok(Stage { scalars: device.alloc_with(len, secrecy)?, free: None })
        };
        let stages = (0..SLOTS.min(pieces.len())).map(stage).collect::<Result<_>>()?;
        Ok(Self { device, origin, pieces, stages, work, queue })
    }

    /// Calls `read` with the scalars of a piece, the next one each time. What it queues where the device works finds them there.
    pub(crate) fn with(&mut self, piece: usize, read: impl FnOnce(View<'_, Mont<F>>) -> Result<()>) -> Result<()> {
        let (queue, place, range) = (self.queue.as_ref(), piece % SLOTS, self.pieces[piece].clone());
        let stage = &mut self.stages[place];
        if let Some(free) = stage.free.take() {
            self.device.wait_for(queue, &free)?;
        }
        let len = range.len();
        let mut scalars = stage.scalars.view_mut(..len)?;
        match &mut self.origin {
            Origin::Slice(host) => scalars.write_on(queue.or(self.work), &host[range])?,
            Origin::Pinned { left, sent } => {
                let rest = left.split_off(len * Mont::<F>::BYTES);
                sent.push(scalars.write_pinned(queue.or(self.work), std::mem::replace(left, rest))?);
            }
        }
        if queue.is_some() {
            self.device.wait_for(self.work, &self.device.record(queue)?)?;
        }
        read(stage.scalars.view(..len)?)?;
        if queue.is_some() {
            stage.free = Some(self.device.record(self.work)?);
        }
        Ok(())
    }

    /// The host memory that the scalars came from, when the device has read it, if it was given.
    pub(crate) fn into_pinned(self) -> Result<Option<HostBuffer>> {
        let Origin::Pinned { left, sent } = self.origin else { return Ok(None) };
        let mut whole: Option<HostBuffer> = None;
        for part in sent.into_iter().map(Pending::wait).chain([Ok(left)]) {
            let part = part?;
            match &mut whole {
                Some(whole) => match whole.join(part) {
                    Ok(()) => {}
                    Err(_) => unreachable!("it was split off there"),
                },
                None => whole = Some(part),
            }
        }
        Ok(whole)
    }
}
