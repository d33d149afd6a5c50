//! Streams, and events from a pool.
//!
//! Each stream counts its work, and remembers up to where it comes after every other stream. It learns that from the
//! events that it waited for, and from those that their streams waited for. Waits that change nothing are left out, and
//! memory can tell whether two of its uses are in order ([`super::uses`]).

use std::{
    collections::VecDeque,
    ptr,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use cudarc::driver::sys::{CUevent_flags, CUevent_st, CUresult, CUstream_flags, CUstream_st};

use super::driver::{Context, Handle, call};
use crate::error::{Error, Result};

/// The place of a stream's work beside that of others. Positions count what a stream was given, from 1 on.
struct Clock {
    /// Tells the stream from all others that ever were.
    id: u64,
    /// The last position whose work has been given to the driver.
    given: AtomicU64,
    /// The last position whose work is known to be done, since the host has waited for it.
    done: AtomicU64,
    /// The same, where the host has asked and not waited. Tools do not take an answer for an order, so that no wait is
    /// left out for it.
    answered: AtomicU64,
    /// Up to which positions of other streams the stream's next work comes after theirs.
    seen: Mutex<Vec<(u64, u64)>>,
}

impl Clock {
    fn new() -> Arc<Self> {
        static STREAMS: AtomicU64 = AtomicU64::new(0);

        let id = STREAMS.fetch_add(1, Ordering::Relaxed);
        Arc::new(Self {
            id,
            given: AtomicU64::new(0),
            done: AtomicU64::new(0),
            answered: AtomicU64::new(0),
            seen: Mutex::default(),
        })
    }

    fn seen(&self) -> MutexGuard<'_, Vec<(u64, u64)>> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the stream's next work comes after a position of another stream, or of itself.
    fn is_after(&self, other: &Self, position: u64) -> bool {
        self.id == other.id
            || other.done.load(Ordering::Acquire) >= position
            || self.seen().iter().any(|(id, seen)| *id == other.id && *seen >= position)
    }

    /// Notes that the stream's next work comes after positions of other streams.
    fn note(&self, after: impl IntoIterator<Item = (u64, u64)>) {
        let mut seen = self.seen();
        for (id, position) in after {
            match seen.iter_mut().find(|(known, _)| *known == id) {
                Some((_, known)) => *known = position.max(*known),
                None => seen.push((id, position)),
            }
        }
    }
}

/// A stream that does not wait for the legacy default stream.
pub(super) struct Stream {
    context: Arc<Context>,
    raw: Handle<CUstream_st>,
    clock: Arc<Clock>,
}

impl Stream {
    /// The context must be bound, here and in all functions below.
    pub(super) fn new(context: &Arc<Context>) -> Result<Arc<Self>> {
        let mut raw = ptr::null_mut();
        // SAFETY: the pointer is to a live value.
        unsafe { call!(context, cuStreamCreate(&mut raw, CUstream_flags::CU_STREAM_NON_BLOCKING as u32)) }?;
        Ok(Arc::new(Self { context: Arc::clone(context), raw: Handle(raw), clock: Clock::new() }))
    }

    pub(super) fn context(&self) -> &Context {
        &self.context
    }

    pub(super) fn raw(&self) -> *mut CUstream_st {
        self.raw.0
    }

    /// The position of work that the driver has been given just now.
    pub(super) fn give(&self) -> u64 {
        self.clock.given.fetch_add(1, Ordering::AcqRel) + 1
    }

    /// Whether what comes next is after a position of another stream, or of this one.
    pub(super) fn is_after(&self, other: &Self, position: u64) -> bool {
        self.clock.is_after(&other.clock, position)
    }

    /// Lets later work wait for an event, which may be another device's.
    pub(super) fn wait(&self, event: &Event) -> Result<()> {
        if self.clock.is_after(&event.clock, event.position) {
            return Ok(());
        }
        // SAFETY: both handles are live. The driver takes the event's present state, so that it may be recorded again.
        unsafe { call!(self.context, cuStreamWaitEvent(self.raw.0, event.raw.0, 0)) }?;
        self.clock.note(event.after.iter().copied().chain([(event.clock.id, event.position)]));
        Ok(())
    }

    /// The last position whose work has been given to the driver.
    pub(super) fn given(&self) -> u64 {
        self.clock.given.load(Ordering::Acquire)
    }

    /// Whether all of its work is known to be done.
    fn is_idle(&self) -> bool {
        self.clock.done.load(Ordering::Acquire).max(self.clock.answered.load(Ordering::Acquire)) >= self.given()
    }

    /// Notes that the work up to a position is done.
    pub(super) fn note_done(&self, position: u64) {
        self.clock.done.fetch_max(position, Ordering::AcqRel);
    }

    pub(super) fn synchronize(&self) -> Result<()> {
        let given = self.given();
        // SAFETY: the stream is live.
        unsafe { call!(self.context, cuStreamSynchronize(self.raw.0)) }?;
        self.note_done(given);
        Ok(())
    }

    /// Whether both are of one device.
    pub(super) fn is_beside(&self, other: &Self) -> bool {
        ptr::eq(&*self.context, &*other.context)
    }

    /// Lets later work wait for everything that `other` has been given so far. Should events fail, the host waits; so
    /// it does for a stream of another device, whose events are not this one's. A device that is lost does nothing any
    /// more.
    pub(super) fn wait_for_stream(&self, other: &Self, events: &Arc<Events>) -> Result<()> {
        if !self.is_beside(other) {
            return match other.synchronize() {
                Err(Error::Lost { .. }) => Ok(()),
                waited => waited,
            };
        }
        let ordered = events.record(other, Timing::Off).and_then(|event| self.wait(&event));
        ordered.or_else(|_| other.synchronize())
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        if self.context.bind().is_ok() {
            // SAFETY: the stream is live and not used after this; the driver completes its work first.
            let _ = unsafe { (self.context.functions().cuStreamDestroy_v2)(self.raw.0) };
        }
    }
}

/// What a [`crate::Queue`] of this backend is. A further stream returns to its pool with the last handle to its queue.
/// So memory never remembers more streams as its users than there were queues at one time.
pub(super) struct CudaQueue {
    stream: Arc<Stream>,
    pool: Option<Arc<Streams>>,
}

impl CudaQueue {
    /// The queue of a stream that is never reused.
    pub(super) fn of(stream: &Arc<Stream>) -> Self {
        Self { stream: Arc::clone(stream), pool: None }
    }

    pub(super) fn stream(&self) -> &Arc<Stream> {
        &self.stream
    }
}

impl Drop for CudaQueue {
    fn drop(&mut self) {
        if let Some(pool) = &self.pool {
            pool.lock().push_back(Arc::clone(&self.stream));
        }
    }
}

/// Streams of one device without a queue, kept for reuse. The one returned longest ago comes first.
#[derive(Default)]
pub(super) struct Streams {
    returned: Mutex<VecDeque<Arc<Stream>>>,
}

impl Streams {
    fn lock(&self) -> MutexGuard<'_, VecDeque<Arc<Stream>>> {
        self.returned.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A further queue. A returned stream may still have work, behind which a new queue's work would wait. So the queue
    /// gets a stream that is known to be idle, or else the one returned longest ago. The context must be bound.
    pub(super) fn queue(self: &Arc<Self>, context: &Arc<Context>) -> Result<CudaQueue> {
        let returned = {
            let mut returned = self.lock();
            let idle = returned.iter().position(|stream| stream.is_idle()).unwrap_or(0);
            returned.remove(idle)
        };
        let stream = returned.map_or_else(|| Stream::new(context), Ok)?;
        Ok(CudaQueue { stream, pool: Some(Arc::clone(self)) })
    }
}

/// Whether an event takes the time.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Timing {
    Off,
    On,
}

