//! The order of uses of one memory on several streams.
//!
//! Memory remembers up to which position each stream uses it ([`Stream::give`]). Work of one stream waits for earlier
//! work of others if both touch the same bytes and one of them writes. It waits for an event at the present end of the
//! other stream, unless the stream comes after that position already. Callers may order streams by events of their own,
//! which end sooner. Then no wait is added.
//!
//! Memory is the default stream's until another one uses it. Till then a use takes no lock, and its position stands for
//! all bytes. From then on, memory knows of each stream a few ranges that it writes and a few that it reads. Further
//! ranges are joined, so that streams may wait for each other without need, never too little.
//!
//! A use is noted when the driver has been given it, so that an event marked after its position comes after it. Two
//! uses are never given at the same time if one of them writes: the writer has borrowed the bytes exclusively.

use std::{
    ops::Range,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

use super::stream::{Event, Events, Stream};
use crate::{bindings::Access, error::Result};

/// The most ranges that are recorded separately of what a stream writes or reads.
const PARTS: usize = 8;

/// Bytes of an allocation, and up to which position of a stream they are used.
#[derive(Clone, Debug)]
struct Part {
    bytes: Range<u64>,
    position: u64,
}

/// What a stream writes, or reads.
#[derive(Clone, Debug, Default)]
struct Parts(Vec<Part>);

impl Parts {
    /// The position that a use of `bytes` has to come after, or 0.
    fn position_of(&self, bytes: &Range<u64>) -> u64 {
        let meets = |part: &&Part| part.bytes.start < bytes.end && bytes.start < part.bytes.end;
        self.0.iter().filter(meets).map(|part| part.position).max().unwrap_or(0)
    }

    /// Adds a use. Of one stream, the last use of some bytes comes after those before.
    fn add(&mut self, bytes: &Range<u64>, position: u64) {
        if position == 0 {
            return;
        }
        self.0.retain(|part| !is_within(&part.bytes, bytes) || part.position > position);
        self.0.push(Part { bytes: bytes.clone(), position });
        if self.0.len() > PARTS {
            self.take_together();
        }
    }

    /// Makes one of the two neighbours with the fewest bytes between them.
    fn take_together(&mut self) {
        self.0.sort_unstable_by_key(|part| part.bytes.start);
        let gap = |i: &usize| self.0[i + 1].bytes.start.saturating_sub(self.0[*i].bytes.end);
        if let Some(i) = (0..self.0.len() - 1).min_by_key(gap) {
            let next = self.0.remove(i + 1);
            let part = &mut self.0[i];
            part.bytes.end = part.bytes.end.max(next.bytes.end);
            part.position = part.position.max(next.position);
        }
    }

    fn is_within(&self, bytes: &Range<u64>) -> bool {
        self.0.iter().all(|part| is_within(&part.bytes, bytes))
    }

    fn last(&self) -> u64 {
        self.0.iter().map(|part| part.position).max().unwrap_or(0)
    }
}

fn is_within(bytes: &Range<u64>, other: &Range<u64>) -> bool {
    other.start <= bytes.start && bytes.end <= other.end
}

/// What a stream does with an allocation.
struct Use {
    stream: Arc<Stream>,
    written: Parts,
    read: Parts,
}

impl Use {
    fn of(stream: &Arc<Stream>) -> Self {
        Self { stream: Arc::clone(stream), written: Parts::default(), read: Parts::default() }
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
        self.written.last().max(self.read.last())
    }
}

/// The uses of one allocation.
pub(super) struct Uses {
    default: Arc<Stream>,
    /// The end of the default stream when the memory had been allocated.
    made: Event,
    bytes: u64,
    /// The last positions at which the default stream writes it, which making it counts as, and reads it, while it is
    /// alone.
    written: AtomicU64,
    read: AtomicU64,
    /// Whether another stream has used it. From then on all uses are in the list.
    is_shared: AtomicBool,
    all: Mutex<Vec<Use>>,
}

impl Uses {
    /// Memory of `bytes` bytes, which the default stream has allocated when it reaches an event of its own.
    pub(super) fn new(default: &Arc<Stream>, made: Event, bytes: u64) -> Self {
        let (default, written) = (Arc::clone(default), AtomicU64::new(made.position()));
        let (read, is_shared) = (AtomicU64::new(0), AtomicBool::new(false));
        Self { default, made, bytes, written, read, is_shared, all: Mutex::default() }
    }

    fn all(&self) -> MutexGuard<'_, Vec<Use>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The list, with what the default stream did while it was alone.
    fn share(&self) -> MutexGuard<'_, Vec<Use>> {
        let mut all = self.all();
        if !self.is_shared.load(Ordering::SeqCst) {
            // Whoever notes a use by the default stream meanwhile either has done so when its position is read here, or
            // sees the flag afterwards.
            self.is_shared.store(true, Ordering::SeqCst);
            let mut alone = Use::of(&self.default);
            alone.written.add(&(0..self.bytes), self.written.load(Ordering::SeqCst));
            alone.read.add(&(0..self.bytes), self.read.load(Ordering::SeqCst));
            all.push(alone);
        }
        all
    }

    /// Whether no other stream than `stream`, which is the default one, has used it.
    fn is_alone(&self, stream: &Arc<Stream>) -> bool {
        Arc::ptr_eq(stream, &self.default) && !self.is_shared.load(Ordering::SeqCst)
    }

    /// Lets the next work of a stream come after the uses that it must not overtake. `is_ordered`: after the memory's
    /// making alone, since the caller has ordered the rest.
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
        if is_ordered {
            return stream.wait(&self.made);
        }
        // Events and the waits for them may take their time: nobody else waits for these. What is noted meanwhile is in
        // order.
        for (other, position) in self.before(stream, bytes, access) {
            match Arc::ptr_eq(&other, &self.default) && position == self.made.position() {
                true => stream.wait(&self.made)?,
                false => stream.wait_for_stream(&other, events)?,
            }
        }
        Ok(())
    }

    /// Streams that a use on `stream` has to wait for, and up to which position.
    fn before(&self, stream: &Arc<Stream>, bytes: &Range<u64>, access: Access) -> Vec<(Arc<Stream>, u64)> {
        let all = self.share();
        let position = |other: &Use| (Arc::clone(&other.stream), other.position_before(bytes, access));
        let others = all.iter().map(position);
        others.filter(|(other, position)| *position > 0 && !stream.is_after(other, *position)).collect()
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
            let last = if access == Access::Read { &self.read } else { &self.written };
            last.fetch_max(position, Ordering::SeqCst);
            if self.is_alone(stream) {
                return;
            }
        }
        let mut all = self.share();
        if access == Access::Write && !is_ordered {
            // Whoever comes after this comes after those. A stream of another device may go with its last owner, in
            // that one's context: never here.
            all.retain(|other| {
                Arc::ptr_eq(&other.stream, stream)
                    || !other.stream.is_beside(&self.default)
                    || !other.written.is_within(bytes)
                    || !other.read.is_within(bytes)
            });
        }
        let used = used_by(&mut all, stream);
        let parts = if access == Access::Read { &mut used.read } else { &mut used.written };
        parts.add(bytes, position);
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

    /// Takes what a stream of another device read up to a position for reads of the default stream, which comes after
    /// them.
    pub(super) fn hand_over(&self, peer: &Arc<Stream>, until: u64) {
        let mut all = self.share();
        let Some(read) = all.iter_mut().find(|used| Arc::ptr_eq(&used.stream, peer)).map(|used| &mut used.read) else {
            return;
        };
        let (done, open): (Vec<_>, Vec<_>) = read.0.drain(..).partition(|part| part.position <= until);
        read.0 = open;
        let position = self.default.give();
        let default = used_by(&mut all, &self.default);
        done.iter().for_each(|part| default.read.add(&part.bytes, position));
    }
}

/// The book of a stream.
fn used_by<'a>(all: &'a mut Vec<Use>, stream: &Arc<Stream>) -> &'a mut Use {
    let at = all.iter().position(|known| Arc::ptr_eq(&known.stream, stream)).unwrap_or_else(|| {
        all.push(Use::of(stream));
        all.len() - 1
    });
    &mut all[at]
}
