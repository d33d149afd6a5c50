use std::{
    collections::VecDeque,
    fmt,
    marker::PhantomData,
    ops::Range,
    sync::atomic::{AtomicU64, Ordering},
};

use crate::{Device, Error, Event, HostBuffer, Memory, Pending, Queue, Result, Secrecy, Transfer, parallel};

/// A type that buffers hold: how the host sees it and which bytes the device sees.
pub trait Element: Send + Sync + 'static {
    /// The value on the host.
    type Host: Copy + Default + Send + Sync + 'static;

    /// Bytes of one element on the device, at least 1: a program with buffers of elements of none does not compile.
    const BYTES: usize;

    /// Writes the device form of `src`; `dst` has `src.len() * BYTES` bytes. It is aligned to 16 where `BYTES` is a multiple
    /// of 4, else to the largest power of two that divides `BYTES`.
    fn encode(src: &[Self::Host], dst: &mut [u8]);

    /// Reads the device form; `src` has `dst.len() * BYTES` bytes and is aligned as for [`Element::encode`].
    ///
    /// # Errors
    /// [`Error::Undecodable`] with the first element whose bytes are no device form: only values that [`Element::encode`]
    /// can give come out, whatever the memory holds. `dst` has other values from there on.
    fn decode(src: &[u8], dst: &mut [Self::Host]) -> Result<()>;
}

/// [`Element::decode`] on all cores.
///
/// # Errors
/// [`Error::Undecodable`].
///
/// # Panics
/// If `src` has not `dst.len() * T::BYTES` bytes.
pub fn decode<T: Element>(src: &[u8], dst: &mut [T::Host]) -> Result<()> {
    assert_eq!(Some(src.len()), dst.len().checked_mul(T::BYTES), "bytes of {} elements", dst.len());
    let (grain, first) = (grain::<T>(), AtomicU64::new(u64::MAX));
    parallel::chunks(dst, grain, &|i, dst| {
        if let Err(error) = T::decode(&src[i * grain * T::BYTES..][..dst.len() * T::BYTES], dst) {
            let within = if let Error::Undecodable { index } = error { index } else { 0 };
            first.fetch_min((i * grain) as u64 + within, Ordering::Relaxed);
        }
    });
    match first.into_inner() {
        u64::MAX => Ok(()),
        index => Err(Error::Undecodable { index }),
    }
}

macro_rules! plain_element {
    ($($t:ty),*) => {$(
        impl Element for $t {
            type Host = Self;

            const BYTES: usize = size_of::<Self>();

            fn encode(src: &[Self], dst: &mut [u8]) {
                dst.copy_from_slice(bytemuck::cast_slice(src));
            }

            fn decode(src: &[u8], dst: &mut [Self]) -> Result<()> {
                bytemuck::cast_slice_mut(dst).copy_from_slice(src);
                Ok(())
            }
        }
    )*};
}

plain_element!(u8, u32, u64);

/// Bytes that one thread encodes or decodes at a time.
const GRAIN_BYTES: usize = 128 << 10;

/// Elements that one thread encodes or decodes at a time: so many that all start aligned as the first.
fn grain<T: Element>() -> usize {
    const { assert!(T::BYTES > 0, "an element has at least one byte") };
    (GRAIN_BYTES / T::BYTES).next_multiple_of(ALIGN).max(ALIGN)
}

/// Alignment that encoders and decoders count on, at most.
const ALIGN: usize = 16;

/// Pieces of a download that are under way at once: one is decoded while the next is copied.
const READS_IN_FLIGHT: usize = 2;

/// Elements in the memory of a device.
///
/// Lengths and offsets count elements. A buffer keeps its device alive.
pub struct Buffer<T: Element> {
    pub(crate) device: Device,
    pub(crate) memory: Memory,
    len: usize,
    secrecy: Secrecy,
    element: PhantomData<fn() -> T>,
}

impl<T: Element> Buffer<T> {
    pub(crate) fn from_parts(device: Device, memory: Memory, len: usize, secrecy: Secrecy) -> Self {
        Self { device, memory, len, secrecy, element: PhantomData }
    }

    /// The device that holds it.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// Elements.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether it holds no elements.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Bytes on the device.
    pub fn bytes(&self) -> u64 {
        self.memory.bytes()
    }

