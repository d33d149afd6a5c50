//! Staging memory: mapped buffers, which the device copies from or to once the host has given them up.

use std::{
    ptr::NonNull,
    slice,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use crate::{error::Result, pool::Pool, secrecy::Secrecy, zeroize::zeroize};

/// Alignment that encoders of elements count on.
const ALIGN: usize = 16;

/// A buffer, mapped from end to end.
#[derive(Debug)]
pub(super) struct Staging {
    pub(super) start: NonNull<u8>,
    /// Keeps the mapping; dropped before the buffer is unmapped.
    view: wgpu::BufferViewMut,
    buffer: wgpu::Buffer,
}

// SAFETY: the pointer is to memory that the view, itself `Send`, has to itself.
unsafe impl Send for Staging {}
// SAFETY: shared access gives the address only.
unsafe impl Sync for Staging {}

impl Staging {
    /// Takes hold of a mapped buffer.
    pub(super) fn of(buffer: wgpu::Buffer) -> Result<Self, String> {
        let mut view = buffer.get_mapped_range_mut(..).map_err(|error| error.to_string())?;
        let start = view.slice(..).as_raw_ptr().cast::<u8>();
        if !start.addr().get().is_multiple_of(ALIGN) {
            return Err(format!("the mapping is not aligned to {ALIGN} bytes"));
        }
        Ok(Self { start, view, buffer })
    }

    pub(super) fn class(&self) -> u64 {
        self.buffer.size()
    }

    pub(super) fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: the view maps this many bytes, which wgpu initialised, for as long as it lives; nothing else, the
        // device included, accesses mapped memory, and the borrow is exclusive. On the platforms of this crate all
        // mappings can be read and written.
        unsafe { slice::from_raw_parts_mut(self.start.as_ptr(), self.view.len()) }
    }

    /// Ends the host's access.
    pub(super) fn unmap(self) -> wgpu::Buffer {
        drop(self.view);
        self.buffer.unmap();
        self.buffer
    }
}

/// Staging memory that the device copies from.
#[derive(Debug)]
pub(super) struct Upload {
    pub(super) buffer: wgpu::Buffer,
    pub(super) secrecy: Secrecy,
}

impl Upload {
    pub(super) fn bytes(&self) -> u64 {
        self.buffer.size()
    }

    /// Maps the buffer again when the submission is done, and puts it into the pool if that still exists.
    pub(super) fn recycle(self, pool: &Arc<Pool<Staging>>, uploading: &Arc<AtomicU64>, fails: bool) {
        let (pool, uploading) = (Arc::downgrade(pool), Arc::clone(uploading));
        let Self { buffer, secrecy } = self;
        let bytes = buffer.size();
        buffer.clone().map_async(wgpu::MapMode::Write, .., move |mapped| {
            if let Some(mut staging) = mapped.ok().filter(|()| !fails).and_then(|()| Staging::of(buffer).ok()) {
                if secrecy == Secrecy::Secret {
                    zeroize(staging.bytes_mut());
                }
                drop(pool.upgrade().map(|pool| pool.replace(bytes, staging)));
            }
            uploading.fetch_sub(bytes, Ordering::Relaxed);
        });
    }
}
