//! Copies to the host.

use std::{collections::VecDeque, fmt, ops::Range};

use crate::{
    buffer::{Element, decode},
    error::{Error, Result},
    handles::QueueHandle,
    host::Pending,
    info::Transfer,
    secrecy::Secrecy,
    view::{View, byte_range, covered},
    zeroize::zeroize_vec,
};

/// Pieces of a download that are under way at once: one is decoded while the next is copied.
const READS_IN_FLIGHT: usize = 2;

/// A copy to the host that is under way, in pieces: one piece is decoded while the next is copied.
#[must_use = "the data is there only after `wait`"]
pub struct Download<'a, T: Element> {
    view: View<'a, T>,
    queue: QueueHandle,
    pending: VecDeque<(Range<usize>, Pending)>,
    next: usize,
}

impl<'a, T: Element> Download<'a, T> {
    /// Queues the first pieces on a queue of the view's device.
    pub(crate) fn begin(view: View<'a, T>, queue: QueueHandle) -> Result<Self> {
        let mut download = Self { view, queue, pending: VecDeque::new(), next: 0 };
        download.fill()?;
        Ok(download)
    }

    /// Waits for the elements and returns them.
    ///
    /// # Errors
    /// - [`Error::Undecodable`] if bytes are no element.
    /// - [`Error::OutOfMemory`] if there is no staging memory for the next piece.
    /// - [`Error::Driver`] if a call of the driver fails.
    /// - [`Error::Lost`] if the device is lost.
    pub fn wait(self) -> Result<Vec<T::Host>> {
        let (mut host, secrecy) = (vec![T::Host::default(); self.view.len()], self.view.secrecy());
        let result = self.wait_into(&mut host);
        if result.is_err() && secrecy == Secrecy::Secret {
            zeroize_vec(&mut host);
        }
        result.map(|()| host)
    }

    /// Waits for the elements and writes them to `host`, which has the same length.
    ///
    /// # Errors
    /// - [`Error::Length`] if `host` has another length. Nothing is read then.
    /// - [`Error::Undecodable`] if bytes are no element.
    /// - [`Error::OutOfMemory`] if there is no staging memory for the next piece.
    /// - [`Error::Driver`] if a call of the driver fails.
    /// - [`Error::Lost`] if the device is lost.
    ///
    /// The contents of `host` are unspecified then.
    pub fn wait_into(mut self, mut host: &mut [T::Host]) -> Result<()> {
        if host.len() != self.view.len() {
            let (expected, actual) = (self.view.len() as u64, host.len() as u64);
            return Err(Error::Length { what: "the target of a read", expected, actual });
        }
        while let Some((range, pending)) = self.pending.pop_front() {
            let staging = pending.wait()?;
            self.fill()?;
            let (piece, rest) = host.split_at_mut(range.len());
            let bytes = byte_range::<T>(self.view.start() + range.start, range.len());
            let skip = (bytes.start - covered(self.view.memory(), &bytes).start) as usize;
            let source = &staging[skip..][..(bytes.end - bytes.start) as usize];
            decode::<T>(source, piece).map_err(|error| match error {
                Error::Undecodable { index } => {
                    Error::Undecodable { index: (self.view.start() + range.start) as u64 + index }
                }
                error => error,
            })?;
            host = rest;
        }
        Ok(())
    }

    fn fill(&mut self) -> Result<()> {
        let view = self.view;
        while self.next < view.len() && self.pending.len() < READS_IN_FLIGHT {
            let range = self.next..view.len().min(self.next + view.staging_len());
            let covered = covered(view.memory(), &byte_range::<T>(view.start() + range.start, range.len()));
            let staging = view.staging(covered.end - covered.start, Transfer::Download)?;
            let bytes = staging.len();
            let pending = view.device().backend().read(&self.queue, view.span_of(&covered), staging)?;
            let pending = pending.of(bytes, view.device().info().id);
            self.next = range.end;
            self.pending.push_back((range, pending));
        }
        Ok(())
    }
}

impl<T: Element> fmt::Debug for Download<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Download").field("view", &self.view).finish_non_exhaustive()
    }
}