    /// Whether it is zeroed when dropped.
    pub fn secrecy(&self) -> Secrecy {
        self.secrecy
    }

    /// The contents. Waits for earlier work on the default queue.
    ///
    /// # Errors
    /// [`Error::Undecodable`], [`Error::OutOfMemory`] for staging memory, [`Error::Driver`], [`Error::Lost`].
    pub fn to_vec(&self) -> Result<Vec<T::Host>> {
        let mut host = vec![T::Host::default(); self.len];
        self.read_at(0, &mut host)?;
        Ok(host)
    }

    /// Reads `host.len()` elements from `offset` on. Waits for earlier work on the default queue.
    ///
    /// # Errors
    /// [`Error::OutOfRange`], [`Error::Undecodable`], [`Error::OutOfMemory`] for staging memory, [`Error::Driver`],
    /// [`Error::Lost`].
    pub fn read_at(&self, offset: usize, host: &mut [T::Host]) -> Result<()> {
        self.read_on(None, offset, host.len())?.wait_into(host)
    }

    /// Queues a copy of `len` elements from `offset` on to the host (`None`: on the default queue).
    ///
    /// # Errors
    /// [`Error::OutOfRange`], [`Error::OutOfMemory`] for staging memory, [`Error::Driver`], [`Error::Lost`].
    pub fn read_on(&self, queue: Option<&Queue>, offset: usize, len: usize) -> Result<Download<'_, T>> {
        self.expect_range("read", offset, len)?;
        let queue = queue.cloned().unwrap_or_else(|| self.device.backend().default_queue().clone());
        let mut download = Download { buffer: self, queue, pending: VecDeque::new(), next: offset, end: offset + len };
        download.fill()?;
        Ok(download)
    }

    /// Replaces `host.len()` elements from `offset` on. Returns when `host` has been read, which may be before the
    /// device has the data; later work on the default queue sees it.
    ///
    /// # Errors
    /// [`Error::OutOfRange`], [`Error::OutOfMemory`] for staging memory, [`Error::Driver`], [`Error::Lost`].
    pub fn write_at(&mut self, offset: usize, host: &[T::Host]) -> Result<()> {
        self.write_on(None, offset, host)
    }

    /// [`Buffer::write_at`] on another queue (`None`: the default one).
    ///
    /// # Errors
    /// [`Error::OutOfRange`], [`Error::OutOfMemory`] for staging memory, [`Error::Driver`], [`Error::Lost`].
    pub fn write_on(&mut self, queue: Option<&Queue>, offset: usize, host: &[T::Host]) -> Result<()> {
        self.expect_range("write", offset, host.len())?;
        let queue = queue.cloned().unwrap_or_else(|| self.device.backend().default_queue().clone());
        let step = self.staging_len();
        for (piece, offset) in host.chunks(step).zip((offset..).step_by(step)) {
            let bytes = byte_range::<T>(offset, piece.len());
            let covered = self.covered(&bytes);
            let mut staging = if covered == bytes {
                self.staging(&covered, Transfer::Upload)?
            } else {
                // The device writes whole words: the bytes around an unaligned piece are written back as they are.
                let staging = self.staging(&covered, Transfer::Download)?;
                self.device.backend().read(&queue, &self.memory, covered.start, staging)?.wait()?
            };
            let skip = (bytes.start - covered.start) as usize;
            let target = &mut staging[skip..][..(bytes.end - bytes.start) as usize];
            let grain = grain::<T>();
            parallel::chunks(target, grain * T::BYTES, &|i, target| {
                T::encode(&piece[i * grain..][..target.len() / T::BYTES], target);
            });
            drop(self.device.backend().write(&queue, &mut self.memory, covered.start, staging)?);
        }
        Ok(())
    }

    /// Queues a copy of all of `host`, which holds elements in the device's form ([`Element::encode`]), to the elements
    /// from `offset` on (`None`: on the default queue). Nothing is copied in between: with CUDA the device reads the host
    /// memory itself. The memory comes back from [`Pending::wait`].
    ///
    /// # Errors
    /// [`Error::WrongDevice`] for host memory of another device, [`Error::Length`] unless it holds whole elements,
    /// [`Error::OutOfRange`], [`Error::Unaligned`] for a range that is not whole words of 4 bytes, except at the end of
    /// the buffer, [`Error::Driver`], [`Error::Lost`]. The host memory is dropped then.
    pub fn write_pinned(&mut self, queue: Option<&Queue>, offset: usize, host: HostBuffer) -> Result<Pending> {
        let at = self.expect_pinned("write", offset, &host)?;
        let backend = self.device.backend();
        backend.write(queue.unwrap_or_else(|| backend.default_queue()), &mut self.memory, at, host)
    }

    /// Queues a copy of elements from `offset` on, in the device's form ([`Element::decode`]), that fills all of `host`
    /// (`None`: on the default queue). [`Pending::wait`] gives it back.
    ///
    /// # Errors
    /// As [`Buffer::write_pinned`], and [`Error::WrongTransfer`] for host memory for uploads.
    pub fn read_pinned(&self, queue: Option<&Queue>, offset: usize, host: HostBuffer) -> Result<Pending> {
        host.expect_download("the host memory of a read")?;
        let at = self.expect_pinned("read", offset, &host)?;
        let backend = self.device.backend();
        backend.read(queue.unwrap_or_else(|| backend.default_queue()), &self.memory, at, host)
    }

    /// [`Buffer::write_pinned`] of a matrix of `rows` rows, in `pieces` blocks of neighbouring columns of equal width. Each
    /// event marks when a block is there, so that work on it can start while the next is on its way; where a device does not
    /// copy by columns, all do so at the end.
    ///
    /// # Errors
    /// As [`Buffer::write_pinned`], and [`Error::Length`] unless rows of all blocks have the same number of elements.
    pub fn write_pinned_columns(
        &mut self,
        queue: Option<&Queue>,
        offset: usize,
        host: HostBuffer,
        rows: usize,
        pieces: usize,
    ) -> Result<(Vec<Event>, Pending)> {
        let at = self.expect_columns("write", offset, &host, rows, pieces)?;
        let backend = self.device.backend();
        let queue = queue.unwrap_or_else(|| backend.default_queue());
        backend.write_columns(queue, &mut self.memory, at, host, rows, pieces)
    }

    /// [`Buffer::read_pinned`] of a matrix of `rows` rows, in as many blocks of neighbouring columns of equal width as there
    /// are events in `after`. Each is copied after its event, while those behind are still worked on; where a device does not
    /// copy by columns, after the last.
    ///
    /// # Errors
    /// As [`Buffer::read_pinned`], and [`Error::Length`] unless rows of all blocks have the same number of elements.
    pub fn read_pinned_columns(
        &self,
        queue: Option<&Queue>,
        offset: usize,
        host: HostBuffer,
        rows: usize,
        after: &[Event],
    ) -> Result<Pending> {
        host.expect_download("the host memory of a read")?;
        let at = self.expect_columns("read", offset, &host, rows, after.len())?;
        let backend = self.device.backend();
        backend.read_columns(queue.unwrap_or_else(|| backend.default_queue()), &self.memory, at, host, rows, after)
    }

    /// Checks a transfer of a matrix in blocks of columns and gives where it starts in bytes.
    fn expect_columns(
        &self,
        what: &'static str,
        offset: usize,
        host: &HostBuffer,
        rows: usize,
        pieces: usize,
    ) -> Result<u64> {
        let at = self.expect_pinned(what, offset, host)?;
        let (len, unit) = (host.len() as u64, rows.saturating_mul(pieces).saturating_mul(T::BYTES) as u64);
        let expected = match unit {
            0 => 0,
            // Nothing is one block at most: blocks without columns could be any number.
            _ if pieces > 1 => len.max(1).checked_next_multiple_of(unit).unwrap_or(unit),
            _ => len.checked_next_multiple_of(unit).unwrap_or(unit),
        };
        let expected = if len == 0 && pieces > 1 { unit.max(T::BYTES as u64) } else { expected };
        if expected != len {
            return Err(Error::Length { what: "the blocks of columns of a copy, in bytes", expected, actual: len });
        }
        Ok(at)
    }

    /// Checks a transfer of whole host memory and gives where it starts in bytes.
    fn expect_pinned(&self, what: &'static str, offset: usize, host: &HostBuffer) -> Result<u64> {
        let (expected, actual) = (self.device.info().id, host.device());
        if expected != actual {
            return Err(Error::WrongDevice { what: "the host memory of a copy", expected, actual });
        }
        let len = host.len() / T::BYTES;
        if len * T::BYTES != host.len() {
            let (expected, actual) = (((len + 1) * T::BYTES) as u64, host.len() as u64);
            return Err(Error::Length { what: "the host memory of a copy, in bytes", expected, actual });
        }
        Ok(self.expect_words(what, offset, len)?.start)
    }

    /// Copies all of `source`, on the same device and of the same length, into this buffer.
    ///
    /// # Errors
    /// [`Error::WrongDevice`], [`Error::Length`], [`Error::Driver`], [`Error::Lost`].
    pub fn copy_from(&mut self, source: &Self) -> Result<()> {
        self.device.expect_same("the source of a copy", &source.device)?;
        source.expect_len("the source of a copy", self.len)?;
        let backend = self.device.backend();
        backend.copy(backend.default_queue(), &source.memory, 0, &mut self.memory, 0, source.memory.bytes())
    }

    /// Copies `len` elements of `source`, from `from` on, to those from `at` on, on a queue (`None`: the default one).
    ///
    /// # Errors
    /// [`Error::WrongDevice`], [`Error::OutOfRange`], [`Error::Unaligned`] for ranges that are not whole words of 4 bytes,
    /// except at the end of a buffer, [`Error::Driver`], [`Error::Lost`].
    pub fn copy_range(
        &mut self,
        queue: Option<&Queue>,
        at: usize,
        source: &Self,
        from: usize,
        len: usize,
    ) -> Result<()> {
        self.device.expect_same("the source of a copy", &source.device)?;
        let (to, from) = (self.expect_words("copy", at, len)?, source.expect_words("copy", from, len)?);
        let backend = self.device.backend();
        let queue = queue.unwrap_or_else(|| backend.default_queue());
        backend.copy(queue, &source.memory, from.start, &mut self.memory, to.start, to.end - to.start)
    }

    /// Sets the device form of `len` elements from `at` on to zero, on a queue (`None`: the default one).
    ///
    /// # Errors
    /// As [`Buffer::copy_range`].
    pub fn clear_range(&mut self, queue: Option<&Queue>, at: usize, len: usize) -> Result<()> {
        let bytes = self.expect_words("clear", at, len)?;
        let backend = self.device.backend();
        let queue = queue.unwrap_or_else(|| backend.default_queue());
        backend.clear(queue, &mut self.memory, bytes.start, bytes.end - bytes.start)
    }

    /// The bytes of a range of elements, which must be whole words.
    fn expect_words(&self, what: &'static str, offset: usize, count: usize) -> Result<Range<u64>> {
        self.expect_range(what, offset, count)?;
        let bytes = byte_range::<T>(offset, count);
        match self.covered(&bytes) == bytes {
            true => Ok(bytes),
            false => Err(Error::Unaligned { what, expected: 4, offset: bytes.start, count: bytes.end - bytes.start }),
        }
    }

    /// Sets all bytes of the device form to zero.
    ///
    /// # Errors
    /// [`Error::Driver`], [`Error::Lost`].
    pub fn clear(&mut self) -> Result<()> {
        let backend = self.device.backend();
        let bytes = self.memory.bytes();
        backend.clear(backend.default_queue(), &mut self.memory, 0, bytes)
    }

    /// A copy on the same device.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`], [`Error::Driver`], [`Error::Lost`].
    pub fn duplicate(&self) -> Result<Self> {
        let mut copy = self.device.alloc_with(self.len, self.secrecy)?;
        copy.copy_from(self)?;
        Ok(copy)
    }

    /// Refuses this buffer, the argument called `what`, unless it has `len` elements.
    ///
    /// # Errors
    /// [`Error::Length`].
    pub fn expect_len(&self, what: &'static str, len: usize) -> Result<()> {
        if self.len == len {
            return Ok(());
        }
        Err(Error::Length { what, expected: len as u64, actual: self.len as u64 })
    }

    fn expect_range(&self, what: &'static str, offset: usize, count: usize) -> Result<()> {
        match offset.checked_add(count) {
            Some(end) if end <= self.len => Ok(()),
            _ => Err(Error::OutOfRange { what, offset: offset as u64, count: count as u64, len: self.len as u64 }),
        }
    }

    /// Elements that pass through staging memory in one piece.
    fn staging_len(&self) -> usize {
        let bytes = self.device.info().limits.staging_bytes / T::BYTES as u64;
        // Not so many that their end could leave the range of indices.
        usize::try_from(bytes).unwrap_or(usize::MAX).clamp(1, isize::MAX as usize / 2).next_multiple_of(4)
    }

    /// The words around a range of bytes.
    fn covered(&self, bytes: &Range<u64>) -> Range<u64> {
        bytes.start / 4 * 4..bytes.end.next_multiple_of(4).min(self.memory.bytes())
    }

    fn staging(&self, covered: &Range<u64>, transfer: Transfer) -> Result<HostBuffer> {
        self.device.backend().host_buffer((covered.end - covered.start) as usize, transfer, self.secrecy)
    }
}

