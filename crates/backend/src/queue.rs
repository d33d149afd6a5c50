//! Queues: in-order streams of work on a device.

use std::fmt;

use crate::{
    device::{
        Device,
        dispatch::{Arg, Lent},
    },
    error::Result,
    handles::{Event, QueueHandle},
};

/// A device with an in-order queue of copies and launches. Clones are the same queue.
///
/// Plans, copies and launches take a queue. Wherever a function takes `impl Into<Queue>`, `&device` stands for the
/// default queue of the device ([`Device::default_queue`]). [`Device::queue`] makes further queues, whose work runs
/// side by side.
///
/// Work on different queues that uses the same bytes, and writes them at least once, runs in the order in which it was
/// given. It waits for all earlier work of the other queue. To wait for less, use an event ([`Queue::record`],
/// [`Queue::wait_for`]).
///
/// ```
/// # fn main() -> Result<(), evariste_backend::Error> {
/// use evariste_backend::Device;
///
/// let device = Device::best()?;
/// let (transfers, work) = (device.queue()?, device.queue()?);
/// let mut x = transfers.upload::<u32>(&[1, 2, 3])?;
/// work.wait_for(&transfers.record()?)?;
/// work.write(x.view_mut(..1)?, &[10])?;
/// assert_eq!(work.read(&x)?, [10, 2, 3]);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Queue {
    // The backend's own handle does not hold the device: a device, which holds its default queue's, would never close.
    device: Device,
    handle: QueueHandle,
}

impl Queue {
    /// Makes a queue of a device from a handle of its backend, for backends that wrap another one. Others use
    /// [`Device::queue`] or [`Device::default_queue`].
    pub fn from_handle(device: &Device, handle: QueueHandle) -> Self {
        Self { device: device.clone(), handle }
    }

    /// Returns the device of the queue.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// Returns the backend's handle.
    pub fn handle(&self) -> &QueueHandle {
        &self.handle
    }

    /// Returns whether both are the same queue.
    pub fn is_same(&self, other: &Self) -> bool {
        self.handle.is_same(&other.handle) && self.device.is_same(&other.device)
    }

    /// Returns the queue if it is of `device`. A plan calls this for the queue of its caller before it uploads
    /// anything.
    ///
    /// # Errors
    /// [`Error::WrongDevice`](crate::Error::WrongDevice) for a queue of another device.
    pub fn expect_device(&self, device: &Device) -> Result<&Self> {
        device.expect_same("the queue of a plan", &self.device)?;
        Ok(self)
    }

    /// Marks the present end of the queue.
    ///
    /// # Errors
    /// [`Error::Driver`](crate::Error::Driver) if a call of the driver fails, [`Error::Lost`](crate::Error::Lost) if
    /// the device is lost.
    pub fn record(&self) -> Result<Event> {
        self.device.backend().record(&self.handle)
    }

    /// Makes later work of the queue wait for `event`.
    ///
    /// # Errors
    /// - [`Error::WrongDevice`](crate::Error::WrongDevice) if the event is of another device of this kind.
    /// - [`Error::Driver`](crate::Error::Driver) if it is of another kind or if a call of the driver fails.
    /// - [`Error::Lost`](crate::Error::Lost) if the device is lost.
    pub fn wait_for(&self, event: &Event) -> Result<()> {
        self.device.backend().wait_for(&self.handle, event)
    }

    /// Lends the queue and `args` to another library: `give` gets them in terms of the driver and gives its work to the
    /// queue. The work is ordered behind earlier work on any queue that uses the same bytes, and later work behind it.
    ///
    /// CUDA lends its streams, with the context of the device current on the calling thread. Other backends lend
    /// nothing. It belongs to the interface for authors ([`author`](crate::author)).
    ///
    /// # Errors
    /// - [`Error::Unavailable`](crate::Error::Unavailable) if the backend lends nothing.
    /// - [`Error::WrongDevice`](crate::Error::WrongDevice) if an argument is on another device.
    /// - [`Error::Driver`](crate::Error::Driver) if a call of the driver fails, [`Error::Lost`](crate::Error::Lost) if
    ///   the device is lost.
    /// - The error of `give`. After [`Error::Lost`](crate::Error::Lost) the device counts as lost: nothing is given to it
    ///   any more, and its memory is not used for anything else.
    ///
    /// # Safety
    /// `give` gives work to the stream alone, and all of it before it returns, unless it returns `Lost`. The work reads
    /// and writes bytes of `args` alone, and writes those alone that are bound for writing. What depends on secret
    /// bytes comes to secret memory alone. Neither stream nor addresses are used after that work. `give` leaves the
    /// thread's context as it was.
    pub unsafe fn lend(&self, args: &mut [Arg<'_>], mut give: impl FnMut(Lent<'_>) -> Result<()>) -> Result<()> {
        args.iter().try_for_each(|arg| self.device.expect_same("memory that is lent", arg.device()))?;
        // SAFETY: the caller vouches for `give`; spans make sure of the rest.
        unsafe { self.device.backend().lend(&self.handle, args, &mut give) }
    }
}

impl Device {
    /// Returns the queue for work that names no other queue.
    pub fn default_queue(&self) -> Queue {
        Queue::from_handle(self, self.backend().default_queue().clone())
    }

    /// Makes a further queue. A device with only one queue returns its default queue.
    ///
    /// # Errors
    /// [`Error::Driver`](crate::Error::Driver) if the driver cannot make one, [`Error::Lost`](crate::Error::Lost) if
    /// the device is lost.
    pub fn queue(&self) -> Result<Queue> {
        Ok(Queue::from_handle(self, self.backend().queue()?))
    }
}

