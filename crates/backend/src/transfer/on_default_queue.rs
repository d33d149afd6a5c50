//! Copies on the default queue of a device.

use crate::{
    buffer::{Buffer, ByteCheck, Element},
    device::Device,
    error::Result,
    host::{HostBuffer, Pending},
    secrecy::Secrecy,
    view::{View, ViewMut},
};

impl Device {
    /// Makes a buffer of `len` elements whose device form is all zero bytes.
    ///
    /// # Errors
    /// - [`Error::TooLarge`](crate::Error::TooLarge) if a buffer cannot have `len` elements
    ///   ([`Limits::buffer_bytes`](crate::Limits::buffer_bytes)).
    /// - [`Error::OutOfMemory`](crate::Error::OutOfMemory) if the device has no room for them.
    /// - [`Error::Driver`](crate::Error::Driver) if a call of the driver fails.
    /// - [`Error::Lost`](crate::Error::Lost) if the device is lost.
    pub fn zeros<T: Element>(&self, len: usize) -> Result<Buffer<T>> {
        let mut buffer = self.alloc(len)?;
        buffer.clear()?;
        Ok(buffer)
    }

    /// Makes a buffer with the elements of `host`.
    ///
    /// # Errors
    /// - [`Error::TooLarge`](crate::Error::TooLarge) if a buffer cannot have that many elements
    ///   ([`Limits::buffer_bytes`](crate::Limits::buffer_bytes)).
    /// - [`Error::OutOfMemory`](crate::Error::OutOfMemory) if there is no memory for the buffer or for staging.
    /// - [`Error::Driver`](crate::Error::Driver) if a call of the driver fails.
    /// - [`Error::Lost`](crate::Error::Lost) if the device is lost.
    pub fn upload<T: Element>(&self, host: &[T::Host]) -> Result<Buffer<T>> {
        self.upload_with(host, Secrecy::Public)
    }

    /// Makes a buffer with the elements of `host`. If it is [`Secrecy::Secret`], it is zeroed when it is dropped.
    ///
    /// # Errors
    /// - [`Error::TooLarge`](crate::Error::TooLarge) if a buffer cannot have that many elements
    ///   ([`Limits::buffer_bytes`](crate::Limits::buffer_bytes)).
    /// - [`Error::OutOfMemory`](crate::Error::OutOfMemory) if there is no memory for the buffer or for staging.
    /// - [`Error::Driver`](crate::Error::Driver) if a call of the driver fails.
    /// - [`Error::Lost`](crate::Error::Lost) if the device is lost.
    pub fn upload_with<T: Element>(&self, host: &[T::Host], secrecy: Secrecy) -> Result<Buffer<T>> {
        self.default_queue().upload_with(host, secrecy)
    }

    /// Makes a public buffer of elements that are in the device's form already:
    /// [`Queue::upload_bytes`](crate::Queue::upload_bytes) on the default queue.
    ///
    /// # Errors
    /// Fails under the conditions of [`Queue::upload_bytes`](crate::Queue::upload_bytes).
    pub fn upload_bytes<T: Element>(&self, bytes: &[u8], check: ByteCheck) -> Result<Buffer<T>> {
        self.default_queue().upload_bytes(bytes, check, Secrecy::Public)
    }
}

impl<T: Element> Buffer<T> {
    /// Copies all elements to the host and returns them. This waits for earlier work of the default queue, and for
    /// earlier writes to these elements on other queues.
    ///
    /// # Errors
    /// - [`Error::Undecodable`](crate::Error::Undecodable) if bytes are no element.
    /// - [`Error::OutOfMemory`](crate::Error::OutOfMemory) if there is no staging memory.
    /// - [`Error::Driver`](crate::Error::Driver) if a call of the driver fails.
    /// - [`Error::Lost`](crate::Error::Lost) if the device is lost.
    pub fn to_vec(&self) -> Result<Vec<T::Host>> {
        self.as_view().to_vec()
    }

    /// Copies all elements to `host`, which has the same length. This waits for earlier work of the default queue, and
    /// for earlier writes to these elements on other queues.
    ///
    /// # Errors
    /// - [`Error::Length`](crate::Error::Length) if `host` has another length. Nothing is read then.
    /// - [`Error::Undecodable`](crate::Error::Undecodable) if bytes are no element.
    /// - [`Error::OutOfMemory`](crate::Error::OutOfMemory) if there is no staging memory.
    /// - [`Error::Driver`](crate::Error::Driver) if a call of the driver fails.
    /// - [`Error::Lost`](crate::Error::Lost) if the device is lost.
    ///
    /// The contents of `host` are unspecified then.
    pub fn read(&self, host: &mut [T::Host]) -> Result<()> {
        self.as_view().read(host)
    }

