//! Copies on a queue.

use std::ops::Range;

use crate::{
    buffer::{Buffer, ByteCheck, Element, chunk_len, decode},
    device::Device,
    error::{Error, Result},
    handles::Event,
    host::{HostBuffer, Pending},
    info::Transfer,
    parallel,
    queue::Queue,
    secrecy::Secrecy,
    span::{Owner, SpanMut},
    transfer::Download,
    view::{View, ViewMut, byte_range, covered, expect_columns},
    zeroize::Wiped,
};

/// Copies on this queue. [`Buffer`] and its views copy on the default queue.
impl Queue {
    /// Makes a buffer with the elements of `host`.
    ///
    /// # Errors
    /// - [`Error::TooLarge`] if a buffer cannot have that many elements
    ///   ([`Limits::buffer_bytes`](crate::Limits::buffer_bytes)).
    /// - [`Error::OutOfMemory`] if there is no memory for the buffer or for staging.
    /// - [`Error::Driver`] if a call of the driver fails.
    /// - [`Error::Lost`] if the device is lost.
    pub fn upload<T: Element>(&self, host: &[T::Host]) -> Result<Buffer<T>> {
        self.upload_with(host, Secrecy::Public)
    }

    /// Makes a buffer with the elements of `host`. If it is [`Secrecy::Secret`], it is zeroed when it is dropped.
    ///
    /// # Errors
    /// - [`Error::TooLarge`] if a buffer cannot have that many elements
    ///   ([`Limits::buffer_bytes`](crate::Limits::buffer_bytes)).
    /// - [`Error::OutOfMemory`] if there is no memory for the buffer or for staging.
    /// - [`Error::Driver`] if a call of the driver fails.
    /// - [`Error::Lost`] if the device is lost.
    pub fn upload_with<T: Element>(&self, host: &[T::Host], secrecy: Secrecy) -> Result<Buffer<T>> {
        let mut buffer = self.device().alloc_with(host.len(), secrecy)?;
        self.write(&mut buffer, host)?;
        Ok(buffer)
    }

    /// Makes a buffer of elements that are in the device's form already, as [`Element`] describes it for each type:
    /// those of a file, say, which no host type has to be made of. `bytes` may have any alignment.
    ///
    /// # Errors
    /// - [`Error::Length`] if `bytes` are not whole elements of [`Element::BYTES`] bytes.
    /// - [`Error::Undecodable`] with [`ByteCheck::Elements`] and the index of the first element that is none.
    /// - [`Error::TooLarge`] if a buffer cannot have that many elements
    ///   ([`Limits::buffer_bytes`](crate::Limits::buffer_bytes)).
    /// - [`Error::OutOfMemory`] if there is no memory for the buffer, for staging, or for what is checked.
    /// - [`Error::Driver`] if a call of the driver fails.
    /// - [`Error::Lost`] if the device is lost.
    pub fn upload_bytes<T: Element>(&self, bytes: &[u8], check: ByteCheck, secrecy: Secrecy) -> Result<Buffer<T>> {
        let len = bytes.len() / T::BYTES;
        if !bytes.len().is_multiple_of(T::BYTES) {
            let expected = bytes.len().next_multiple_of(T::BYTES);
            return Err(Error::length("the bytes of elements", expected, bytes.len()));
        }
        let mut buffer = self.device().alloc_with(len, secrecy)?;
        let mut decoded: Wiped<T::Host> = Wiped::default();
        self.write_encoded(buffer.as_view_mut(), len, |elements, encoded| {
            let first = elements.start;
            let bytes = &bytes[first * T::BYTES..elements.end * T::BYTES];
            parallel::copy(bytes, encoded);
            if check == ByteCheck::None {
                return Ok(());
            }
            // Of the copy, which is aligned, and which is what the device gets.
            if decoded.len() < elements.len() {
                let more = elements.len() - decoded.len();
                decoded.try_reserve_exact(more).map_err(|_| Error::OutOfMemory {
                    device: self.device().info().id,
                    requested: (elements.len() * size_of::<T::Host>()) as u64,
                    available: None,
                })?;
                decoded.resize(elements.len(), T::Host::default());
            }
            match decode::<T>(encoded, &mut decoded[..elements.len()]) {
                Err(Error::Undecodable { index }) => Err(Error::Undecodable { index: first as u64 + index }),
                outcome => outcome,
            }
        })?;
        Ok(buffer)
    }

