//! Handles of a backend's resources. Each is opaque: the backend downcasts it to a type of its own.

use std::{any::Any, fmt, sync::Arc};

use crate::{
    error::{Error, Result},
    info::DeviceInfo,
};

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

    /// Returns the requested length in bytes.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns the address of the backend's own handle. It distinguishes this allocation from all others that exist.
    pub fn address(&self) -> usize {
        let raw: *const (dyn Any + Send + Sync) = &*self.raw;
        raw.addr()
    }

    /// Returns the backend's own handle, or `None` if another backend made this one.
    pub fn downcast_ref<T: Any>(&self) -> Option<&T> {
        self.raw.downcast_ref()
    }

    /// Returns the backend's own handle for changing it, or `None` if another backend made this one.
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
        pub struct $name(Arc<dyn Any + Send + Sync>);

        impl $name {
            /// Wraps a backend's own handle.
            pub fn new(raw: impl Any + Send + Sync) -> Self {
                Self(Arc::new(raw))
            }

            /// Returns the backend's own handle, or `None` if another backend made this one.
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

shared_handle! {
    /// A backend's own handle of an in-order queue of copies and launches. [`Queue`](crate::Queue) is the handle with
    /// its device.
    QueueHandle
}

impl QueueHandle {
    /// Whether both are clones of one handle.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

shared_handle! {
    /// A point in a queue's work.
    Event
}

shared_handle! {
    /// A kernel ready to launch on one device.
    Executable
}

/// Downcasts a handle of this crate to a backend's own type, or returns an error that names the handle.
pub(crate) fn own<'a, T: Any>(handle: Option<&'a T>, what: &'static str, device: &DeviceInfo) -> Result<&'a T> {
    handle.ok_or_else(|| Error::Driver {
        device: device.id,
        call: what,
        reason: "the handle belongs to another backend".into(),
    })
}