/// Events of one device, kept for reuse.
pub(super) struct Events {
    context: Arc<Context>,
    idle: [Mutex<Vec<Handle<CUevent_st>>>; 2],
}

impl Events {
    pub(super) fn new(context: &Arc<Context>) -> Arc<Self> {
        Arc::new(Self { context: Arc::clone(context), idle: Default::default() })
    }

    /// Marks the present end of a stream of this device.
    pub(super) fn record(self: &Arc<Self>, stream: &Stream, timing: Timing) -> Result<Event> {
        let idle = self.idle[timing as usize].lock().unwrap_or_else(PoisonError::into_inner).pop();
        let raw = idle.map_or_else(|| self.create(timing), Ok)?;
        let (after, clock) = (stream.clock.seen().clone(), Arc::clone(&stream.clock));
        // Before the event is marked: what is marked after this position comes after all that was given before it.
        let event = Event { pool: Arc::clone(self), raw, timing, clock, position: stream.give(), after };
        // SAFETY: event and stream are live and of this context.
        unsafe { call!(self.context, cuEventRecord(raw.0, stream.raw.0)) }?;
        Ok(event)
    }

    fn create(&self, timing: Timing) -> Result<Handle<CUevent_st>> {
        let flags = match timing {
            Timing::Off => CUevent_flags::CU_EVENT_DISABLE_TIMING,
            Timing::On => CUevent_flags::CU_EVENT_DEFAULT,
        };
        let mut raw = ptr::null_mut();
        // SAFETY: the pointer is to a live value.
        unsafe { call!(self.context, cuEventCreate(&mut raw, flags as u32)) }?;
        Ok(Handle(raw))
    }
}

