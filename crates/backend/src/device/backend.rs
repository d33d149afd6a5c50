//! The trait that a device implements.
//!
//! It is object safe and knows no element types. Handles are opaque: each backend downcasts them to its own types. A
//! handle of another backend or device is a typed error, never undefined behaviour. [`SpanMut`] is the exclusive right
//! to a range of an allocation. So the borrow checker orders uses of a range within the program, and the backend orders
//! them on the device.

use std::{fmt, ops::Range, time::Duration};

use crate::{
    compilations::Observer,
    device::dispatch::{Arg, Dispatch, Lent},
    error::{Error, Result},
    handles::{Event, Executable, Memory, QueueHandle},
    host::{HostBuffer, Pending},
    info::{DeviceInfo, Stats, Transfer},
    secrecy::Secrecy,
    span::{Span, SpanMut, row_bytes},
    spec::KernelSpec,
};

/// A device: it provides memory and queues, copies, and runs kernels.
///
/// Copies and launches are queued and return at once. Only [`Pending::wait`], [`Backend::sync`] and
/// [`Backend::elapsed`] block. Within a queue, work runs in the order in which it was given. So does work on different
/// queues that uses the same bytes of an allocation and writes them at least once. A span can say that its maker orders
/// it ([`Span::is_ordered`]). A backend with several queues therefore records the uses of each allocation.
///
/// Offsets and lengths are in bytes. Offsets, and lengths of copies on the device, are multiples of 4. A length may
/// also end at the unaligned end of its allocation.
pub trait Backend: fmt::Debug + Send + Sync + 'static {
    /// Returns the device's name, limits and features.
    fn info(&self) -> &DeviceInfo;

    /// Returns what the device has counted since it was opened.
    fn stats(&self) -> Stats;

    /// Allocates device memory of exactly `bytes` bytes, with unspecified contents. The caller rejects memory whose
    /// [`Memory::bytes`] differs from the requested size. 0 bytes are valid. The allocation ends with a whole word of
    /// 16 bytes, which kernels may read and write.
    ///
    /// # Errors
    /// - [`crate::Error::TooLarge`] if `bytes` exceeds [`Limits::buffer_bytes`](crate::Limits::buffer_bytes) and the
    ///   backend checks that.
    /// - [`crate::Error::OutOfMemory`] if the device has no room after its pools were emptied.
    /// - [`crate::Error::Driver`] if a call of the driver fails.
    /// - [`crate::Error::Lost`] if the device is lost.
    fn alloc(&self, bytes: u64, secrecy: Secrecy) -> Result<Memory>;

    /// Makes host memory of exactly `bytes` bytes that the device copies from or to at full speed, with unspecified
    /// contents. If the staging budget is used up, this may wait for an earlier transfer. Secret memory is zeroed when
    /// its last part is dropped.
    ///
    /// # Errors
    /// - [`crate::Error::OutOfMemory`] if there is not enough memory.
    /// - [`crate::Error::TooLarge`] if a buffer of the API cannot have `bytes` bytes.
    /// - [`crate::Error::Driver`] if a call of the driver fails.
    /// - [`crate::Error::Lost`] if the device is lost.
    fn host_buffer(&self, bytes: usize, transfer: Transfer, secrecy: Secrecy) -> Result<HostBuffer>;

    /// Returns an error if the host memory is of another device with the same id: the id's device may have been opened
    /// anew since. By default, only transfers refuse such memory, and drop it.
    ///
    /// # Errors
    /// [`crate::Error::WrongDevice`] if another device of this backend made it, [`crate::Error::Driver`] if another
    /// backend did.
    fn expect_host(&self, _host: &HostBuffer) -> Result<()> {
        Ok(())
    }

    /// Returns the queue for work that names no other queue.
    fn default_queue(&self) -> &QueueHandle;

    /// Makes a further queue, such as a CUDA stream. A device with only one queue returns its default queue.
    ///
    /// # Errors
    /// [`crate::Error::Driver`] if the driver cannot make one, [`crate::Error::Lost`] if the device is lost.
    fn queue(&self) -> Result<QueueHandle>;

    /// Copies the whole of `src` to `dst`, which has the same length. [`Pending::wait`] returns the host memory, with
    /// unspecified contents. Without that call, the memory returns to its pool when the copy is done.
    ///
    /// # Errors
    /// - [`crate::Error::Length`] if the lengths differ.
    /// - [`crate::Error::WrongDevice`] if a handle is of another device of this backend.
    /// - [`crate::Error::Driver`] if it is of another backend or if a call of the driver fails.
    /// - [`crate::Error::OutOfMemory`] if there is no memory for the bytes to pass through.
    /// - [`crate::Error::Lost`] if the device is lost.
    fn write(&self, queue: &QueueHandle, dst: SpanMut<'_>, src: HostBuffer) -> Result<Pending>;

    /// Copies the whole of `src` to `dst`, which has the same length.
    ///
    /// # Errors
    /// - [`crate::Error::Length`] if the lengths differ.
    /// - [`crate::Error::WrongDevice`] if a handle is of another device of this backend.
    /// - [`crate::Error::Driver`] if it is of another backend or if a call of the driver fails.
    /// - [`crate::Error::OutOfMemory`] if there is no memory for the bytes to pass through.
    /// - [`crate::Error::Lost`] if the device is lost.
    fn read(&self, queue: &QueueHandle, src: Span<'_>, dst: HostBuffer) -> Result<Pending>;

    /// Does what [`Backend::read`] does, into the host memory of a copy that is under way, after that copy. Nobody
    /// waits in between on devices that keep the order of copies. By default, the host waits.
    ///
    /// # Errors
    /// The errors of [`Backend::read`], and the error of the copy before.
    fn read_after(&self, queue: &QueueHandle, src: Span<'_>, before: Pending) -> Result<Pending> {
        self.read(queue, src, before.wait()?)
    }

    /// Does what [`Backend::write`] does, for a matrix of `rows` rows, one block of columns after the other. There are
    /// `pieces` blocks of equal width. It returns an event for each block, after which the block is there. By default,
    /// all blocks are there at the end.
    ///
    /// # Errors
    /// The errors of [`Backend::write`].
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

    /// Does what [`Backend::read`] does, for a matrix of `rows` rows, one block of columns for each event in `after`.
    /// The blocks have equal width, and each is read after its event. By default, all are read after the last event.
    ///
    /// # Errors
    /// The errors of [`Backend::read`]. Besides, [`crate::Error::WrongDevice`] or [`crate::Error::Driver`] if an event
    /// is not of this device.
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

    /// Returns whether [`Backend::copy`] takes `memory`, which is of another device, as its source. Otherwise copies
    /// from that device pass through host memory. By default they do.
    fn copies_from(&self, memory: &Memory) -> bool {
        _ = memory;
        false
    }

    /// Copies `src` to `dst`, which has the same length, on the device. Both may lie in one allocation. `src` may be of
    /// another device if [`Backend::copies_from`] says so; the copy is then ordered behind the work on that device too.
    ///
    /// # Errors
    /// - [`crate::Error::Length`] if the lengths differ.
    /// - [`crate::Error::WrongDevice`] if a handle is of another device of this backend.
    /// - [`crate::Error::Driver`] if it is of another backend or if a call of the driver fails.
    /// - [`crate::Error::OutOfMemory`] if the API copies between parts of one allocation only through another one, and
    ///   there is no memory for that.
    /// - [`crate::Error::Lost`] if the device is lost.
    fn copy(&self, queue: &QueueHandle, src: Span<'_>, dst: SpanMut<'_>) -> Result<()>;

    /// Copies a block of columns of a matrix to the same place of another one: of each of `rows` rows of equal length,
    /// the bytes in `columns`. Both matrices have the same shape, and [`Backend::copy`] says where they may lie. By
    /// default, one row is copied after the other.
    ///
    /// # Errors
    /// The errors of [`Backend::copy`]. Besides, [`crate::Error::OutOfRange`] if `columns` leave a row.
    fn copy_columns(
        &self,
        queue: &QueueHandle,
        src: Span<'_>,
        mut dst: SpanMut<'_>,
        rows: usize,
        columns: Range<u64>,
    ) -> Result<()> {
        let pitch = row_bytes(&src, &dst, rows, &columns)?;
        for row in 0..rows as u64 {
            let (at, bytes) = (row * pitch + columns.start, columns.end - columns.start);
            let (_, part) = dst.reborrow().split_at(at)?;
            self.copy(queue, src.part(at, bytes)?, part.split_at(bytes)?.0)?;
        }
        Ok(())
    }

    /// Sets the bytes of `dst` to zero.
    ///
    /// # Errors
    /// - [`crate::Error::WrongDevice`] if a handle is of another device of this backend.
    /// - [`crate::Error::Driver`] if it is of another backend or if a call of the driver fails.
    /// - [`crate::Error::Lost`] if the device is lost.
    fn clear(&self, queue: &QueueHandle, dst: SpanMut<'_>) -> Result<()>;

    /// Marks the present end of `queue`.
    ///
    /// # Errors
    /// - [`crate::Error::WrongDevice`] if a handle is of another device of this backend.
    /// - [`crate::Error::Driver`] if it is of another backend or if a call of the driver fails.
    /// - [`crate::Error::Lost`] if the device is lost.
    fn record(&self, queue: &QueueHandle) -> Result<Event>;

    /// Makes later work of `queue` wait for `event`.
    ///
    /// # Errors
    /// - [`crate::Error::WrongDevice`] if a handle is of another device of this backend.
    /// - [`crate::Error::Driver`] if it is of another backend or if a call of the driver fails.
    /// - [`crate::Error::Lost`] if the device is lost.
    fn wait_for(&self, queue: &QueueHandle, event: &Event) -> Result<()>;

    /// Waits for both events and returns the time between them, measured on the device where it can.
    ///
    /// # Errors
    /// - [`crate::Error::WrongDevice`] if a handle is of another device of this backend.
    /// - [`crate::Error::Driver`] if it is of another backend or if a call of the driver fails.
    /// - [`crate::Error::Lost`] if the device is lost.
    fn elapsed(&self, from: &Event, to: &Event) -> Result<Duration>;

    /// Makes a kernel ready to launch: from memory, from the disk cache, or by compiling it.
    ///
    /// # Errors
    /// - [`crate::Error::Compile`] if the compiler or the driver refuses the text, or if the compiler no longer knows
    ///   the architecture.
    /// - [`crate::Error::Unavailable`] if there is no compiler and the disk cache does not have the kernel.
    /// - [`crate::Error::TooLarge`] if the kernel has more bindings or bytes of parameters than the device takes.
    /// - [`crate::Error::Driver`] if another call of the driver fails, [`crate::Error::Lost`] if the device is lost.
    fn compile(&self, spec: &KernelSpec) -> Result<Executable>;

    /// Triggers, and waits for, everything that the driver would compile at the first launch of these kernels. By
    /// default, drivers compile nothing that late.
    ///
    /// # Errors
    /// - [`crate::Error::OutOfMemory`] if there is no memory for buffers to bind.
    /// - [`crate::Error::WrongDevice`] if a handle is of another device of this backend.
    /// - [`crate::Error::Driver`] if it is of another backend or if a call of the driver fails.
    /// - [`crate::Error::Lost`] if the device is lost.
    fn finish_compiling(&self, _kernels: &[Executable]) -> Result<()> {
        Ok(())
    }

    /// Sets a function to call for each kernel that is made ready from now on. By default, it is never called. A
    /// backend that compiles has [`Compilations`](crate::author::Compilations) for this.
    fn observe(&self, _observer: Option<Observer>) {}

    /// Launches a kernel.
    ///
    /// # Errors
    /// - [`crate::Error::TooLarge`] for more workgroups or bindings than the device takes.
    /// - [`crate::Error::WrongDevice`] if a handle is of another device of this backend.
    /// - [`crate::Error::Driver`] if it is of another backend or if a call of the driver fails, or if a CPU body
    ///   panics.
    /// - [`crate::Error::Compile`] if such views need the kernel compiled once more, and that fails.
    /// - [`crate::Error::Lost`] if the device is lost.
    ///
    /// # Safety
    /// With these parameters, the kernel's body must stay inside its bindings, and must not use more shared memory
    /// than it declares.
    unsafe fn dispatch(&self, queue: &QueueHandle, job: Dispatch<'_, '_>) -> Result<()>;

    /// Calls `give` once with the queue and the buffers in terms of the driver, so that another library gives work to
    /// the queue. That work is ordered with work on other queues as a launch with these arguments is. What belongs to the
    /// device is current on the calling thread meanwhile, such as its context. By default, nothing is lent.
    ///
    /// # Errors
    /// - [`crate::Error::Unavailable`] if the backend lends nothing.
    /// - [`crate::Error::WrongDevice`] if a handle is of another device of this backend.
    /// - [`crate::Error::Driver`] if it is of another backend or if a call of the driver fails.
    /// - [`crate::Error::Lost`] if the device is lost.
    /// - The error of `give`. What it gave before it failed stays ordered. After [`crate::Error::Lost`] the device is
    ///   lost.
    ///
    /// # Safety
    /// `give` gives work to this stream alone, and all of it before it returns, unless it returns `Lost`. The work
    /// reads and writes bytes of `args` alone, and writes those alone that are bound for writing. Neither stream nor
    /// addresses are used after that work. `give` leaves the thread's context as it was.
    unsafe fn lend(
        &self,
        _queue: &QueueHandle,
        _args: &mut [Arg<'_>],
        _give: &mut dyn FnMut(Lent<'_>) -> Result<()>,
    ) -> Result<()> {
        let reason = "no other library works on its queues".into();
        Err(Error::Unavailable { backend: self.info().id.kind, reason })
    }

    /// Returns whether the work before an event is done. By default, it waits for it.
    ///
    /// # Errors
    /// Those of [`Backend::elapsed`].
    fn is_done(&self, event: &Event) -> Result<bool> {
        self.elapsed(event, event).map(|_| true)
    }

    /// Waits until all queues are idle, and reports errors of their work.
    ///
    /// # Errors
    /// [`crate::Error::Driver`] if a call of the driver fails, [`crate::Error::Lost`] if the device is lost, possibly
    /// because of earlier work.
    fn sync(&self) -> Result<()>;

    /// Returns memory that the pools keep for reuse to the system, unless pending work uses it.
    fn trim(&self);
}
