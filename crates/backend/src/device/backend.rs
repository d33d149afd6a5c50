//! The seam: what a device must be able to do.
//!
//! The trait is object safe and knows no element types. Handles are opaque boxes that each backend downcasts to its own
//! types; a handle of another backend or device is a typed error, never undefined
//! behaviour. Exclusive access is expressed by [`SpanMut`], the right to a range of an allocation, so that the borrow checker
//! orders uses of one range within the program, and the backend on the device, whichever queues they are on.

use std::{fmt, time::Duration};

use crate::{
    compilations::Observer,
    device::dispatch::Dispatch,
    error::Result,
    handles::{Event, Executable, Memory, QueueHandle},
    host::{HostBuffer, Pending},
    info::{DeviceInfo, Stats, Transfer},
    secrecy::Secrecy,
    span::{Span, SpanMut},
    spec::KernelSpec,
};

/// What a device must be able to do: it gives memory and queues, copies, and runs kernels.
///
/// Copies and launches are queued and return at once; only [`Pending::wait`], [`Backend::sync`] and
/// [`Backend::elapsed`] block. Within a queue, work runs in the order it was given. Work on different queues runs in that order
/// where it uses the same bytes of an allocation and one of both writes them, unless the span says that its maker orders it
/// ([`Span::is_ordered`]): with several queues, a backend keeps book of what each does with an allocation.
///
/// Offsets and lengths are in bytes. Offsets and the lengths of device-side copies are multiples of 4, except that a
/// length may end at the unaligned end of its allocation.
pub trait Backend: fmt::Debug + Send + Sync + 'static {
    /// Returns the device's name, limits and features.
    fn info(&self) -> &DeviceInfo;

    /// Returns what the device has counted since it was opened.
    fn stats(&self) -> Stats;

    /// Allocates device memory of exactly `bytes` bytes, whose contents are unspecified; the caller refuses memory of which
    /// [`Memory::bytes`] tells another length. Zero bytes are a valid allocation. It ends with a whole word of 16 bytes,
    /// which kernels may read and write.
    ///
    /// # Errors
    /// [`crate::Error::TooLarge`] for more bytes than [`Limits::buffer_bytes`](crate::Limits::buffer_bytes), where the
    /// backend looks at them, [`crate::Error::OutOfMemory`] if the device has not as many left after its pools were
    /// emptied, [`crate::Error::Driver`] if a call of the driver fails, [`crate::Error::Lost`] if the device is lost.
    fn alloc(&self, bytes: u64, secrecy: Secrecy) -> Result<Memory>;

    /// Makes host memory of exactly `bytes` bytes that the device copies from or to at full speed, whose contents are
    /// unspecified. This may wait for an earlier transfer when the staging budget is used up. Secret memory is zeroed when
    /// all of it was dropped.
    ///
    /// # Errors
    /// [`crate::Error::OutOfMemory`] if there is not as much, [`crate::Error::TooLarge`] for more than one buffer of the
    /// API holds, [`crate::Error::Driver`] if a call of the driver fails, [`crate::Error::Lost`] if the device is lost.
    fn host_buffer(&self, bytes: usize, transfer: Transfer, secrecy: Secrecy) -> Result<HostBuffer>;

    /// Refuses host memory that is of a device with the same id, but not of this one: the id's device may have been opened anew
    /// since. As it stands here, only transfers refuse it, with which it is lost.
    ///
    /// # Errors
    /// [`crate::Error::WrongDevice`] if another device of this backend made it, [`crate::Error::Driver`] if another backend
    /// did.
    fn expect_host(&self, _host: &HostBuffer) -> Result<()> {
        Ok(())
    }

    /// Returns the queue that work goes to unless the caller names another one.
    fn default_queue(&self) -> &QueueHandle;

    /// Makes a further queue: a CUDA stream, or the default queue again where the device has one only.
    ///
    /// # Errors
    /// [`crate::Error::Driver`] if the driver cannot make one, [`crate::Error::Lost`] if the device is lost.
    fn queue(&self) -> Result<QueueHandle>;

    /// Copies the whole of `src` to `dst`, which has as many bytes. The host memory comes back from [`Pending::wait`], but what
    /// it holds then is unspecified; where that is not called, it returns to the pool when the copy is done.
    ///
    /// # Errors
    /// [`crate::Error::Length`] unless both have as many bytes, [`crate::Error::WrongDevice`] for a queue or memory of
    /// another device of this backend, [`crate::Error::Driver`] for one of another backend or if a call of the driver
    /// fails, [`crate::Error::OutOfMemory`] for memory that the bytes pass through on their way, [`crate::Error::Lost`] if
    /// the device is lost.
    fn write(&self, queue: &QueueHandle, dst: SpanMut<'_>, src: HostBuffer) -> Result<Pending>;

    /// Fills the whole of `dst` from `src`, which has as many bytes.
    ///
    /// # Errors
    /// [`crate::Error::Length`] unless both have as many bytes, [`crate::Error::WrongDevice`] for a queue or memory of
    /// another device of this backend, [`crate::Error::Driver`] for one of another backend or if a call of the driver
    /// fails, [`crate::Error::OutOfMemory`] for memory that the bytes pass through on their way, [`crate::Error::Lost`] if
    /// the device is lost.
    fn read(&self, queue: &QueueHandle, src: Span<'_>, dst: HostBuffer) -> Result<Pending>;

    /// Does what [`Backend::read`] does, into the host memory of a copy that is under way, once that is done: no one waits
    /// for it in between where the device keeps the order of copies. As it stands here, the host waits.
    ///
    /// # Errors
    /// Returns the errors of [`Backend::read`], for the same reasons, and the error of the copy before, if that failed.
    fn read_after(&self, queue: &QueueHandle, src: Span<'_>, before: Pending) -> Result<Pending> {
        self.read(queue, src, before.wait()?)
    }

    /// Does what [`Backend::write`] does, for a matrix of `rows` rows, one block of columns after the other: there are
    /// `pieces` such blocks of equal width, and for each an event that marks when it is there. As it stands here, they are
    /// all there at the end.
    ///
    /// # Errors
    /// Returns the errors of [`Backend::write`], for the same reasons.
    fn write_columns(
        &self,
        queue: &QueueHandle,
        dst: SpanMut<'_>,
        src: HostBuffer,
        rows: usize,
        pieces: usize,
    ) -> Result<(Vec<Event>, Pending)> {
        _ = rows;
        let pending = self.write(queue, dst, src)?;
        let events = (0..pieces).map(|_| self.record(queue)).collect::<Result<_>>()?;
        Ok((events, pending))
    }

    /// Does what [`Backend::read`] does, for a matrix of `rows` rows, one block of columns after the other, each after its
    /// event: there are as many such blocks of equal width. As it stands here, all are read after the last event.
    ///
    /// # Errors
    /// Returns the errors of [`Backend::read`], for the same reasons; [`crate::Error::WrongDevice`] and
    /// [`crate::Error::Driver`] for events of others, too.
    fn read_columns(
        &self,
        queue: &QueueHandle,
        src: Span<'_>,
        dst: HostBuffer,
        rows: usize,
        after: &[Event],
    ) -> Result<Pending> {
        _ = rows;
        after.iter().try_for_each(|event| self.wait_for(queue, event))?;
        self.read(queue, src, dst)
    }

    /// Copies `src` to `dst`, which has as many bytes, within the device. Both may lie in one allocation.
    ///
    /// # Errors
    /// [`crate::Error::Length`] unless both have as many bytes, [`crate::Error::WrongDevice`] for a queue or memory of
    /// another device of this backend, [`crate::Error::Driver`] for one of another backend or if a call of the driver
    /// fails, [`crate::Error::OutOfMemory`] where the API copies from one part of an allocation to another only by way of a
    /// third, [`crate::Error::Lost`] if the device is lost.
    fn copy(&self, queue: &QueueHandle, src: Span<'_>, dst: SpanMut<'_>) -> Result<()>;

    /// Sets the bytes of `dst` to zero.
    ///
    /// # Errors
    /// [`crate::Error::WrongDevice`] for a queue or memory of another device of this backend, [`crate::Error::Driver`] for
    /// one of another backend or if a call of the driver fails, [`crate::Error::Lost`] if the device is lost.
    fn clear(&self, queue: &QueueHandle, dst: SpanMut<'_>) -> Result<()>;

    /// Marks the present end of `queue`.
    ///
    /// # Errors
    /// [`crate::Error::WrongDevice`] for a queue of another device of this backend, [`crate::Error::Driver`] for one of
    /// another backend or if a call of the driver fails, [`crate::Error::Lost`] if the device is lost.
    fn record(&self, queue: &QueueHandle) -> Result<Event>;

    /// Lets later work of `queue` start only after `event`.
    ///
    /// # Errors
    /// [`crate::Error::WrongDevice`] for a queue or event of another device of this backend, [`crate::Error::Driver`] for
    /// one of another backend or if a call of the driver fails, [`crate::Error::Lost`] if the device is lost.
    fn wait_for(&self, queue: &QueueHandle, event: &Event) -> Result<()>;

    /// Waits for both events and gives the time between them, as the device saw it where it can tell.
    ///
    /// # Errors
    /// [`crate::Error::WrongDevice`] for an event of another device of this backend, [`crate::Error::Driver`] for one of
    /// another backend or if a call of the driver fails, [`crate::Error::Lost`] if the device is lost.
    fn elapsed(&self, from: &Event, to: &Event) -> Result<Duration>;

    /// Makes a kernel ready to launch: from memory, from the disk cache, or by compiling it.
    ///
    /// # Errors
    /// [`crate::Error::Compile`] if the compiler or the driver refuses the text, or if the compiler no longer knows the
    /// architecture, [`crate::Error::Unavailable`] if the compiler is missing and the disk cache has not what it would
    /// make, [`crate::Error::TooLarge`] if the kernel takes more bindings or bytes of parameters than the device,
    /// [`crate::Error::Driver`] if another call of the driver fails, [`crate::Error::Lost`] if the device is lost.
    fn compile(&self, spec: &KernelSpec) -> Result<Executable>;

    /// Provokes what the driver would compile at the first launch of these kernels, and waits for it. As it stands here, it
    /// compiles nothing that late.
    ///
    /// # Errors
    /// [`crate::Error::OutOfMemory`] if there is no memory for buffers to bind, [`crate::Error::WrongDevice`] for a kernel of
    /// another device of this backend, [`crate::Error::Driver`] for one of another backend or if a call of the driver fails,
    /// [`crate::Error::Lost`] if the device is lost.
    fn finish_compiling(&self, _kernels: &[Executable]) -> Result<()> {
        Ok(())
    }

    /// Sets what is called for each kernel that is made ready from now on. As it stands here, nothing ever is: a backend that
    /// compiles has [`Compilations`](crate::Compilations) for this.
    fn observe(&self, _observer: Option<Observer>) {}

    /// Launches a kernel.
    ///
    /// # Errors
    /// [`crate::Error::TooLarge`] for more workgroups or bindings than the device takes, [`crate::Error::WrongDevice`] for
    /// a queue, kernel or memory of another device of this backend, [`crate::Error::Driver`] for one of another backend, if
    /// a call of the driver fails, or if a body for the CPU panics, [`crate::Error::Compile`] if the kernel has to be
    /// compiled once more for views like these and is refused, [`crate::Error::Lost`] if the device is lost.
    ///
    /// # Safety
    /// The kernel's body must stay inside its bindings for these parameters, and must not need more shared memory than
    /// it declares.
    unsafe fn dispatch(&self, queue: &QueueHandle, job: Dispatch<'_, '_>) -> Result<()>;

    /// Waits until all queues are idle, and reports what went wrong on the device since.
    ///
    /// # Errors
    /// [`crate::Error::Driver`] if a call of the driver fails, [`crate::Error::Lost`] if the device is lost, which work
    /// that was queued before may have caused.
    fn sync(&self) -> Result<()>;

    /// Gives memory that the pools hold for reuse back to the system, as far as no pending work uses it.
    fn trim(&self);
}
