//! Points in the queue's work.
//!
//! Where the device has timestamps, an event is one, so that `elapsed` is the device's own time. Elsewhere it is the
//! moment when the host learned that the work before it was done, which may be late.

use std::{
    sync::{Arc, OnceLock},
    thread,
    time::{Duration, Instant},
};

use super::{gpu::Gpu, host::WgpuHost, memory::Piece, timer::RESOLVED_BYTES};
use crate::{
    error::Result,
    handles::{Event, own},
    host::Pending,
    info::Transfer,
    secrecy::Secrecy,
};

/// A point in the queue's work.
pub(super) struct WgpuEvent {
    gpu: Arc<Gpu>,
    submission: Option<wgpu::SubmissionIndex>,
    /// The place of its timestamp, and the ticks once they were read.
    slot: Option<(u32, OnceLock<u64>)>,
    /// When the host learned that the work was done.
    done: Arc<OnceLock<Instant>>,
}

impl WgpuEvent {
    /// Marks the present end of the queue.
    pub(super) fn record(gpu: &Arc<Gpu>) -> Result<Self> {
        let timer = gpu.timer.as_ref().and_then(|timer| Some((timer, timer.take()?)));
        let mut event = Self {
            gpu: Arc::clone(gpu),
            submission: None,
            slot: timer.map(|(_, slot)| (slot, OnceLock::new())),
            done: Arc::default(),
        };
        event.submission = gpu.record_and_submit(|recorder, device| {
            if let Some((timer, slot)) = timer {
                let encoder = recorder.encoder(device);
                encoder.write_timestamp(&timer.queries, slot);
                let at = u64::from(slot) * RESOLVED_BYTES;
                encoder.resolve_query_set(&timer.queries, slot..slot + 1, &timer.resolved, at);
            }
        })?;
        let done = Arc::clone(&event.done);
        gpu.queue.on_submitted_work_done(move || {
            let _ = done.set(Instant::now());
        });
        Ok(event)
    }

    /// The event behind a handle, if it is of this device.
    pub(super) fn of<'a>(event: &'a Event, gpu: &Arc<Gpu>) -> Result<&'a Self> {
        let event = own(event.downcast_ref::<Self>(), "event", &gpu.info)?;
        gpu.expect_same("event", &event.gpu)?;
        Ok(event)
    }

    /// Waits for both events and gives the time between them.
    pub(super) fn elapsed(&self, to: &Self) -> Result<Duration> {
        self.gpu.wait(self.submission.clone())?;
        self.gpu.wait(to.submission.clone())?;
        if let (Some(timer), Some(from), Some(to)) = (&self.gpu.timer, self.ticks()?, to.ticks()?) {
            return Ok(Duration::from_nanos((to.saturating_sub(from) as f64 * timer.nanos_per_tick) as u64));
        }
        Ok(to.host_time()?.saturating_duration_since(self.host_time()?))
    }

    /// The device's time, once it is reached.
    fn ticks(&self) -> Result<Option<u64>> {
        let (Some(timer), Some((slot, ticks))) = (&self.gpu.timer, &self.slot) else { return Ok(None) };
        if let Some(ticks) = ticks.get() {
            return Ok(Some(*ticks));
        }
        let host = WgpuHost::new(&self.gpu, size_of::<u64>(), Transfer::Download, Secrecy::Public)?;
        let (offset, len) = (u64::from(*slot) * RESOLVED_BYTES, size_of::<u64>() as u64);
        let piece = Piece { buffer: &timer.resolved, offset, len, done: 0 };
        let host = Pending::new(host.read(std::iter::once(piece))?).wait()?;
        let read = host.first_chunk().map(|bytes| u64::from_le_bytes(*bytes));
        Ok(read.map(|read| *ticks.get_or_init(|| read)))
    }

    /// The host's time, once it is reached.
    fn host_time(&self) -> Result<Instant> {
        loop {
            if let Some(done) = self.done.get() {
                return Ok(*done);
            }
            // Where another thread was the one to poll, it is about to run the callback.
            self.gpu.poll(wgpu::PollType::wait_indefinitely())?;
            thread::yield_now();
        }
    }
}

impl Drop for WgpuEvent {
    fn drop(&mut self) {
        if let (Some(timer), Some((slot, _))) = (&self.gpu.timer, &self.slot) {
            timer.give(*slot);
        }
    }
}