impl<T: Element> fmt::Debug for Buffer<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Buffer")
            .field("device", &self.device)
            .field("len", &self.len)
            .field("element", &std::any::type_name::<T>())
            .finish_non_exhaustive()
    }
}

fn byte_range<T: Element>(offset: usize, len: usize) -> Range<u64> {
    let size = T::BYTES as u64;
    offset as u64 * size..(offset + len) as u64 * size
}

/// A copy to the host that is under way, in pieces: one is decoded while the next are copied.
#[must_use = "the data is there only after `wait`"]
pub struct Download<'a, T: Element> {
    buffer: &'a Buffer<T>,
    queue: Queue,
    pending: VecDeque<(Range<usize>, Pending)>,
    next: usize,
    end: usize,
}

impl<T: Element> Download<'_, T> {
    /// Waits for the elements.
    ///
    /// # Errors
    /// [`Error::Undecodable`], [`Error::OutOfMemory`] for staging memory, [`Error::Driver`], [`Error::Lost`].
    pub fn wait(self) -> Result<Vec<T::Host>> {
        let start = self.pending.front().map_or(self.end, |(range, _)| range.start);
        let mut host = vec![T::Host::default(); self.end - start];
        self.wait_into(&mut host)?;
        Ok(host)
    }

    /// Waits for the elements, as many as `host` has.
    ///
    /// # Errors
    /// [`Error::Length`], [`Error::Undecodable`], [`Error::OutOfMemory`] for staging memory, [`Error::Driver`],
    /// [`Error::Lost`].
    pub fn wait_into(mut self, mut host: &mut [T::Host]) -> Result<()> {
        let start = self.pending.front().map_or(self.end, |(range, _)| range.start);
        if host.len() != self.end - start {
            let (expected, actual) = ((self.end - start) as u64, host.len() as u64);
            return Err(Error::Length { what: "the target of a read", expected, actual });
        }
        while let Some((range, pending)) = self.pending.pop_front() {
            let staging = pending.wait()?;
            self.fill()?;
            let (piece, rest) = host.split_at_mut(range.len());
            let bytes = byte_range::<T>(range.start, range.len());
            let skip = (bytes.start - self.buffer.covered(&bytes).start) as usize;
            let source = &staging[skip..][..(bytes.end - bytes.start) as usize];
            decode::<T>(source, piece).map_err(|error| match error {
                Error::Undecodable { index } => Error::Undecodable { index: range.start as u64 + index },
                error => error,
            })?;
            host = rest;
        }
        Ok(())
    }

    fn fill(&mut self) -> Result<()> {
        while self.next < self.end && self.pending.len() < READS_IN_FLIGHT {
            let range = self.next..self.end.min(self.next + self.buffer.staging_len());
            let covered = self.buffer.covered(&byte_range::<T>(range.start, range.len()));
            let staging = self.buffer.staging(&covered, Transfer::Download)?;
            let backend = self.buffer.device.backend();
            let pending = backend.read(&self.queue, &self.buffer.memory, covered.start, staging)?;
            self.next = range.end;
            self.pending.push_back((range, pending));
        }
        Ok(())
    }
}