impl From<&Device> for Queue {
    fn from(device: &Device) -> Self {
        device.default_queue()
    }
}

impl From<&Self> for Queue {
    fn from(queue: &Self) -> Self {
        queue.clone()
    }
}

impl fmt::Debug for Queue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Queue").field("device", &self.device).finish_non_exhaustive()
    }
}

/// The end of work that made something lasting, such as the tables of a plan. Other queues wait for it; its own queue
/// need not.
#[derive(Clone, Debug)]
pub struct Ready {
    queue: Queue,
    event: Event,
}

impl Ready {
    /// Marks the present end of `queue`.
    ///
    /// # Errors
    /// Returns the errors of [`Queue::record`].
    pub fn behind(queue: &Queue) -> Result<Self> {
        Ok(Self { queue: queue.clone(), event: queue.record()? })
    }

    /// Lets later work of `queue` start only after it.
    ///
    /// # Errors
    /// - [`Error::WrongDevice`](crate::Error::WrongDevice) for a queue of another device.
    /// - [`Error::Driver`](crate::Error::Driver) if a call of the driver fails.
    /// - [`Error::Lost`](crate::Error::Lost) if the device is lost.
    pub fn wait(&self, queue: &Queue) -> Result<()> {
        queue.expect_device(&self.queue.device)?;
        match queue.is_same(&self.queue) {
            true => Ok(()),
            false => queue.wait_for(&self.event),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::cpu::Cpu;
    use crate::{error::Error, info::Transfer, secrecy::Secrecy};

    fn other() -> Device {
        Device::unregistered(Arc::new(Cpu::new()))
    }

    #[test]
    fn a_queue_is_named_by_itself_or_by_its_device() {
        let device = other();
        let default = Queue::from(&device);
        assert!(default.is_same(&device.default_queue()) && default.is_same(&Queue::from(&default)));
        assert!(default.device().is_same(&device) && !default.is_same(&other().default_queue()));
        assert_eq!(format!("{default:?}"), "Queue { device: Device(cpu), .. }");
    }

    #[test]
    fn plans_refuse_queues_of_other_devices() {
        let (device, foreign) = (Device::cpu(), other().default_queue());
        let ready = Ready::behind(&device.default_queue()).unwrap();
        assert_eq!(ready.wait(&device.queue().unwrap()), Ok(()));
        let (expected, actual) = (device.info().id, foreign.device().info().id);
        let refused = Error::WrongDevice { what: "the queue of a plan", expected, actual };
        assert_eq!(ready.wait(&foreign), Err(refused.clone()));
        assert_eq!(foreign.expect_device(&device).map(drop), Err(refused));
    }

    #[test]
    fn a_backend_without_streams_lends_nothing() {
        let queue = Device::cpu().default_queue();
        // SAFETY: nothing is given.
        let refused = unsafe { queue.lend(&mut [], |_| unreachable!("it is refused")) };
        assert!(matches!(refused, Err(Error::Unavailable { backend: crate::info::Kind::Cpu, .. })), "{refused:?}");
        assert_eq!(queue.device().is_done(&queue.record().unwrap()), Ok(true));
    }

    #[test]
    fn a_queue_keeps_its_device_open_and_not_the_other_way_round() {
        let backend = Arc::new(Cpu::new());
        let weak = Arc::downgrade(&backend);
        let device = Device::unregistered(backend);
        let (queue, kept) = (device.default_queue(), device.default_queue().handle().clone());
        drop(device);
        assert_eq!(queue.upload::<u32>(&[1, 2]).unwrap().to_vec().unwrap(), [1, 2]);
        drop(queue);
        assert!(weak.upgrade().is_none(), "{kept:?}");
    }

    #[test]
    fn what_is_on_another_device_is_refused() {
        let (device, queue) = (Device::cpu(), other().default_queue());
        let mut x = device.upload::<u32>(&[1, 2, 3]).unwrap();
        let host = || device.host_buffer(12, Transfer::Both, Secrecy::Public).unwrap();
        let refused = |what, error: Option<Error>| {
            assert!(matches!(error, Some(Error::WrongDevice { .. })), "{what}: {error:?}");
        };
        refused("a read", queue.read(&x).err());
        refused("a read of three", queue.read_into(&x, &mut [0; 3]).err());
        refused("a download", queue.download(&x).err());
        refused("a pinned read", queue.read_pinned(&x, host()).err());
        refused("a pinned read of columns", queue.read_pinned_columns(&x, host(), 1, &[]).err());
        refused("a write", queue.write(&mut x, &[7; 3]).err());
        refused("a pinned write", queue.write_pinned(&mut x, host()).err());
        refused("a pinned write of columns", queue.write_pinned_columns(&mut x, host(), 1, 3).err());
        refused("a clear", queue.clear(&mut x).err());
        refused("a duplicate", queue.duplicate(&x).err());
        refused("a replacement", queue.replace(&mut x, queue.upload(&[7; 3]).unwrap()).err());
        let mut y = queue.upload::<u32>(&[7; 3]).unwrap();
        refused("a copy from it", queue.copy(&x, &mut y).err());
        refused("a copy to it", queue.copy(&y, &mut x).err());
        assert_eq!((x.to_vec().unwrap(), y.to_vec().unwrap()), (vec![1, 2, 3], vec![7; 3]));
    }
}
