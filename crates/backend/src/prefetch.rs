//! Host data that is uploaded in pieces, ahead of the work on it.

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
    slots::{Slot, Slots},
    view::View,
};

/// Uploads host data ahead of the work on it: while the device works on one piece, the next is uploaded. The results
/// stay on the device. [`crate::PinnedPipeline`] is for pieces that go back to the host.
///
/// The work on a piece is queued on the queue of its slot ([`Prefetch::new`]), or on a queue that you name
/// ([`Prefetch::ahead_of`]). In either case the work starts when the piece is there, and the slot takes another piece
/// when the work is done.
///
/// ```
/// # fn main() -> Result<(), evariste_backend::Error> {
/// use evariste_backend::{Device, Secrecy, Prefetch};
///
/// let device = Device::best()?;
/// let mut kept = device.alloc::<u32>(10)?;
/// let mut uploads = Prefetch::<u32>::new(&device, 4, 2, Secrecy::Public)?;
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
pub struct Prefetch<T: Element> {
    device: Device,
    slots: Slots<T>,
    /// The work on the pieces of each slot, by its number.
    work: Vec<Work>,
    /// Host memory that the device has read, oldest first.
    back: VecDeque<HostBuffer>,
    secrecy: Secrecy,
}

/// What reads the pieces in one slot.
struct Work {
    queue: Queue,
    readers: Readers,
}

/// What the next upload to a slot has to wait for.
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
    /// In ordinary memory. It is encoded ([`Element::encode`]) on its way.
    Slice(&'a [T::Host]),
    /// In pinned memory ([`Device::host_buffer`]), already encoded.
    Pinned(HostBuffer),
}

impl<T: Element> HostData<'_, T> {
    /// Splits off and returns the first `len` elements, or all if there are fewer, without copying.
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

impl<T: Element> Prefetch<T> {
    /// Makes `slots` slots, at least one, with device memory for `len` elements each. The work on a piece is queued on
    /// the queue of its slot, one of [`Prefetch::queues`].
    ///
    /// # Errors
    /// - [`Error::TooLarge`] if a buffer cannot have `len` elements.
    /// - [`Error::OutOfMemory`] if the device has no room for all slots.
    /// - [`Error::Driver`] if a call of the driver fails.
    /// - [`Error::Lost`] if the device is lost.
    pub fn new(device: &Device, len: usize, slots: usize, secrecy: Secrecy) -> Result<Self> {
        let slots = Slots::new(device, len, slots.max(1), secrecy)?;
        let work = slots.queues().map(|queue| Work { queue: queue.clone(), readers: Readers::InOrder }).collect();
        Ok(Self { device: device.clone(), slots, work, back: VecDeque::new(), secrecy })
    }

    /// Makes slots for work on a queue that you name. `pieces` are the lengths of the pieces in elements, in order; at
    /// most `slots` of them have memory at a time.
    ///
    /// With several slots, uploads have a queue of their own, and both queues wait for each other by events. With one
    /// slot or one piece, uploads and work share your queue, and there are no events.
    ///
    /// # Errors
    /// - [`Error::TooLarge`] if a buffer cannot have the elements of a piece.
    /// - [`Error::OutOfMemory`] if the device has no room for all slots.
    /// - [`Error::Driver`] if a call of the driver fails.
    /// - [`Error::Lost`] if the device is lost.
    pub fn ahead_of(queue: impl Into<Queue>, pieces: &[usize], slots: usize, secrecy: Secrecy) -> Result<Self> {
        let work = queue.into();
        let device = work.device();
        let count = slots.min(pieces.len()).max(1);
        let uploads = if count > 1 { device.queue()? } else { work.clone() };
        let len = |slot| pieces.iter().skip(slot).step_by(count).copied().max().unwrap_or(0);
        let slots = Slots::of((0..count).map(|slot| Ok((uploads.clone(), device.alloc_with(len(slot), secrecy)?))))?;
        let readers = || if count > 1 { Readers::None } else { Readers::InOrder };
        let work = (0..count).map(|_| Work { queue: work.clone(), readers: readers() }).collect();
        Ok(Self { device: device.clone(), slots, work, back: VecDeque::new(), secrecy })
    }

    /// Returns the queue for the work on the pieces of each slot, by the number of the slot.
    pub fn queues(&self) -> impl Iterator<Item = &Queue> {
        self.work.iter().map(|work| &work.queue)
    }

