//! Data from host memory to the device in pieces, whose results stay there.

use std::{collections::VecDeque, fmt, mem};

use crate::{
    buffer::Element,
    device::Device,
    error::{Error, Result},
    handles::Event,
    host::HostBuffer,
    info::Transfer,
    queue::Queue,
    secrecy::Secrecy,
    stream::{Stage, Turns},
    view::View,
};

/// Pieces of host data on their way to the device: while one is worked on, the next comes. [`crate::Stream`] is for pieces that
/// go back to the host, whose turns these take.
///
/// The work on a piece is queued on the queue of the piece's memory ([`Uploads::new`]), or all of it on a queue of the
/// caller's ([`Uploads::ahead_of`]). In either case a piece is worked on when it is there, and its memory takes another one
/// when the work is done.
///
/// ```
/// # fn main() -> Result<(), evariste_backend::Error> {
/// use evariste_backend::{Device, Secrecy, Uploads};
///
/// let device = Device::best()?;
/// let mut kept = device.alloc::<u32>(10)?;
/// let mut uploads = Uploads::<u32>::new(&device, 4, 2, Secrecy::Public)?;
/// for i in 0..5 {
///     let mut host = uploads.host()?;
///     host.fill(i);
///     // Of each piece the first half is kept.
///     let at = 2 * usize::from(i);
///     uploads.run(host, |queue, piece, _| queue.copy(piece.view(..2)?, kept.view_mut(at..at + 2)?))?;
/// }
/// device.sync()?;
/// assert_eq!(kept.to_vec()?[8..], [0x0404_0404; 2]);
/// # Ok(())
/// # }
/// ```
pub struct Uploads<T: Element> {
    device: Device,
    turns: Turns<T>,
    /// Of each memory, by its number.
    work: Vec<Work>,
    /// Host memory that the device has read, oldest first.
    back: VecDeque<HostBuffer>,
    secrecy: Secrecy,
}

/// What reads the pieces in one memory.
struct Work {
    queue: Queue,
    readers: Readers,
}

/// What the next upload to a memory has to wait for.
enum Readers {
    /// Nothing: the work is on the queue of the uploads.
    InOrder,
    /// Nothing: there was no work.
    None,
    Until(Event),
    /// All that the queue of the work has been given, since the caller's part ended early.
    Unknown,
}

/// Host data in one of two places.
pub enum HostData<'a, T: Element> {
    /// In ordinary memory: encoded ([`Element::encode`]) on its way.
    Slice(&'a [T::Host]),
    /// In memory that the device copies from itself ([`Device::host_buffer`]), encoded already.
    Pinned(HostBuffer),
}

impl<T: Element> HostData<'_, T> {
    /// Cuts off the first `len` elements, or all if there are fewer, without copying: gives them and keeps the rest.
    #[must_use = "dropping it gives part of the memory back"]
    pub fn split_to(&mut self, len: usize) -> Self {
        match self {
            Self::Slice(rest) => {
                let (first, others) = rest.split_at(len.min(rest.len()));
                *rest = others;
                Self::Slice(first)
            }
            Self::Pinned(rest) => {
                let others = rest.split_off(len.saturating_mul(T::BYTES));
                Self::Pinned(mem::replace(rest, others))
            }
        }
    }
}

impl<'a, T: Element> From<&'a [T::Host]> for HostData<'a, T> {
    fn from(host: &'a [T::Host]) -> Self {
        Self::Slice(host)
    }
}

impl<T: Element> From<HostBuffer> for HostData<'_, T> {
    fn from(host: HostBuffer) -> Self {
        Self::Pinned(host)
    }
}

impl<T: Element> fmt::Debug for HostData<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Slice(host) => f.debug_struct("Slice").field("len", &host.len()).finish(),
            Self::Pinned(host) => f.debug_tuple("Pinned").field(host).finish(),
        }
    }
}

