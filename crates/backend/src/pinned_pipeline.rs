//! Pieces of pinned host memory that pass through a device and back.

use std::{fmt, ops::Range};

use crate::{
    buffer::{Buffer, Element},
    device::Device,
    error::{Error, Result},
    handles::Event,
    host::HostBuffer,
    queue::Queue,
    secrecy::Secrecy,
    slots::{HOST, Slots},
};

/// Slots of a pipeline: for the piece that comes, the one that is worked on and the one that goes.
const SLOTS: usize = 3;

/// A pipeline of pieces of pinned host memory. While the device works on one piece, the next is on its way to the
/// device and the one before on its way back.
///
/// The host memory of a piece is one or more pinned parts ([`Device::host_buffer`]). They lie side by side on the
/// device.
///
/// ```
/// # fn main() -> Result<(), evariste_backend::Error> {
/// use evariste_backend::{Device, Queue, Secrecy, PinnedPipeline, Transfer};
///
/// let device = Device::best()?;
/// let mut pipeline = PinnedPipeline::<u32>::new(&device, 6, Secrecy::Public)?;
/// let mut done = Vec::new();
/// for i in 0..5 {
///     let mut host = device.host_buffer(8, Transfer::Both, Secrecy::Public)?;
///     host[0] = i;
///     // Of six elements the first two are given, and the last two are taken back.
///     let work = |queue: &Queue, data: &mut _| {
///         let (given, mut rest) = evariste_backend::ViewMut::from(data).split_at(2)?;
///         queue.copy(&given, rest.view_mut(2..4)?)?;
///         Ok::<_, evariste_backend::Error>(4..6)
///     };
///     done.extend(pipeline.run(vec![host], work)?);
/// }
/// while let Some(parts) = pipeline.next()? {
///     done.push(parts);
/// }
/// assert!(done.iter().map(|parts| parts[0][0]).eq(0..5));
/// # Ok(())
/// # }
/// ```
pub struct PinnedPipeline<T: Element> {
    device: Device,
    slots: Slots<T>,
    secrecy: Secrecy,
    /// When the last piece was on the device.
    uploaded: Option<Event>,
    /// What a call that failed had waited for: older than all that are busy.
    kept: Option<Vec<HostBuffer>>,
}

impl<T: Element> PinnedPipeline<T> {
    /// Makes a pipeline with three slots: each has device memory for `len` elements, and a queue.
    ///
    /// # Errors
    /// - [`Error::TooLarge`] if a buffer cannot have `len` elements.
    /// - [`Error::OutOfMemory`] if the device has no room for three such buffers.
    /// - [`Error::Driver`] if a call of the driver fails.
    /// - [`Error::Lost`] if the device is lost.
    pub fn new(device: &Device, len: usize, secrecy: Secrecy) -> Result<Self> {
        let slots = Slots::new(device, len, SLOTS, secrecy)?;
        Ok(Self { device: device.clone(), slots, secrecy, uploaded: None, kept: None })
    }

