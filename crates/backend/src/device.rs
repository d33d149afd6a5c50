//! The handle of a device, and under it the trait that a backend implements.

use std::{any::Any, fmt, sync::Arc, time::Duration};

use crate::{
    cached::{Plans, Values},
    compilations::Observer,
    error::{Error, Result},
    handles::{Event, Memory},
    host::HostBuffer,
    info::{DeviceInfo, Stats, Transfer},
    secrecy::Secrecy,
};
use backend::Backend;

pub(crate) mod backend;
pub(crate) mod dispatch;
#[cfg(test)]
mod tests;

/// A device. Clones are the same device, and so is the result of asking for the same device twice.
///
/// ```
/// # fn main() -> Result<(), evariste_backend::Error> {
/// use evariste_backend::Device;
///
/// let device = Device::cpu();
/// let mut buffer = device.upload::<u32>(&[1, 2, 3])?;
/// buffer.view_mut(1..2)?.write(&[20])?;
/// assert_eq!(buffer.to_vec()?, [1, 20, 3]);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Device(pub(crate) Arc<Open>);

pub(crate) struct Open {
    backend: Arc<dyn Backend>,
    values: Values,
    plans: Plans,
}

impl Open {
    pub(crate) fn new(backend: Arc<dyn Backend>) -> Arc<Self> {
        Arc::new(Self { backend, values: Values::default(), plans: Plans::default() })
    }
}

impl Device {
    /// Returns the device's name, limits and features.
    pub fn info(&self) -> &DeviceInfo {
        self.0.backend.info()
    }

    /// Returns what the device has counted since it was opened: launches, copies, bytes.
    pub fn stats(&self) -> Stats {
        self.0.backend.stats()
    }

    /// Sets a function that the device calls after each kernel it makes ready, in place of an earlier one. Use it to
    /// show progress, since a first use may compile for seconds. `None` removes it.
    ///
    /// The thread that compiled calls it, and several threads may call it at once. The device holds no lock meanwhile.
    /// An observer that holds the device keeps it open.
    pub fn on_compile(&self, observer: Option<Observer>) {
        self.backend().observe(observer);
    }

    /// Makes a device from your own backend, such as one for tests. No name opens it: opening its
    /// [`DeviceId`](crate::DeviceId) gives another device.
    pub fn unregistered(backend: Arc<dyn Backend>) -> Self {
        Self(Open::new(backend))
    }

    /// Returns the backend that does the device's work.
    pub fn backend(&self) -> &dyn Backend {
        &*self.0.backend
    }

    /// Returns the value of type `T` that is cached with this device, `T::default()` at first. A crate may keep
    /// measurements of the device in it. It lives as long as the device is open, and must not hold the device, which
    /// would then never close.
    ///
    /// If several threads ask first, all get the same value. No lock is held while `T::default()` runs, so it may ask
    /// for values of other types.
    pub fn cached_value<T: Any + Default + Send + Sync>(&self) -> Arc<T> {
        self.0.values.get()
    }

    /// Returns the plan of type `T` that is cached with this device under `key`. If there is none, `make` makes it. A
    /// device caches at most [`CACHED_PLANS`](crate::CACHED_PLANS) plans of a type, and drops the least recently used
    /// first.
    ///
    /// A plan holds its device, so a device stays open while it caches plans. [`Device::trim`] drops them, and so does
    /// an allocation that finds too little memory or a lost device. Calls on host slices use this; a program that uses
    /// one plan again and again keeps it itself.
    ///
    /// # Errors
    /// The error of `make`. Nothing is cached then.
    pub fn cached_plan<T: Any + Send + Sync, E>(
        &self,
        key: &str,
        make: impl FnOnce() -> std::result::Result<T, E>,
    ) -> std::result::Result<Arc<T>, E> {
        let plans = &self.0.plans;
        if let Some(plan) = plans.find(key) {
            return Ok(plan);
        }
        // Not under the lock: making a plan may take seconds, and may ask for others.
        Ok(plans.keep(key, Arc::new(make()?)))
    }

