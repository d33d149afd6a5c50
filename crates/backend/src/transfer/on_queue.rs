//! Copies on a queue.

use crate::{
    buffer::{Buffer, Element, grain},
    device::Device,
    error::{Error, Result},
    handles::Event,
    host::{HostBuffer, Pending},
    info::Transfer,
    parallel,
    queue::Queue,
    secrecy::Secrecy,
    span::Owner,
    transfer::Download,
    view::{View, ViewMut, byte_range, covered, expect_columns},
};

/// Copies: see [`Buffer`] and its views for those on the default queue.
impl Queue {
    /// Makes a buffer of as many elements as `host` has, with these contents.
    ///
    /// # Errors
    /// Returns the errors of [`Device::upload`], for the same reasons.
    pub fn upload<T: Element>(&self, host: &[T::Host]) -> Result<Buffer<T>> {
        self.upload_with(host, Secrecy::Public)
    }

    /// Makes a buffer of as many elements as `host` has, with these contents. It is zeroed when it is dropped if it is
    /// [`Secrecy::Secret`].
    ///
    /// # Errors
    /// Returns the errors of [`Device::upload`], for the same reasons.
    pub fn upload_with<T: Element>(&self, host: &[T::Host], secrecy: Secrecy) -> Result<Buffer<T>> {
        let mut buffer = self.device().alloc_with(host.len(), secrecy)?;
        self.write(&mut buffer, host)?;
        Ok(buffer)
    }