    /// Replaces all elements by those of `host`, which has the same length. This returns when `host` has been read.
    /// The device may get the data later, but later work sees it.
    ///
    /// # Errors
    /// - [`Error::Length`](crate::Error::Length) if `host` has another length; nothing is written then.
    /// - [`Error::OutOfMemory`](crate::Error::OutOfMemory) if there is no staging memory.
    /// - [`Error::Driver`](crate::Error::Driver) if a call of the driver fails.
    /// - [`Error::Lost`](crate::Error::Lost) if the device is lost.
    ///
    /// A first part may be written then.
    pub fn write(&mut self, host: &[T::Host]) -> Result<()> {
        self.as_view_mut().write(host)
    }

    /// Queues a copy of pinned host memory to all elements, as [`Queue::write_pinned`](crate::Queue::write_pinned)
    /// does, on the default queue.
    ///
    /// # Errors
    /// The errors of [`Queue::write_pinned`](crate::Queue::write_pinned), except
    /// [`Error::Unaligned`](crate::Error::Unaligned): a whole buffer may have any length.
    pub fn write_pinned(&mut self, host: HostBuffer) -> Result<Pending> {
        self.as_view_mut().write_pinned(host)
    }

    /// Queues a copy of all elements to pinned host memory, as [`Queue::read_pinned`](crate::Queue::read_pinned) does,
    /// on the default queue.
    ///
    /// # Errors
    /// The errors of [`Queue::read_pinned`](crate::Queue::read_pinned), except
    /// [`Error::Unaligned`](crate::Error::Unaligned): a whole buffer may have any length.
    pub fn read_pinned(&self, host: HostBuffer) -> Result<Pending> {
        self.as_view().read_pinned(host)
    }

    /// Copies all elements of `source`, which has the same length, to this buffer. The source may be on another device: see
    /// [`Queue::receive`](crate::Queue::receive).
    ///
    /// # Errors
    /// - [`Error::Length`](crate::Error::Length) if it has another length.
    /// - [`Error::Unaligned`](crate::Error::Unaligned) if one of both is not whole words of 4 bytes, other than at the
    ///   end of its buffer.
    /// - [`Error::SecretInput`](crate::Error::SecretInput) if `source` is secret and this buffer is public.
    /// - [`Error::OutOfMemory`](crate::Error::OutOfMemory) with wgpu if both are parts of one buffer and there is no
    ///   memory to copy through. Also if there is no host memory to copy through from another device.
    /// - [`Error::Driver`](crate::Error::Driver) if a call of the driver fails.
    /// - [`Error::Lost`](crate::Error::Lost) if the device is lost.
    pub fn copy_from<'a>(&mut self, source: impl Into<View<'a, T>>) -> Result<()> {
        self.as_view_mut().copy_from(source)
    }

    /// Sets all bytes of the device form to zero.
    ///
    /// # Errors
    /// [`Error::Driver`](crate::Error::Driver) if a call of the driver fails, [`Error::Lost`](crate::Error::Lost) if
    /// the device is lost.
    pub fn clear(&mut self) -> Result<()> {
        self.as_view_mut().clear()
    }

    /// Makes a copy of the buffer on the same device, of the same secrecy.
    ///
    /// # Errors
    /// - [`Error::OutOfMemory`](crate::Error::OutOfMemory) if the device has no room for the copy.
    /// - [`Error::Driver`](crate::Error::Driver) if a call of the driver fails.
    /// - [`Error::Lost`](crate::Error::Lost) if the device is lost.
    pub fn duplicate(&self) -> Result<Self> {
        self.as_view().duplicate()
    }
}

