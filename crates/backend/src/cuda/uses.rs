//! The order of uses of one memory on several streams.
//!
//! Memory remembers up to which position each stream uses it ([`Stream::give`]). What is given to one stream waits for what was
//! given to others before, where both touch the same bytes and one of them writes: by an event at the present end of the other
//! stream, unless the stream comes after that position already. Where callers order streams by events of their own, which end
//! sooner, nothing is added.
//!
//! Memory is the default stream's until another one uses it: till then a use takes no lock, and its position stands for all
//! bytes. From then on, memory knows of each stream one range that it writes and one that it reads, which hold all that it
//! touches: streams that take parts in turns may wait for each other without need, never too little.
//!
//! A use is noted when the driver has been given it, so that an event which is marked after its position comes after it. Uses of
//! which one writes are never given at the same time: whoever writes has borrowed the bytes exclusively.

use std::{
    ops::Range,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

use super::stream::{Event, Events, Stream};
use crate::{Access, Result};

/// Bytes of an allocation, and up to which position of a stream they are used. Position 0 is before all.
#[derive(Clone, Debug, Default)]
struct Part {
    bytes: Range<u64>,
    position: u64,
}

impl Part {
    /// The position that a use of `bytes` has to come after, or 0.
    fn position_of(&self, bytes: &Range<u64>) -> u64 {
        if self.bytes.start < bytes.end && bytes.start < self.bytes.end { self.position } else { 0 }
    }

    fn add(&mut self, bytes: &Range<u64>, position: u64) {
        self.bytes = match self.position {
            0 => bytes.clone(),
            _ => self.bytes.start.min(bytes.start)..self.bytes.end.max(bytes.end),
        };
        self.position = self.position.max(position);
    }

    fn is_within(&self, bytes: &Range<u64>) -> bool {
        self.position == 0 || bytes.start <= self.bytes.start && self.bytes.end <= bytes.end
    }
}

/// What a stream does with an allocation.
struct Use {
    stream: Arc<Stream>,
    written: Part,
    read: Part,
}

impl Use {
    fn of(stream: &Arc<Stream>) -> Self {
        Self { stream: Arc::clone(stream), written: Part::default(), read: Part::default() }
    }

    /// The position that such a use has to come after, or 0.
    fn position_before(&self, bytes: &Range<u64>, access: Access) -> u64 {
        let written = self.written.position_of(bytes);
        match access {
            Access::Read => written,
            Access::Write => written.max(self.read.position_of(bytes)),
        }
    }

    fn last(&self) -> u64 {
        self.written.position.max(self.read.position)
    }
}

/// The uses of one allocation.
pub(super) struct Uses {
    default: Arc<Stream>,
    /// The end of the default stream when the memory had been allocated.
    made: Event,
    bytes: u64,
    /// The last position of the default stream that uses it, while it is alone.
    last: AtomicU64,
    /// Whether another stream has used it. From then on all uses are in the list.
    is_shared: AtomicBool,
    all: Mutex<Vec<Use>>,
}

impl Uses {
    /// Of so many bytes, which the default stream has allocated when it comes to an event of its own.
    pub(super) fn new(default: &Arc<Stream>, made: Event, bytes: u64) -> Self {
        let (default, last) = (Arc::clone(default), AtomicU64::new(made.position()));
        Self { default, made, bytes, last, is_shared: AtomicBool::new(false), all: Mutex::default() }
    }

    fn all(&self) -> MutexGuard<'_, Vec<Use>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The list, with what the default stream did while it was alone.
    fn share(&self) -> MutexGuard<'_, Vec<Use>> {
        let mut all = self.all();
        if !self.is_shared.load(Ordering::SeqCst) {
            // Whoever notes a use by the default stream meanwhile either has done so when its position is read here, or sees
            // the flag afterwards.
            self.is_shared.store(true, Ordering::SeqCst);
            let alone = Part { bytes: 0..self.bytes, position: self.last.load(Ordering::SeqCst) };
            all.push(Use { written: alone.clone(), read: alone, ..Use::of(&self.default) });
        }
        all
    }

    /// Whether no other stream than `stream`, which is the default one, has used it.
    fn is_alone(&self, stream: &Arc<Stream>) -> bool {
        Arc::ptr_eq(stream, &self.default) && !self.is_shared.load(Ordering::SeqCst)
    }

    /// Lets the next work of a stream come after the uses that it must not overtake. `is_ordered`: after the memory's making
    /// alone, since the caller has ordered the rest.
    pub(super) fn order(
        &self,
        stream: &Arc<Stream>,
        bytes: &Range<u64>,
        access: Access,
        is_ordered: bool,
        events: &Arc<Events>,
    ) -> Result<()> {
        if self.is_alone(stream) {
            return Ok(());
        }
        let all = self.share();
        if is_ordered {
            return stream.wait(&self.made);
        }
        for other in &*all {
            let position = other.position_before(bytes, access);
            if position == 0 || stream.is_after(&other.stream, position) {
                continue;
            }
            match Arc::ptr_eq(&other.stream, &self.default) && position == self.made.position() {
                true => stream.wait(&self.made)?,
                false => stream.wait_for_stream(&other.stream, events)?,
            }
        }
        Ok(())
    }

    /// Notes that a stream has been given a use, at one of its positions.
    pub(super) fn note(
        &self,
        stream: &Arc<Stream>,
        position: u64,
        bytes: &Range<u64>,
        access: Access,
        is_ordered: bool,
    ) {
        if Arc::ptr_eq(stream, &self.default) {
            self.last.fetch_max(position, Ordering::SeqCst);
            if self.is_alone(stream) {
                return;
            }
        }
        let mut all = self.share();
        if access == Access::Write && !is_ordered {
            // Whoever comes after this comes after those.
            all.retain(|other| {
                Arc::ptr_eq(&other.stream, stream) || !other.written.is_within(bytes) || !other.read.is_within(bytes)
            });
        }
        let at = match all.iter().position(|known| Arc::ptr_eq(&known.stream, stream)) {
            Some(at) => at,
            None => {
                all.push(Use::of(stream));
                all.len() - 1
            }
        };
        match access {
            Access::Read => all[at].read.add(bytes, position),
            Access::Write => all[at].written.add(bytes, position),
        }
    }

    /// The streams other than the default one that are to be waited for before the memory is anyone else's.
    pub(super) fn others(&mut self) -> Vec<Arc<Stream>> {
        let all = std::mem::take(self.all.get_mut().unwrap_or_else(PoisonError::into_inner));
        let is_open = |used: &Use| !self.default.is_after(&used.stream, used.last());
        all.into_iter().filter(is_open).map(|used| used.stream).collect()
    }

    /// All streams that have used it, with the default one.
    pub(super) fn streams(&self) -> Vec<Arc<Stream>> {
        let all = self.all();
        let others = all.iter().map(|used| &used.stream).filter(|stream| !Arc::ptr_eq(stream, &self.default));
        others.chain([&self.default]).map(Arc::clone).collect()
    }

    /// Forgets a stream that the default one comes after.
    pub(super) fn forget(&self, stream: &Arc<Stream>) {
        self.all().retain(|used| !Arc::ptr_eq(&used.stream, stream));
    }
}
