//! Copies on the default queue of what they are of.

use crate::{
    buffer::{Buffer, Element},
    device::Device,
    error::{Error, Result},
    host::{HostBuffer, Pending},
    queue::Queue,
    secrecy::Secrecy,
    view::{View, ViewMut},
};

impl Device {
    /// Makes a buffer of `len` elements whose device form is all zero bytes.
    ///
    /// # Errors
    /// Returns the errors of [`Device::alloc`], for the same reasons.
    pub fn zeros<T: Element>(&self, len: usize) -> Result<Buffer<T>> {
        let mut buffer = self.alloc(len)?;
        buffer.clear()?;
        Ok(buffer)
    }

    /// Makes a buffer of as many elements as `host` has, with these contents.
    ///
    /// # Errors
    /// [`Error::TooLarge`] for more bytes than one buffer may have ([`Limits::buffer_bytes`](crate::Limits::buffer_bytes)),
    /// [`Error::OutOfMemory`] if there is not as much memory for the buffer or for staging, [`Error::Driver`] if a call of
    /// the driver fails, [`Error::Lost`] if the device is lost.
    pub fn upload<T: Element>(&self, host: &[T::Host]) -> Result<Buffer<T>> {
        self.upload_with(host, Secrecy::Public)
    }

    /// Makes a buffer of as many elements as `host` has, with these contents. It is zeroed when it is dropped if it is
    /// [`Secrecy::Secret`].
    ///
    /// # Errors
    /// Returns the errors of [`Device::upload`], for the same reasons.
    pub fn upload_with<T: Element>(&self, host: &[T::Host], secrecy: Secrecy) -> Result<Buffer<T>> {
        self.default_queue().upload_with(host, secrecy)
    }
}

impl<T: Element> Buffer<T> {
    /// Copies all elements to the host and returns them. Waits for earlier work of the default queue, and for what others write to them.
    ///
    /// # Errors
    /// Returns the errors of [`View::to_vec`], for the same reasons.
    pub fn to_vec(&self) -> Result<Vec<T::Host>> {
        self.as_view().to_vec()
    }

    /// Copies all elements to `host`, which has as many. Waits for earlier work of the default queue, and for what others write to them.
    ///
    /// # Errors
    /// [`Error::Length`] unless `host` has as many elements, with nothing read. Else returns the errors of
    /// [`View::to_vec`], for the same reasons; what `host` holds is unspecified then.
    pub fn read(&self, host: &mut [T::Host]) -> Result<()> {
        self.as_view().read(host)
    }

    /// Replaces all elements by those of `host`, which has as many.
    ///
    /// # Errors
    /// Returns the errors of [`ViewMut::write`], for the same reasons.
    pub fn write(&mut self, host: &[T::Host]) -> Result<()> {
        self.as_view_mut().write(host)
    }

    /// Queues a copy of pinned host memory to all elements, as [`ViewMut::write_pinned`] does.
    ///
    /// # Errors
    /// Returns the errors of [`ViewMut::write_pinned`], for the same reasons, but for [`Error::Unaligned`]: a whole buffer
    /// may have any length.
    pub fn write_pinned(&mut self, host: HostBuffer) -> Result<Pending> {
        self.as_view_mut().write_pinned(host)
    }

    /// Queues a copy of all elements to pinned host memory, as [`View::read_pinned`] does.
    ///
    /// # Errors
    /// Returns the errors of [`View::read_pinned`], for the same reasons, but for [`Error::Unaligned`]: a whole buffer may
    /// have any length.
    pub fn read_pinned(&self, host: HostBuffer) -> Result<Pending> {
        self.as_view().read_pinned(host)
    }

    /// Copies all of `source`, on the same device and of the same length, into this buffer.
    ///
    /// # Errors
    /// Returns the errors of [`ViewMut::copy_from`], for the same reasons.
    pub fn copy_from<'a>(&mut self, source: impl Into<View<'a, T>>) -> Result<()> {
        self.as_view_mut().copy_from(source)
    }

    /// Sets all bytes of the device form to zero.
    ///
    /// # Errors
    /// [`Error::Driver`] if a call of the driver fails, [`Error::Lost`] if the device is lost.
    pub fn clear(&mut self) -> Result<()> {
        self.as_view_mut().clear()
    }

    /// Makes a copy of the buffer on the same device, of the same secrecy.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`] if the device has no room for the copy, [`Error::Driver`] if a call of the driver fails,
    /// [`Error::Lost`] if the device is lost.
    pub fn duplicate(&self) -> Result<Self> {
        self.as_view().duplicate()
    }
}