impl Drop for Events {
    fn drop(&mut self) {
        if self.context.bind().is_err() {
            return;
        }
        for idle in &mut self.idle {
            for event in idle.get_mut().unwrap_or_else(PoisonError::into_inner).drain(..) {
                // SAFETY: events in the pool have no other owner.
                let _ = unsafe { (self.context.functions().cuEventDestroy_v2)(event.0) };
            }
        }
    }
}

/// A recorded event. Dropping it returns it to the pool: streams that wait for it are not affected.
pub(super) struct Event {
    pool: Arc<Events>,
    raw: Handle<CUevent_st>,
    timing: Timing,
    /// That of its stream, its position there, and the positions of other streams that it comes after.
    clock: Arc<Clock>,
    position: u64,
    after: Vec<(u64, u64)>,
}

impl Event {
    pub(super) fn context(&self) -> &Context {
        &self.pool.context
    }

    /// Whether the work before the event is done.
    pub(super) fn is_done(&self) -> Result<bool> {
        // SAFETY: the event is live.
        match unsafe { (self.pool.context.functions().cuEventQuery)(self.raw.0) } {
            CUresult::CUDA_ERROR_NOT_READY => Ok(false),
            result => self.pool.context.check("cuEventQuery", result).map(|()| {
                self.clock.answered.fetch_max(self.position, Ordering::AcqRel);
                true
            }),
        }
    }

    pub(super) fn synchronize(&self) -> Result<()> {
        // SAFETY: the event is live.
        unsafe { call!(self.pool.context, cuEventSynchronize(self.raw.0)) }?;
        self.note_done();
        Ok(())
    }

    /// Notes that the host has seen the event's work done. The positions of other streams that it comes after are done
    /// too, which nobody makes use of.
    fn note_done(&self) {
        self.clock.done.fetch_max(self.position, Ordering::AcqRel);
    }

    /// Its position on its stream.
    pub(super) fn position(&self) -> u64 {
        self.position
    }

    /// Time from this event to a later one, both timed and done; zero if the other one is earlier.
    pub(super) fn elapsed(&self, to: &Self) -> Result<Duration> {
        let mut milliseconds = 0.0;
        // SAFETY: both events are live, and the pointer is to a live value.
        unsafe { call!(self.pool.context, cuEventElapsedTime(&mut milliseconds, self.raw.0, to.raw.0)) }?;
        Ok(Duration::try_from_secs_f64(f64::from(milliseconds) / 1e3).unwrap_or_default())
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        self.pool.idle[self.timing as usize].lock().unwrap_or_else(PoisonError::into_inner).push(self.raw);
    }
}