    /// Copies all elements of `source` to the host and returns them. This waits for earlier work of the queue, and for
    /// earlier writes to these elements on other queues.
    ///
    /// # Errors
    /// - [`Error::WrongDevice`] if `source` is on another device.
    /// - [`Error::Undecodable`] if bytes are no element.
    /// - [`Error::OutOfMemory`] if there is no staging memory.
    /// - [`Error::Driver`] if a call of the driver fails.
    /// - [`Error::Lost`] if the device is lost.
    pub fn read<'a, T: Element>(&self, source: impl Into<View<'a, T>>) -> Result<Vec<T::Host>> {
        self.download(source)?.wait()
    }

    /// Copies all elements of `source` to `host`, which has the same length. This waits for earlier work of the queue,
    /// and for earlier writes to these elements on other queues.
    ///
    /// # Errors
    /// - [`Error::WrongDevice`] if `source` is on another device.
    /// - [`Error::Length`] if `host` has another length. Nothing is read then.
    /// - [`Error::Undecodable`] if bytes are no element.
    /// - [`Error::OutOfMemory`] if there is no staging memory.
    /// - [`Error::Driver`] if a call of the driver fails.
    /// - [`Error::Lost`] if the device is lost.
    ///
    /// The contents of `host` are unspecified then.
    pub fn read_into<'a, T: Element>(&self, source: impl Into<View<'a, T>>, host: &mut [T::Host]) -> Result<()> {
        let source = source.into();
        source.expect_len("the source of a read", host.len())?;
        self.download(source)?.wait_into(host)
    }

    /// Queues a copy of all elements of `source` to the host.
    ///
    /// # Errors
    /// - [`Error::WrongDevice`] if `source` is on another device.
    /// - [`Error::OutOfMemory`] if there is no staging memory.
    /// - [`Error::Driver`] if a call of the driver fails.
    /// - [`Error::Lost`] if the device is lost.
    pub fn download<'a, T: Element>(&self, source: impl Into<View<'a, T>>) -> Result<Download<'a, T>> {
        let source = source.into();
        self.expect_own("the source of a read", source.device())?;
        Download::begin(source, self.handle().clone())
    }

    /// Replaces all elements of `target` by those of `host`, which has the same length. This returns when `host` has
    /// been read. The device may get the data later, but later work sees it.
    ///
    /// # Errors
    /// - [`Error::WrongDevice`] if `target` is on another device.
    /// - [`Error::Length`] if `host` has another length; nothing is written then.
    /// - [`Error::OutOfMemory`] if there is no staging memory.
    /// - [`Error::Driver`] if a call of the driver fails.
    /// - [`Error::Lost`] if the device is lost.
    ///
    /// A first part may be written then.
    pub fn write<'a, T: Element>(&self, target: impl Into<ViewMut<'a, T>>, host: &[T::Host]) -> Result<()> {
        self.write_encoded(target.into(), host.len(), |elements, encoded| {
            let (piece, chunk) = (&host[elements], chunk_len::<T>(encoded.len() / T::BYTES));
            parallel::chunks(encoded, chunk * T::BYTES, &|i, encoded| {
                T::encode(&piece[i * chunk..][..encoded.len() / T::BYTES], encoded);
            });
            Ok(())
        })
    }

    /// Writes `len` elements, all of `target`, which `encode` writes to staging memory, some at a time and in order.
    fn write_encoded<T: Element>(
        &self,
        mut target: ViewMut<'_, T>,
        len: usize,
        mut encode: impl FnMut(Range<usize>, &mut [u8]) -> Result<()>,
    ) -> Result<()> {
        self.expect_own("the target of a write", target.device())?;
        target.expect_len("the target of a write", len)?;
        let (backend, step) = (self.device().backend(), target.as_view().staging_len());
        for first in (0..len).step_by(step) {
            let elements = first..len.min(first + step);
            let bytes = byte_range::<T>(target.start() + first, elements.len());
            let covered = covered(target.memory(), &bytes);
            let (view, len) = (target.as_view(), covered.end - covered.start);
            let mut staging = if covered == bytes {
                view.staging(len, Transfer::Upload)?
            } else {
                // The device writes whole words: the bytes around an unaligned piece are written back as they are. They
                // are no one else's, since views are divided at whole words.
                let staging = view.staging(len, Transfer::Download)?;
                let pending = backend.read(self.handle(), view.span_of(&covered), staging)?;
                pending.of(len as usize, backend.info().id).wait()?
            };
            let skip = (bytes.start - covered.start) as usize;
            encode(elements, &mut staging[skip..][..(bytes.end - bytes.start) as usize])?;
            drop(backend.write(self.handle(), target.span_mut_of(&covered), staging)?);
        }
        Ok(())
    }

    /// Queues a copy of all elements of `source`, in the device's form ([`Element::decode`]), to the whole of `host`.
    /// With CUDA the device writes the host memory directly. [`Pending::wait`] returns the memory.
    ///
    /// # Errors
    /// - [`Error::WrongDevice`] if `source` or `host` is of another device.
    /// - [`Error::WrongTransfer`] if `host` is for uploads only.
    /// - [`Error::Length`] if it has another number of bytes than `source`.
    /// - [`Error::Unaligned`] if `source` is not whole words of 4 bytes, other than at the end of its buffer.
    /// - [`Error::SecretInput`] if `source` is secret and `host` is public.
    /// - [`Error::OutOfMemory`] with wgpu if `host` is a part of host memory and there is no staging memory.
    /// - [`Error::Driver`] if a call of the driver fails.
    /// - [`Error::Lost`] if the device is lost.
    ///
    /// `host` is dropped then.
    pub fn read_pinned<'a, T: Element>(&self, source: impl Into<View<'a, T>>, host: HostBuffer) -> Result<Pending> {
        let source = source.into();
        self.expect_own("the source of a read", source.device())?;
        let (span, bytes) = (source.expect_pinned("read", &host)?, host.len());
        let backend = self.device().backend();
        Ok(backend.read(self.handle(), span, host)?.of(bytes, backend.info().id))
    }

    /// [`Queue::read_pinned`] into the host memory of a write that is under way. It must be for both directions and as
    /// secret as the view. The device reads it first and then writes it; nobody waits in between.
    pub(crate) fn read_pinned_after<T: Element>(&self, source: View<'_, T>, write: Pending) -> Result<Pending> {
        self.expect_own("the source of a read", source.device())?;
        let span = source.span_of(&source.expect_words("read")?);
        let backend = self.device().backend();
        Ok(backend.read_after(self.handle(), span, write)?.of(span.bytes() as usize, backend.info().id))
    }

    /// Queues a copy as [`Queue::read_pinned`] does, of a matrix with `rows` rows, one block of columns for each event
    /// in `after`. All blocks have the same width. Each is copied after its event, while work on later blocks goes on.
    /// Devices that cannot copy columns copy everything after the last event.
    ///
    /// # Errors
    /// The errors of [`Queue::read_pinned`], and:
    ///
    /// - [`Error::Length`] if the blocks cannot all have the same width.
    /// - [`Error::WrongDevice`] if an event is of another device of this kind.
    /// - [`Error::Driver`] if an event is of a device of another kind.
    pub fn read_pinned_columns<'a, T: Element>(
        &self,
        source: impl Into<View<'a, T>>,
        host: HostBuffer,
        rows: usize,
        after: &[Event],
    ) -> Result<Pending> {
        let source = source.into();
        self.expect_own("the source of a read", source.device())?;
        let (span, bytes) = (source.expect_pinned("read", &host)?, host.len());
        expect_columns::<T>(&host, rows, after.len())?;
        let backend = self.device().backend();
        Ok(backend.read_columns(self.handle(), span, host, rows, after)?.of(bytes, backend.info().id))
    }

    /// Queues a copy of all of `host`, which holds elements in the device's form ([`Element::encode`]), to all elements
    /// of `target`. With CUDA the device reads the host memory directly. Through wgpu it does so if `host` is a whole
    /// [`crate::Transfer::Upload`] of at most 8 MiB. Other memory is copied to staging memory in pieces, which may wait
    /// for earlier transfers.
    ///
    /// [`Pending::wait`] returns the memory, with unspecified contents: the CPU swaps it with the device's memory, and
    /// wgpu may return other memory.
    ///
    /// # Errors
    /// - [`Error::WrongDevice`] if `target` or `host` is of another device.
    /// - [`Error::Length`] if `host` has another number of bytes than `target`.
    /// - [`Error::Unaligned`] if `target` is not whole words of 4 bytes, other than at the end of its buffer.
    /// - [`Error::SecretInput`] if `host` is secret and `target` is public.
    /// - [`Error::OutOfMemory`] if there is no staging memory. Some pieces are written then.
    /// - [`Error::Driver`] if a call of the driver fails.
    /// - [`Error::Lost`] if the device is lost.
    ///
    /// `host` is dropped then.
    pub fn write_pinned<'a, T: Element>(&self, target: impl Into<ViewMut<'a, T>>, host: HostBuffer) -> Result<Pending> {
        let mut target = target.into();
        self.expect_own("the target of a write", target.device())?;
        target.expect_source(&host)?;
        let (backend, bytes) = (self.device().backend(), host.len());
        Ok(backend.write(self.handle(), target.expect_span("write")?, host)?.of(bytes, backend.info().id))
    }

    /// Queues a copy as [`Queue::write_pinned`] does, of a matrix with `rows` rows, in `pieces` blocks of columns of
    /// the same width. It returns an event for each block, after which the block is there: work on it can start while
    /// the next block is copied. On devices that cannot copy columns, all events come at the end.
    ///
    /// # Errors
    /// The errors of [`Queue::write_pinned`]. Besides, [`Error::Length`] if the blocks cannot all have the same width.
    pub fn write_pinned_columns<'a, T: Element>(
        &self,
        target: impl Into<ViewMut<'a, T>>,
        host: HostBuffer,
        rows: usize,
        pieces: usize,
    ) -> Result<(Vec<Event>, Pending)> {
        let mut target = target.into();
        self.expect_own("the target of a write", target.device())?;
        target.expect_source(&host)?;
        expect_columns::<T>(&host, rows, pieces)?;
        let (backend, bytes) = (self.device().backend(), host.len());
        let device = backend.info().id;
        let span = target.expect_span("write")?;
        let (events, pending) = backend.write_columns(self.handle(), span, host, rows, pieces)?;
        if events.len() != pieces {
            let reason = format!("it gave {} events instead of {pieces}", events.len());
            return Err(Error::Driver { device, call: "write_columns", reason });
        }
        Ok((events, pending.of(bytes, device)))
    }

    /// Copies all elements of `source` to `target`, which is on the same device and has the same length.
    ///
    /// # Errors
    /// - [`Error::WrongDevice`] if `source` or `target` is on another device.
    /// - [`Error::Length`] if they have different lengths.
    /// - [`Error::Unaligned`] if one of them is not whole words of 4 bytes, other than at the end of its buffer.
    /// - [`Error::SecretInput`] if `source` is secret and `target` is public.
    /// - [`Error::OutOfMemory`] with wgpu if both are parts of one buffer and there is no memory to copy through.
    /// - [`Error::Driver`] if a call of the driver fails.
    /// - [`Error::Lost`] if the device is lost.
    pub fn copy<'a, 'b, T: Element>(
        &self,
        source: impl Into<View<'a, T>>,
        target: impl Into<ViewMut<'b, T>>,
    ) -> Result<()> {
        let (source, mut target) = (source.into(), target.into());
        self.expect_own("the target of a copy", target.device())?;
        self.expect_own("the source of a copy", source.device())?;
        source.expect_len("the source of a copy", target.len())?;
        source.secrecy().expect_to(target.secrecy(), "copy", ["the source of a copy", "the target of a copy"])?;
        let bytes = source.expect_words("copy")?;
        self.device().backend().copy(self.handle(), source.span_of(&bytes), target.expect_span("copy")?)
    }

    /// Copies all elements of `source`, which may be on another device and has the same length, to `target`. It comes
    /// behind earlier work on either device that uses the same elements.
    ///
    /// Between two CUDA devices, the copy takes the link between them, and no host memory if there is one. Two CPU
    /// devices copy directly too. Otherwise the elements pass through host memory of both devices, in pieces, and the
    /// call waits for work on `source`. That memory is as secret as `source`.
    ///
    /// ```
    /// # fn main() -> Result<(), evariste_backend::Error> {
    /// use evariste_backend::Device;
    ///
    /// let (device, other) = (Device::best()?, Device::cpu());
    /// let x = other.upload::<u32>(&[1, 2, 3])?;
    /// let mut y = device.zeros::<u32>(2)?;
    /// device.default_queue().receive(x.view(1..)?, &mut y)?;
    /// assert_eq!(y.to_vec()?, [2, 3]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// - [`Error::WrongDevice`] if `target` is on another device than the queue.
    /// - [`Error::Length`] if they have different lengths.
    /// - [`Error::Unaligned`] if one of them is not whole words of 4 bytes, other than at the end of its buffer.
    /// - [`Error::SecretInput`] if `source` is secret and `target` is public.
    /// - [`Error::OutOfMemory`] if there is no host memory to copy through. Some pieces are written then.
    /// - [`Error::Driver`] if a call of a driver fails.
    /// - [`Error::Lost`] if one of the devices is lost; the error names it.
    pub fn receive<'a, 'b, T: Element>(
        &self,
        source: impl Into<View<'a, T>>,
        target: impl Into<ViewMut<'b, T>>,
    ) -> Result<()> {
        let (source, mut target) = (source.into(), target.into());
        if source.device().is_same(self.device()) {
            return self.copy(source, target);
        }
        self.expect_own("the target of a copy", target.device())?;
        source.expect_len("the source of a copy", target.len())?;
        source.secrecy().expect_to(target.secrecy(), "copy", ["the source of a copy", "the target of a copy"])?;
        let from = source.expect_words("copy")?;
        let (backend, to) = (self.device().backend(), target.expect_span("copy")?);
        if backend.copies_from(source.memory()) {
            return backend.copy(self.handle(), source.span_of(&from), to);
        }
        through_host(self, source, &from, to)
    }

    /// Copies a block of columns of a matrix to the same place of another matrix of the same shape. The matrices have
    /// `rows` rows of equal length, of which `columns` are copied. The source may be on another device, as that of
    /// [`Queue::receive`], and all that holds for that call holds for this one.
    ///
    /// ```
    /// # fn main() -> Result<(), evariste_backend::Error> {
    /// use evariste_backend::Device;
    ///
    /// let (device, other) = (Device::best()?, Device::cpu());
    /// let x = other.upload::<u32>(&[1, 2, 3, 4, 5, 6])?;
    /// let mut y = device.zeros::<u32>(6)?;
    /// device.default_queue().receive_columns(&x, &mut y, 2, 1..3)?;
    /// assert_eq!(y.to_vec()?, [0, 2, 3, 0, 5, 6]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Fails under the conditions of [`Queue::receive`]. Besides:
    ///
    /// - [`Error::Length`] unless the matrices have whole rows.
    /// - [`Error::OutOfRange`] if `columns` leave a row.
    /// - [`Error::Unaligned`] if columns or rows do not start and end at whole words of 4 bytes. Columns of a single row
    ///   may end at the end of their buffer.
    pub fn receive_columns<'a, 'b, T: Element>(
        &self,
        source: impl Into<View<'a, T>>,
        target: impl Into<ViewMut<'b, T>>,
        rows: usize,
        columns: Range<usize>,
    ) -> Result<()> {
        let (source, mut target) = (source.into(), target.into());
        self.expect_own("the target of a copy", target.device())?;
        source.expect_len("the source of a copy", target.len())?;
        source.secrecy().expect_to(target.secrecy(), "copy", ["the source of a copy", "the target of a copy"])?;
        let (rows, len) = (rows.max(1), source.len());
        if !len.is_multiple_of(rows) {
            return Err(Error::length("a matrix of whole rows", len.next_multiple_of(rows), len));
        }
        let pitch = len / rows;
        if columns.start > columns.end || columns.end > pitch {
            let (offset, count) = (columns.start as u64, columns.end.saturating_sub(columns.start) as u64);
            return Err(Error::OutOfRange { what: "columns of a row", offset, count, len: pitch as u64 });
        }
        if rows == 1 {
            return self.receive(source.view(columns.clone())?, target.view_mut(columns)?);
        }
        let from = source.expect_words("copy")?;
        let (bytes, all) = ((columns.start * T::BYTES) as u64..(columns.end * T::BYTES) as u64, pitch * T::BYTES);
        if [bytes.start, bytes.end, all as u64].iter().any(|at| !at.is_multiple_of(4)) {
            let (offset, count) = (from.start + bytes.start, bytes.end - bytes.start);
            return Err(Error::Unaligned { what: "copy", expected: 4, offset, count });
        }
        let backend = self.device().backend();
        if source.device().is_same(self.device()) || backend.copies_from(source.memory()) {
            let to = target.expect_span("copy")?;
            return backend.copy_columns(self.handle(), source.span_of(&from), to, rows, bytes);
        }
        (0..rows).try_for_each(|row| {
            let part = row * pitch + columns.start..row * pitch + columns.end;
            self.receive(source.view(part.clone())?, target.view_mut(part)?)
        })
    }

    /// Sets all bytes of the device form of `target` to zero.
    ///
    /// # Errors
    /// - [`Error::WrongDevice`] if `target` is on another device.
    /// - [`Error::Unaligned`] if it is not whole words of 4 bytes, other than at the end of its buffer.
    /// - [`Error::Driver`] if a call of the driver fails.
    /// - [`Error::Lost`] if the device is lost.
    pub fn clear<'a, T: Element>(&self, target: impl Into<ViewMut<'a, T>>) -> Result<()> {
        let mut target = target.into();
        self.expect_own("the target of a clear", target.device())?;
        self.device().backend().clear(self.handle(), target.expect_span("clear")?)
    }

    /// Makes a buffer with the elements of `source`, on the same device and of the same secrecy.
    ///
    /// # Errors
    /// - [`Error::WrongDevice`] if `source` is on another device.
    /// - [`Error::OutOfMemory`] if the device has no room for the copy.
    /// - [`Error::Unaligned`] if `source` is not whole words of 4 bytes, other than at the end of its buffer.
    /// - [`Error::Driver`] if a call of the driver fails.
    /// - [`Error::Lost`] if the device is lost.
    pub fn duplicate<'a, T: Element>(&self, source: impl Into<View<'a, T>>) -> Result<Buffer<T>> {
        let source = source.into();
        self.expect_own("the source of a copy", source.device())?;
        let mut copy = self.device().alloc_with(source.len(), source.secrecy())?;
        self.copy(source, &mut copy)?;
        Ok(copy)
    }

    /// Moves `contents` into `target`, which has the same length. Nothing is copied if `target` is a whole buffer of
    /// the same secrecy. Operations that alternate between two buffers end with it.
    ///
    /// # Errors
    /// The errors of [`Queue::copy`].
    pub fn replace<'a, T: Element>(&self, target: impl Into<ViewMut<'a, T>>, mut contents: Buffer<T>) -> Result<()> {
        let mut target = target.into();
        self.expect_own("the target of a copy", target.device())?;
        self.expect_own("the source of a copy", contents.device())?;
        contents.expect_len("the source of a copy", target.len())?;
        let (bytes, secrecy) = (contents.bytes(), target.secrecy());
        match target.owner_mut() {
            Owner::Whole(memory) if memory.bytes() == bytes && secrecy == contents.secrecy() => {
                std::mem::swap(&mut **memory, &mut contents.memory);
                Ok(())
            }
            _ => self.copy(&contents, target),
        }
    }

    /// Refuses `other`, the device of `what`, unless it is the queue's.
    fn expect_own(&self, what: &'static str, other: &Device) -> Result<()> {
        self.device().expect_same(what, other)
    }
}