impl<T: Element> View<'_, T> {
    /// Copies all elements to the host and returns them. Waits for earlier work of the default queue, and for what others write to them.
    ///
    /// # Errors
    /// [`Error::Undecodable`] if bytes are no element, [`Error::OutOfMemory`] if there is no staging memory,
    /// [`Error::Driver`] if a call of the driver fails, [`Error::Lost`] if the device is lost.
    pub fn to_vec(&self) -> Result<Vec<T::Host>> {
        self.device().default_queue().read(self)
    }

    /// Copies all elements to `host`, which has as many. Waits for earlier work of the default queue, and for what others write to them.
    ///
    /// # Errors
    /// [`Error::Length`] unless `host` has as many elements, with nothing read. Else returns the errors of
    /// [`View::to_vec`], for the same reasons; what `host` holds is unspecified then.
    pub fn read(&self, host: &mut [T::Host]) -> Result<()> {
        self.device().default_queue().read_into(self, host)
    }

    /// Queues a copy of all elements that fills all of `host`, on the default queue, as [`Queue::read_pinned`] does.
    ///
    /// # Errors
    /// Returns the errors of [`Queue::read_pinned`], for the same reasons.
    pub fn read_pinned(&self, host: HostBuffer) -> Result<Pending> {
        self.device().default_queue().read_pinned(self, host)
    }

    /// Makes a buffer of its own with these elements, on the same device and of the same secrecy.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`] if the device has no room for the copy, [`Error::Unaligned`] for a view that is not whole
    /// words of 4 bytes, except at the end of the buffer, [`Error::Driver`] if a call of the driver fails, [`Error::Lost`]
    /// if the device is lost.
    pub fn duplicate(&self) -> Result<Buffer<T>> {
        self.device().default_queue().duplicate(self)
    }
}

impl<T: Element> ViewMut<'_, T> {
    /// Copies all elements to the host and returns them, as [`View::to_vec`] does.
    ///
    /// # Errors
    /// Returns the errors of [`View::to_vec`], for the same reasons.
    pub fn to_vec(&self) -> Result<Vec<T::Host>> {
        self.as_view().to_vec()
    }

    /// Replaces all elements by those of `host`, which has as many. Returns when `host` has been read, which may be before
    /// the device has the data; later work on any queue sees it.
    ///
    /// # Errors
    /// [`Error::Length`] unless `host` has as many elements, with nothing written. [`Error::OutOfMemory`] if there is no
    /// staging memory, [`Error::Driver`] if a call of the driver fails, [`Error::Lost`] if the device is lost: pieces
    /// before that are written.
    pub fn write(&mut self, host: &[T::Host]) -> Result<()> {
        self.device().default_queue().write(self, host)
    }

    /// Queues a copy of all of `host` to all elements, on the default queue, as [`Queue::write_pinned`] does.
    ///
    /// # Errors
    /// Returns the errors of [`Queue::write_pinned`], for the same reasons.
    pub fn write_pinned(&mut self, host: HostBuffer) -> Result<Pending> {
        self.device().default_queue().write_pinned(self, host)
    }

    /// Copies all elements of `source`, which is on the same device and of the same length, to this view.
    ///
    /// # Errors
    /// [`Error::WrongDevice`] if `source` is on another device, [`Error::Length`] unless it has as many elements,
    /// [`Error::Unaligned`] for views that are not whole words of 4 bytes, except at the end of a buffer,
    /// [`Error::SecretInput`] if `source` is secret and this view is not,
    /// [`Error::OutOfMemory`] with wgpu if a copy from one part of a buffer to another finds no memory to pass through,
    /// [`Error::Driver`] if a call of the driver fails, [`Error::Lost`] if the device is lost.
    pub fn copy_from<'b>(&mut self, source: impl Into<View<'b, T>>) -> Result<()> {
        self.device().default_queue().copy(source, self)
    }

    /// Sets all bytes of the device form to zero.
    ///
    /// # Errors
    /// [`Error::Unaligned`] for a view that is not whole words of 4 bytes, except at the end of the buffer,
    /// [`Error::Driver`] if a call of the driver fails, [`Error::Lost`] if the device is lost.
    pub fn clear(&mut self) -> Result<()> {
        self.device().default_queue().clear(self)
    }
}
