//! Work on data that passes from host memory through the device and back, in pieces.

use std::{collections::VecDeque, fmt, ops::Range};

use crate::{
    buffer::{Buffer, Element},
    device::Device,
    error::{Error, Result},
    handles::Event,
    host::{HostBuffer, Pending},
    queue::Queue,
    secrecy::Secrecy,
};

/// What [`Stream::run`] is given.
const WHAT: &str = "the host memory of a stream";

/// Pieces in turn: one comes, one is worked on, one goes.
const STAGES: usize = 3;

/// Device memory and queues for a stream of pieces: while one is worked on, the next is on its way to the device and the one
/// before on its way back.
///
/// The host memory of a piece is one or more parts, each pinned ([`Device::host_buffer`]), which lie side by side on the device.
///
/// ```
/// # fn main() -> Result<(), evariste_backend::Error> {
/// use evariste_backend::{Device, Queue, Secrecy, Stream, Transfer};
///
/// let device = Device::best()?;
/// let mut stream = Stream::<u32>::new(&device, 6, Secrecy::Public)?;
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
///     done.extend(stream.run(vec![host], work)?);
/// }
/// while let Some(parts) = stream.next()? {
///     done.push(parts);
/// }
/// assert!(done.iter().map(|parts| parts[0][0]).eq(0..5));
/// # Ok(())
/// # }
/// ```
pub struct Stream<T: Element> {
    device: Device,
    turns: Turns<T>,
    secrecy: Secrecy,
    /// When the last piece was on the device.
    uploaded: Option<Event>,
    /// What a call that failed had waited for: older than all that are busy.
    kept: Option<Vec<HostBuffer>>,
}

/// Which memory is free next, and what comes back from the rest of it: of [`Stream`], [`crate::Ring`] and [`crate::Uploads`].
/// Each is used as often as the others.
pub(crate) struct Turns<T: Element> {
    /// The first one is next.
    idle: VecDeque<Stage<T>>,
    /// Oldest first.
    busy: VecDeque<(Stage<T>, Vec<Pending>)>,
}

/// Device memory of a piece, and the queue of its copies and, but for some of [`crate::Uploads`], of all else that is done with it.
pub(crate) struct Stage<T: Element> {
    /// Its number: the first piece gets that of number 0.
    pub(crate) slot: usize,
    pub(crate) queue: Queue,
    pub(crate) data: Buffer<T>,
}

impl<T: Element> Stream<T> {
    /// Makes a stream with device memory of `len` elements for each of three pieces, and a queue for each.
    ///
    /// # Errors
    /// [`Error::TooLarge`] for more elements than one buffer may have, [`Error::OutOfMemory`] if the device has no room for
    /// three times as many, [`Error::Driver`] if a queue cannot be made or another call of the driver fails,
    /// [`Error::Lost`] if the device is lost.
    pub fn new(device: &Device, len: usize, secrecy: Secrecy) -> Result<Self> {
        let turns = Turns::new(device, len, STAGES, secrecy)?;
        Ok(Self { device: device.clone(), turns, secrecy, uploaded: None, kept: None })
    }

    /// Copies the parts of `host` one behind the other to the first elements of a piece's memory, has `work` queue what is to be
    /// done with it, and copies the elements that `work` names back into the same parts, which must be for both directions and
    /// which they must fill. Nothing is waited for but the oldest piece, if all memory is in use: its host memory is given then,
    /// that of an earlier call, in the order of the calls.
    ///
    /// `work` finds in the memory what an earlier piece left behind the elements of this one, and queues everything on
    /// the queue that it is given, or pieces wait for each other.
    ///
    /// # Errors
    /// [`Error::WrongTransfer`] for a part for uploads only, [`Error::SecretInput`] for one that is secret if the stream is
    /// public, or public if the stream is secret, [`Error::WrongDevice`] for one of another device, [`Error::Unaligned`] for one
    /// that starts or ends within a word of 4 bytes of the piece's memory, other than at its end, [`Error::Length`] if a part is
    /// no whole number of elements, if all together are longer than the memory, or if
    /// `work` names another number of elements, [`Error::OutOfRange`] if it names some beyond the memory,
    /// [`Error::OutOfMemory`] with wgpu if there is no staging memory, [`Error::Driver`] if a call of the driver fails,
    /// [`Error::Lost`] if the device is lost, and the error of `work`. `host` is dropped then; the results of earlier calls
    /// are given by later ones, but for one that the device failed to give.
    pub fn run<E: From<Error>>(
        &mut self,
        host: Vec<HostBuffer>,
        work: impl FnOnce(&Queue, &mut Buffer<T>) -> Result<Range<usize>, E>,
    ) -> Result<Option<Vec<HostBuffer>>, E> {
        host.iter().try_for_each(|part| {
            part.expect_download(WHAT)?;
            part.expect_secrecy(WHAT, self.secrecy)
        })?;
        if let Some(oldest) = self.turns.free()? {
            self.kept = Some(oldest);
        }
        // Idle as long as `work` may fail or panic.
        let Self { device, turns, uploaded, .. } = self;
        let stage = turns.stage();
        // Copies of several queues would share the link, and the first piece be there as late as the last.
        if let Some(before) = uploaded.take() {
            stage.queue.wait_for(&before)?;
        }
        let pending = stage.queue(host, |queue, data| {
            if device.info().features.queues {
                *uploaded = Some(queue.record()?);
            }
            work(queue, data)
        })?;
        self.turns.begin(pending);
        Ok(self.kept.take())
    }