    /// Sends a piece through the pipeline, in three steps. The parts of `host` are copied, one behind the other, to the
    /// first elements of a slot. `work` queues operations on the slot. The elements in the range that `work` returns
    /// are copied back into the same parts, and must fill them.
    ///
    /// If all slots are busy, this waits for the oldest piece. It returns the host memory of an earlier piece, in the
    /// order of the calls.
    ///
    /// Behind the elements of the piece, the slot holds what earlier pieces left. `work` must queue its operations on
    /// the queue that it receives: on another queue they are still right, but pieces wait for each other.
    ///
    /// # Errors
    /// - [`Error::WrongTransfer`] if a part is for uploads only.
    /// - [`Error::WrongDevice`] if it is of another device.
    /// - [`Error::SecretInput`] if it is secret and the pipeline is public, or the other way round.
    /// - [`Error::Length`] if a part is no whole number of elements, or if the parts do not fit into a slot. Also if
    ///   `work` returns a range of another length.
    /// - [`Error::Unaligned`] if a part starts or ends within a word of 4 bytes of the slot, other than at its end.
    /// - [`Error::OutOfRange`] if the range that `work` returns leaves the slot.
    /// - [`Error::OutOfMemory`] with wgpu if there is no staging memory.
    /// - [`Error::Driver`] if a call of the driver fails.
    /// - [`Error::Lost`] if the device is lost.
    /// - The error of `work`.
    ///
    /// `host` is dropped then. Later calls return the results of earlier ones, except a result that the device failed
    /// to copy.
    pub fn run<E: From<Error>>(
        &mut self,
        host: Vec<HostBuffer>,
        work: impl FnOnce(&Queue, &mut Buffer<T>) -> Result<Range<usize>, E>,
    ) -> Result<Option<Vec<HostBuffer>>, E> {
        host.iter().try_for_each(|part| {
            part.expect_download(HOST)?;
            part.expect_secrecy(HOST, self.secrecy)
        })?;
        if let Some(oldest) = self.slots.free()? {
            self.kept = Some(oldest);
        }
        // Idle as long as `work` may fail or panic.
        let Self { device, slots, uploaded, .. } = self;
        let slot = slots.first();
        // Copies of several queues would share the link, and the first piece be there as late as the last.
        if let Some(before) = uploaded.take() {
            slot.queue.wait_for(&before)?;
        }
        let pending = slot.queue(host, |queue, data| {
            if device.info().features.queues {
                *uploaded = Some(queue.record()?);
            }
            work(queue, data)
        })?;
        self.slots.begin(pending);
        Ok(self.kept.take())
    }

    /// Waits for the oldest result that no call has returned yet, if there is one.
    ///
    /// # Errors
    /// [`Error::Driver`] if the copy of the result or the wait for it fails, [`Error::Lost`] if the device is lost. The
    /// result is dropped then.
    #[expect(clippy::should_implement_trait, reason = "an iterator could not be fed in between")]
    pub fn next(&mut self) -> Result<Option<Vec<HostBuffer>>> {
        if let Some(kept) = self.kept.take() {
            return Ok(Some(kept));
        }
        self.slots.next()
    }
}

impl<T: Element> fmt::Debug for PinnedPipeline<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PinnedPipeline").field("busy", &self.slots.busy()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use super::*;
    use crate::info::Transfer;

    #[test]
    fn pieces_that_fail_take_no_others_with_them() {
        let device = Device::cpu();
        let mut pipeline = PinnedPipeline::<u32>::new(&device, 2, Secrecy::Public).unwrap();
        let host = |word: u8, len| {
            let mut host = device.host_buffer(len, Transfer::Both, Secrecy::Public).unwrap();
            host.fill(word);
            vec![host]
        };
        let mut given = Vec::new();
        for word in 0..8 {
            given.extend(pipeline.run(host(word, 8), |_, _| Ok::<_, Error>(0..2)).unwrap());
            let failed =
                pipeline.run(host(99, 8), |_, _| Err::<Range<usize>, _>(Error::Undecodable { index: word.into() }));
            assert_eq!(failed.unwrap_err(), Error::Undecodable { index: word.into() });
            assert!(matches!(pipeline.run(host(99, 12), |_, _| Ok(0..2)), Err(Error::Length { .. })));
            assert!(matches!(pipeline.run(host(99, 8), |_, _| Ok(0..1)), Err(Error::Length { .. })));
            let defect = || pipeline.run(host(99, 8), |_, _| -> Result<_> { panic!("a defect of the caller's") });
            assert!(catch_unwind(AssertUnwindSafe(defect)).is_err());
        }
        while let Some(host) = pipeline.next().unwrap() {
            given.push(host);
        }
        assert!(given.iter().map(|host| host[0][7]).eq(0..8));
    }
}