    /// Copies all elements of `source` to the host and returns them. Waits for earlier work of the queue, and for what others write
    /// to them.
    ///
    /// # Errors
    /// [`Error::WrongDevice`] if `source` is on another device. Else returns the errors of [`View::to_vec`], for the same reasons.
    pub fn read<'a, T: Element>(&self, source: impl Into<View<'a, T>>) -> Result<Vec<T::Host>> {
        self.download(source)?.wait()
    }

    /// Copies all elements of `source` to `host`, which has as many. Waits for earlier work of the queue, and for what others write
    /// to them.
    ///
    /// # Errors
    /// [`Error::WrongDevice`] if `source` is on another device. Else returns the errors of [`View::read`], for the same reasons.
    pub fn read_into<'a, T: Element>(&self, source: impl Into<View<'a, T>>, host: &mut [T::Host]) -> Result<()> {
        let source = source.into();
        source.expect_len("the source of a read", host.len())?;
        self.download(source)?.wait_into(host)
    }

    /// Queues a copy of all elements of `source` to the host.
    ///
    /// # Errors
    /// [`Error::WrongDevice`] if `source` is on another device, [`Error::OutOfMemory`] if there is no staging memory,
    /// [`Error::Driver`] if a call of the driver fails, [`Error::Lost`] if the device is lost.
    pub fn download<'a, T: Element>(&self, source: impl Into<View<'a, T>>) -> Result<Download<'a, T>> {
        let source = source.into();
        self.expect_own("the source of a read", source.device())?;
        Download::begin(source, self.handle().clone())
    }

    /// Replaces all elements of `target` by those of `host`, which has as many. Returns when `host` has been read, which may be
    /// before the device has the data; later work of the queue sees it.
    ///
    /// # Errors
    /// [`Error::WrongDevice`] if `target` is on another device. Else returns the errors of [`ViewMut::write`], for the same
    /// reasons.
    pub fn write<'a, T: Element>(&self, target: impl Into<ViewMut<'a, T>>, host: &[T::Host]) -> Result<()> {
        let mut target = target.into();
        self.expect_own("the target of a write", target.device())?;
        target.expect_len("the target of a write", host.len())?;
        let (backend, step) = (self.device().backend(), target.as_view().staging_len());
        for (piece, at) in host.chunks(step).zip((target.start()..).step_by(step)) {
            let bytes = byte_range::<T>(at, piece.len());
            let covered = covered(target.memory(), &bytes);
            let (view, len) = (target.as_view(), covered.end - covered.start);
            let mut staging = if covered == bytes {
                view.staging(len, Transfer::Upload)?
            } else {
                // The device writes whole words: the bytes around an unaligned piece are written back as they are. They are
                // no one else's, since views are divided at whole words.
                let staging = view.staging(len, Transfer::Download)?;
                let pending = backend.read(self.handle(), view.span_of(&covered), staging)?;
                pending.of(len as usize, backend.info().id).wait()?
            };
            let skip = (bytes.start - covered.start) as usize;
            let encoded = &mut staging[skip..][..(bytes.end - bytes.start) as usize];
            let grain = grain::<T>(piece.len());
            parallel::chunks(encoded, grain * T::BYTES, &|i, encoded| {
                T::encode(&piece[i * grain..][..encoded.len() / T::BYTES], encoded);
            });
            drop(backend.write(self.handle(), target.span_mut_of(&covered), staging)?);
        }
        Ok(())
    }

    /// Queues a copy of all elements of `source`, in the device's form ([`Element::decode`]), that fills all of `host`. Nothing
    /// is copied in between: with CUDA the device writes the host memory itself. The memory comes back from [`Pending::wait`].
    ///
    /// # Errors
    /// [`Error::WrongTransfer`] for host memory for uploads only, [`Error::WrongDevice`] for that of another device or if
    /// `source` is on another device, [`Error::Length`] unless it has as many bytes as the view, [`Error::Unaligned`] for a view
    /// that is not whole words of 4 bytes, except at the end of the buffer, [`Error::OutOfMemory`] with wgpu if there is no
    /// staging memory for a part of host memory, [`Error::SecretInput`] for public host memory where the view is secret: slices
    /// ([`View::read`]) are the caller's affair, but this memory is the device's, [`Error::Driver`] if a call of the driver fails,
    /// [`Error::Lost`] if the device is lost. The host memory is dropped then.
    pub fn read_pinned<'a, T: Element>(&self, source: impl Into<View<'a, T>>, host: HostBuffer) -> Result<Pending> {
        let source = source.into();
        self.expect_own("the source of a read", source.device())?;
        let (span, bytes) = (source.expect_pinned("read", &host)?, host.len());
        let backend = self.device().backend();
        Ok(backend.read(self.handle(), span, host)?.of(bytes, backend.info().id))
    }

    /// [`Queue::read_pinned`] into the host memory of a write that is under way, which must be for both directions and as secret as
    /// the view: the device reads it first and then writes it, and nobody waits in between.
    pub(crate) fn read_pinned_after<T: Element>(&self, source: View<'_, T>, write: Pending) -> Result<Pending> {
        self.expect_own("the source of a read", source.device())?;
        let span = source.span_of(&source.expect_words("read")?);
        let backend = self.device().backend();
        Ok(backend.read_after(self.handle(), span, write)?.of(span.bytes() as usize, backend.info().id))
    }

    /// Does what [`Queue::read_pinned`] does, for a matrix of `rows` rows, in as many blocks of neighbouring columns of
    /// equal width as there are events in `after`. Each is copied after its event, while those behind are still worked on;
    /// where a device does not copy by columns, after the last.
    ///
    /// # Errors
    /// [`Error::Length`] unless rows of all blocks have the same number of elements, [`Error::WrongDevice`] for events of
    /// another device of this kind, [`Error::Driver`] for those of another kind. Else returns the errors of [`Queue::read_pinned`],
    /// for the same reasons.
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

    /// Queues a copy of all of `host`, which holds elements in the device's form ([`Element::encode`]), to all elements of
    /// `target`. With CUDA the device reads the host memory itself. Through wgpu it does where that is a whole
    /// [`crate::Transfer::Upload`] of 8 MiB or less; other memory is copied to staging memory first, in pieces, which may wait
    /// for earlier transfers. The memory comes back from [`Pending::wait`], but what it holds then is unspecified: the CPU swaps
    /// it with the device's, and wgpu may give other memory.
    ///
    /// # Errors
    /// [`Error::WrongDevice`] for host memory of another device or if `target` is on another device, [`Error::Length`] unless it
    /// has as many bytes as the view, [`Error::Unaligned`] for a view that is not whole words of 4 bytes, except at the end of the
    /// buffer, [`Error::SecretInput`] for secret host memory where the view is public, [`Error::OutOfMemory`] if there is no
    /// staging memory, with some pieces written, [`Error::Driver`] if a call of the driver fails, [`Error::Lost`] if the device is
    /// lost. The host memory is dropped then.
    pub fn write_pinned<'a, T: Element>(&self, target: impl Into<ViewMut<'a, T>>, host: HostBuffer) -> Result<Pending> {
        let mut target = target.into();
        self.expect_own("the target of a write", target.device())?;
        target.expect_source(&host)?;
        let (backend, bytes) = (self.device().backend(), host.len());
        Ok(backend.write(self.handle(), target.expect_span("write")?, host)?.of(bytes, backend.info().id))
    }

    /// Does what [`Queue::write_pinned`] does, for a matrix of `rows` rows, in `pieces` blocks of neighbouring columns of
    /// equal width. Each event marks when a block is there, so that work on it can start while the next is on its way;
    /// where a device does not copy by columns, all do so at the end.
    ///
    /// # Errors
    /// [`Error::Length`] unless rows of all blocks have the same number of elements. Else returns the errors of
    /// [`Queue::write_pinned`], for the same reasons.
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

    /// Copies all elements of `source` to `target`, which is on the same device and of the same length.
    ///
    /// # Errors
    /// [`Error::WrongDevice`] if `source` or `target` is on another device. Else returns the errors of [`ViewMut::copy_from`], for
    /// the same reasons.
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

    /// Sets all bytes of the device form of `target` to zero.
    ///
    /// # Errors
    /// [`Error::WrongDevice`] if `target` is on another device. Else returns the errors of [`ViewMut::clear`], for the same
    /// reasons.
    pub fn clear<'a, T: Element>(&self, target: impl Into<ViewMut<'a, T>>) -> Result<()> {
        let mut target = target.into();
        self.expect_own("the target of a clear", target.device())?;
        self.device().backend().clear(self.handle(), target.expect_span("clear")?)
    }

    /// Makes a buffer of its own with the elements of `source`, of the same secrecy.
    ///
    /// # Errors
    /// [`Error::WrongDevice`] if `source` is on another device. Else returns the errors of [`View::duplicate`], for the same
    /// reasons.
    pub fn duplicate<'a, T: Element>(&self, source: impl Into<View<'a, T>>) -> Result<Buffer<T>> {
        let source = source.into();
        self.expect_own("the source of a copy", source.device())?;
        let mut copy = self.device().alloc_with(source.len(), source.secrecy())?;
        self.copy(source, &mut copy)?;
        Ok(copy)
    }

    /// Lets `target` become what `contents`, of the same length, holds: without a copy where it is a view of a whole buffer of
    /// the same secrecy. For what works from one buffer to another and back.
    ///
    /// # Errors
    /// Returns the errors of [`Queue::copy`], for the same reasons.
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