impl<T: Element> View<'_, T> {
    /// Copies all elements to the host and returns them. This waits for earlier work of the default queue, and for
    /// earlier writes to these elements on other queues.
    ///
    /// # Errors
    /// - [`Error::Undecodable`](crate::Error::Undecodable) if bytes are no element.
    /// - [`Error::OutOfMemory`](crate::Error::OutOfMemory) if there is no staging memory.
    /// - [`Error::Driver`](crate::Error::Driver) if a call of the driver fails.
    /// - [`Error::Lost`](crate::Error::Lost) if the device is lost.
    pub fn to_vec(&self) -> Result<Vec<T::Host>> {
        self.device().default_queue().read(self)
    }

    /// Copies all elements to `host`, which has the same length. This waits for earlier work of the default queue, and
    /// for earlier writes to these elements on other queues.
    ///
    /// # Errors
    /// - [`Error::Length`](crate::Error::Length) if `host` has another length. Nothing is read then.
    /// - [`Error::Undecodable`](crate::Error::Undecodable) if bytes are no element.
    /// - [`Error::OutOfMemory`](crate::Error::OutOfMemory) if there is no staging memory.
    /// - [`Error::Driver`](crate::Error::Driver) if a call of the driver fails.
    /// - [`Error::Lost`](crate::Error::Lost) if the device is lost.
    ///
    /// The contents of `host` are unspecified then.
    pub fn read(&self, host: &mut [T::Host]) -> Result<()> {
        self.device().default_queue().read_into(self, host)
    }

    /// Queues a copy of all elements to pinned host memory, as [`Queue::read_pinned`](crate::Queue::read_pinned) does,
    /// on the default queue.
    ///
    /// # Errors
    /// The errors of [`Queue::read_pinned`](crate::Queue::read_pinned).
    pub fn read_pinned(&self, host: HostBuffer) -> Result<Pending> {
        self.device().default_queue().read_pinned(self, host)
    }

    /// Makes a buffer with these elements, on the same device and of the same secrecy.
    ///
    /// # Errors
    /// - [`Error::OutOfMemory`](crate::Error::OutOfMemory) if the device has no room for the copy.
    /// - [`Error::Unaligned`](crate::Error::Unaligned) if the view is not whole words of 4 bytes, other than at the end
    ///   of its buffer.
    /// - [`Error::Driver`](crate::Error::Driver) if a call of the driver fails.
    /// - [`Error::Lost`](crate::Error::Lost) if the device is lost.
    pub fn duplicate(&self) -> Result<Buffer<T>> {
        self.device().default_queue().duplicate(self)
    }
}

impl<T: Element> ViewMut<'_, T> {
    /// Copies all elements to the host and returns them. This waits for earlier work of the default queue, and for
    /// earlier writes to these elements on other queues.
    ///
    /// # Errors
    /// - [`Error::Undecodable`](crate::Error::Undecodable) if bytes are no element.
    /// - [`Error::OutOfMemory`](crate::Error::OutOfMemory) if there is no staging memory.
    /// - [`Error::Driver`](crate::Error::Driver) if a call of the driver fails.
    /// - [`Error::Lost`](crate::Error::Lost) if the device is lost.
    pub fn to_vec(&self) -> Result<Vec<T::Host>> {
        self.as_view().to_vec()
    }

    /// Replaces all elements by those of `host`, which has the same length. This returns when `host` has been read.
    /// The device may get the data later, but later work sees it.
    ///
    /// # Errors
    /// - [`Error::Length`](crate::Error::Length) if `host` has another length; nothing is written then.
    /// - [`Error::OutOfMemory`](crate::Error::OutOfMemory) if there is no staging memory.
    /// - [`Error::Driver`](crate::Error::Driver) if a call of the driver fails.
    /// - [`Error::Lost`](crate::Error::Lost) if the device is lost.
    ///
    /// A first part may be written then.
    pub fn write(&mut self, host: &[T::Host]) -> Result<()> {
        self.device().default_queue().write(self, host)
    }

    /// Queues a copy of pinned host memory to all elements, as [`Queue::write_pinned`](crate::Queue::write_pinned)
    /// does, on the default queue.
    ///
    /// # Errors
    /// The errors of [`Queue::write_pinned`](crate::Queue::write_pinned).
    pub fn write_pinned(&mut self, host: HostBuffer) -> Result<Pending> {
        self.device().default_queue().write_pinned(self, host)
    }

    /// Copies all elements of `source`, which has the same length, to this view. The source may be on another device: see
    /// [`Queue::receive`](crate::Queue::receive).
    ///
    /// # Errors
    /// - [`Error::Length`](crate::Error::Length) if it has another length.
    /// - [`Error::Unaligned`](crate::Error::Unaligned) if one of both is not whole words of 4 bytes, other than at the
    ///   end of its buffer.
    /// - [`Error::SecretInput`](crate::Error::SecretInput) if `source` is secret and this view is public.
    /// - [`Error::OutOfMemory`](crate::Error::OutOfMemory) with wgpu if both are parts of one buffer and there is no
    ///   memory to copy through. Also if there is no host memory to copy through from another device.
    /// - [`Error::Driver`](crate::Error::Driver) if a call of the driver fails.
    /// - [`Error::Lost`](crate::Error::Lost) if the device is lost.
    pub fn copy_from<'b>(&mut self, source: impl Into<View<'b, T>>) -> Result<()> {
        self.device().default_queue().receive(source, self)
    }

    /// Sets all bytes of the device form to zero.
    ///
    /// # Errors
    /// - [`Error::Unaligned`](crate::Error::Unaligned) if the view is not whole words of 4 bytes, other than at the end
    ///   of its buffer.
    /// - [`Error::Driver`](crate::Error::Driver) if a call of the driver fails.
    /// - [`Error::Lost`](crate::Error::Lost) if the device is lost.
    pub fn clear(&mut self) -> Result<()> {
        self.device().default_queue().clear(self)
    }
}
