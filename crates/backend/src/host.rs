//! Host memory that devices copy from and to while the host goes on.
//!
//! A transfer takes its [`HostBuffer`] by value and gives it back when it is done. So nothing can be read, written to
//! or freed under a running copy. Parts of one allocation are buffers of their own ([`HostBuffer::split_off`]), and
//! several can be under way at once.

use std::{any::Any, fmt, ops, ptr::NonNull, slice, sync::Arc};

use crate::{
    error::{Error, Result},
    info::{DeviceId, Transfer},
    secrecy::Secrecy,
};

/// Host memory of a backend. Dropping it returns the memory to its pool.
///
/// # Safety
/// `start` points to `bytes` initialised bytes. They stay in place and valid while the value lives. Only the
/// [`HostBuffer`]s over it, and transfers that hold one, may access them.
pub unsafe trait HostMemory: Any + Send + Sync {
    /// Returns where the memory starts, at a multiple of 16 bytes.
    fn start(&self) -> NonNull<u8>;
    /// Returns the length of the memory in bytes.
    fn bytes(&self) -> usize;
    /// Returns the device that can copy from or to it.
    fn device(&self) -> DeviceId;
    /// Returns the directions that it is for.
    fn transfer(&self) -> Transfer;
    /// Returns whether it is zeroed when it is dropped.
    fn secrecy(&self) -> Secrecy;
}

/// Host memory that a device copies from or to directly, if it can: pinned with CUDA, mapped with wgpu ([`Transfer`]
/// says when).
///
/// It dereferences to its bytes. The first byte is aligned to 16; a part that was split off stays where it was.
/// [`crate::Device::host_buffer`] makes it. [`crate::ViewMut::write_pinned`] and [`crate::View::read_pinned`] transfer
/// it.
///
/// ```
/// # fn main() -> Result<(), evariste_backend::Error> {
/// use evariste_backend::{Device, Secrecy, Transfer};
///
/// let device = Device::best()?;
/// let mut buffer = device.alloc::<u8>(1000)?;
/// let mut host = device.host_buffer(1000, Transfer::Both, Secrecy::Public)?;
/// host.fill(7);
/// let host = buffer.write_pinned(host)?.wait()?;
/// let host = buffer.read_pinned(host)?.wait()?;
/// assert!(host.iter().all(|byte| *byte == 7));
/// # Ok(())
/// # }
/// ```
pub struct HostBuffer {
    memory: Arc<dyn HostMemory>,
    start: NonNull<u8>,
    len: usize,
}

// SAFETY: a buffer has its bytes to itself, and the memory that they are in is `Send + Sync`.
unsafe impl Send for HostBuffer {}
// SAFETY: shared access only reads.
unsafe impl Sync for HostBuffer {}

impl HostBuffer {
    /// Wraps a backend's own memory.
    pub fn new(memory: impl HostMemory) -> Self {
        let (start, len) = (memory.start(), memory.bytes());
        Self { memory: Arc::new(memory), start, len }
    }

    /// Returns the device that can copy from or to it.
    pub fn device(&self) -> DeviceId {
        self.memory.device()
    }

    /// Returns the directions that it is for.
    pub fn transfer(&self) -> Transfer {
        self.memory.transfer()
    }

    /// Returns whether it is zeroed when it is dropped.
    pub fn secrecy(&self) -> Secrecy {
        self.memory.secrecy()
    }

    /// Returns an error if this buffer, the argument called `what`, is for uploads only.
    ///
    /// # Errors
    /// [`Error::WrongTransfer`] if it was made with [`Transfer::Upload`].
    pub fn expect_download(&self, what: &'static str) -> Result<()> {
        match self.transfer() {
            Transfer::Download | Transfer::Both => Ok(()),
            actual => Err(Error::WrongTransfer { what, expected: Transfer::Download, actual }),
        }
    }

    /// Returns an error unless this buffer, the argument called `what`, is as secret as device memory that it is
    /// copied to and from.
    ///
    /// # Errors
    /// [`Error::SecretInput`] if one of both is secret and the other is public.
    pub fn expect_secrecy(&self, what: &'static str, device: Secrecy) -> Result<()> {
        const DEVICE: &str = "the memory on the device";

        self.secrecy().expect_to(device, "write", [what, DEVICE])?;
        device.expect_to(self.secrecy(), "read", [DEVICE, what])
    }

    /// Splits the buffer at byte `at` without copying: keeps the first part and returns the rest. The rest is empty if
    /// there are no more bytes.
    #[must_use = "dropping it gives part of the memory back"]
    pub fn split_off(&mut self, at: usize) -> Self {
        let at = at.min(self.len);
        // SAFETY: at most `len` further, within the same memory.
        let start = unsafe { self.start.add(at) };
        let rest = Self { memory: Arc::clone(&self.memory), start, len: self.len - at };
        self.len = at;
        rest
    }

    /// Appends `next`, if it is the part that [`HostBuffer::split_off`] cut off here.
    ///
    /// # Errors
    /// Returns `next` if it is anything else.
    pub fn join(&mut self, next: Self) -> Result<(), Self> {
        // SAFETY: one past the end at most.
        let end = unsafe { self.start.add(self.len) };
        if !Arc::ptr_eq(&self.memory, &next.memory) || end != next.start {
            return Err(next);
        }
        self.len += next.len;
        Ok(())
    }