    /// Waits for the oldest result that was not given yet, if there is one.
    ///
    /// # Errors
    /// [`Error::Driver`] if the copy of the result or the wait for it fails, [`Error::Lost`] if the device is lost. That
    /// result is dropped then.
    #[expect(clippy::should_implement_trait, reason = "an iterator could not be fed in between")]
    pub fn next(&mut self) -> Result<Option<Vec<HostBuffer>>> {
        if let Some(kept) = self.kept.take() {
            return Ok(Some(kept));
        }
        self.turns.next()
    }
}

impl<T: Element> Turns<T> {
    /// With memory of `len` elements for each of so many pieces.
    pub(crate) fn new(device: &Device, len: usize, slots: usize, secrecy: Secrecy) -> Result<Self> {
        Self::of((0..slots).map(|_| Ok((device.queue()?, device.alloc_with(len, secrecy)?))))
    }

    /// With these queues and memories.
    pub(crate) fn of(stages: impl Iterator<Item = Result<(Queue, Buffer<T>)>>) -> Result<Self> {
        let stages = stages.enumerate().map(|(slot, stage)| stage.map(|(queue, data)| Stage { slot, queue, data }));
        Ok(Self { idle: stages.collect::<Result<_>>()?, busy: VecDeque::new() })
    }

    /// Of the stages that are idle, the next one first.
    pub(crate) fn queues(&self) -> impl Iterator<Item = &Queue> {
        self.idle.iter().map(|stage| &stage.queue)
    }

    /// Waits for the oldest result if no stage is idle.
    pub(crate) fn free(&mut self) -> Result<Option<Vec<HostBuffer>>> {
        if self.idle.is_empty() { self.next() } else { Ok(None) }
    }

    /// Waits for the oldest result, if there is one.
    pub(crate) fn next(&mut self) -> Result<Option<Vec<HostBuffer>>> {
        let Some((stage, pending)) = self.busy.pop_front() else { return Ok(None) };
        self.idle.push_back(stage);
        pending.into_iter().map(Pending::wait).collect::<Result<_>>().map(Some)
    }

    /// The stage of the next piece, after [`Turns::free`].
    pub(crate) fn stage(&mut self) -> &mut Stage<T> {
        let Some(stage) = self.idle.front_mut() else { unreachable!("the oldest stage has become idle") };
        stage
    }

    /// Takes the stage out of the idle ones until its results are there.
    pub(crate) fn begin(&mut self, results: Vec<Pending>) {
        self.busy.extend(self.idle.pop_front().map(|stage| (stage, results)));
    }
}

impl<T: Element> Stage<T> {
    /// See [`Stream::run`].
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
                return Err(Error::Length { what: WHAT, expected: memory, actual: part.len() as u64 }.into());
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
            return Err(Error::Length { what: WHAT, expected, actual }.into());
        }
        let mut at = 0;
        let read = |(write, len): (Pending, usize)| {
            at += len;
            queue.read_pinned_after(back.view(at - len..at)?, write)
        };
        Ok(writes.into_iter().zip(lengths).map(read).collect::<Result<_>>()?)
    }
}

impl<T: Element> fmt::Debug for Stream<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stream").field("busy", &self.turns.busy.len()).finish_non_exhaustive()
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
        let mut stream = Stream::<u32>::new(&device, 2, Secrecy::Public).unwrap();
        let host = |word: u8, len| {
            let mut host = device.host_buffer(len, Transfer::Both, Secrecy::Public).unwrap();
            host.fill(word);
            vec![host]
        };
        let mut given = Vec::new();
        for word in 0..8 {
            given.extend(stream.run(host(word, 8), |_, _| Ok::<_, Error>(0..2)).unwrap());
            let failed =
                stream.run(host(99, 8), |_, _| Err::<Range<usize>, _>(Error::Undecodable { index: word.into() }));
            assert_eq!(failed.unwrap_err(), Error::Undecodable { index: word.into() });
            assert!(matches!(stream.run(host(99, 12), |_, _| Ok(0..2)), Err(Error::Length { .. })));
            assert!(matches!(stream.run(host(99, 8), |_, _| Ok(0..1)), Err(Error::Length { .. })));
            let defect = || stream.run(host(99, 8), |_, _| -> Result<_> { panic!("a defect of the caller's") });
            assert!(catch_unwind(AssertUnwindSafe(defect)).is_err());
        }
        while let Some(host) = stream.next().unwrap() {
            given.push(host);
        }
        assert!(given.iter().map(|host| host[0][7]).eq(0..8));
    }
}