impl<T: Element> Uploads<T> {
    /// Makes device memory of `len` elements for each of `slots` pieces at a time, at least one. The work on a piece is
    /// queued on the queue of its memory, one of [`Uploads::queues`].
    ///
    /// # Errors
    /// [`Error::TooLarge`] for memory of more bytes than a buffer may have, [`Error::OutOfMemory`] if the device has not as
    /// much left, [`Error::Driver`] if a call of the driver fails, [`Error::Lost`] if the device is lost.
    pub fn new(device: &Device, len: usize, slots: usize, secrecy: Secrecy) -> Result<Self> {
        let turns = Turns::new(device, len, slots.max(1), secrecy)?;
        let work = turns.queues().map(|queue| Work { queue: queue.clone(), readers: Readers::InOrder }).collect();
        Ok(Self { device: device.clone(), turns, work, back: VecDeque::new(), secrecy })
    }

    /// Makes device memory for pieces that are worked on on a queue of the caller's. `pieces` are the elements of each piece, in
    /// the order in which they will come; `slots` of them have memory at a time, at least one. With memory for several, uploads
    /// have one further queue, and it and that of the work wait for each other by events. With one piece, or memory for one, all
    /// is on the queue of the work, and there are no events.
    ///
    /// # Errors
    /// Returns the errors of [`Uploads::new`], for the same reasons.
    pub fn ahead_of(queue: impl Into<Queue>, pieces: &[usize], slots: usize, secrecy: Secrecy) -> Result<Self> {
        let work = queue.into();
        let device = work.device();
        let slots = slots.min(pieces.len()).max(1);
        let uploads = if slots > 1 { device.queue()? } else { work.clone() };
        let len = |slot| pieces.iter().skip(slot).step_by(slots).copied().max().unwrap_or(0);
        let turns = Turns::of((0..slots).map(|slot| Ok((uploads.clone(), device.alloc_with(len(slot), secrecy)?))))?;
        let readers = || if slots > 1 { Readers::None } else { Readers::InOrder };
        let work = (0..slots).map(|_| Work { queue: work.clone(), readers: readers() }).collect();
        Ok(Self { device: device.clone(), turns, work, back: VecDeque::new(), secrecy })
    }

    /// Returns the queue that the work on the pieces of each memory is given to, by the memory's number.
    pub fn queues(&self) -> impl Iterator<Item = &Queue> {
        self.work.iter().map(|work| &work.queue)
    }

    /// Returns pinned host memory of as many bytes as the device memory of the next piece, to be filled and given to
    /// [`Uploads::run`]: that of the oldest piece, which is waited for if all device memory is in use, or else new memory
    /// for uploads. What it holds is unspecified.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`] if new host memory is needed and there is none, [`Error::Driver`] if a call of the driver
    /// fails or the oldest piece could not be read, [`Error::Lost`] if the device is lost.
    pub fn host(&mut self) -> Result<HostBuffer> {
        self.free()?;
        let bytes = self.turns.stage().data.bytes() as usize;
        match self.back.pop_front() {
            Some(host) if host.len() == bytes => Ok(host),
            _ => self.device.host_buffer(bytes, Transfer::Upload, self.secrecy),
        }
    }

    /// Queues the upload of a piece to the start of the memory whose turn it is, and has `work` queue what reads it there. `work`
    /// gets the queue that it must use, the piece and the number of its memory, and what it gives is given. Memories take turns
    /// from number 0 on; a piece that failed leaves its turn to the next one. A slice is encoded when this returns. If all
    /// memory is in use, the upload of the oldest piece from pinned memory is waited for, but never its work.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] for a piece longer than the memory, [`Error::Length`] for pinned memory that is no whole number of
    /// elements, [`Error::WrongDevice`] for that of another device, [`Error::Unaligned`] for pinned memory that is not whole
    /// words of 4 bytes and does not fill the device memory, [`Error::OutOfMemory`] for staging memory of a slice,
    /// [`Error::Driver`] and [`Error::Lost`] if the device fails, and those of `work`. Pinned memory of the piece is dropped
    /// then; that of earlier pieces is not, but for one whose upload failed while it was waited for.
    pub fn run<'a, R, E: From<Error>>(
        &mut self,
        piece: impl Into<HostData<'a, T>>,
        work: impl FnOnce(&Queue, View<'_, T>, usize) -> Result<R, E>,
    ) -> Result<R, E> {
        self.free()?;
        // Idle as long as `work` may fail or panic.
        let Stage { slot, queue, data } = self.turns.stage();
        let Work { queue: reading, readers } = &mut self.work[*slot];
        match &*readers {
            Readers::InOrder | Readers::None => {}
            Readers::Until(event) => queue.wait_for(event)?,
            Readers::Unknown => queue.wait_for(&reading.record()?)?,
        }
        let (len, sent) = match piece.into() {
            HostData::Slice(host) => {
                queue.write(data.view_mut(..host.len())?, host)?;
                (host.len(), None)
            }
            HostData::Pinned(host) => {
                let len = host.len() / T::BYTES;
                (len, Some(queue.write_pinned(data.view_mut(..len)?, host)?))
            }
        };
        let in_order = matches!(readers, Readers::InOrder);
        if !in_order {
            reading.wait_for(&queue.record()?)?;
            *readers = Readers::Unknown;
        }
        let result = work(reading, data.view(..len)?, *slot)?;
        if !in_order {
            *readers = Readers::Until(reading.record()?);
        }
        self.turns.begin(sent.into_iter().collect());
        Ok(result)
    }