/// Bytes of a piece between devices of different kinds at most. It takes some ten times the latency of a copy.
const PIECE: u64 = 8 << 20;

/// Copies bytes of another device through host memory of both. While one piece is copied on the host, the next one comes.
fn through_host<T: Element>(
    queue: &Queue,
    source: View<'_, T>,
    bytes: &Range<u64>,
    mut target: SpanMut<'_>,
) -> Result<()> {
    let (from, to, secrecy) = (source.device(), queue.device(), source.secrecy());
    let staging = |device: &Device| device.info().limits.staging_bytes;
    let piece = (staging(from).min(staging(to)).min(PIECE) / 4 * 4).max(4);
    let reader = from.default_queue();
    let read = |at: u64| -> Result<Option<Pending>> {
        if at == bytes.end {
            return Ok(None);
        }
        let end = bytes.end.min(at + piece);
        let host = from.host_buffer((end - at) as usize, Transfer::Download, secrecy)?;
        let len = host.len();
        let pending = from.backend().read(reader.handle(), source.span_of(&(at..end)), host)?;
        Ok(Some(pending.of(len, from.info().id)))
    };
    let (mut at, mut next) = (bytes.start, read(bytes.start)?);
    while let Some(pending) = next {
        let arrived = pending.wait()?;
        at += arrived.len() as u64;
        next = read(at)?;
        let mut host = to.host_buffer(arrived.len(), Transfer::Upload, secrecy)?;
        parallel::copy(&arrived, &mut host);
        let (part, rest) = target.split_at(host.len() as u64)?;
        drop(to.backend().write(queue.handle(), part, host)?);
        target = rest;
    }
    Ok(())
}