    /// Returns whether both are the same device.
    pub fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Returns an error unless `other`, the device of `what`, is this device.
    ///
    /// # Errors
    /// [`Error::WrongDevice`] if it is another device.
    pub fn expect_same(&self, what: &'static str, other: &Self) -> Result<()> {
        if self.is_same(other) {
            return Ok(());
        }
        Err(Error::WrongDevice { what, expected: self.info().id, actual: other.info().id })
    }

    /// Memory of the backend, of exactly `bytes` bytes.
    pub(crate) fn alloc_memory(&self, bytes: u64, secrecy: Secrecy) -> Result<Memory> {
        let memory = match self.0.backend.alloc(bytes, secrecy) {
            // Cached plans must not be what is in the way.
            Err(Error::OutOfMemory { .. }) if self.0.plans.clear() => self.0.backend.alloc(bytes, secrecy)?,
            // Nor may they keep a lost device open: once all handles are gone, it can be opened anew.
            Err(error @ Error::Lost { .. }) => {
                self.0.plans.clear();
                return Err(error);
            }
            memory => memory?,
        };
        // Kernels go by the length, also if the backend is not of this crate.
        if memory.bytes() != bytes {
            let reason = format!("it gave {} bytes instead of {bytes}", memory.bytes());
            return Err(Error::Driver { device: self.info().id, call: "alloc", reason });
        }
        Ok(memory)
    }

    /// Makes pinned host memory of `bytes` bytes, which this device copies from or to directly. Its contents are
    /// unspecified. If it is [`Secrecy::Secret`], it is zeroed when it is dropped. With CUDA, pinning new memory is
    /// slow: keep it for many transfers.
    ///
    /// # Errors
    /// - [`Error::OutOfMemory`] if there is not enough memory that the device can use.
    /// - [`Error::TooLarge`] with wgpu if a buffer of its API cannot have `bytes` bytes.
    /// - [`Error::Driver`] if a call of the driver fails.
    /// - [`Error::Lost`] if the device is lost.
    pub fn host_buffer(&self, bytes: usize, transfer: Transfer, secrecy: Secrecy) -> Result<HostBuffer> {
        let host = self.0.backend.host_buffer(bytes, transfer, secrecy)?;
        // Callers go by the length, also if the backend is not of this crate.
        let reason = if host.len() != bytes {
            format!("it gave {} bytes of host memory instead of {bytes}", host.len())
        } else if host.secrecy() < secrecy {
            "it gave host memory that it does not zero in place of secret".into()
        } else {
            return Ok(host);
        };
        Err(Error::Driver { device: self.info().id, call: "host_buffer", reason })
    }

    /// Waits for both events and returns the time between them.
    ///
    /// # Errors
    /// - [`Error::WrongDevice`] if an event is of another device of this kind.
    /// - [`Error::Driver`] if it is of another kind or if a call of the driver fails.
    /// - [`Error::Lost`] if the device is lost.
    pub fn elapsed(&self, from: &Event, to: &Event) -> Result<Duration> {
        self.0.backend.elapsed(from, to)
    }

    /// Returns whether the work before `event` is done. CUDA answers at once; other backends wait for it.
    ///
    /// # Errors
    /// Those of [`Device::elapsed`].
    pub fn is_done(&self, event: &Event) -> Result<bool> {
        self.0.backend.is_done(event)
    }

    /// Waits until the device is idle, and reports errors of its work.
    ///
    /// # Errors
    /// [`Error::Driver`] if a call of the driver fails, [`Error::Lost`] if the device is lost, possibly because of
    /// earlier work.
    pub fn sync(&self) -> Result<()> {
        self.0.backend.sync()
    }

    /// Drops the cached plans ([`Device::cached_plan`]), and returns memory that the pools keep for later buffers to
    /// the system.
    pub fn trim(&self) {
        self.0.plans.clear();
        self.0.backend.trim();
    }
}

impl fmt::Debug for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Device({})", self.info().id)
    }
}

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.info().id, self.info().name)
    }
}

impl Error {
    /// The error of a device whose backend returned host memory other than it received.
    pub fn other_memory(device: &Device) -> Self {
        let reason = "it gave back other host memory than it was given".into();
        Self::Driver { device: device.info().id, call: "wait", reason }
    }
}