    /// Waits until the device has read the oldest piece from pinned memory that was not given back yet, if there is one, and
    /// gives its memory back: in the order of the calls of [`Uploads::run`], but for what [`Uploads::host`] has taken.
    ///
    /// # Errors
    /// [`Error::Driver`] if the device could not read the piece, [`Error::Lost`] if it is lost, [`Error::OutOfMemory`] with
    /// wgpu if there is no memory to give in place of the piece's. Its memory is dropped then.
    #[expect(clippy::should_implement_trait, reason = "an iterator could not be fed in between")]
    pub fn next(&mut self) -> Result<Option<HostBuffer>> {
        while self.back.is_empty() {
            match self.turns.next()? {
                Some(host) => self.back.extend(host),
                None => return Ok(None),
            }
        }
        Ok(self.back.pop_front())
    }

    /// Sees to it that a memory is idle.
    fn free(&mut self) -> Result<()> {
        let host = self.turns.free()?;
        self.back.extend(host.into_iter().flatten());
        Ok(())
    }
}

impl<T: Element> fmt::Debug for Uploads<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Uploads").field("slots", &self.work.len()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::{
        collections::BTreeSet,
        panic::{AssertUnwindSafe, catch_unwind},
    };

    use super::*;
    use crate::buffer::Buffer;

    const LEN: usize = 4;
    const PIECES: usize = 7;

    fn words(piece: usize) -> [u32; LEN] {
        std::array::from_fn(|i| (10 * piece + i) as u32)
    }

    fn all_words() -> Vec<u32> {
        (0..PIECES).flat_map(words).collect()
    }

    /// Both kinds, for pieces of the same length.
    fn both(device: &Device, slots: usize) -> [Uploads<u32>; 2] {
        let own = Uploads::new(device, LEN, slots, Secrecy::Secret).unwrap();
        [own, Uploads::ahead_of(device, &[LEN; PIECES], slots, Secrecy::Secret).unwrap()]
    }

    fn keep(out: &mut Buffer<u32>, piece: usize, queue: &Queue, data: View<'_, u32>) -> Result<()> {
        let at = piece * LEN;
        queue.copy(data, out.view_mut(at..at + data.len())?)
    }

    #[test]
    fn every_piece_is_worked_on_in_order_and_host_memory_is_used_again() {
        let device = Device::cpu();
        for slots in [0, 1, 2, 3, 9] {
            for mut uploads in both(&device, slots) {
                let count = uploads.queues().count();
                let mut out = device.alloc_with(PIECES * LEN, Secrecy::Secret).unwrap();
                out.clear().unwrap();
                let mut starts = BTreeSet::new();
                for piece in 0..PIECES {
                    let mut host = uploads.host().unwrap();
                    assert_eq!(host.len(), 4 * LEN);
                    starts.insert(host.as_ptr());
                    host.copy_from_slice(bytemuck::cast_slice(&words(piece)));
                    let work = |queue: &Queue, data: View<'_, u32>, slot| {
                        assert_eq!((slot, data.secrecy()), (piece % count, Secrecy::Secret));
                        keep(&mut out, piece, queue, data)
                    };
                    uploads.run(host, work).unwrap();
                }
                assert_eq!(out.to_vec().unwrap(), all_words());
                let in_use = count.min(PIECES);
                // This device exchanges host memory and its own instead of copying all of it.
                assert!(starts.len() <= 2 * in_use, "{slots}");
                let back = std::iter::from_fn(|| uploads.next().unwrap()).count();
                assert_eq!(back, in_use);
            }
        }
    }

    #[test]
    fn slices_and_parts_of_pinned_memory_come_in_pieces_of_any_length() {
        let (device, lens) = (Device::cpu(), [3, 9, 1, 8, 0, 7]);
        for slots in [1, 2, 4] {
            let all = all_words();
            let mut pinned = device.host_buffer(4 * all.len(), Transfer::Upload, Secrecy::Public).unwrap();
            pinned.copy_from_slice(bytemuck::cast_slice(&all));
            let parts = HostData::Pinned(pinned.split_off(0));
            for mut data in [HostData::Slice(&all), parts] {
                let mut out = Vec::new();
                let mut uploads = Uploads::ahead_of(&device, &lens, slots, Secrecy::Public).unwrap();
                assert_eq!(uploads.queues().count(), slots);
                for len in lens {
                    let read = |_: &Queue, piece: View<'_, u32>, _| {
                        out.extend(piece.to_vec()?);
                        Ok::<_, Error>(())
                    };
                    uploads.run(data.split_to(len), read).unwrap();
                }
                assert_eq!(out, all);
                while let Some(part) = uploads.next().unwrap() {
                    pinned.join(part).unwrap();
                }
            }
            assert_eq!(pinned.len(), 4 * all.len());
        }
    }

    #[test]
    fn pieces_that_fail_take_no_others_with_them() {
        let device = Device::cpu();
        for mut uploads in both(&device, 2) {
            let mut out = device.alloc_with(PIECES * LEN, Secrecy::Secret).unwrap();
            out.clear().unwrap();
            let host = |word: usize, len| {
                let mut host = device.host_buffer(4 * len, Transfer::Upload, Secrecy::Public).unwrap();
                host.fill(word as u8);
                host
            };
            let nothing = |_: &Queue, _: View<'_, u32>, _| Ok::<_, Error>(());
            let mut back = Vec::new();
            for piece in 0..PIECES {
                uploads.run(host(piece, 1 + piece % LEN), |queue, data, _| keep(&mut out, piece, queue, data)).unwrap();
                let index = piece as u64;
                let failed = uploads.run(host(99, LEN), |_, _, _| Err::<(), _>(Error::Undecodable { index }));
                assert_eq!(failed.unwrap_err(), Error::Undecodable { index });
                assert!(matches!(uploads.run(host(99, LEN + 1), nothing), Err(Error::OutOfRange { .. })));
                assert!(matches!(uploads.run(&[9; LEN + 1][..], nothing), Err(Error::OutOfRange { .. })));
                let mut part = host(99, LEN);
                drop(part.split_off(5));
                assert!(matches!(uploads.run(part, nothing), Err(Error::Length { .. })));
                let defect =
                    || uploads.run(host(99, LEN), |_, _, _| -> Result<()> { panic!("a defect of the caller's") });
                assert!(catch_unwind(AssertUnwindSafe(defect)).is_err());
                if piece % 3 == 2 {
                    back.extend(uploads.next().unwrap());
                }
            }
            while let Some(host) = uploads.next().unwrap() {
                back.push(host);
            }
            let expected = |i| if i % LEN <= i / LEN % LEN { 0x0101_0101 * (i / LEN) as u32 } else { 0 };
            assert!(out.to_vec().unwrap().into_iter().eq((0..PIECES * LEN).map(expected)));
            assert!(back.iter().map(|host| host.len()).eq((0..PIECES).map(|piece| 4 * (1 + piece % LEN))));
        }
    }

    #[test]
    fn no_pieces_need_nothing() {
        let device = Device::cpu();
        for mut uploads in both(&device, 2) {
            assert!(uploads.next().unwrap().is_none());
        }
        let mut uploads = Uploads::<u32>::ahead_of(&device, &[], 2, Secrecy::Public).unwrap();
        assert_eq!(uploads.run(&[][..], |_, data, slot| Ok::<_, Error>((data.len(), slot))).unwrap(), (0, 0));
        assert!(uploads.next().unwrap().is_none());
        assert!(uploads.host().unwrap().is_empty());
    }
}