impl<T: Element> fmt::Debug for Download<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Download").field("buffer", &self.buffer).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Asserts the alignment that is promised, and decodes even first bytes only.
    struct Checked<const BYTES: usize>;

    impl<const BYTES: usize> Element for Checked<BYTES> {
        type Host = u8;

        const BYTES: usize = BYTES;

        fn encode(src: &[u8], dst: &mut [u8]) {
            Self::expect_aligned(dst);
            src.iter().zip(dst.chunks_exact_mut(BYTES)).for_each(|(x, bytes)| bytes.fill(*x));
        }

        fn decode(src: &[u8], dst: &mut [u8]) -> Result<()> {
            Self::expect_aligned(src);
            for (index, (x, bytes)) in dst.iter_mut().zip(src.chunks_exact(BYTES)).enumerate() {
                if bytes[0] % 2 == 1 {
                    return Err(Error::Undecodable { index: index as u64 });
                }
                *x = bytes[0];
            }
            Ok(())
        }
    }

    impl<const BYTES: usize> Checked<BYTES> {
        fn expect_aligned(bytes: &[u8]) {
            let promised = if BYTES.is_multiple_of(4) { ALIGN } else { 1 << BYTES.trailing_zeros() };
            assert!(bytes.as_ptr().addr().is_multiple_of(promised), "{BYTES} bytes are not aligned to {promised}");
        }
    }

    fn check<const BYTES: usize>() {
        let device = Device::cpu();
        let host: Vec<u8> = (0..100_003u32).map(|i| (2 * i) as u8).collect();
        let mut buffer = device.upload::<Checked<BYTES>>(&host).unwrap();
        assert_eq!(buffer.to_vec().unwrap(), host);
        for offset in 1..5 {
            buffer.write_at(offset, &host[offset..99_990]).unwrap();
            let mut part = vec![1; 99_900];
            buffer.read_at(offset, &mut part).unwrap();
            assert_eq!(part, host[offset..][..99_900]);
        }
        // One byte that is no element's, at the places where threads meet.
        for index in [0, 1, grain::<Checked<BYTES>>() - 1, grain::<Checked<BYTES>>(), 99_999] {
            let index = index.min(host.len() - 1);
            let mut wrong = host.clone();
            wrong[index] = 1;
            buffer.write_at(0, &wrong).unwrap();
            assert_eq!(buffer.to_vec().unwrap_err(), Error::Undecodable { index: index as u64 });
            let start = index.saturating_sub(3);
            let error = buffer.read_at(start, &mut vec![0; host.len() - start]).unwrap_err();
            assert_eq!(error, Error::Undecodable { index: index as u64 });
        }
    }

    #[test]
    fn elements_of_any_size_are_aligned_as_promised_and_told_when_they_are_none() {
        check::<1>();
        check::<2>();
        check::<3>();
        check::<6>();
        check::<12>();
        check::<24>();
        check::<40>();
        check::<48>();
        check::<520>();
    }

    #[test]
    fn sizes_at_their_extremes_are_errors() {
        let device = Device::cpu();
        for len in [usize::MAX, usize::MAX / 8, usize::MAX / 8 + 1, isize::MAX as usize] {
            let error = device.alloc::<u64>(len).unwrap_err();
            assert!(matches!(error, Error::TooLarge { .. } | Error::OutOfMemory { .. }), "{error}");
            let error = device.host_buffer(len, Transfer::Both, Secrecy::Public).unwrap_err();
            assert!(matches!(error, Error::OutOfMemory { .. }), "{error}");
        }
        let mut x = device.zeros::<u32>(4).unwrap();
        let y = device.upload::<u32>(&[1; 4]).unwrap();
        for (at, len) in [(usize::MAX, 1), (usize::MAX, usize::MAX), (1, usize::MAX), (5, 0), (0, 5)] {
            let outcomes = [
                x.clear_range(None, at, len),
                x.copy_range(None, at, &y, 0, len),
                x.copy_range(None, 0, &y, at, len),
                x.read_on(None, at, len).map(drop),
            ];
            assert!(outcomes.iter().all(|outcome| matches!(outcome, Err(Error::OutOfRange { .. }))), "{outcomes:?}");
        }
        assert_eq!(x.to_vec().unwrap(), [0; 4]);
        for (rows, pieces) in [(usize::MAX, usize::MAX), (0, usize::MAX), (1, usize::MAX), (usize::MAX, 0), (3, 1)] {
            for len in [0, 16] {
                let host = device.host_buffer(len, Transfer::Both, Secrecy::Public).unwrap();
                let written = x.write_pinned_columns(None, 0, host, rows, pieces);
                let is_nothing = len == 0 && pieces <= 1;
                assert!(is_nothing || matches!(written, Err(Error::Length { .. })), "{rows} × {pieces}: {written:?}");
            }
        }
    }
}
