//! The seam: what a device must be able to do.
//!
//! The trait is object safe and knows no element types. Handles are opaque boxes that each backend downcasts to its own
//! types; a handle of another backend or device is a typed error, never undefined
//! behaviour. Exclusive access is expressed by [`SpanMut`], the right to a range of an allocation, so that the borrow checker
//! orders uses of one range; use of one range on several queues is ordered by the caller with events.

use std::{any::Any, fmt, time::Duration};

use crate::{
    DeviceInfo, Dispatch, Executable, HostBuffer, KernelSpec, Pending, Result, Span, SpanMut, Stats, Transfer,
};

/// One device: memory, queues, copies and kernels.
///
/// Copies and launches are queued and return at once; only [`Pending::wait`], [`Backend::sync`] and
/// [`Backend::elapsed`] block. Within a queue, work runs in the order it was given.
///
/// Offsets and lengths are in bytes. Offsets and the lengths of device-side copies are multiples of 4, except that a
/// length may end at the unaligned end of its allocation.
pub trait Backend: fmt::Debug + Send + Sync + 'static {
    /// What the device is.
    fn info(&self) -> &DeviceInfo;

    /// Counters since the device was opened.
    fn stats(&self) -> Stats;

    /// Allocates exactly `bytes` of device memory, contents unspecified; whatever else [`Memory::bytes`] tells is refused. Zero bytes are a valid allocation. It ends with a whole word
    /// of 16 bytes, which kernels may read and write.
    ///
    /// # Errors
    /// [`crate::Error::OutOfMemory`], [`crate::Error::TooLarge`], [`crate::Error::Lost`].
    fn alloc(&self, bytes: u64, secrecy: Secrecy) -> Result<Memory>;

    /// Host memory that the device copies from or to at full speed, of exactly `bytes`, contents unspecified. May wait
    /// for an earlier transfer when the staging budget is used up. Secret memory is zeroed when all of it was dropped.
    ///
    /// # Errors
    /// [`crate::Error::OutOfMemory`], [`crate::Error::Lost`].
    fn host_buffer(&self, bytes: usize, transfer: Transfer, secrecy: Secrecy) -> Result<HostBuffer>;

    /// Refuses host memory that is of a device with the same id, but not of this one: the id's device may have been opened anew
    /// since. As it stands here, only transfers refuse it, with which it is lost.
    ///
    /// # Errors
    /// [`crate::Error::WrongDevice`], [`crate::Error::Driver`] for that of another backend.
    fn expect_host(&self, _host: &HostBuffer) -> Result<()> {
        Ok(())
    }

    /// The queue that everything uses unless told otherwise.
    fn default_queue(&self) -> &Queue;

    /// A further queue: a CUDA stream, or the default queue again where the device has one only.
    ///
    /// # Errors
    /// [`crate::Error::Driver`], [`crate::Error::Lost`].
    fn queue(&self) -> Result<Queue>;

    /// Copies the whole of `src` to `dst`, which has as many bytes. The host memory comes back from [`Pending::wait`]; where
    /// that is not called, it returns to the pool when the copy is done.
    ///
    /// # Errors
    /// [`crate::Error::Length`], [`crate::Error::Driver`], [`crate::Error::Lost`].
    fn write(&self, queue: &Queue, dst: SpanMut<'_>, src: HostBuffer) -> Result<Pending>;

    /// Fills the whole of `dst` from `src`, which has as many bytes.
    ///
    /// # Errors
    /// [`crate::Error::Length`], [`crate::Error::Driver`], [`crate::Error::Lost`].
    fn read(&self, queue: &Queue, src: Span<'_>, dst: HostBuffer) -> Result<Pending>;

    /// [`Backend::read`] into the host memory of a copy that is under way, once that is done: no one waits for it in between where
    /// the device keeps the order of copies. As it stands here, the host waits.
    ///
    /// # Errors
    /// As [`Backend::read`], and those of the copy before.
    fn read_after(&self, queue: &Queue, src: Span<'_>, before: Pending) -> Result<Pending> {
        self.read(queue, src, before.wait()?)
    }

    /// [`Backend::write`] of a matrix of `rows` rows, one block of columns after the other: there are `pieces` such blocks of
    /// equal width, and for each an event that marks when it is there. As it stands here, they are all there at the end.
    ///
    /// # Errors
    /// As [`Backend::write`].
    fn write_columns(
        &self,
        queue: &Queue,
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

    /// [`Backend::read`] of a matrix of `rows` rows, one block of columns after the other, each after its event: there are as
    /// many such blocks of equal width. As it stands here, all are read after the last event.
    ///
    /// # Errors
    /// As [`Backend::read`].
    fn read_columns(
        &self,
        queue: &Queue,
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
    /// [`crate::Error::Length`], [`crate::Error::Driver`], [`crate::Error::Lost`].
    fn copy(&self, queue: &Queue, src: Span<'_>, dst: SpanMut<'_>) -> Result<()>;

    /// Sets the bytes of `dst` to zero.
    ///
    /// # Errors
    /// [`crate::Error::Driver`], [`crate::Error::Lost`].
    fn clear(&self, queue: &Queue, dst: SpanMut<'_>) -> Result<()>;

    /// Marks the present end of `queue`.
    ///
    /// # Errors
    /// [`crate::Error::Driver`], [`crate::Error::Lost`].
    fn record(&self, queue: &Queue) -> Result<Event>;

    /// Lets later work of `queue` start only after `event`.
    ///
    /// # Errors
    /// [`crate::Error::Driver`], [`crate::Error::Lost`].
    fn wait_for(&self, queue: &Queue, event: &Event) -> Result<()>;

    /// Waits for both events and gives the time between them, as the device saw it where it can tell.
    ///
    /// # Errors
    /// [`crate::Error::Driver`], [`crate::Error::Lost`].
    fn elapsed(&self, from: &Event, to: &Event) -> Result<Duration>;

    /// Makes a kernel ready to launch: from memory, from the disk cache, or by compiling it.
    ///
    /// # Errors
    /// [`crate::Error::Compile`], [`crate::Error::Unavailable`] where the compiler is missing, [`crate::Error::Lost`].
    fn compile(&self, spec: &KernelSpec) -> Result<Executable>;

    /// Launches a kernel.
    ///
    /// # Errors
    /// [`crate::Error::TooLarge`], [`crate::Error::Driver`], [`crate::Error::Lost`].
    ///
    /// # Safety
    /// The kernel's body must stay inside its bindings for these parameters, and must not need more shared memory than
    /// it declares. Memory that it shares with work on another queue must be ordered by events.
    unsafe fn dispatch(&self, queue: &Queue, job: Dispatch<'_, '_>) -> Result<()>;

    /// Waits until all queues are idle, and reports what went wrong on the device since.
    ///
    /// # Errors
    /// [`crate::Error::Driver`], [`crate::Error::Lost`].
    fn sync(&self) -> Result<()>;

    /// Gives memory that the pools hold for reuse back to the system, as far as no pending work uses it.
    fn trim(&self);
}

/// Whether memory must be zeroed before anyone else sees it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Secrecy {
    /// Contents may stay in the pool.
    #[default]
    Public,
    /// Keys, witnesses: zeroed before the memory returns to a pool, staging included.
    Secret,
}

impl Secrecy {
    /// Of what is computed from, or becomes, memory of these: secret if any of them is. What an operation keeps for itself
    /// has that of all its inputs and outputs.
    pub fn of(all: impl IntoIterator<Item = Self>) -> Self {
        all.into_iter().max().unwrap_or_default()
    }
}

/// An allocation on a device. Dropping it returns it to the device's pool once pending work is done.
pub struct Memory {
    raw: Box<dyn Any + Send + Sync>,
    bytes: u64,
}

impl Memory {
    /// Wraps a backend's own handle to `bytes` of device memory.
    pub fn new(raw: impl Any + Send + Sync, bytes: u64) -> Self {
        Self { raw: Box::new(raw), bytes }
    }

    /// Bytes that were asked for.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// A number that tells this allocation from all others that there are: where the backend's own handle lies.
    pub fn address(&self) -> usize {
        let raw: *const (dyn Any + Send + Sync) = &*self.raw;
        raw.addr()
    }

    /// The backend's own handle.
    pub fn downcast_ref<T: Any>(&self) -> Option<&T> {
        self.raw.downcast_ref()
    }

    /// The backend's own handle.
    pub fn downcast_mut<T: Any>(&mut self) -> Option<&mut T> {
        self.raw.downcast_mut()
    }
}

impl fmt::Debug for Memory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Memory").field("bytes", &self.bytes).finish_non_exhaustive()
    }
}

macro_rules! shared_handle {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone)]
        pub struct $name(std::sync::Arc<dyn Any + Send + Sync>);

        impl $name {
            /// Wraps a backend's own handle.
            pub fn new(raw: impl Any + Send + Sync) -> Self {
                Self(std::sync::Arc::new(raw))
            }

            /// The backend's own handle, or `None` if another backend made this one.
            pub fn downcast_ref<T: Any>(&self) -> Option<&T> {
                self.0.downcast_ref()
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_struct(stringify!($name)).finish_non_exhaustive()
            }
        }
    };
}
pub(crate) use shared_handle;

shared_handle! {
    /// An in-order queue of copies and launches.
    Queue
}

shared_handle! {
    /// A point in a queue's work.
    Event
}