    /// Returns the backend's own handle, or `None` if another backend made this buffer.
    pub fn downcast_ref<T: HostMemory>(&self) -> Option<&T> {
        let memory: &dyn Any = &*self.memory;
        memory.downcast_ref()
    }

    /// Returns the backend's own memory, if this is all of it and there are no other parts.
    ///
    /// # Errors
    /// Returns the buffer as it was, otherwise.
    pub fn into_whole<T: HostMemory>(self) -> Result<T, Self> {
        if self.len != self.memory.bytes() || self.downcast_ref::<T>().is_none() {
            return Err(self);
        }
        let Self { memory, start, len } = self;
        let any: Arc<dyn Any + Send + Sync> = memory;
        match any.downcast::<T>().map(Arc::try_unwrap) {
            Ok(Ok(whole)) => Ok(whole),
            Ok(Err(memory)) => Err(Self { memory, start, len }),
            Err(_) => unreachable!("the memory was just found to be of this type"),
        }
    }
}

impl ops::Deref for HostBuffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: these bytes of the memory are this buffer's alone, since splitting makes disjoint parts and transfers
        // own theirs; the memory is kept alive.
        unsafe { slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }
}

impl ops::DerefMut for HostBuffer {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above, and the buffer is borrowed exclusively.
        unsafe { slice::from_raw_parts_mut(self.start.as_ptr(), self.len) }
    }
}

impl fmt::Debug for HostBuffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HostBuffer").field("device", &self.device()).field("bytes", &self.len).finish()
    }
}

/// A copy under way, of a backend.
pub trait PendingCopy: Any + Send {
    /// Waits for the copy.
    ///
    /// # Errors
    /// - [`crate::Error::Driver`] if the copy or the wait for it fails.
    /// - [`crate::Error::Lost`] if the device is lost.
    /// - [`crate::Error::OutOfMemory`] if other memory has to replace the given one and there is none.
    fn wait(self: Box<Self>) -> Result<HostBuffer>;
}

/// A copy between host and device that is under way. It keeps the host memory until the copy is done. Dropping it
/// abandons the data of a read, but not the memory. A dropped write still happens.
#[must_use = "the data of a read is there only after `wait`"]
pub struct Pending {
    copy: Box<dyn PendingCopy>,
    /// The bytes of host memory that the backend received, and its device.
    given: Option<(usize, DeviceId)>,
}

impl Pending {
    /// Wraps a backend's own copy.
    pub fn new(raw: impl PendingCopy) -> Self {
        Self { copy: Box::new(raw), given: None }
    }

    /// The copy of `bytes` bytes of host memory, which the backend of `device` must return.
    pub(crate) fn of(self, bytes: usize, device: DeviceId) -> Self {
        Self { given: Some((bytes, device)), ..self }
    }

    /// Wraps the host memory of a copy that is done already.
    pub fn done(host: HostBuffer) -> Self {
        Self::new(Done(host))
    }

    /// Waits for the copy and returns the host memory. A read has filled it. After a write it has the same size and
    /// direction, and unspecified contents.
    ///
    /// # Errors
    /// - [`crate::Error::Driver`] if the copy or the wait for it fails.
    /// - [`crate::Error::Lost`] if the device is lost.
    /// - [`crate::Error::OutOfMemory`] with wgpu, after a write of [`Transfer::Upload`] memory, if there is no new
    ///   memory to return in its place.
    pub fn wait(self) -> Result<HostBuffer> {
        let host = self.copy.wait()?;
        match self.given {
            Some((bytes, device)) if host.len() != bytes => {
                let reason = format!("it gave back {} bytes of host memory instead of {bytes}", host.len());
                Err(Error::Driver { device, call: "wait", reason })
            }
            _ => Ok(host),
        }
    }

    /// Returns the backend's own copy.
    ///
    /// # Errors
    /// Returns the copy as it was, if it is of another type.
    pub fn downcast<T: PendingCopy>(self) -> Result<Box<T>, Self> {
        let copy: &dyn Any = &*self.copy;
        if !copy.is::<T>() {
            return Err(self);
        }
        let copy: Box<dyn Any> = self.copy;
        match copy.downcast() {
            Ok(copy) => Ok(copy),
            Err(_) => unreachable!("the copy was just found to be of this type"),
        }
    }
}

impl fmt::Debug for Pending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pending").finish_non_exhaustive()
    }
}

struct Done(HostBuffer);

impl PendingCopy for Done {
    fn wait(self: Box<Self>) -> Result<HostBuffer> {
        Ok(self.0)
    }
}

#[cfg(test)]
mod tests {
    use crate::{device::Device, info::Transfer, secrecy::Secrecy};

    #[test]
    fn parts_join_where_they_were_cut() {
        let device = Device::cpu();
        let host = |len| device.host_buffer(len, Transfer::Both, Secrecy::Public).unwrap();
        let mut first = host(10);
        first.copy_from_slice(b"0123456789");
        let mut third = first.split_off(7);
        let mut second = first.split_off(3);
        assert_eq!((&*first, &*second, &*third), (&b"012"[..], &b"3456"[..], &b"789"[..]));
        second.fill(b'x');
        third = first.join(third).unwrap_err();
        assert_eq!(first.join(host(4)).unwrap_err().len(), 4);
        first.join(second).unwrap();
        first.join(third).unwrap();
        assert_eq!(&*first, b"012xxxx789");
        let end = first.split_off(99);
        assert!(end.is_empty());
        first.join(end).unwrap();
        assert_eq!(first.len(), 10);
    }
}