    /// Returns pinned host memory as long as the next slot, for you to fill and give to [`Prefetch::run`]. Its contents
    /// are unspecified. If all slots are busy, it is the memory of the oldest piece, once the device has read that;
    /// otherwise it is new.
    ///
    /// # Errors
    /// - [`Error::OutOfMemory`] if there is no host memory.
    /// - [`Error::Driver`] if a call of the driver fails or the device could not read the oldest piece.
    /// - [`Error::Lost`] if the device is lost.
    pub fn host(&mut self) -> Result<HostBuffer> {
        self.free()?;
        let bytes = self.slots.first().data.bytes() as usize;
        match self.back.pop_front() {
            Some(host) if host.len() == bytes => Ok(host),
            _ => self.device.host_buffer(bytes, Transfer::Upload, self.secrecy),
        }
    }

    /// Queues the upload of a piece to the start of the next slot, and lets `work` queue what reads it there. `work`
    /// receives the queue to use, a view of the piece, and the number of the slot. Its result is returned.
    ///
    /// Pieces take the slots in turn, from number 0 on. A piece that fails leaves its slot to the next piece. A slice
    /// has been encoded when this returns. If all slots are busy, this waits for the upload of the oldest pinned piece,
    /// never for work.
    ///
    /// # Errors
    /// - [`Error::OutOfRange`] if the piece is longer than the slot.
    /// - [`Error::Length`] if the piece is pinned memory and no whole number of elements.
    /// - [`Error::WrongDevice`] if it is pinned memory of another device.
    /// - [`Error::Unaligned`] if it is pinned memory, not whole words of 4 bytes, and does not fill the slot.
    /// - [`Error::OutOfMemory`] if there is no staging memory for a slice.
    /// - [`Error::Driver`] if a call of the driver fails.
    /// - [`Error::Lost`] if the device is lost.
    /// - The error of `work`.
    ///
    /// Pinned memory of the piece is dropped then. That of earlier pieces is kept, except a piece whose upload failed.
    pub fn run<'a, R, E: From<Error>>(
        &mut self,
        piece: impl Into<HostData<'a, T>>,
        work: impl FnOnce(&Queue, View<'_, T>, usize) -> Result<R, E>,
    ) -> Result<R, E> {
        self.free()?;
        // Idle as long as `work` may fail or panic.
        let Slot { number, queue, data } = self.slots.first();
        let Work { queue: reading, readers } = &mut self.work[*number];
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
        let result = work(reading, data.view(..len)?, *number)?;
        if !in_order {
            *readers = Readers::Until(reading.record()?);
        }
        self.slots.begin(sent.into_iter().collect());
        Ok(result)
    }

    /// Waits until the device has read the oldest pinned piece that was not returned yet, if there is one, and returns
    /// its memory. The order is that of the calls of [`Prefetch::run`]; [`Prefetch::host`] takes memory out of it.
    ///
    /// # Errors
    /// - [`Error::Driver`] if the device could not read the piece.
    /// - [`Error::Lost`] if it is lost.
    /// - [`Error::OutOfMemory`] with wgpu if there is no memory to return in place of the piece's.
    ///
    /// The memory is dropped then.
    #[expect(clippy::should_implement_trait, reason = "an iterator could not be fed in between")]
    pub fn next(&mut self) -> Result<Option<HostBuffer>> {
        while self.back.is_empty() {
            match self.slots.next()? {
                Some(host) => self.back.extend(host),
                None => return Ok(None),
            }
        }
        Ok(self.back.pop_front())
    }

    /// Sees to it that a slot is idle.
    fn free(&mut self) -> Result<()> {
        let host = self.slots.free()?;
        self.back.extend(host.into_iter().flatten());
        Ok(())
    }
}

impl<T: Element> fmt::Debug for Prefetch<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Prefetch").field("slots", &self.work.len()).finish_non_exhaustive()
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
    fn both(device: &Device, slots: usize) -> [Prefetch<u32>; 2] {
        let own = Prefetch::new(device, LEN, slots, Secrecy::Secret).unwrap();
        [own, Prefetch::ahead_of(device, &[LEN; PIECES], slots, Secrecy::Secret).unwrap()]
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
                let mut uploads = Prefetch::ahead_of(&device, &lens, slots, Secrecy::Public).unwrap();
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
        let mut uploads = Prefetch::<u32>::ahead_of(&device, &[], 2, Secrecy::Public).unwrap();
        assert_eq!(uploads.run(&[][..], |_, data, slot| Ok::<_, Error>((data.len(), slot))).unwrap(), (0, 0));
        assert!(uploads.next().unwrap().is_none());
        assert!(uploads.host().unwrap().is_empty());
    }
}
